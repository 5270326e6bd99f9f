"""The benchmark page and its numbers, from made-up measurements: nothing is timed here."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from textwrap import dedent
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks import editions
from benchmarks.findings import findings, summary, tally
from benchmarks.group_first import ARRAYS
from benchmarks.page import amount, render, write_page
from benchmarks.record import NUMBERS, Row, Session, Target, compared, merge, read
from benchmarks.rows import gaussian_rows, power
from benchmarks.timing import by_turns, slope
from scipy.stats import linregress

PLACE = {
    "machine": {"processor": "abacus", "cores": 2, "memory_gb": 1.0, "system": "none"},
    "versions": {"python": "3"},
    "commit": "abc",
    "command": "python -m benchmarks",
    "load_before": 0.0,
}
NAMES = {"ours_name": "ours", "theirs_name": "theirs"}


def group(session):
    return session.as_dict(session.name.title(), "How to read it.", PLACE)


@pytest.fixture(scope="module")
def numbers():
    """All groups that have figures of their own, the grid as large as the real one."""
    rng = np.random.default_rng(0)
    fit = Session("fit")
    for j, pair in enumerate(("LDA svd", "LDA lsqr", "QDA", "GaussianNB", "lbfgs", "newton-cholesky", "auto")):
        for d in (2, 10, 50, 200):
            for n in (10**3, 10**4, 10**5, 10**6):
                at = {"model": "LDA", "n": n, "d": d, "K": 2}
                names = {"ours_name": f"ours {j}", "theirs_name": pair}
                what = f"n = {power(n)}, d = {d}"
                fit.rows.append(compared(what, rng.lognormal(size=5), rng.lognormal(size=5), **names, at=at))
    fit.rows.append(compared("a <b>tag</b>", [2.0], [1.0], **NAMES, target=Target(1.0)))
    fit.skipped.append("n = 10⁶: too long")
    sampling = Session("sampling")
    for problem in ("pima", "iris", "qda"):
        for clock in ("sampling", "wall clock"):
            at = {"problem": problem, "clock": clock}
            sampling.rows.append(compared(problem, [900.0], [3.0], lower=False, unit="ESS/s", at=at, **NAMES))
    growth = Session("growth")
    for axis, x in (("n", [10, 100]), ("d", [2, 4]), ("K", [2, 4])):
        for kind in ("fit", "gradient"):
            name = {"kind": kind, "name": "LDA", "axis": axis}
            growth.series.append({"what": "LDA", **name, "x": x, "seconds": [1.0, 2.0]})
            target = Target(1.2, of="ours", at_least=False)
            at = {"axis": axis, "theory": 1}
            growth.rows.append(
                Row("LDA", 0.97, None, **NAMES, unit="exponent", rival=False, target=target, error=0.01, at=at)
            )
    return {"format": 1, "groups": {s.name: group(s) for s in (growth, sampling, fit)}}


# ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ratio_is_how_many_times_better_ours_is():
    ours, theirs = [1.0, 2.0, 4.0], [3.0, 4.0, 6.0]
    row = compared("fit", ours, theirs, **NAMES)
    assert (row.ours, row.theirs, row.ratio, row.rounds) == (2.0, 4.0, 2.0, 3)  # of 3, 2 and 1.5
    assert row.spread == pytest.approx(np.quantile([3, 2, 1.5], [0.25, 0.75]))
    assert compared("rate", ours, theirs, lower=False, **NAMES).ratio == 0.5


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([1, 1, 1], [2, 2, 2], "win"),
        ([2, 2, 2], [1, 1, 1], "lose"),
        ([1, 1, 1], [0.5, 1.1, 2], "even"),
        ([2], [1], "lose"),
        ([2], [2], "even"),
    ],
)
def test_verdict(ours, theirs, verdict):
    assert compared("x", ours, theirs, **NAMES).verdict == verdict
    assert compared("x", ours, theirs, rival=False, **NAMES).verdict is None


@pytest.mark.parametrize(
    ("target", "met"),
    [(Target(2.0), True), (Target(2.1), False), (Target(1.0, of="ours", at_least=False), True),
     (Target(0.9, of="ours", at_least=False), False)],
)  # fmt: skip
def test_target(target, met):
    assert compared("x", [1.0], [2.0], target=target, **NAMES).as_dict()["met"] is met


def test_exponent_is_the_regression_of_logarithms():
    x = np.array([1e3, 1e4, 1e5, 1e6])
    assert slope(x, 3e-7 * x**1.5) == pytest.approx((1.5, 0.0), abs=1e-9)
    seconds = x * np.random.default_rng(0).lognormal(sigma=0.3, size=4)
    truth = linregress(np.log(x), np.log(seconds))
    assert slope(x, seconds) == pytest.approx((truth.slope, truth.stderr))


def test_functions_are_called_by_turns():
    calls = []
    times = by_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=4, budget=0.0, pause=0.0)
    assert calls == ["a", "b"] * 3  # no budget leaves the fewest rounds
    assert [len(values) for values in times.values()] == [3, 3]


def test_rows_of_overlapping_classes():
    X, y = gaussian_rows(4000, 5, 4)
    assert np.bincount(y).tolist() == [1000] * 4
    means = np.array([X[y == k].mean(0) for k in range(4)])
    distance = ((means[:, None] - means[None]) ** 2).sum(-1)[np.triu_indices(4, 1)]
    assert 0.2 < np.sqrt(distance).mean() < 4
    assert [power(n) for n in (1000, 10**6, 20000, 30)] == ["10³", "10⁶", "20000", "30"]


# ── The file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_groups_are_merged_one_by_one(tmp_path):
    for name, figure in (("fit", 1.0), ("memory", 2.0), ("fit", 3.0)):
        session = Session(name)
        session.rows.append(compared("x", [figure], [6.0], **NAMES))
        merge(tmp_path / "out", name, group(session))
    known = read(tmp_path / "out")
    assert {name: g["rows"][0]["ratio"] for name, g in known["groups"].items()} == {"fit": 2.0, "memory": 3.0}
    assert [path.name for path in (tmp_path / "out").iterdir()] == [NUMBERS]


def test_a_failed_merge_leaves_the_file_whole(tmp_path):
    merge(tmp_path, "fit", group(Session("fit")))
    before = (tmp_path / NUMBERS).read_bytes()
    with pytest.raises(TypeError):
        merge(tmp_path, "memory", {"rows": object()})
    assert (tmp_path / NUMBERS).read_bytes() == before
    (tmp_path / NUMBERS).write_text('{"format": 0}')
    with pytest.raises(ValueError, match="format 0"):
        merge(tmp_path, "fit", {})


def test_what_is_not_finite_is_null(tmp_path):
    session = Session("fit", settings={"sizes": np.array([1, 2])})
    session.rows.append(Row("x", np.float64("nan"), np.inf, **NAMES))
    text = merge(tmp_path, "fit", group(session)).read_text()
    row = json.loads(text)["groups"]["fit"]["rows"][0]
    assert row["ours"] is None
    assert row["theirs"] is None


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Balance(HTMLParser):
    """Holds every element to its end tag; those of table cells may be left out, and are, for size."""

    VOID = frozenset({"meta", "img", "br", "wbr", "tr", "td", "th"})

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag


@pytest.fixture(scope="module")
def page(numbers):
    return render(numbers)


def test_page_is_one_small_file_that_opens_offline(page):
    parser = Balance()
    parser.feed(page)
    assert not parser.open
    assert len(page.encode()) < 300_000
    sources = [attrs["src"] for tag, attrs in parser.tags if tag == "img"]
    assert len(sources) == 3
    assert all(source.startswith("data:image/svg+xml,") for source in sources)
    assert all(attrs["alt"] for tag, attrs in parser.tags if tag == "img")
    assert not [tag for tag, attrs in parser.tags if tag in ("script", "link")]
    links = [attrs["href"] for tag, attrs in parser.tags if tag == "a"]
    ids = {attrs["id"] for _, attrs in parser.tags if "id" in attrs}
    assert all(link == NUMBERS or link.removeprefix("#") in ids for link in links)
    assert "a &lt;b&gt;tag&lt;/b&gt;" in page


def test_smaller_figures_refer_to_what_they_hold(page):
    for source in re.findall(r'<img src="data:image/svg\+xml,([^"]+)"', page):
        root = ElementTree.fromstring(unquote(source))
        ids = {element.get("id") for element in root.iter()} - {None}
        used = {element.get("href")[1:] for element in root.iter() if element.get("href")}
        clips = set(re.findall(r"url\(#(\w+)\)", unquote(source)))
        assert used
        assert used | clips <= ids


def test_page_keeps_the_order_of_the_groups(page):
    assert re.findall(r'<section id="(\w+)"', page) == ["findings", "fit", "sampling", "growth", "reproduce"]


def test_page_says_where_we_lose(numbers, page):
    rows = [row for g in numbers["groups"].values() for row in g["rows"]]
    lost = [row for row in rows if row["verdict"] == "lose"]
    worst = min(lost, key=lambda row: row["ratio"])
    told = {finding.topic: " ".join(finding.sentences) for finding in findings(numbers["groups"])}
    assert f"worse in {len(lost)} of" in told["Where we lose"]
    assert worst["what"] in told["Where we lose"]
    assert f"{1 / worst['ratio']:.3g} times" in told["Where we lose"]
    assert "Where we lose" in page
    assert "Missed: a <b>tag</b>, 0.5 where ≥ 1 was wanted." in told["Targets"]
    assert "6 of 7 targets" in told["Targets"]
    assert "at best 300 times" in told["Where we win"]


def test_no_loss_is_said_too(numbers):
    only = {"sampling": numbers["groups"]["sampling"]}
    told = {finding.topic: finding for finding in findings(only)}
    assert told["Where we lose"].light == "green"
    assert "Targets" not in told


def test_tally_counts_every_rival_once(numbers):
    rows = numbers["groups"]["fit"]["rows"]
    ratios = [row["ratio"] for row in rows]
    assert sum(tally(rows).values()) == len(rows) == 113
    assert f"the median ratio is {np.median(ratios):.3g}" in summary(rows)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.0123, "s", "12.3 ms"), (2.5, "s", "2.5 s"), (4.2e-5, "s", "42 µs"), (1234.0, "rows/s", "1234 rows/s"),
     (2.5e6, "rows/s", "2.5 M rows/s"), (1.017, "exponent", "1.02"), (None, "s", "–")],
)  # fmt: skip
def test_amounts(value, unit, text):
    assert amount(value, unit) == text


def test_quick_and_busy_runs_say_so(numbers, tmp_path):
    doubtful = {"sampling": numbers["groups"]["sampling"] | {"quick": True, "load_before": 8.0}}
    told = " ".join(" ".join(f.sentences) for f in findings(doubtful))
    assert "--quick, which means nothing" in told
    assert "busy" in told
    merge(tmp_path, "sampling", doubtful["sampling"])
    assert "no figure here means anything" in write_page(tmp_path).read_text(encoding="utf-8")


# ── Editions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_changes_since_the_first_edition_are_those_of_common_rows(monkeypatch, tmp_path):
    fit, new = Session("fit"), Session("new")
    for what, ours in (("same", 1.0), ("faster (verdict: trusted)", 0.25), ("slower", 4.0), ("only now", 1.0)):
        fit.rows.append(compared(what, [ours], [1.0], **NAMES))
    new.rows.append(compared("a", [1.0], [2.0], **NAMES))
    ratios = {f"{what} | ours | theirs": ratio for what, ratio in (("same", 1.1), ("faster", 1.0), ("slower", 0.5))}
    first = tmp_path / "first.json"
    first.write_text(json.dumps({"fit": {"commit": "old", "ratios": ratios | {"gone | ours | theirs": 7.0}}}))
    monkeypatch.setattr(editions, "FIRST_EDITION", first)
    groups = {s.name: group(s) for s in (fit, new)}
    (change,), unchanged, added = editions.changes(groups)
    assert (change.rows, change.before, change.now) == (3, 1.0, 1.0)  # medians of 1.1, 1, .5 and of 1, 4, .25
    assert (change.better, change.worse) == (1, 1)
    assert change.gain == ("faster (verdict: trusted); ours against theirs", 1.0, 4.0)
    assert change.loss == ("slower; ours against theirs", 0.5, 0.25)
    assert (unchanged, added) == ([], ["New"])
    groups["fit"]["commit"] = "old"
    assert editions.changes(groups) == ([], ["Fit"], ["New"])


def test_the_page_still_measures_what_the_first_edition_did():
    """Rows that get other names would drop out of the comparison unseen."""
    first = json.loads(editions.FIRST_EDITION.read_text())
    kept = read(Path(__file__).parents[1] / "reports" / "benchmarks")["groups"]
    for name, edition in first.items():
        rows = {editions.key(row) for row in kept[name]["rows"]}
        assert len(rows & edition["ratios"].keys()) > 0.9 * len(edition["ratios"])


def test_the_timed_way_from_arrays_to_a_corrected_posterior_exists_and_needs_no_pymc():
    done = subprocess.run([sys.executable, "-c", dedent(ARRAYS)], check=True, capture_output=True, text=True)
    _, effective, imported = map(float, done.stdout.split())
    assert effective > 3000
    assert not imported
