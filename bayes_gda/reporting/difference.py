"""Two reports against each other: which conclusions changed, and which numbers by more than their noise.

Numbers that a report gives with a standard error (or an interval, whose width stands for one) are compared by

    z = (b − a) / √(s_a² + s_b²),    beyond noise if |z| exceeds the two-sided normal quantile of .05/m

for m numbers compared (Bonferroni: of two reports that differ by chance alone one in 20 shows a change). If both
reports rest on the same training and held-out rows, the sampling error is the same in both and drops out of the
difference. What is left is Monte Carlo error, which 100 effective draws hold below a tenth of the posterior standard
deviation: s is then a tenth of the standard error. Rows that two splits of one table share make the test conservative.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from bayes_gda.errors import DataError

# Probability of calling two reports different that differ by noise alone.
LEVEL = 0.05
# Monte Carlo error beside the standard error.
DRAWN = 0.1
# Differences below this share of the larger number are rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """A number in two reports.

    Parameters
    ----------
    name
        What it is.
    before, after
        Its values.
    noise
        Standard error of the difference.
    beyond
        Whether the difference exceeds its noise.
    """

    name: str
    before: float
    after: float
    noise: float
    beyond: bool

    @property
    def difference(self) -> float:
        """By how much it changed."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two reports.

    Parameters
    ----------
    made
        How they were made differently, in words: settings and versions.
    data
        How their data differ, in words; nothing if the rows are the same.
    conclusions
        Topic, light and sentence before and after, of conclusions whose light or subject changed; None where one report
        has no such topic.
    models
        Other changes of the models, in words: which is chosen, by which method each is fitted, which are there.
    numbers
        All numbers with an error that both reports have.
    predictions
        What happened to the probabilities of held-out rows that both show, in words; nothing if there are none.
    """

    made: tuple[str, ...]
    data: tuple[str, ...]
    conclusions: tuple[dict[str, Any], ...]
    models: tuple[str, ...]
    numbers: tuple[Change, ...]
    predictions: tuple[str, ...]

    @property
    def changed(self) -> tuple[Change, ...]:
        """The numbers that changed by more than their noise, the clearest first."""
        changes = [c for c in self.numbers if c.beyond]
        return tuple(sorted(changes, key=lambda c: -abs(c.difference) / c.noise if c.noise else -math.inf))

    @property
    def same(self) -> bool:
        """Whether data, conclusions, models and numbers are the same, up to noise; how they were made may differ."""
        return not (self.data or self.conclusions or self.models or self.changed)


def read_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the numbers of a report, by its folder or its report.json."""
    file = Path(path)
    file = file / "report.json" if file.is_dir() else file
    if file.suffix == ".html":
        file = file.with_name("report.json")
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"Cannot read {str(file)!r}: {error.strerror}. Give the folder of a report.") from None
    except (ValueError, RecursionError):
        raise DataError(f"{str(file)!r} is not valid JSON. Give the folder of a report.") from None
    if not isinstance(report, dict) or not {"conclusions", "reproduce", "comparison"} <= report.keys():
        raise DataError(f"{str(file)!r} is not that of a report. Give the folder of one.")
    return report


def compare_reports(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Return what differs between two reports.

    Parameters
    ----------
    before, after
        All numbers of the reports, as `read_report` and `Report.numbers` have them.
    """
    try:
        data = tuple(_data(before, after))
        return Difference(
            tuple(_made(before, after)),
            data,
            tuple(_conclusions(before, after)),
            tuple(_models(before, after)),
            _numbers(before, after, same=not data),
            tuple(_predictions(before, after)),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(
            f"The reports cannot be compared: {type(error).__name__} at {error}. Were they written by different "
            "versions? Write them anew."
        ) from error


# ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _made(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    old_run, new_run = a["reproduce"], b["reproduce"]
    for name in ("command", "seed", "tolerance", "sampler", "platform"):
        if old_run.get(name) != new_run.get(name):
            old, new = ("none" if run.get(name) is None else run[name] for run in (old_run, new_run))
            yield f"{name}: {old} → {new}"
    versions = [{line["package"]: line["version"] for line in run["versions"]} for run in (old_run, new_run)]
    for package in sorted(versions[0].keys() | versions[1].keys(), key=str.lower):
        old, new = (side.get(package, "not used") for side in versions)
        if old != new:
            yield f"{package}: {old} → {new}"


def _data(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    prints = [(side["reproduce"]["fingerprint"], side["reproduce"]["test_fingerprint"]) for side in (a, b)]
    if prints[0] == prints[1]:
        return
    yield "The held-out rows differ." if prints[0][0] == prints[1][0] else "The tables differ."
    names = {"rows": "rows", "train_rows": "training rows", "test_rows": "held-out rows", "missing": "missing values"}
    for key, words in names.items():
        if a["data"].get(key) != b["data"].get(key):
            yield f"{words}: {a['data'].get(key)} → {b['data'].get(key)}"
    for key, words, field in (("features", "features", "feature"), ("balance", "classes", "class")):
        sides = [[str(line[field]) for line in side["data"][key]] for side in (a, b)]
        gone, new = ([x for x in sides[i] if x not in sides[1 - i]] for i in (0, 1))
        yield from (f"{words} {verb}: {_listed(names)}" for verb, names in (("gone", gone), ("new", new)) if names)


def _conclusions(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    sides = [{line["topic"]: line for line in side["conclusions"]} for side in (a, b)]
    for topic in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(topic) for side in sides)
        if old is None or new is None or old["light"] != new["light"]:
            pair = {"before": old, "after": new}
            lines = {key: line and {"light": line["light"], "sentence": line["sentence"]} for key, line in pair.items()}
            yield {"topic": topic, **lines}


def _models(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    if a["chosen"]["name"] != b["chosen"]["name"]:
        yield f"The chosen model: {a['chosen']['name']} → {b['chosen']['name']}."
    sides = [{line["name"]: line for line in side["models"]} for side in (a, b)]
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(name) for side in sides)
        if old is None or new is None:
            yield f"{name} is {'new' if old is None else 'gone'}."
            continue
        for key in ("method", "verdict"):
            if old[key] != new[key]:
                yield f"{key} of {name}: {old[key]} → {new[key]}."


def _predictions(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """Compare the chosen models on the held-out rows that both reports list, if the rows are of the same table."""
    if a["reproduce"]["fingerprint"] != b["reproduce"]["fingerprint"]:
        return
    sides = [{row["row"]: row["p"] for row in side.get("explore", {}).get("rows", [])} for side in (a, b)]
    if a["explore"]["classes"] != b["explore"]["classes"]:
        return
    common = [row for row in sides[0] if row in sides[1]]
    if not common:
        return
    gaps = {row: max(abs(x - y) for x, y in zip(sides[0][row], sides[1][row], strict=True)) for row in common}
    worst = max(gaps, key=lambda row: gaps[row])
    flips = sum(_top(sides[0][row]) != _top(sides[1][row]) for row in common)
    rows = "1 held-out row" if len(common) == 1 else f"{len(common)} held-out rows"
    if not gaps[worst]:
        yield f"On {rows} that both list, the probabilities are the same."
        return
    yield (
        f"On {rows} that both list, the largest change of a probability is {gaps[worst]:.2g} (row {worst}); the "
        f"predicted class changes in {flips}."
    )


def _top(p: Sequence[float]) -> int:
    return max(range(len(p)), key=lambda k: p[k])


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _numbers(a: Mapping[str, Any], b: Mapping[str, Any], *, same: bool) -> tuple[Change, ...]:
    old, new = dict(_known(a, same)), dict(_known(b, same))
    shared = [name for name in old if name in new]
    scale = DRAWN if same else 1.0
    limit = NormalDist().inv_cdf(1 - LEVEL / (2 * max(1, len(shared))))
    changes = []
    for name in shared:
        (x, s), (y, t) = old[name], new[name]
        noise = scale * math.hypot(s, t)
        rounding = ROUNDING * max(abs(x), abs(y), 1.0)
        changes.append(Change(name, x, y, noise, abs(y - x) > max(limit * noise, rounding)))
    return tuple(changes)


def _known(report: Mapping[str, Any], same: bool) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield what numbers mean, with value and standard error; those without either are passed over."""
    for name, value, error in (*_measured(report), *(_evidence(report) if same else ())):
        if value is not None and error is not None and math.isfinite(value) and math.isfinite(error):
            yield name, (float(value), float(error))


def _measured(report: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    comparison, chosen, data = report["comparison"], report["chosen"]["name"], report["data"]
    for table, words, n in (
        ("loo", "leave-one-out", data["train_rows"]),
        ("held_out", "held-out", data["test_rows"]),
    ):
        for line in comparison[table]:
            where = f"{words}, {line['model']}"
            yield f"mean log score ({where})", line["log_score"], line["se"] / n
            yield f"accuracy ({where})", line["accuracy"], line["accuracy_se"]
            yield f"Brier score ({where})", line["brier"], line["brier_se"]
    shown = report["performance"]
    for line in shown["classes"]:
        for key, words in (("recall", "recall"), ("precision", "precision"), ("auc", "AUC")):
            yield f"{words} of {line['class']} ({chosen})", *_interval(line, key, shown["prob"])
    for line in report["calibration"]["events"]:
        event = line["class"] if line["event"] == "class" else line["event"]
        for key in ("slope", "intercept"):
            yield f"calibration {key} of {event} ({chosen})", line.get(key), line.get(f"{key}_se")
    effects = report["effects"]
    for line in effects["average"]:
        what = f"effect of {line['feature']} on P({line['class']}) ({chosen})"
        yield what, line["estimate"], _error(line["lower"], line["upper"], effects["prob"])
    for line in effects["odds"]:
        ends = [line["per_unit"], line["per_unit_lower"], line["per_unit_upper"]]
        if all(end is not None and end > 0 for end in ends):
            value, low, high = map(math.log, ends)
            what = f"log odds ratio of {line['feature']}, {line['class']} ({chosen})"
            yield what, value, _error(low, high, effects["prob"])


def _evidence(report: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield evidences, whose errors are of Monte Carlo; of other rows they are other quantities."""
    for line in report["comparison"]["evidence"]:
        error = None if line["error"] is None else line["error"] / DRAWN
        yield f"log evidence ({line['model']})", line["log_evidence"], error


def _interval(line: Mapping[str, Any], key: str, prob: float) -> tuple[Any, Any]:
    return line.get(key), _error(line.get(f"{key}_lower"), line.get(f"{key}_upper"), prob)


def _error(low: float | None, high: float | None, prob: float) -> float | None:
    """Return the standard error whose normal interval is as wide."""
    if low is None or high is None:
        return None
    return (high - low) / (2 * NormalDist().inv_cdf((1 + prob) / 2))
