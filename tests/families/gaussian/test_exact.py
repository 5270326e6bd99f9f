"""Exact posteriors against quadrature, sampling, refitting, sequential prediction and another library."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import assert_same_mean, assert_same_posterior
from scipy import integrate, stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda import linalg
from bayes_gda.data.examples import load_example
from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.exact import lda_posterior, log_student, naive_posterior, qda_posterior
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW, Dirichlet

FITS = {"lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)}


@pytest.fixture(params=FITS)
def fit(request):
    """A function from data to the exact posterior, with a fixed proper prior."""
    build, kind = FITS[request.param]

    def run(X, y, K):
        d = X.shape[1]
        prior = (
            NIW(m=np.zeros(d), kappa=0.5, Psi=np.eye(d) + 0.2, nu=d + 2.5)
            if kind is NIW
            else NIG(m=np.zeros(d), kappa=0.5, a=2.0, b=1.5)
        )
        return build(Moments.from_arrays(X, y, K), prior, Dirichlet([1.0] * (K - 1) + [2.0]))

    return run


def simulate(n=40, d=3, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(K, d))[y], y


# ── against quadrature ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_dimensional_posterior_equals_quadrature():
    """Mean of μ₀ and of σ², and the evidence, by integrating likelihood × prior over (π, μ₀, μ₁, σ²)."""
    X, y = np.array([[0.3], [1.1], [2.9], [0.7], [3.3]]), np.array([0, 0, 1, 0, 1])
    prior = NIW(m=0.5, kappa=0.7, Psi=1.3, nu=3.2)
    posterior = lda_posterior(Moments.from_arrays(X, y, 2), prior, Dirichlet([1.0, 2.0]))

    def integrand(mean_power, variance_power):
        def inner(s2):
            # For each σ² the integral over a class mean is Gaussian: quadrature over a wide grid, no algebra.
            grid = np.linspace(-15, 15, 6001)
            parts = []
            for k in (0, 1):
                rows = X[y == k, 0]
                f = np.exp(stats.norm.logpdf(rows[:, None], grid, np.sqrt(s2)).sum(axis=0))
                f = f * stats.norm.pdf(grid, 0.5, np.sqrt(s2 / 0.7)) * (grid**mean_power if k == 0 else 1)
                parts.append(np.trapezoid(f, grid))
            return parts[0] * parts[1] * stats.invgamma.pdf(s2, 1.6, scale=0.65) * s2**variance_power

        return integrate.quad(inner, 1e-3, 60, limit=400, epsabs=0, epsrel=1e-9)[0]

    density = integrand(0, 0)
    classes = integrate.quad(lambda p: stats.beta.pdf(p, 1, 2) * p**3 * (1 - p) ** 2, 0, 1)[0]
    assert posterior.log_evidence == pytest.approx(np.log(density) + np.log(classes), abs=1e-6)
    assert posterior.m[0, 0] == pytest.approx(integrand(1, 0) / density, rel=1e-6)
    mean_variance = posterior.Psi[0, 0, 0] / (posterior.nu[0] - 2)
    # The tail of σ² beyond the grid of means is the limit of this truth.
    assert mean_variance == pytest.approx(integrand(0, 1) / density, rel=1e-3)


def test_naive_in_one_dimension_is_qda_in_one_dimension():
    X, y = simulate(d=1)
    moments = Moments.from_arrays(X, y, 3)
    naive = naive_posterior(moments, NIG(m=[0.2], kappa=0.5, a=2.0, b=1.5))
    qda = qda_posterior(moments, NIW(m=[0.2], kappa=0.5, Psi=3.0, nu=4.0))
    assert naive.log_evidence == pytest.approx(qda.log_evidence)
    np.testing.assert_allclose(naive.log_joint(X), qda.log_joint(X))
    np.testing.assert_allclose(naive.leave_one_out(X, y), qda.leave_one_out(X, y))


# ── against itself, taken apart ───────────────────────────────────────────────────────────────────────────────────────


def test_evidence_is_the_product_of_sequential_predictives(fit):
    X, y = simulate()
    total, posterior = 0.0, fit(X[:0], y[:0], 3)
    for i in range(len(X)):
        total += posterior.log_joint(X[i : i + 1])[0, y[i]]
        posterior = posterior.update(Moments.from_arrays(X[i : i + 1], y[i : i + 1], 3))
    assert fit(X, y, 3).log_evidence == pytest.approx(total, rel=1e-10)
    assert posterior.log_evidence == pytest.approx(total, rel=1e-10)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 39), name=st.sampled_from(sorted(FITS)))
def test_batch_equals_sequential_equals_merged(seed, cut, name):
    X, y = simulate(seed=seed)
    build, kind = FITS[name]
    whole = Moments.from_arrays(X, y, 3)
    prior = kind.default(whole)
    a, b = Moments.from_arrays(X[:cut], y[:cut], 3), Moments.from_arrays(X[cut:], y[cut:], 3)
    batch, sequential, merged = build(whole, prior), build(a, prior).update(b), build(b + a, prior)
    for other in (sequential, merged):
        np.testing.assert_allclose(other.log_joint(X), batch.log_joint(X), rtol=1e-9)
        assert other.log_evidence == pytest.approx(batch.log_evidence, rel=1e-10)


def test_leave_one_out_equals_refitting(fit):
    X, y = simulate()
    loo = fit(X, y, 3).leave_one_out(X, y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        refit = fit(X[rest], y[rest], 3).log_joint(X[i : i + 1])[0]
        np.testing.assert_allclose(loo[i], refit, rtol=1e-9)


def test_leave_one_out_of_foreign_rows_is_refused(fit):
    X, y = simulate()
    with pytest.raises(DataError, match="these were not among them"):
        fit(X, y, 3).leave_one_out(X * 50, y)


# ── against draws ─────────────────────────────────────────────────────────────────────────────────────────────────────


def density_of_draws(draws, x):
    """p(x, y=k | θ) (S, K) by scipy's definition of the normal density, batched by hand."""
    d = len(x)
    delta = x - draws["mu"]
    if "sigma2" in draws:
        log_p = stats.norm.logpdf(x, draws["mu"], np.sqrt(draws["sigma2"])).sum(axis=2)
    else:
        Sigma = np.broadcast_to(
            draws["Sigma"] if draws["Sigma"].ndim == 4 else draws["Sigma"][:, None], (*delta.shape, d)
        )
        q = np.einsum("skd,skd->sk", delta, np.linalg.solve(Sigma, delta[..., None])[..., 0])
        log_p = -0.5 * (q + np.linalg.slogdet(2 * np.pi * Sigma)[1])
    return draws["pi"] * np.exp(log_p)


def test_student_predictive_equals_the_mean_density_of_many_draws(fit):
    X, y = simulate(d=2)
    posterior = fit(X, y, 3)
    points = X[:3]
    predictive = np.exp(posterior.log_joint(points))
    means, squares, S = np.zeros((3, 3)), np.zeros((3, 3)), 0
    for seed in range(4):
        draws = posterior.draw(100_000, random_seed=seed)
        for i, x in enumerate(points):
            density = density_of_draws(draws, x)
            means[i] += density.sum(axis=0)
            squares[i] += (density**2).sum(axis=0)
        S += 100_000
    means /= S
    error = np.sqrt((squares / S - means**2) / S)
    assert (np.abs(means - predictive) < 4.5 * error).all()
    likely = predictive > 1e-3
    assert likely.sum() >= 3
    assert (error < 0.0033 * predictive)[likely].all()  # the power to see 1.5 per cent


def test_draws_have_the_posterior_means(fit):
    X, y = simulate()
    posterior = fit(X, y, 3)
    draws = posterior.draw(40_000, random_seed=1)
    assert_same_mean(draws["pi"], posterior.alpha / posterior.alpha.sum())
    assert_same_mean(draws["mu"], posterior.m)
    if "Sigma" in draws:
        Sigma = posterior.Psi / (posterior.nu - 3 - 1)[:, None, None]
        assert_same_mean(draws["Sigma"], Sigma[0] if posterior.shared else Sigma)
    else:
        assert_same_mean(draws["sigma2"], posterior.b / (posterior.a - 1))


def test_draws_of_the_prior_state_are_draws_of_the_prior():
    prior = NIW(m=[1, -1], kappa=2.0, Psi=[[2, 0.5], [0.5, 1]], nu=12)
    posterior = qda_posterior(Moments.empty(3, 2), prior)
    draws, truth = posterior.draw(20_000, random_seed=0), prior.draw(20_000, random_seed=1)
    for k in range(3):
        assert_same_posterior({"mu": draws["mu"][:, k], "Sigma": draws["Sigma"][:, k]}, truth)


def test_the_predictive_density_is_scipys_student_t():
    rng = np.random.default_rng(0)
    m, Psi, kappa, nu = rng.normal(size=3), np.cov(rng.normal(size=(3, 9))), 2.5, 6.5
    X = rng.normal(size=(5, 3))
    q = np.einsum("nd,nd->n", X - m, np.linalg.solve(Psi, (X - m).T).T)
    df = nu - 3 + 1
    expected = stats.multivariate_t(m, Psi * (kappa + 1) / (kappa * df), df=df).logpdf(X)
    np.testing.assert_allclose(log_student(q, np.linalg.slogdet(Psi)[1], kappa, nu, 3), expected)


def test_exact_draws_as_a_datatree_have_the_names_of_the_notation_table(fit):
    data = load_example("iris")
    draws = fit(data.X, data.y, data.K).draw(200, random_seed=0)
    coords = coordinates(class_names=data.class_names, feature_names=data.feature_names)
    tree = to_datatree(draws, coords, chains=4, attrs={"method": "exact"})
    posterior = tree["posterior"]
    assert posterior["pi"].dims == ("chain", "draw", "class")
    assert posterior["mu"].dims == ("chain", "draw", "class", "feature")
    assert posterior["mu"].sizes["chain"] == 4
    assert posterior["mu"].sizes["draw"] == 50
    assert list(posterior["class"].values) == ["setosa", "versicolor", "virginica"]
    assert posterior.attrs["method"] == "exact"
    if "Sigma" in draws:
        assert posterior["Sigma"].dims[-2:] == ("feature", "feature_bis")
    np.testing.assert_array_equal(posterior["mu"].values.reshape(200, 3, 4), draws["mu"])


# ── against scikit-learn, in the limit of a weak prior ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "build", "model"),
    [
        ("lda", lda_posterior, LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True)),
        ("qda", qda_posterior, QuadraticDiscriminantAnalysis(store_covariance=True)),
        ("naive", naive_posterior, GaussianNB(var_smoothing=0.0)),
    ],
)
def test_a_weak_prior_on_many_rows_gives_scikit_learns_estimates(name, build, model):
    """Repeating the rows takes the posterior to its plug-in limit, whose parameters and probabilities are the MLE's."""
    data = load_example("iris")
    repeats = 20_000
    one = Moments.from_arrays(data.X, data.y, data.K)
    many = Moments(one.count * repeats, one.mean, one.scatter * repeats)
    d = data.d
    tiny = 1e-6
    prior = (
        NIG(m=np.zeros(d), kappa=tiny, a=tiny, b=tiny)
        if name == "naive"
        else NIW(m=np.zeros(d), kappa=tiny, Psi=tiny * np.eye(d), nu=d)
    )
    posterior = build(many, prior)
    model.fit(data.X, data.y)
    np.testing.assert_allclose(
        np.exp(log_class_probabilities(posterior.log_joint(data.X))), model.predict_proba(data.X), atol=2e-5
    )
    if name == "naive":
        np.testing.assert_allclose(posterior.m, model.theta_, rtol=1e-6)
        np.testing.assert_allclose(posterior.b / posterior.a, model.var_, rtol=1e-4)
    else:
        np.testing.assert_allclose(posterior.m, model.means_, rtol=1e-6)
        expected = model.covariance_ if name == "lda" else np.array(model.covariance_)
        divisor = posterior.nu[:, None, None]
        np.testing.assert_allclose((posterior.Psi / divisor).squeeze(), expected, rtol=1e-4)
    if name == "lda":
        slopes = np.linalg.solve(posterior.Psi[0] / posterior.nu[0], posterior.m.T).T
        # scikit-learn's two-or-more-class coefficients are the linear discriminants Σ⁻¹μ_k.
        np.testing.assert_allclose(slopes, model.coef_, rtol=1e-3)


def test_a_prior_of_another_size_is_refused():
    X, y = simulate()
    with pytest.raises(PriorError, match="3 classes × 3 features, the prior 3 × 2"):
        lda_posterior(Moments.from_arrays(X, y, 3), NIW(m=[0, 0], kappa=1, Psi=np.eye(2), nu=4))


@pytest.mark.parametrize(("noise", "refused"), [(1e-5, False), (2e-7, True)])
def test_a_feature_that_others_leave_a_share_of_less_than_1e_12_is_refused(noise, refused):
    """1 − R² of the third feature on the others is noise² but for a factor near 1: 1e-10, and 4e-14."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    X[:, 2] = (X[:, 0] + X[:, 1]) / np.sqrt(2) + noise * X[:, 2]
    moments = Moments.from_arrays(X, np.arange(60) % 2, 2)
    if refused:
        with pytest.raises(DataError, match="Feature 3 is a sum of others up to rounding"):
            lda_posterior(moments, NIW.jeffreys(3))
    else:
        assert np.isfinite(lda_posterior(moments, NIW.jeffreys(3)).log_joint(X)).all()


@pytest.mark.parametrize("name", ["lda", "qda", "naive"])
def test_densities_of_many_rows_come_in_blocks(name, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    moments = Moments.from_arrays(X, y, 2)
    build, prior = {
        "lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)
    }[name]  # fmt: skip
    posterior = build(moments, prior.default(moments))
    whole = posterior.log_joint(X)
    monkeypatch.setattr(linalg, "BLOCK_ELEMENTS", 3 * 7)
    np.testing.assert_allclose(posterior.log_joint(X), whole, rtol=1e-12)
