"use strict";
(() => {
  const data = JSON.parse(document.getElementById("explore-data").textContent);
  const byId = (id) => document.getElementById(id);
  const fixed = (x, digits) => x.toFixed(digits).replace("-", "\u2212");
  const percent = (x) => (Number.isFinite(x) ? fixed(100 * x, 1) + " %" : "\u2013");
  const cell = (row, text, number) => {
    const td = row.insertCell();
    td.textContent = text;
    if (number) td.className = "num";
    return td;
  };
  /* Long parts are open without scripts and on paper; here they wait to be asked for. */
  const parts = [...document.querySelectorAll("details")];
  const openAll = () => parts.forEach((part) => { part.open = true; });
  parts.forEach((part) => { part.open = false; });
  addEventListener("beforeprint", openAll);
  const openTarget = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    for (let part = target && target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  };
  addEventListener("hashchange", openTarget);
  openTarget();
  byId("explore").hidden = false;
  document.querySelector('nav a[href="#explore"]').parentElement.hidden = false;

  /* Decisions if one class costs more to miss than others. */
  const K = data.classes.length;
  const decide = (p, k, cost) => {
    let best = 0, least = Infinity;
    for (let a = 0; a < K; a++) {
      let loss = 0;
      for (let c = 0; c < K; c++) if (c !== a) loss += (c === k ? cost : 1) * p[c];
      if (loss < least - 1e-12) { least = loss; best = a; }
    }
    return best;
  };
  const all = data.all.y.map((y, i) => ({ y, p: K === 2 ? [1 - data.all.p[i], data.all.p[i]] : data.all.p[i] }));
  const showDecisions = () => {
    const k = Number(byId("cost-class").value), cost = 10 ** Number(byId("cost-value").value);
    const count = data.classes.map(() => data.classes.map(() => 0));
    let total = 0;
    for (const row of all) {
      const a = decide(row.p, k, cost);
      count[row.y][a] += 1;
      if (a !== row.y) total += row.y === k ? cost : 1;
    }
    byId("cost-shown").textContent = cost < 10 ? fixed(cost, 2) : fixed(cost, 0);
    byId("cost-threshold").textContent = K === 2
      ? `Then \u201c${data.classes[k]}\u201d is decided where its probability is ${fixed(1 / (1 + cost), 3)} or more.` : "";
    const body = byId("cost-table").tBodies[0];
    body.replaceChildren();
    data.classes.forEach((name, i) => {
      const row = body.insertRow(), of = count[i].reduce((a, b) => a + b, 0);
      cell(row, name);
      count[i].forEach((n) => cell(row, String(n), true));
      cell(row, percent(count[i][i] / of), true);
      const taken = count.reduce((a, line) => a + line[i], 0);
      cell(row, percent(count[i][i] / taken), true);
    });
    byId("cost-mean").textContent = fixed(total / all.length, 4);
  };
  byId("cost-class").addEventListener("change", showDecisions);
  byId("cost-value").addEventListener("input", showDecisions);
  showDecisions();

  /* Held-out rows: sort and filter. */
  const state = { key: "entropy", down: true };
  const top = (row) => row.p.reduce((best, p, k) => (p > row.p[best] ? k : best), 0);
  const rows = data.rows.map((row) => {
    const k = top(row);
    const entropy = row.p.reduce((h, p) => h - (p > 0 ? p * Math.log(p) : 0), 0);
    return { ...row, top: k, probability: row.p[k], entropy, truth: data.classes[row.y], predicted: data.classes[k] };
  });
  const reasons = (row) => (row.why || []).map(([j, x]) => `${data.features[j]} ${x > 0 ? "+" : ""}${fixed(x, 2)}`).join(", ");
  const showRows = () => {
    const wanted = byId("row-filter").value.trim().toLowerCase(), wrong = byId("row-wrong").checked;
    const novel = byId("row-novel") && byId("row-novel").checked;
    const kept = rows.filter((row) => (!wrong || row.top !== row.y) && (!novel || row.novel) && (!wanted ||
      [String(row.row), row.truth, row.predicted].some((text) => text.toLowerCase().includes(wanted))));
    kept.sort((a, b) => {
      const x = a[state.key], y = b[state.key];
      const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
      return (state.down ? -order : order) || a.row - b.row;
    });
    const body = byId("row-table").tBodies[0];
    body.replaceChildren();
    for (const row of kept) {
      const tr = body.insertRow();
      cell(tr, String(row.row), true);
      cell(tr, row.truth);
      const decided = cell(tr, row.predicted);
      if (row.top !== row.y) decided.className = "wrong";
      cell(tr, fixed(row.probability, 3), true);
      cell(tr, `${fixed(row.low, 3)} to ${fixed(row.high, 3)}`, true);
      cell(tr, fixed(row.entropy, 3), true);
      if (data.novelty) {
        const tail = cell(tr, (row.tail < 0.001 ? "< 0.001" : fixed(row.tail, 3)) + (row.novel ? ", novel" : ""), true);
        if (row.novel) tail.className += " wrong";
      }
      if (data.explained) cell(tr, reasons(row));
    }
    byId("row-count").textContent = `${kept.length} of ${rows.length} rows`;
    for (const button of document.querySelectorAll("#row-table button")) {
      const own = button.dataset.key === state.key;
      button.closest("th").setAttribute("aria-sort", own ? (state.down ? "descending" : "ascending") : "none");
    }
  };
  for (const button of document.querySelectorAll("#row-table button")) {
    button.addEventListener("click", () => {
      state.down = state.key === button.dataset.key ? !state.down : true;
      state.key = button.dataset.key;
      showRows();
    });
  }
  byId("row-filter").addEventListener("input", showRows);
  byId("row-wrong").addEventListener("change", showRows);
  if (byId("row-novel")) byId("row-novel").addEventListener("change", showRows);
  showRows();

  /* What if: the model as polynomials of the standardised features, one for each draw. */
  const model = data.model;
  if (!model) return;
  const inputs = [...document.querySelectorAll("#what-if input")];
  const quantile = (pairs, q) => {
    let sum = 0;
    for (const [p, w] of pairs) { sum += w; if (sum >= q) return p; }
    return pairs[pairs.length - 1][0];
  };
  const ask = () => {
    const x = inputs.map((input) => Number(input.value));
    if (inputs.some((input) => input.value.trim() === "") || x.some((v) => !Number.isFinite(v))) return;
    const z = x.map((v, j) => (v - model.mean[j]) / model.sd[j]);
    const m = model.monomials.map((js) => js.reduce((a, j) => a * z[j], 1));
    const draws = model.coefficients.map((classes) => {
      const terms = classes.map((c) => c.reduce((a, b, t) => a + b * m[t], 0));
      const largest = Math.max(...terms), e = terms.map((t) => Math.exp(t - largest));
      const sum = e.reduce((a, b) => a + b, 0);
      return { p: e.map((v) => v / sum), log: largest + Math.log(sum) };
    });
    const most = Math.max(...draws.map((d) => d.log));
    const weight = draws.map((d) => (model.generative ? Math.exp(d.log - most) : 1));
    const total = weight.reduce((a, b) => a + b, 0);
    const body = byId("what-if-answer").tBodies[0];
    body.replaceChildren();
    data.classes.forEach((name, k) => {
      const pairs = draws.map((d, s) => [d.p[k], weight[s] / total]).sort((a, b) => a[0] - b[0]);
      const mean = pairs.reduce((a, [p, w]) => a + p * w, 0), row = body.insertRow();
      cell(row, name);
      cell(row, fixed(mean, 3), true);
      cell(row, `${fixed(quantile(pairs, data.tail), 3)} to ${fixed(quantile(pairs, 1 - data.tail), 3)}`, true);
    });
  };
  inputs.forEach((input) => input.addEventListener("input", ask));
  byId("what-if-row").addEventListener("change", () => {
    const row = data.rows.find((r) => String(r.row) === byId("what-if-row").value.trim());
    if (row && row.x) { inputs.forEach((input, j) => { input.value = row.x[j] ?? model.start[j]; }); ask(); }
  });
  ask();
})();
