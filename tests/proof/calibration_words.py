"""What was found, in plain sentences that are computed: also where ours falls short."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from proof.calibration_coverage import miss

from bayes_gda.reporting.plots.style import listing

_SIZES = {"few": "With 30 training rows", "most": "With two thirds of the rows"}
# Losses listed by name in a sentence; the tables have all.
MOST_NAMED = 12


def split_sentences(data: Mapping[str, Any]) -> list[str]:
    """Return sentences on the splits: wins and losses, losses by name, and what scikit-learn could not do."""
    out = []
    cases = data["splits"]
    for size, opening in _SIZES.items():
        found = [
            (case["data"], c)
            for case in cases
            if case["size"] == size
            for c in case["comparisons"]
            if c["score"] == "log_loss"
        ]
        if not found:
            continue
        text = []
        for variants, name in (
            (("plain",), "plain scikit-learn"),
            (("sigmoid", "isotonic"), "scikit-learn calibrated"),
        ):
            own = [c for _, c in found if c["theirs"].endswith(variants)]
            count = Counter(c["verdict"] for c in own)
            text.append(
                f"against {name} our log loss is better in {count['win']} of {len(own)} comparisons, tied in "
                f"{count['tie']}, worse in {count['lose']}"
            )
        out.append(f"{opening}: {'; '.join(text)}.")
        lost = [(name, c) for name, c in found if c["verdict"] == "lose"]
        lost.sort(key=lambda pair: -pair[1]["difference"])
        if lost:
            named = [f"{c['ours']} to {c['theirs']} on {name} (by {c['difference']:.3f})" for name, c in lost]
            out.append(f"{opening} ours loses: " + "; ".join(named[:MOST_NAMED]) + _rest(len(named)) + "." + _why(lost))
        else:
            out.append(f"{opening} ours loses no comparison in log loss.")
        out.append(_other_scores(cases, size, opening))
    out.append(_impossible(cases))
    out += _failures(cases)
    return out


def _why(lost: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Say why the naive model loses to itself with recalibrated probabilities, if it does."""
    recalibrated = any(c["ours"] == "naive" and c["theirs"].endswith(("sigmoid", "isotonic")) for _, c in lost)
    if not recalibrated:
        return ""
    return (
        " The naive model assumes independent features. Where they are correlated within the classes its probabilities "
        "are too extreme: recalibration on held-out folds corrects this, averaging over the posterior does not. "
        "LDA and QDA model the correlations."
    )


def _rest(count: int) -> str:
    return f"; and {count - MOST_NAMED} more" if count > MOST_NAMED else ""


def _other_scores(cases: Sequence[Mapping[str, Any]], size: str, opening: str) -> str:
    parts = []
    for score, name in (("brier", "Brier score"), ("ece", "calibration error"), ("error", "error rate")):
        count = Counter(
            c["verdict"] for case in cases if case["size"] == size for c in case["comparisons"] if c["score"] == score
        )
        parts.append(f"{name} {count['win']} / {count['tie']} / {count['lose']}")
    return f"{opening}, better / tied / worse against all rivals: {', '.join(parts)}."


def _impossible(cases: Sequence[Mapping[str, Any]]) -> str:
    """Count truths that were given probability 0."""
    count: dict[str, int] = defaultdict(int)
    for case in cases:
        for name, means in case["means"].items():
            if means is not None:
                count[name] += means["impossible"]
    ours = sum(n for name, n in count.items() if name.startswith("Bayesian"))
    theirs = {name: n for name, n in count.items() if n and not name.startswith("Bayesian")}
    text = f"Of all true classes of the test rows, ours gave {ours} a probability of exactly 0"
    if not theirs:
        return f"{text}, and so did scikit-learn's."
    named = [f"{name} {n}" for name, n in sorted(theirs.items(), key=lambda pair: -pair[1])]
    return f"{text}; scikit-learn's {sum(theirs.values())}: {listing(named, 5)}."


def _failures(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what could not be fitted."""
    named = []
    for case in cases:
        for name, means in case["means"].items():
            failed = case["splits"] if means is None else means["failed"]
            if failed and name.endswith("plain"):
                learner = name.removesuffix(" plain")
                named.append(f"{learner} on {case['data']} from {case['n_train']} rows ({failed} of {case['splits']})")
    return (
        [f"scikit-learn could not fit {'; '.join(named)}: it takes the covariance of a class for singular."]
        if named
        else []
    )


def coverage_sentences(lines: Sequence[Mapping[str, Any]], probs: Sequence[float]) -> list[str]:
    """Return sentences on the coverage of intervals: which agree with the nominal one, and where they fall short."""
    out = [
        "Coverage is measured in two settings. With parameters drawn from the prior, the intervals of a right "
        "posterior have their nominal coverage on average, whatever the number of rows. With one fixed truth and "
        "the default prior, the situation of a user, they have it only asymptotically."
    ]
    for truth, opening in (("prior", "From the prior"), ("fixed", "Fixed truth")):
        for method in dict.fromkeys(line["method"] for line in lines if line["truth"] == truth):
            own = [x for x in lines if (x["truth"], x["method"]) == (truth, method)]
            gap = np.array([miss(x, probs) for x in own])
            text = (
                f"{opening}, {method}: {(gap == 0).sum()} of {gap.size} coverages agree with the nominal ones, up to "
                "chance"
            )
            for found, words, sign in ((gap < 0, "too low", 1), (gap > 0, "too high", -1)):
                if found.any():
                    i, j = np.unravel_index((sign * gap).argmin(), gap.shape)
                    x = own[i]
                    text += (
                        f"; {found.sum()} are {words}, most for {x['model']} after {x['n']} rows: "
                        f"{100 * x['coverage'][j]:.0f} ± {100 * x['error'][j]:.0f} % in place of {100 * probs[j]:g} %"
                    )
            out.append(f"{text}.")
    needs = [x for x in lines if x["method"] == "corrected" and x["needs_mcmc"] > 0]
    if needs:
        named = [f"{x['model']} ({x['truth']}, {x['n']} rows) {100 * x['needs_mcmc']:.0f} %" for x in needs]
        out.append(
            f"The corrected posterior is used here even where its verdict is needs-mcmc: {listing(named, 6)} of the "
            "simulations. The estimators would sample there."
        )
    return out


def learning_sentences(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on the learning curves: rows saved if the model is true, crossings if it is not."""
    out = []
    for curve in curves:
        if curve["delta"] is not None:
            last = {pair: found[-1] for pair, found in curve["needed"].items() if found}
            parts = [
                f"{pair} LDA with {x['n']} rows is as good as logistic regression with {x['ratio']:.2f} ± "
                f"{x['error']:.2f} times as many, which saves {100 * (1 - 1 / x['ratio']):.0f} %"
                for pair, x in last.items()
            ]
            parts.append(
                f"Efron's formula gives {1 / curve['efficiency']:.2f} times and "
                f"{100 * (1 - curve['efficiency']):.0f} % as n grows"
            )
            out.append(f"Gaussian classes, means {curve['delta']:g} standard deviations apart: {'; '.join(parts)}.")
        else:
            found = curve["crossing"]["Bayesian"]
            if found["rows"] is None:
                text = f"logistic regression is not ahead of LDA up to {curve['rows'][-1]} rows"
            elif found["always"]:
                text = f"logistic regression is ahead of LDA from the first {curve['rows'][0]} rows on"
            else:
                text = f"logistic regression overtakes LDA after about {found['rows']:.0f} rows"
            lda, logistic = curve["excess"][-1][:2]
            out.append(
                f"Not Gaussian, {curve['description']}: {text}; after {curve['rows'][-1]} rows LDA errs by "
                f"{100 * lda:.2f} points more than Bayes' rule, logistic regression by {100 * logistic:.2f} "
                "(both Bayesian)."
            )
    return out
