"""How often a verdict is wrong, on random regressions that no constant was chosen on: `make verdict`.

Each case is fitted as `inference="auto"` does, up to where it would sample. `trusted` and `corrected` claim that the
probabilities of the training rows are within the tolerance; `trust_for` claims it of single rows, new ones and ones
three times as far from the centre. A claim is false if the truth, by long sampling, is further off than the tolerance
and NOISE of its own standard errors. Cases whose truth is too noisy, or was not found, are counted apart.

What is done is kept in `cache/`, and from verdict.json: a run may be stopped with Ctrl-C and taken up again by the same
command, cheap cases first. `--conclude` runs no case. It writes verdict.json and the page.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from proof.page import write_page
from proof.store import write_json
from proof.verdict_cases import GROUPS, SEED, Case, Truth, random_case, sizes, true_probabilities
from scipy.stats import beta

from bayes_gda import __version__
from bayes_gda.checks import Floats
from bayes_gda.errors import BayesGDAError
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods import ladder
from bayes_gda.methods.settings import TOLERANCE, Settings
from bayes_gda.methods.verdict import judge_rows
from bayes_gda.prediction.fitted import FittedModel

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "proof"
NUMBERS = "verdict.json"
BINARY, MULTICLASS = 270, 130
# Standard errors of the truth granted: the largest of some hundred rows reaches so many by chance.
NOISE = 4.0
# A truth whose largest error times NOISE is beyond the tolerance cannot tell; chains that refuse more than half of
# their trajectories may be stuck.
ACCEPTED = 0.5
SECONDS = 0.15
# One case in so many is a large one, so that a run that is stopped early has some of them.
LARGE_EVERY = 20


def judge_case(index: int, multiclass: bool, seconds: float = SECONDS) -> dict[str, Any]:
    """Return what was claimed of a case, and what is true."""
    case, settings = random_case(index, multiclass), Settings(random_seed=index)
    record: dict[str, Any] = {"index": index, "multiclass": multiclass} | case.about
    started = time.process_time()
    try:
        fast = ladder._fast(case.family, settings)
    except BayesGDAError as error:
        return record | {"outcome": "failed", "why": str(error)}
    record |= {"verdict": fast.verdict.verdict, "method": fast.chosen}
    record["fit_seconds"] = round(time.process_time() - started, 3)
    if fast.gaussian is None:
        return record | {"outcome": "no mode"}
    start = fast.gaussian if fast.propagated is None else fast.propagated.gaussian
    try:
        truth = true_probabilities(case, start, seconds, 0.6 * TOLERANCE / NOISE, index)
    except BayesGDAError as error:
        return record | {"outcome": "no truth", "why": str(error)}
    record |= {"acceptance": round(truth.acceptance, 3), "noise": _short(truth.error.max()), "truth_draws": truth.draws}
    training = truth.error[: len(case.rows["training"])]
    if truth.acceptance < ACCEPTED or NOISE * training.max() > TOLERANCE:
        return record | {"outcome": "truth too noisy"}
    return record | {"outcome": "judged"} | _judged(case, fast, truth)


def _judged(case: Case, fast: ladder.Fit, truth: Truth) -> dict[str, Any]:
    """Return the figures of each group of rows."""
    model = fast.models.get(fast.chosen)
    settings = Settings()
    better = None if fast.propagated is None else case.family.from_propagated(fast.propagated.gaussian, settings)
    out: dict[str, Any] = {}
    stops = np.cumsum([len(case.rows[group]) for group in GROUPS])
    for group, stop in zip(GROUPS, stops, strict=True):
        X = case.rows[group]
        p, error = truth.p[stop - len(X) : stop], truth.error[stop - len(X) : stop]
        figures: dict[str, Any] = {"rows": len(X), "noise": _short(error.max())}
        if better is not None:
            figures["corrected_error"] = _short(np.abs(_probabilities(better, X) - p).max())
        if model is not None:
            away = np.abs(_probabilities(model, X) - p)
            beyond = (away - NOISE * error).max(axis=1)
            rows = judge_rows(model, fast.verdict, X, TOLERANCE)
            claimed = rows.within
            figures |= {"error": _short(away.max()), "beyond": _short(beyond.max()), "claimed": int(claimed.sum())}
            figures["false_rows"] = int((claimed & (beyond > TOLERANCE)).sum())
            # Rows whose truth is too noisy cannot tell.
            figures["clear"] = int((claimed & (NOISE * error.max(axis=1) <= TOLERANCE)).sum())
            figures["estimate"] = _short(np.nanmax(rows.error, initial=0.0))
        out[group] = figures
    return out


def summarise(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return counts and rates with their 95 % upper bounds (Clopper–Pearson): all cases, two classes, and more."""
    parts = {
        "all": records,
        "logistic": [record for record in records if not record["multiclass"]],
        "softmax": [record for record in records if record["multiclass"]],
    }
    return {name: _summary(part) for name, part in parts.items() if part}


def _summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    judged = [record for record in records if record["outcome"] == "judged"]
    outcomes = [record["outcome"] for record in records]
    out: dict[str, Any] = {
        "cases": len(records),
        "outcomes": {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))},
    }
    for word in ("trusted", "corrected"):
        said = [record for record in judged if record["verdict"] == word]
        false = [record for record in said if record["training"]["beyond"] > TOLERANCE]
        out[word] = rate(len(false), len(said)) | {"indices": [record["index"] for record in false]}
    sampled = [record for record in judged if record["verdict"] == "needs-mcmc"]
    known = [record for record in sampled if "corrected_error" in record["training"]]
    needless = [record for record in known if record["training"]["corrected_error"] <= TOLERANCE]
    out["sampled"] = {"cases": len(sampled), "needless": len(needless), "share": len(sampled) / max(1, len(judged))}
    for group in GROUPS:
        figures = [record[group] for record in judged if "claimed" in record[group]]
        some = [f for f in figures if f["claimed"]]
        wrong = sum(f["false_rows"] > 0 for f in some)
        out[f"rows_{group}"] = {
            "rows": sum(f["rows"] for f in figures),
            "claimed": sum(f["claimed"] for f in figures),
            "clear": sum(f["clear"] for f in figures),
            "false": sum(f["false_rows"] for f in figures),
            "cases": rate(wrong, len(some)),  # rows of a case are not independent
        }
    return out


def rate(wrong: int, total: int) -> dict[str, Any]:
    """Return a count of events, and the 95 % upper bound of their rate."""
    bound = 1.0 if wrong >= total else float(beta.ppf(0.95, wrong + 1, total - wrong))
    return {"false": wrong, "of": total, "at_most": round(bound, 4)}


def known(path: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the cases that are done: of verdict.json, and of the cache."""
    numbers = folder / NUMBERS
    before = json.loads(numbers.read_text(encoding="utf-8"))["cases"] if numbers.exists() else []
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = [*before, *map(json.loads, lines)]
    return list({(record["index"], record["multiclass"]): record for record in records}.values())


def conclude(path: Path, folder: Path) -> dict[str, Any]:
    """Summarise what is done, and write verdict.json."""
    records = known(path, folder)
    tree = {
        "schema": 1,
        "command": "make verdict",
        "seed": SEED,
        "tolerance": TOLERANCE,
        "noise": NOISE,
        "package": __version__,
        "summary": summarise(records),
        "cases": sorted(records, key=lambda record: (record["multiclass"], record["index"])),
    }
    write_json(folder / NUMBERS, tree)
    return tree


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases that are not done, cheap ones first, and conclude."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=int, default=BINARY, help="cases of two classes")
    parser.add_argument("--multiclass", type=int, default=MULTICLASS, help="cases of three to ten classes")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, for cases never seen before")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of the truth of a case")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where verdict.json and cache/ go")
    parser.add_argument("--conclude", action="store_true", help="run no case; write verdict.json from those done")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    path = given.folder / "cache" / "verdict.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(record["index"], record["multiclass"]) for record in known(path, given.folder)}
    counts = () if given.conclude else ((given.binary, False), (given.multiclass, True))
    wanted = [(given.first + i, several) for count, several in counts for i in range(count)]
    for index, several in _ordered([pair for pair in wanted if pair not in done]):
        with one_blas_thread():
            record = judge_case(index, several, given.seconds)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    summary = conclude(path, given.folder)["summary"]
    print(json.dumps(summary, indent=1), write_page(given.folder), sep="\n")  # noqa: T201


def _ordered(pairs: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """Return the cases by their cost, with one of the last third after every few, as cheap a one as is left there."""
    ordered = sorted(pairs, key=lambda pair: _cost(*pair))
    cut = len(ordered) * 2 // 3
    small, large, out = ordered[:cut], ordered[cut:], []
    for i, pair in enumerate(small):
        out.append(pair)
        if i % LARGE_EVERY == LARGE_EVERY - 1 and large:
            out.append(large.pop(0))
    return out + large


def _cost(index: int, multiclass: bool) -> int:
    n, d, K, _ = sizes(index, multiclass)
    return n * (d + 1) * (K if multiclass else 1)


def _probabilities(model: FittedModel, X: Floats) -> Floats:
    return np.exp(model.log_probabilities(X))


def _short(value: float) -> float:
    return float(f"{value:.3g}")


if __name__ == "__main__":
    main()
