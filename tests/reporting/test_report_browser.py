"""The page in headless Chromium: no error, no request, nothing wider than the window, all figures whole, both schemes.

The page allows no scripts but its own, so a test page puts it into a frame of the wanted width, sets its inputs and
measures it from outside.
"""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from reporting.report_pages import report
from sklearn.metrics import confusion_matrix

from bayes_gda.prediction.decisions import decide
from bayes_gda.reporting.analysis.explore import as_polynomial, contributions

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")

MEASURE = """<!doctype html><html><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, root = page.documentElement;
  const closed = [...page.querySelectorAll("details")].filter(d => !d.open).length;
  page.querySelectorAll("details").forEach(d => {{ d.open = true; }});
  const images = [...page.images].map(i => {{
    const box = i.getBoundingClientRect();
    return {{whole: i.complete && i.naturalWidth > 0, left: box.left, right: box.right, ratio: box.width / box.height,
             natural: i.naturalWidth / i.naturalHeight, shown: i.closest(".scroll").getBoundingClientRect().right,
             point: box.width / i.getAttribute("width")}};
  }});
  const wide = [...page.querySelectorAll("main *")].filter(e => !e.closest(".scroll") &&
    e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.tagName + "." + e.className);
  document.title = JSON.stringify({{client: root.clientWidth, scroll: root.scrollWidth, images, wide,
    paper: getComputedStyle(page.body).backgroundColor, ink: getComputedStyle(page.body).color,
    closed, captions: [...page.querySelectorAll("caption span")].map(e => e.getBoundingClientRect().right),
    scripts: page.scripts.length, lights: page.querySelectorAll(".light").length}});
}});
</script></body></html>"""


def chromium(*options, profile):
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", "--enable-logging=stderr", f"--user-data-dir={profile}", *options,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def measure(name, width, tmp_path, *options):
    source = html.escape(report(name).page.read_text(encoding="utf-8"))
    path = tmp_path / "measure.html"
    path.write_text(MEASURE.format(width=width, page=source), encoding="utf-8")
    answer = chromium("--window-size=1500,1000", "--dump-dom", *options, f"file://{path}", profile=tmp_path / "profile")
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", answer.stdout, re.DOTALL)[1]))


@pytest.mark.parametrize("name", ["pima", "hostile"])
@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window_and_no_figure_is_clipped(name, width, tmp_path):
    found = measure(name, width, tmp_path)
    assert found["client"] == width
    assert found["scroll"] <= width
    assert found["wide"] == []
    assert found["closed"] == 2 if name == "pima" else found["closed"] > 0  # lda and logistic, by method
    assert max(found["captions"]) <= width  # they stay in view while a table scrolls
    assert found["images"]
    for image in found["images"]:
        assert image["whole"]
        assert image["left"] >= 0
        assert image["shown"] <= width  # wider ones scroll
        assert width < 640 or image["right"] <= width
        assert 8 * 96 / 72 * image["point"] >= 9.5  # pixels of its text of eight points
        assert image["ratio"] == pytest.approx(image["natural"], rel=0.02)
    assert found["scripts"] == 2  # data, and the one that the policy admits
    assert found["lights"] == len(report(name).conclusions)


def test_light_and_dark_follow_the_system(tmp_path):
    light = measure("pima", 1400, tmp_path)
    dark = measure("pima", 1400, tmp_path, "--force-dark-mode")
    assert light["paper"] == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark["paper"])[:3])) < 60
    assert min(map(int, re.findall(r"\d+", dark["ink"])[:3])) > 200


def opened(page, tmp_path):
    """Open a page from its file; return console messages, and addresses that the page, not the browser, asked for."""
    log, picture = tmp_path / "net.json", tmp_path / "page.png"
    answer = chromium(
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--log-net-log={log}",
        f"--screenshot={picture}",
        f"file://{page}",
        profile=tmp_path / "profile",
    )
    assert picture.stat().st_size > 2_000
    events = json.loads(log.read_text(errors="replace"))["events"]
    started = [event.get("params", {}) for event in events]
    asked = {p["url"] for p in started if "url" in p and p.get("initiator", "not an origin") != "not an origin"}
    return [line for line in answer.stderr.splitlines() if "CONSOLE" in line], asked


def test_it_opens_from_a_file_without_an_error_or_a_request(tmp_path):
    console, asked = opened(report("hostile").page, tmp_path)
    assert console == []
    assert asked == set()


def test_the_test_above_would_see_an_error_and_a_request(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://example.invalid/x.png'><script>console.error('seen')</script>")
    console, asked = opened(page, tmp_path)
    assert any("seen" in line for line in console)
    assert asked == {"http://example.invalid/x.png"}


# ── Panels ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DRIVE = """<!doctype html><html><body>
<iframe id="frame" style="width:1200px;height:900px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, by = (id) => page.getElementById(id);
  const cells = (id) => [...by(id).tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  const set = (element, value, event) => {{ element.value = value; element.dispatchEvent(new Event(event)); }};
  document.title = JSON.stringify((() => {{ {steps} }})());
}});
</script></body></html>"""


def drive(name, steps, tmp_path):
    """Return what steps in the page return, as a reader would take them."""
    source = html.escape(report(name).page.read_text(encoding="utf-8"))
    path = tmp_path / "drive.html"
    path.write_text(DRIVE.format(page=source, steps=steps), encoding="utf-8")
    answer = chromium("--window-size=1500,1000", "--dump-dom", f"file://{path}", profile=tmp_path / "profile")
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", answer.stdout, re.DOTALL)[1]))


def number(text):
    return float(text.replace("\u2212", "-").removesuffix(" %"))


@pytest.mark.parametrize(("name", "k"), [("pima", 1), ("pima", 0), ("iris", 2)])
def test_costs_move_the_decisions_as_python_says(name, k, tmp_path):
    steps = f"""
      set(by("cost-class"), "{k}", "change");
      set(by("cost-value"), "0.6", "input");
      return {{table: cells("cost-table"), mean: by("cost-mean").textContent, shown: by("cost-shown").textContent,
               threshold: by("cost-threshold").textContent}};
    """
    found = drive(name, steps, tmp_path)
    analysis, cost = report(name).analysis, 10**0.6
    P, y, K = np.exp(analysis.chosen.log_probabilities), analysis.test.y, analysis.test.K
    C = 1 - np.eye(K)
    C[:, k] *= cost
    made = decide(P, C).action
    counts = confusion_matrix(y, made, labels=range(K))
    assert [[int(n) for n in row[1 : K + 1]] for row in found["table"]] == counts.tolist()
    told = f"its probability is {1 / (1 + cost):.3f} or more." if K == 2 else ""
    assert found["threshold"].endswith(told)
    assert bool(found["threshold"]) == (K == 2)
    with np.errstate(invalid="ignore"):
        precision = 100 * np.diag(counts) / counts.sum(axis=0)
    assert [number(row[K + 2]) for row in found["table"]] == pytest.approx(precision, abs=0.05)
    assert number(found["mean"]) == pytest.approx(C[made, y].mean(), abs=5e-5)
    assert number(found["shown"]) == pytest.approx(cost, abs=0.005)
    recall = np.diag(counts) / counts.sum(axis=1)
    assert [number(row[K + 1]) for row in found["table"]] == pytest.approx(100 * recall, abs=0.05)


def test_rows_are_sorted_and_filtered(tmp_path):
    steps = """
      const all = cells("row-table");
      page.querySelector('#row-table button[data-key="probability"]').click();
      const sorted = cells("row-table");
      by("row-wrong").click();
      const wrong = cells("row-table");
      by("row-wrong").click();
      by("row-novel").click();
      const novel = cells("row-table");
      by("row-novel").click();
      page.querySelector('#row-table button[data-key="tail"]').click();
      page.querySelector('#row-table button[data-key="tail"]').click();
      const farthest = cells("row-table");
      set(by("row-filter"), all[3][0], "input");
      return {all, sorted, wrong, novel, farthest, one: cells("row-table"), count: by("row-count").textContent};
    """
    found = drive("pima", steps, tmp_path)
    analysis = report("pima").analysis
    P = np.exp(analysis.chosen.log_probabilities)
    assert len(found["all"]) == len(P)
    entropy = [number(row[5]) for row in found["all"]]
    assert entropy == sorted(entropy, reverse=True)
    assert [number(row[3]) for row in found["sorted"]] == pytest.approx(np.sort(P.max(axis=1))[::-1], abs=6e-4)
    mistaken = analysis.row_numbers[P.argmax(axis=1) != analysis.test.y]
    assert {int(row[0]) for row in found["wrong"]} == set(mistaken.tolist())
    novelty = analysis.novelty.novelty
    marked = {int(row[0]) for row in found["all"] if row[6].endswith(", novel")}
    assert {int(row[0]) for row in found["novel"]} == set(analysis.row_numbers[novelty.novel].tolist()) == marked
    shown = [number(row[6].removesuffix(", novel").removeprefix("< ")) for row in found["farthest"]]
    assert shown == pytest.approx(np.maximum(np.sort(novelty.largest), 0.001), abs=6e-4)
    assert all(found["all"][3][0] in row[0] for row in found["one"])
    assert found["count"] == f"{len(found['one'])} of {len(P)} rows"


@pytest.mark.parametrize("name", ["pima", "iris"])
def test_what_if_gives_the_answer_of_the_model(name, tmp_path):
    analysis = report(name).analysis
    i = int(np.argmax(analysis.detail.entropy.total))
    steps = f"""
      set(by("what-if-row"), "{analysis.row_numbers[i]}", "change");
      return cells("what-if-answer");
    """
    found = drive(name, steps, tmp_path)
    model = as_polynomial(analysis.chosen.model, analysis.train)
    P, weight = model.probabilities(analysis.test.X[i : i + 1])
    mean = np.einsum("sn,snk->nk", weight, P)[0]
    assert [number(row[1]) for row in found] == pytest.approx(mean, abs=6e-4)
    # And that is the prediction itself, up to the noise of its draws.
    truth = np.exp(analysis.chosen.log_probabilities[i])
    spread = np.sqrt(np.einsum("sn,snk->nk", weight, (P - mean) ** 2)[0])
    assert (np.abs(mean - truth) < 5 * spread * np.sqrt((weight**2).sum()) + 1e-3).all()
    lower, upper = (number(x) for x in found[0][2].split(" to "))
    low, high = analysis.detail.interval[i, 0]
    assert lower == pytest.approx(low, abs=0.1)
    assert upper == pytest.approx(high, abs=0.1)


def test_rows_can_be_found_by_class_and_say_what_moves_their_log_odds(tmp_path):
    analysis = report("pima").analysis
    name = str(analysis.test.class_names[1])
    steps = f"""
      const all = cells("row-table");
      set(by("row-filter"), "{name.upper()}", "input");
      const some = cells("row-table");
      page.querySelector('#row-table button[data-key="row"]').click();
      page.querySelector('#row-table button[data-key="row"]').click();
      return {{all, some, ascending: cells("row-table"),
               sorted: page.querySelector('#row-table button[data-key="row"]').closest("th").ariaSort}};
    """
    found = drive("pima", steps, tmp_path)
    top = np.exp(analysis.chosen.log_probabilities).argmax(axis=1)
    wanted = analysis.row_numbers[(analysis.test.y == 1) | (top == 1)]
    assert {int(row[0]) for row in found["some"]} == set(wanted.tolist())
    assert [int(row[0]) for row in found["ascending"]] == sorted(wanted.tolist())
    assert found["sorted"] == "ascending"
    order = np.arange(analysis.test.n)
    moved = contributions(analysis.chosen, order)
    shown = {int(row[0]): row[7] for row in found["all"]}
    for i in order:
        largest = np.argsort(-np.abs(moved[i]), kind="stable")[:3]
        told = [part.rsplit(" ", 1) for part in shown[int(analysis.row_numbers[i])].split(", ")]
        assert [name for name, _ in told] == [analysis.test.feature_names[j] for j in largest]
        assert [number(value) for _, value in told] == pytest.approx(moved[i, largest], abs=0.0051)


@pytest.mark.parametrize("name", ["pima", "iris"])
def test_what_if_takes_typed_values(name, tmp_path):
    analysis = report(name).analysis
    x = np.quantile(analysis.train.X, 0.8, axis=0).round(2)
    steps = f"""
      const inputs = [...page.querySelectorAll("#what-if input")], values = {x.tolist()};
      inputs.forEach((input, j) => set(input, String(values[j]), "input"));
      return cells("what-if-answer");
    """
    found = drive(name, steps, tmp_path)
    P, weight = as_polynomial(analysis.chosen.model, analysis.train).probabilities(x[None])
    assert [number(row[1]) for row in found] == pytest.approx(np.einsum("sn,snk->nk", weight, P)[0], abs=6e-4)
    for k, row in enumerate(found):
        order = np.argsort(P[:, 0, k])
        below = np.cumsum(weight[order, 0])
        ends = [P[order, 0, k][min(np.searchsorted(below, q), len(below) - 1)] for q in (0.05, 0.95)]
        assert [number(end) for end in row[2].split(" to ")] == pytest.approx(ends, abs=0.01)


def test_an_address_opens_the_part_that_it_names(tmp_path):
    steps = """
      const part = by("posterior-lda"), before = part.open;
      page.defaultView.location.hash = "#figure-marginals-lda";
      page.defaultView.dispatchEvent(new Event("hashchange"));
      return {before, after: part.open, other: by("posterior-logistic").open};
    """
    assert drive("pima", steps, tmp_path) == {"before": False, "after": True, "other": False}


def test_long_parts_are_open_on_paper_and_without_scripts(tmp_path):
    page = report("pima").page
    assert page.read_text(encoding="utf-8").count("<details") == page.read_text(encoding="utf-8").count(" open>")
    steps = """
      const parts = [...page.querySelectorAll("details")];
      const before = parts.map((part) => part.open);
      page.defaultView.dispatchEvent(new Event("beforeprint"));
      const unseen = [...page.querySelectorAll("caption")].filter((c) => getComputedStyle(c).display === "none");
      return {before, after: parts.map((part) => part.open),
              lost: unseen.filter((c) => !c.closest("details.long")).length};
    """
    found = drive("pima", steps, tmp_path)
    assert found["lost"] == 0  # a table has its caption, unless the line that folds it says the same
    assert found["before"]
    assert not any(found["before"])
    assert all(found["after"])
