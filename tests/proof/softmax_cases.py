"""Random softmax regressions for the verdict study: 3 to 10 classes, some rare, with the truth by long sampling."""

from typing import Any

import numpy as np
from proof.designs import FAR, JUDGED, NOISE, design, largest
from proof.split_hmc import sample_truth
from scipy.special import softmax

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import SoftmaxPredictor
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.beyond import SoftmaxBeyond
from bayes_gda.families.linear.variational.certificate import certify, survey
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.families.linear.variational.sites import softmax_variational
from bayes_gda.priors import Normal

# Sizes that a core does in seconds.
ROWS, FEATURES, CLASSES, WEIGHTS = (20, 2000), (1, 60), (3, 10), 400
# The variational Gaussian is a good start: fewer rounds of warm-up, and fewer chains as each has K activations a row.
CHAINS, ROUNDS = 48, 2
KINDS = ("gauss", "t3", "binary", "corr", "rare")


def random_softmax_case(seed: int) -> tuple[SoftmaxTarget, Floats, dict[str, Any]]:
    """Return a posterior, new rows of its design matrix, and what it is."""
    rng = np.random.default_rng([16, seed])
    n = int(np.exp(rng.uniform(*np.log(ROWS))))
    K = int(rng.integers(CLASSES[0], CLASSES[1] + 1))
    most = min(FEATURES[1], n, WEIGHTS // K - 1)
    d = int(np.exp(rng.uniform(np.log(FEATURES[0]), np.log(most))))
    kind = str(rng.choice(KINDS))
    signal, spread = float(np.exp(rng.uniform(np.log(0.3), np.log(8)))), float(rng.choice([0.0, 0.5, 2.0]))
    X = design(kind, n + JUDGED, d, rng)
    center, scale = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - center) / np.where(scale > 0, scale, 1.0)
    A = X @ rng.standard_normal((d, K)) * signal / np.sqrt(d) + spread * rng.standard_normal(K)
    y = (softmax(A[:n], axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    weight = rng.uniform(0.1, 3, n) if rng.random() < 0.15 else None
    reference = bool(rng.random() < 0.1)
    Phi = np.column_stack([np.ones(len(X)), X])
    about = {"n": n, "d": d, "K": K, "kind": kind, "signal": signal, "spread": spread}
    about |= {"reference": reference, "weights": weight is not None}
    return SoftmaxTarget(Phi[:n], np.minimum(y, K - 1), K, Normal.default(d + 1), weight, reference), Phi[n:], about


def judge_softmax_case(seed: int, seconds: float) -> dict[str, Any]:
    """Return true errors and certificates of each group of rows."""
    target, new, record = random_softmax_case(seed)
    record |= {"seed": seed, "method": "variational"}
    laplace = regression_laplace(target)
    try:
        posterior = softmax_variational(target, laplace)
    except ConvergenceError:
        return record | {"converged": False}
    seen = survey(laplace, posterior, target, target.Phi)
    beyond = SoftmaxBeyond.of(posterior, target, seen.size)
    far = np.column_stack([np.ones(len(new)), FAR * new[:, 1:]])
    training = target.Phi[np.linspace(0, target.n - 1, min(target.n, JUDGED)).astype(int)]
    rows = np.ascontiguousarray(np.vstack([training, new, far]))
    truth = sample_truth(target, posterior, rows, seconds=seconds, random_seed=seed, chains=CHAINS, rounds=ROUNDS)
    predictor = SoftmaxPredictor(rows, target.K, target.reference)
    p_laplace, p_better = (predictor.gaussian(gaussian, "exact") for gaussian in (laplace, posterior))
    record |= {"converged": True, "passes": posterior.info.n_iter, "acceptance": truth.acceptance}
    error, noise = np.abs(p_better - truth.p).max(axis=1), truth.error.max(axis=1)
    certificate = SoftmaxRowCertificate(
        laplace, posterior, beyond.covariance_root, seen.shift().largest, target.K, target.reference
    )
    estimates = np.maximum(certificate.errors(rows)[1], 1e-6)
    groups = {"training": training, "new": new, "far": far}
    stop = 0
    for group, some in groups.items():
        start, stop = stop, stop + len(some)
        part = slice(start, stop)
        own = seen if group == "training" else survey(laplace, posterior, target, np.ascontiguousarray(some))
        found = certify(laplace, beyond, target.Phi if group == "training" else some, own)
        record[group] = {
            "laplace": largest(p_laplace - truth.p, part),
            "better": largest(p_better - truth.p, part),
            "noise": largest(truth.error, part),
            "gap": found.gap,
            "cert": found.cert,
            "row_ratio": float((np.maximum(error[part] - NOISE * noise[part], 0) / estimates[part]).max()),
        }
    return record
