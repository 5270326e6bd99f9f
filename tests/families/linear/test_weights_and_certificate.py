"""Importance weights hold the certificate of the better Gaussian: two judges that have nothing in common.

In low dimension weighted draws of a fitted proposal need no assumption. What expectation propagation (two classes) and
the variational Gaussian (more) say of Laplace, of themselves and of the evidence must agree with them within the stated
errors.
"""

import numpy as np
import pytest
from scipy.special import expit, softmax

from bayes_gda import Dataset
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.methods import ladder
from bayes_gda.methods.settings import TOLERANCE, Settings

CASES = [
    # rows, features, classes, degrees of freedom of the features, sd of the prior, seed
    (25, 2, 2, 30, 2.5, 0),
    (60, 3, 2, 3, 2.5, 1),
    (60, 5, 2, 30, 5.0, 2),
    (400, 4, 2, 3, 2.5, 3),
    (40, 1, 3, 30, 2.5, 4),
    (120, 2, 3, 3, 2.5, 5),
    (600, 2, 4, 30, 2.5, 6),
]


@pytest.mark.parametrize(("n", "d", "K", "df", "scale", "seed"), CASES)
def test_weights_agree_with_the_certificate(n, d, K, df, scale, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(df, size=(n, d))
    y = (X @ rng.normal(size=(d, K)) * 1.5 + rng.gumbel(size=(n, K))).argmax(axis=1)
    data = Dataset.from_arrays(X, y)
    family = (Logistic if K == 2 else Softmax).bind(data, prior_scale=scale)
    laplace = family.laplace()
    better = family.propagate(laplace)
    weighed = ladder.verify(family, laplace, Settings(random_seed=seed)).importance
    assert weighed.corrected_k < 0.5  # the weights can be relied upon
    weight = np.exp(weighed.log_weights)
    W = weighed.draws.reshape(len(weight), -1, family.Phi.shape[1])
    a = np.einsum("skm,nm->snk", W, family.Phi)
    P = np.concatenate([expit(-a), expit(a)], axis=2) if K == 2 else softmax(a, axis=2)
    p = np.einsum("s,snk->nk", weight, P)
    noise = 4 * np.sqrt(np.einsum("s,snk->nk", weight**2, (P - p) ** 2))
    fast, corrected = (
        np.exp(family.from_gaussian(gaussian, Settings()).log_probabilities(data.X))
        for gaussian in (laplace, better.gaussian)
    )
    evidence = better.evidence
    assert (np.abs(fast - p) <= evidence.laplace_error + noise).all()
    assert (np.abs(corrected - p) <= evidence.better_error + noise).all()
    largest = np.abs(fast - p).max()
    assert abs(evidence.shift.largest - largest) <= evidence.better_error + noise.max()
    if largest > TOLERANCE + noise.max():
        assert ladder.fit(family, Settings()).weighing.verdict != "trusted"
    error = evidence.log_evidence_error + 4 * weighed.log_evidence_error
    assert abs(evidence.log_evidence - weighed.log_evidence) < error
