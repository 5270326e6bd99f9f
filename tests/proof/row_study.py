"""Whether the error that is stated for a single row bounds the true one, with the truth by long sampling.

    python -m proof.row_study --cases 60 --first 5000

Cases are those of `proof.verdict_study`. Each training, new and far row is judged by itself, as `trust_for` does it. An
error is counted as beyond its estimate if it is by more than 3.5 standard errors of the truth.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from proof.split_hmc import sample_truth
from proof.verdict_study import ACCEPTED, FAR, GROUPS, JUDGED, NOISE, random_case

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear import links
from bayes_gda.families.linear.ep.certificate import judge_laplace
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import binary_activations

# Below this an error has no consequence, and its ratio to the estimate no meaning.
SMALL = 2e-4
TOLERANCE = 0.01
# Columns of a case's rows: group, errors of Laplace and EP beyond the noise, their estimates, EP's with the noise.
COLUMNS = ("group", "laplace", "ep", "stated_laplace", "stated_ep", "at_most")


def judge_rows(seed: int, seconds: float) -> Floats | None:
    """Return the rows (k, 6) of a case; None if EP does not converge or the truth is not known."""
    target, new, _ = random_case(seed)
    laplace = regression_laplace(target)
    try:
        posterior, _, certificate = judge_laplace(target, laplace)
    except ConvergenceError:
        return None
    training = target.Phi[np.linspace(0, target.n - 1, min(target.n, JUDGED)).astype(int)]
    far = np.column_stack([np.ones(len(new)), FAR * new[:, 1:]])
    rows = np.ascontiguousarray(np.vstack([training, new, far]))
    truth = sample_truth(target, posterior, rows, seconds=seconds, random_seed=seed)
    if truth.acceptance <= ACCEPTED:
        return None
    off = [np.abs(links.mixture(*binary_activations(q)(rows)) - truth.p) for q in (laplace, posterior)]
    noise = NOISE * truth.error
    group = np.repeat(np.arange(3), [len(training), len(new), len(far)])
    beyond = [np.maximum(error - noise, 0) for error in off]
    return np.column_stack([group, *beyond, *certificate.errors(rows), off[1] + noise])


def summarise(cases: Sequence[Floats]) -> Iterator[str]:
    """Yield lines: largest ratio of errors to their estimates, false and needless verdicts, by group."""
    rows = np.vstack(cases)
    yield f"{len(cases)} cases, {len(rows)} rows"
    for k, group in enumerate(GROUPS):
        some = dict(zip(COLUMNS, rows[rows[:, 0] == k].T, strict=True))
        parts = [f"{group}: {len(some['ep'])} rows"]
        for method in ("laplace", "ep"):
            stated = some[f"stated_{method}"]
            ratio = some[method] / np.maximum(stated, SMALL)
            accepted = stated <= TOLERANCE
            false = int((accepted & (some[method] > TOLERANCE)).sum())
            parts.append(
                f"{method}: error at most {ratio.max():.2f} of what is stated, beyond it in {int((ratio > 1).sum())}; "
                f"{accepted.mean():.0%} within {TOLERANCE}, {false} of them falsely"
            )
        needless = (some["stated_ep"] > TOLERANCE) & (some["at_most"] < TOLERANCE)
        yield "; ".join([*parts, f"EP was within it in {needless.mean():.0%} of the rows though this was not stated"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run some cases, and print what they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=5000, help="seed of the first case")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time of the truth of each case")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RuntimeWarning)  # trajectories that overflow are refused
    seeds = range(options.first, options.first + options.cases)
    cases = [rows for seed in seeds if (rows := judge_rows(seed, options.seconds)) is not None]
    sys.stdout.write("\n".join(summarise(cases)) + "\n")


if __name__ == "__main__":
    main()
