"""The evidence from draws, against closed forms: of complete rows, and of rows whose gaps are nested."""

import numpy as np
import pytest
from gaps import SHARED, remove, simulate
from scipy import stats
from scipy.special import comb

from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.exact import lda_posterior, qda_posterior
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.families.gaussian.gaps.chib import chib_evidence, inverse_wishart_density
from bayes_gda.priors import NIW, Dirichlet
from bayes_gda.priors.defaults import default_niw

SHARES = Dirichlet([2.0, 0.5])


def exact(X, y, prior, shared):
    return (lda_posterior if shared else qda_posterior)(Moments.from_arrays(X, y, 2), prior, SHARES).log_evidence


def estimate(X, y, prior, shared, draws):
    data = PatternMoments.from_arrays(X, y, 2)
    drawn = draw_posterior(data, prior, SHARES, shared=shared, draws=draws, random_seed=0)
    return chib_evidence(data, prior, SHARES, drawn)


def test_the_density_is_scipys():
    rng = np.random.default_rng(0)
    A, B = (M @ M.T + np.eye(3) for M in rng.normal(size=(2, 3, 3)))
    assert inverse_wishart_density(A, B, np.array(5.5)) == pytest.approx(stats.invwishart(5.5, B).logpdf(A))


@SHARED
def test_without_gaps_it_is_exact(shared):
    X, y = simulate(n=50, d=3, K=2, seed=1)
    prior = NIW.default(Moments.from_arrays(X, y, 2))
    value, error = estimate(X, y, prior, shared, draws=20)
    assert value == pytest.approx(exact(X, y, prior, shared), abs=1e-7)
    assert error < 1e-9


@SHARED
def test_nested_gaps_have_a_closed_form(shared):
    """x₁ is always there, x₂ only where x₁ is, and so on: p(X) = Π_j p(x_j | x_1…x_{j−1} of the rows that have x_j).

    Under the NIW prior the regressions on the features before are independent of each other and of these features, so
    that each factor is a ratio of evidences of complete rows, under the marginal prior of the features.
    """
    X, y = simulate(n=60, d=3, K=2, seed=2)
    prior = NIW(m=np.array([0.3, -0.2, 1.0]), kappa=0.7, Psi=np.diag([1.0, 2.0, 3.0]) + 0.4, nu=6.0)
    rows = [60, 45, 25]  # that have feature j
    X[rows[1] :, 1], X[rows[2] :, 2] = np.nan, np.nan

    def block(n, p):
        """log p(x_1…x_p of the first n rows | y), by a marginal of the prior."""
        some = NIW(m=prior.m[:p], kappa=prior.kappa, Psi=prior.Psi[:p, :p], nu=prior.nu - (3 - p))
        alone = exact(X[:n, :p], y[:n], some, shared)
        return alone - shares(y[:n])

    def shares(labels):
        """log p(y): that of the counts, over the number of orders they come in."""
        counts = np.bincount(labels, minlength=2)
        orders = np.log(comb(len(labels), counts[0]))
        return stats.dirichlet_multinomial([2.0, 0.5], len(labels)).logpmf(counts) - orders

    truth = shares(y) + block(60, 1)
    for p in (2, 3):
        truth += block(rows[p - 1], p) - block(rows[p - 1], p - 1)
    value, error = estimate(X, y, prior, shared, draws=400)
    assert error < 0.1
    assert abs(value - truth) < 4 * error


@SHARED
def test_rows_without_values_count_for_the_shares_alone(shared):
    X, y = simulate(n=40, d=2, K=2, seed=3)
    prior = default_niw(X, y, 2)
    with_empty, y_more = np.vstack([X, np.full((3, 2), np.nan)]), np.append(y, [0, 0, 1])
    value, _ = estimate(with_empty, y_more, prior, shared, draws=10)
    counts, more = np.bincount(y), np.bincount(y_more)
    alpha = np.array([2.0, 0.5])
    predictive = 1.0  # Pólya's urn: label by label
    for label in (0, 0, 1):
        predictive *= (alpha + counts)[label] / (alpha + counts).sum()
        counts[label] += 1
    assert counts.tolist() == more.tolist()
    assert value == pytest.approx(exact(X, y, prior, shared) + np.log(predictive), abs=1e-7)


@pytest.mark.slow
@SHARED
def test_scattered_gaps_agree_between_runs_within_the_errors(shared):
    X, y = simulate(n=60, d=3, K=2, seed=4)
    X = remove(X, 0.3)
    prior = default_niw(X, y, 2)
    data = PatternMoments.from_arrays(X, y, 2)
    found = []
    for seed in range(6):
        drawn = draw_posterior(data, prior, shared=shared, draws=400, chains=2, random_seed=seed)
        found.append(chib_evidence(data, prior, None, drawn, random_seed=seed))
    values, errors = np.array(found).T
    z = (values - values.mean()) / errors
    assert 0.2 < np.sqrt((z**2).mean()) < 3  # the error is of the right size


def test_too_few_terms_give_no_number():
    X, y = simulate(n=30, d=3, K=2, seed=5)
    X = remove(X, 0.6)
    data, prior = PatternMoments.from_arrays(X, y, 2), default_niw(X, y, 2)
    drawn = draw_posterior(data, prior, shared=False, draws=60, chains=1, random_seed=0)
    assert np.isnan(chib_evidence(data, prior, None, drawn)).all()
