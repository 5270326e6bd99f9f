"""How often the verdict of the certificate is wrong, over random regressions with the truth by long sampling.

    python -m proof.verdict_study --cases 60 --first 0 --output cases.jsonl
    python -m proof.verdict_study --model softmax --cases 60 --first 0 --output softmax.jsonl

Each case is a random design (Gaussian, heavy-tailed, binary, correlated, with rare levels), size, signal and base rate,
in part with weights or binomial counts. Training rows, new rows and far rows (new ones three times as far from the
centre) are judged apart, each by the certificate of its own rows. A verdict is false if the true error exceeds the
tolerance by more than 3.5 standard errors of the truth, about what the largest of some hundred rows reaches by chance.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from proof.designs import FAR, JUDGED, NOISE, design, largest
from proof.softmax_cases import judge_softmax_case
from proof.split_hmc import sample_truth
from scipy.special import expit
from scipy.stats import beta

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear import links
from bayes_gda.families.linear.ep.certificate import LogisticBeyond, certify
from bayes_gda.families.linear.ep.logistic import logistic_ep
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import binary_activations
from bayes_gda.methods.ep.certificate import EP, VARIATIONAL, decide_outcome, estimate_errors
from bayes_gda.priors import Normal

# Sizes that a core does in seconds; larger ones are for a machine of one's own.
ROWS, FEATURES = (15, 3000), (1, 100)
KINDS = ("gauss", "t3", "binary", "corr", "rare")
# Chains that refuse more than half of their trajectories may be stuck: no truth.
ACCEPTED = 0.5
TOLERANCES = (0.01, 0.02, 0.05)
GROUPS = ("training", "new", "far")
RULES = {"ep": EP, "variational": VARIATIONAL}
NAMES = {"ep": "EP", "variational": "variational"}


def random_case(seed: int) -> tuple[LogisticTarget, Floats, dict[str, Any]]:
    """Return a posterior, new rows of its design matrix, and what it is."""
    rng = np.random.default_rng([15, seed])
    n = int(np.exp(rng.uniform(*np.log(ROWS))))
    d = int(np.exp(rng.uniform(np.log(FEATURES[0]), np.log(min(FEATURES[1], n)))))
    kind = str(rng.choice(KINDS))
    signal, intercept = float(np.exp(rng.uniform(np.log(0.3), np.log(12)))), float(rng.choice([0, 0, -2, -4]))
    X = design(kind, n + JUDGED, d, rng)
    center, scale = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - center) / np.where(scale > 0, scale, 1.0)
    p = expit(X @ rng.standard_normal(d) * signal / np.sqrt(d) + intercept)
    trials = rng.integers(1, 6, n).astype(float) if rng.random() < 0.1 else None
    weight = rng.uniform(0.1, 3, n) if rng.random() < 0.15 else None
    y = (rng.random(n) < p[:n]).astype(float) if trials is None else rng.binomial(trials.astype(int), p[:n]) * 1.0
    Phi = np.column_stack([np.ones(len(X)), X])
    about = {"n": n, "d": d, "kind": kind, "signal": signal, "intercept": intercept}
    about |= {"trials": trials is not None, "weights": weight is not None}
    return LogisticTarget(Phi[:n], y, Normal.default(d + 1), weight, trials), Phi[n:], about


def judge_case(seed: int, seconds: float) -> dict[str, Any]:
    """Return true errors and certificates of each group of rows."""
    target, new, record = random_case(seed)
    record |= {"seed": seed, "method": "ep"}
    laplace = regression_laplace(target)
    try:
        posterior, sites = logistic_ep(target, laplace)
    except ConvergenceError:
        return record | {"converged": False}
    beyond = LogisticBeyond(posterior, sites)
    far = np.column_stack([np.ones(len(new)), FAR * new[:, 1:]])
    training = target.Phi[np.linspace(0, target.n - 1, min(target.n, JUDGED)).astype(int)]
    rows = np.ascontiguousarray(np.vstack([training, new, far]))
    truth = sample_truth(target, posterior, rows, seconds=seconds, random_seed=seed)
    p_laplace, p_ep = (links.mixture(*binary_activations(gaussian)(rows)) for gaussian in (laplace, posterior))
    record |= {"converged": True, "passes": posterior.info.n_iter, "acceptance": truth.acceptance}
    stops = np.cumsum([len(training), len(new), len(far)])
    for group, stop, size in zip(GROUPS, stops, np.diff(stops, prepend=0), strict=True):
        some = slice(stop - size, stop)
        seen = certify(laplace, beyond, None if group == "training" else rows[some])
        record[group] = {
            "laplace": largest(p_laplace - truth.p, some),
            "better": largest(p_ep - truth.p, some),
            "noise": largest(truth.error, some),
            "gap": seen.gap,
            "cert": seen.cert,
        }
    return record


def summarise(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield lines: the rates of false verdicts with upper bounds, and how often sampling was not needed."""
    converged = [record for record in records if record["converged"]]
    done = [record for record in converged if record["acceptance"] > ACCEPTED]
    yield (
        f"{len(records)} cases, {len(records) - len(converged)} without convergence, "
        f"{len(converged) - len(done)} left out as their truth is not known"
    )
    if not done:
        return
    method = done[0].get("method", "ep")
    name = NAMES[method]
    for group in GROUPS:
        values = {key: np.array([record[group][key] for record in done]) for key in done[0][group]}
        noise = NOISE * values["noise"]
        laplace, better = values["laplace"], values["better"]
        estimates = [
            estimate_errors(gap, cert, rule=RULES[method])
            for gap, cert in zip(values["gap"], values["cert"], strict=True)
        ]
        beyond = np.maximum(better - noise, 0) / np.maximum([estimate.better for estimate in estimates], 1e-9)
        yield (
            f"{group}: largest error median/worst: Laplace {np.median(laplace):.4f}/{laplace.max():.3f}, "
            f"{name} {np.median(better):.4f}/{better.max():.3f} (noise {np.median(noise):.4f}); "
            f"the latter's error beyond the noise over its estimate: largest {beyond.max():.2f}"
        )
        for tolerance in TOLERANCES:
            words = np.array([decide_outcome(estimate, tolerance) for estimate in estimates])
            parts = []
            for word, error in (("trusted", laplace), ("corrected", better)):
                chosen = words == word
                wrong = int((chosen & (error - noise > tolerance)).sum())
                parts.append(
                    f"{word} {chosen.sum()} (false {wrong}, rate at most {_upper(wrong, int(chosen.sum())):.0%})"
                )
            needless = int(((words == "needs-mcmc") & (better + noise < tolerance)).sum())
            parts.append(f"needs-mcmc {(words == 'needs-mcmc').sum()} ({name} was within the tolerance in {needless})")
            yield f"  tolerance {tolerance}: " + ", ".join(parts)


def _upper(wrong: int, total: int) -> float:
    """95 % upper bound of a rate (Clopper–Pearson)."""
    return 1.0 if wrong >= total else float(beta.ppf(0.95, wrong + 1, total - wrong))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run some cases, add them to the output, and print what all cases in it say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("logistic", "softmax"), default="logistic")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time of the truth of each case")
    parser.add_argument("--output", type=Path, help="file of JSON lines to add the cases to")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RuntimeWarning)  # trajectories that overflow are refused
    known_lines = options.output.read_text() if options.output and options.output.exists() else ""
    records = [json.loads(line) for line in known_lines.splitlines()]
    known = {record["seed"] for record in records}
    judge = judge_softmax_case if options.model == "softmax" else judge_case
    for seed in range(options.first, options.first + options.cases):
        if seed in known:
            continue
        records.append(judge(seed, options.seconds))
        if options.output:
            with options.output.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    sys.stdout.write("\n".join(summarise(records)) + "\n")


if __name__ == "__main__":
    main()
