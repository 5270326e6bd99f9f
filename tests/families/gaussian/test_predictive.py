"""The generative predictive of draws: densities are averaged, then normalised."""

import numpy as np
import pytest
from scipy.special import digamma, logsumexp
from scipy.stats import ks_2samp, multivariate_normal

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian import predictive
from bayes_gda.families.gaussian.densities import BartlettBlock
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.predictive import (
    draw_rows,
    log_density_of_single_rows,
    log_joint_of_draws,
    log_joint_per_draw,
    log_odds_of_draws,
)
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW


@pytest.mark.parametrize(("build", "kind"), [(lda_posterior, NIW), (qda_posterior, NIW), (naive_posterior, NIG)])
def test_mean_density_of_draws_nears_the_exact_student_t(build, kind):
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    posterior = build(moments, kind.default(moments))
    draws = posterior.draw(4000, random_seed=0)
    X = data.X[::10]
    by_draws = np.exp(log_class_probabilities(log_joint_of_draws(draws, X)))
    exact = np.exp(log_class_probabilities(posterior.log_joint(X)))
    np.testing.assert_allclose(by_draws, exact, atol=0.01)
    # Averaging p(y | x, θ) instead is another number, and the difference is seen on a row far out.
    far = np.add(data.X.mean(axis=0, keepdims=True), [3.0, 0, -2.0, 0])
    wrong = np.exp(log_class_probabilities(log_joint_per_draw(draws, far))).mean(axis=0)
    right = np.exp(log_class_probabilities(log_joint_of_draws(draws, far)))
    exact = np.exp(log_class_probabilities(posterior.log_joint(far)))
    assert np.abs(right - exact).max() < np.abs(wrong - exact).max()


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("build", "kind"), [(lda_posterior, NIW), (qda_posterior, NIW), (naive_posterior, NIG)])
def test_densities_of_draws_are_scipys(build, kind, offset):
    """Of many draws and rows, in blocks and threads; a large offset of the features costs no more than its digits."""
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    draws = build(moments, kind.default(moments)).draw(700, random_seed=0)
    X = np.vstack([data.X, data.X + 50])
    found = log_joint_per_draw(draws | {"mu": draws["mu"] + offset}, X + offset)
    for s, k in [(0, 0), (1, 1), (350, 2), (698, 0), (699, 2)]:
        spread = np.diag(draws["sigma2"][s, k]) if "sigma2" in draws else draws["Sigma"][s]
        spread = spread if spread.ndim == 2 else spread[k]
        expected = np.log(draws["pi"][s, k]) + multivariate_normal(draws["mu"][s, k], spread).logpdf(X)
        np.testing.assert_allclose(found[s, :, k], expected, rtol=1e-10, atol=1e-15 * offset * 50)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("build", "kind"), [(lda_posterior, NIW), (qda_posterior, NIW), (naive_posterior, NIG)])
def test_log_odds_of_draws_are_differences_of_their_log_densities(build, kind, offset, K):
    data = load_example("iris")
    data = data.subset(data.y < K) if K < 3 else data
    moments = Moments.from_arrays(data.X, data.y, K)
    draws = build(moments, kind.default(moments)).draw(50, random_seed=0)
    X = np.vstack([data.X, data.X + 50])
    joint = log_joint_per_draw(draws, X)
    odds = log_odds_of_draws(draws | {"mu": draws["mu"] + offset})
    expected = np.moveaxis(joint[..., 1:] - joint[..., :1], 0, -1)
    np.testing.assert_allclose(odds(X + offset), expected, rtol=1e-8, atol=1e-7 if offset else 1e-9)


def test_log_odds_are_left_to_the_densities_where_a_class_is_impossible_or_the_matrix_too_large(monkeypatch):
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    draws = lda_posterior(moments, NIW.default(moments)).draw(50, random_seed=0)
    pi = draws["pi"].copy()
    pi[7] = [0.0, 0.5, 0.5]
    assert log_odds_of_draws(draws | {"pi": pi}) is None
    monkeypatch.setattr(predictive, "ODDS_ELEMENTS", 5 * 2 * 50 - 1)  # (1 + d)(K − 1)S
    assert log_odds_of_draws(draws) is None


def test_log_probabilities_stay_finite_however_far_out():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    log_p = log_class_probabilities(lda_posterior(moments, NIW.default(moments)).log_joint(data.X * 1e100))
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1)


@pytest.mark.parametrize(("build", "kind"), [(lda_posterior, NIW), (qda_posterior, NIW), (naive_posterior, NIG)])
def test_rows_drawn_from_a_posterior_have_its_moments(build, kind):
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    posterior = build(moments, kind.default(moments))
    X, y = draw_rows(posterior.draw(60_000, random_seed=0), random_seed=1)
    new = Moments.from_arrays(X, y, data.K)
    np.testing.assert_allclose(new.count / 60_000, posterior.alpha / posterior.alpha.sum(), atol=0.01)
    np.testing.assert_allclose(new.mean, posterior.m, atol=0.03)
    # The covariance of the Student-t predictive: Ψ(κ+1)/(κ(ν−d−1)), or b(κ+1)/(κ(a−1)) on the diagonal.
    if kind is NIW:
        factor = (posterior.kappa + 1) / posterior.kappa / (posterior.nu - data.d - 1)
        expected = factor[:, None, None] * posterior.Psi
    else:
        variance = posterior.b * (posterior.kappa + 1) / posterior.kappa / (posterior.a - 1)
        expected = variance[:, :, None] * np.eye(data.d)
    scale = np.sqrt(np.diagonal(expected, axis1=1, axis2=2))
    error = (new.scatter / new.count[:, None, None] - expected) / scale[:, :, None] / scale[:, None, :]
    assert np.abs(error).max() < 0.05


# Fewer classes than features, as many, more, and a single feature: the space of the means is a part or the whole.
SHAPES = [(2, 4), (3, 3), (4, 2), (2, 1)]


@pytest.mark.parametrize("build", [lda_posterior, qda_posterior])
@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_single_rows_have_the_draws_of_whole_covariances(build, K, d):
    """Mean log density in closed form, mean density Student-t, and the distribution of the log odds that of draws of θ.

    E log N(x | μ_k, Σ) = −½[d log 2π + log|Ψ| − Σ_j ψ((ν − j)/2) − d log 2 + ν (x − m)ᵀΨ⁻¹(x − m) + d/κ], j = 0…d−1.
    """
    rng = np.random.default_rng(5)
    y = np.arange(60) % K
    X = rng.standard_normal((60, d)) @ (np.eye(d) + 0.3) + 0.5 * y[:, None]
    moments = Moments.from_arrays(X, y, K)
    exact = build(moments, NIW.default(moments))
    S, rows = 20_000, X[:2]
    found = log_density_of_single_rows(exact, rows, S, random_seed=1)
    assert found.shape == (S, 2, K)
    for k in range(K):
        Psi, nu = exact.Psi[0 if exact.shared else k], exact.nu[0 if exact.shared else k]
        delta = rows - exact.m[k]
        q = np.einsum("nd,nd->n", delta, np.linalg.solve(Psi, delta.T).T)
        log_det = np.linalg.slogdet(Psi)[1] - digamma((nu - np.arange(d)) / 2).sum() - d * np.log(2)
        expected = -0.5 * (d * np.log(2 * np.pi) + log_det + nu * q + d / exact.kappa[k])
        error = found[..., k].std(axis=0) / np.sqrt(S)
        assert (np.abs(found[..., k].mean(axis=0) - expected) < 4 * error).all()
    student = exact.log_joint(rows) - np.log(exact.alpha / exact.alpha.sum())
    np.testing.assert_allclose(logsumexp(found, axis=0) - np.log(S), student, atol=0.06)
    whole = exact.draw(S, random_seed=2)
    whole = log_joint_per_draw(whole | {"pi": np.ones((S, K))}, rows)
    for k in range(1, K):
        odds = [part[:, 1, k] - part[:, 1, 0] for part in (found, whole)]
        assert ks_2samp(*odds).pvalue > 0.001


def test_draws_of_a_row_do_not_depend_on_the_other_rows():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    exact = lda_posterior(moments, NIW.default(moments))
    together = log_density_of_single_rows(exact, data.X[:9], 20, random_seed=1)
    alone = log_density_of_single_rows(exact, data.X[4:5], 20, random_seed=1)
    np.testing.assert_allclose(together[:, 4:5], alone, rtol=1e-10)


def test_covariances_without_digits_are_refused_in_one_line():
    """Found by the thorough run of tests/hostile: a raw LinAlgError."""
    singular = {"pi": np.full((2, 2), 0.5), "mu": np.zeros((2, 2, 2)), "Sigma": np.ones((2, 2, 2, 2))}
    row, prior = (
        Dataset(np.zeros((2, 2)), [0, 1], ("a", "b"), ("no", "yes")),
        NIW(m=np.zeros(2), kappa=1.0, Psi=np.eye(2), nu=4.0),
    )
    density = BartlettBlock(Moments.from_arrays(row.X, row.y, 2), prior, shared=False)
    for ask in (
        lambda: log_odds_of_draws(singular),
        lambda: log_joint_per_draw(singular, row.X),
        lambda: draw_rows(singular, random_seed=0),
        lambda: density.log_prior(singular),
        lambda: density.log_likelihood(singular, row),
    ):
        with pytest.raises(DataError, match=r"^Some of the drawn covariances are singular to within rounding"):
            ask()
