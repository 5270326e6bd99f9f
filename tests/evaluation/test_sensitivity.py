"""Power-scaling against posteriors that were fitted with the scaled prior, by formula or quadrature, and ArviZ."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from judge import assert_same_mean
from scipy import stats
from scipy.special import expit, log_expit

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.evaluation.sensitivity import (
    CONFLICT,
    FINE,
    STRONG,
    power_weights,
    prior_sensitivity,
    weighted_probabilities,
)
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW, Dirichlet


def tree_of(posterior, log_prior, log_likelihood, *, chains=4):
    """Group flat draws, as from a sampler; the likelihood may have further axes."""

    def dataset(variables, dims=()):
        return xr.Dataset(
            {
                name: (
                    ("chain", "draw", *(f"{name}_{i}" for i in range(np.ndim(a) - 1))),
                    np.reshape(a, (chains, -1, *np.shape(a)[1:])),
                )
                for name, a in variables.items()
            }
        )

    return xr.DataTree.from_dict(
        {
            "posterior": dataset(posterior),
            "log_prior": dataset(log_prior),
            "log_likelihood": dataset(log_likelihood),
        }
    )


# ── A normal mean: everything in closed form ────────────────────────────────────────────────────────────────────────


def normal_mean(*, center=0.0, scale=1.0, y=(0.0,), noise=1.0, S=8000, seed=0):
    """θ ~ N(center, scale²), y_i ~ N(θ, noise²): draws of the posterior, log prior, log likelihood of each row."""
    y = np.asarray(y)
    mean, sd = scaled_posterior(1.0, 1.0, center=center, scale=scale, y=y, noise=noise)
    theta = np.random.default_rng(seed).normal(mean, sd, size=S)
    return theta, stats.norm.logpdf(theta, center, scale), stats.norm.logpdf(y, theta[:, None], noise)


def scaled_posterior(a, b, *, center=0.0, scale=1.0, y=(0.0,), noise=1.0):
    """Mean and sd with prior^a and likelihood^b: precision a/scale² + bn/noise²."""
    y = np.asarray(y)
    precision = a / scale**2 + b * len(y) / noise**2
    return (a * center / scale**2 + b * y.sum() / noise**2) / precision, precision**-0.5


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0, 1.25, 2.0])
@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_weighted_draws_are_the_scaled_posterior(alpha, component):
    model = {"center": 3.0, "scale": 0.5, "y": np.array([0.0, 1.0, 0.5])}
    theta, log_prior, log_likelihood = normal_mean(**model, S=40000)
    w = power_weights(log_prior if component == "prior" else log_likelihood.sum(axis=1), alpha)
    mean, sd = scaled_posterior(*((alpha, 1) if component == "prior" else (1, alpha)), **model)
    weight = np.exp(w.log_weights)
    assert weight.sum() == pytest.approx(1)
    error = 4 * sd / np.sqrt(len(theta) * w.ess_fraction)  # of the mean; that of the sd is smaller
    assert error < 0.15 * sd
    assert weight @ theta == pytest.approx(mean, abs=error)
    assert np.sqrt(weight @ (theta - weight @ theta) ** 2) == pytest.approx(sd, abs=error)
    assert w.reliable


def test_the_log_density_is_needed_up_to_a_constant():
    _, log_prior, _ = normal_mean()
    np.testing.assert_allclose(
        power_weights(log_prior - 500, 0.8).log_weights, power_weights(log_prior, 0.8).log_weights, atol=1e-9
    )


def test_a_flat_prior_changes_nothing():
    theta, _, log_likelihood = normal_mean(y=np.arange(5.0))
    result = prior_sensitivity(tree_of({"theta": theta}, {"theta": 0 * theta}, {"y": log_likelihood}))
    assert result.parameters.loc["theta", "prior"] == pytest.approx(0, abs=1e-6)
    assert "No parameter is sensitive to the prior" in result.reason
    assert result.next_step == "Report the results as they are."


@pytest.mark.parametrize(
    ("model", "diagnosis"),
    [
        ({"scale": 10.0, "y": np.array([0.5, -0.5, 1.0])}, FINE),
        ({"scale": 1.0, "y": np.full(3, 6.0)}, CONFLICT),
        ({"scale": 1.0, "y": np.array([0.3]), "noise": 10.0}, STRONG),
    ],
)
def test_diagnoses_where_they_are_plain(model, diagnosis):
    theta, log_prior, log_likelihood = normal_mean(**model)
    result = prior_sensitivity(tree_of({"theta": theta}, {"theta": log_prior}, {"y": log_likelihood}))
    assert result.parameters.loc["theta", "diagnosis"] == diagnosis
    assert (diagnosis in result.reason) == (diagnosis != FINE)
    assert "most of all" not in result.reason  # there is one parameter
    assert (result.next_step == "Report the results as they are.") == (diagnosis == FINE)


def test_the_distance_is_that_of_the_two_normals():
    """The gradient from draws against the one from the two known distribution functions on a fine grid."""
    from arviz_stats.base import array

    model = {"scale": 1.0, "y": np.full(3, 2.0)}
    theta, log_prior, log_likelihood = normal_mean(**model, S=20000)
    ours = prior_sensitivity(tree_of({"theta": theta}, {"theta": log_prior}, {"y": log_likelihood})).parameters
    # As many quantiles as draws: the distance is taken over the range of the draws.
    x = stats.norm.ppf((np.arange(20000) + 0.5) / 20000, *scaled_posterior(1, 1, **model))
    base = stats.norm.pdf(x, *scaled_posterior(1, 1, **model))
    for name, powers in (("prior", lambda a: (a, 1)), ("likelihood", lambda a: (1, a))):
        w = [stats.norm.pdf(x, *scaled_posterior(*powers(a), **model)) / base for a in (0.8, 1.25)]
        grid = array.array_stats.power_scale_sense(x[None], *[(v / v.sum())[None] for v in w], 0.8, 1.25)
        assert ours.loc["theta", name] == pytest.approx(float(grid), rel=0.05)


# ── ArviZ ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("alphas", [(0.8, 1.25), (0.99, 1.01)])
def test_parameters_agree_with_arviz(alphas):
    from arviz_stats import psense_summary

    rng = np.random.default_rng(1)
    theta, log_prior, log_likelihood = normal_mean(scale=1.0, y=np.array([2.0, 3.0, 2.5]), S=4000)
    free = rng.normal(size=(4000, 2))
    tree = tree_of(
        {"theta": theta, "free": free},
        {"theta": log_prior, "free": stats.norm.logpdf(free)},
        {"y": log_likelihood, "free": -0.02 * free[:, :1] ** 2},
    )
    ours = prior_sensitivity(tree, alphas=alphas).parameters
    theirs = psense_summary(tree, alphas=alphas, round_to=10)
    assert list(ours.index) == list(theirs.index)
    for name in ("prior", "likelihood"):
        # Tails differ in length by ArviZ's estimate of their effective draws; all else is the same.
        np.testing.assert_allclose(ours[name], theirs[name].to_numpy(dtype=float), atol=5e-4)
    assert ours["diagnosis"].tolist() == theirs["diagnosis"].replace("✓", FINE).tolist()


def test_parameters_with_the_same_draws_are_counted_once():
    """Sigma[b, a] is Sigma[a, b]: 30 of 91 parameters were told of where 63 differ."""
    theta, log_prior, log_likelihood = normal_mean(scale=1.0, y=np.array([2.0, 3.0, 2.5]), S=1000)
    Sigma = np.stack([np.stack([theta, 2 * theta], axis=-1), np.stack([2 * theta, theta + 1], axis=-1)], axis=-2)
    tree = tree_of({"theta": theta + 2, "Sigma": Sigma}, {"theta": log_prior}, {"y": log_likelihood})
    table = prior_sensitivity(tree).parameters
    assert list(table.index) == ["theta", "Sigma[0, 0]", "Sigma[0, 1]", "Sigma[1, 1]"]


def test_sensitivities_have_no_unit_not_even_the_least_number():
    theta, *log_p = normal_mean(S=1000)
    trees = [tree_of({"x": np.ldexp(np.round(9 * theta), p)}, *({"x": v} for v in log_p)) for p in (0, -1074)]
    plain, other = (prior_sensitivity(tree).parameters[["prior", "likelihood"]] for tree in trees)
    np.testing.assert_allclose(other, plain, rtol=1e-9)


def test_gradients_hardly_depend_on_the_step():
    theta, log_prior, log_likelihood = normal_mean(scale=1.0, y=np.full(3, 2.0))
    tree = tree_of({"theta": theta}, {"theta": log_prior}, {"y": log_likelihood})
    wide, near = (prior_sensitivity(tree, alphas=a).parameters for a in ((0.8, 1.25), (0.99, 1.01)))
    np.testing.assert_allclose(wide[["prior", "likelihood"]], near[["prior", "likelihood"]], rtol=0.1)


# ── Predictions of generative models against refits in closed form ──────────────────────────────────────────────────


def niw_power(prior, alpha):
    """The conjugate prior whose density is ∝ that of `prior` to the power α.

    N(μ | m, Σ/κ)^α ∝ |Σ|^{(1−α)/2} N(μ | m, Σ/(ακ)) for each class, and IW ∝ |Σ|^{−(ν+d+1)/2} exp(−½ tr ΨΣ⁻¹).
    """
    K, d = prior.m.shape
    sharing = K if prior.shared else 1
    return dataclasses.replace(
        prior,
        kappa=alpha * prior.kappa,
        Psi=alpha * prior.Psi,
        nu=alpha * (prior.nu + d + 1) - sharing * (1 - alpha) - d - 1,
        alpha=alpha * (prior.alpha - 1) + 1,
    )


def nig_power(prior, alpha):
    return dataclasses.replace(
        prior,
        kappa=alpha * prior.kappa,
        a=alpha * (prior.a + 1) - (1 - alpha) / 2 - 1,
        b=alpha * prior.b,
        alpha=alpha * (prior.alpha - 1) + 1,
    )


def log_prior_of(prior, draws):
    """Log density (S,) of draws under the prior, by SciPy."""
    out = stats.dirichlet.logpdf(draws["pi"].T, prior.alpha)
    if "sigma2" in draws:
        sd = np.sqrt(draws["sigma2"] / prior.kappa)
        out = out + stats.invgamma.logpdf(draws["sigma2"], prior.a, scale=prior.b).sum(axis=(1, 2))
        return out + stats.norm.logpdf(draws["mu"], prior.m, sd).sum(axis=(1, 2))
    Sigma = draws["Sigma"] if draws["Sigma"].ndim == 4 else draws["Sigma"][:, None]
    for g in range(Sigma.shape[1]):
        out = out + stats.invwishart.logpdf(np.moveaxis(Sigma[:, g], 0, -1), prior.nu[g], prior.Psi[g])
    L = np.linalg.cholesky(np.broadcast_to(Sigma, (len(out), *draws["mu"].shape[1:], Sigma.shape[-1])))
    z = np.linalg.solve(L, (draws["mu"] - prior.m)[..., None])[..., 0] * np.sqrt(prior.kappa)[:, None]
    log_det = np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    return out - (0.5 * (z**2).sum(axis=-1) + log_det).sum(axis=1)


@pytest.fixture(scope="module", params=["lda", "qda", "naive"])
def gaussian(request):
    """A prior that matters, 40 rows of iris, draws of the exact posterior, and rows to predict."""
    data = load_example("iris").split(40, random_seed=1)[1].subset(np.arange(40))
    data = dataclasses.replace(data, X=data.X[:, :2], feature_names=data.feature_names[:2], encoding=None)
    moments = Moments.from_arrays(data.X, data.y, data.K)
    center, alpha = data.X.mean(axis=0) + 1, Dirichlet(4.0)
    if request.param == "naive":
        prior = NIGPosterior.from_prior(NIG(center, 2.0, 5.0, 2.0 * np.ones(2)), alpha, 3)
        power = nig_power
    else:
        niw = NIW(center, 2.0, 3.0 * np.eye(2), 10.0)
        prior = NIWPosterior.from_prior(niw, alpha, 3, shared=request.param == "lda")
        power = niw_power
    posterior = prior.update(moments)
    draws = posterior.draw(20000, random_seed=2)
    X = np.array([[5.0, 3.4], [5.8, 2.8], [6.2, 3.0], [5.5, 3.0], [6.8, 2.6]])
    L = log_joint_per_draw(draws, data.X)
    log_likelihood = np.take_along_axis(L, data.y[None, :, None], axis=2)[..., 0]
    tree = tree_of(draws, {"all": log_prior_of(prior, draws)}, {"rows": log_likelihood})
    return prior, power, moments, draws, X, tree


def test_predictions_are_those_of_a_refit_with_the_scaled_prior(gaussian):
    prior, power, moments, draws, X, tree = gaussian
    L = log_joint_per_draw(draws, X)
    result = prior_sensitivity(tree, log_joint=L, var_names=["pi"])
    refits = [np.exp(log_class_probabilities(power(prior, a).update(moments).log_joint(X))) for a in (0.8, 1.0, 1.25)]
    less, same, more = refits
    table = result.predictions
    own = np.arange(len(X)), table["class"].to_numpy()
    for column, P in (("lower", less), ("probability", same), ("upper", more)):
        np.testing.assert_allclose(table[column], P[own], atol=0.006)
    # The change, which shares the draws' noise, is known better than the values.
    np.testing.assert_allclose(table["upper"] - table["lower"], (more - less)[own], atol=0.004)
    gradient = (np.abs(less - same).max(axis=1) + np.abs(more - same).max(axis=1)) / 2 / np.log2(1.25)
    np.testing.assert_allclose(table["prior"], gradient, atol=0.008)
    assert gradient.max() > 0.03  # there is something to measure


def test_predictions_are_those_of_a_refit_with_the_scaled_likelihood(gaussian):
    prior, _, moments, draws, X, tree = gaussian
    table = prior_sensitivity(tree, log_joint=log_joint_per_draw(draws, X), var_names=["pi"]).predictions

    def refit(a):
        # Rows that count a each: likelihood^a but for a constant.
        part = Moments(a * moments.count, moments.mean, a * moments.scatter)
        return np.exp(log_class_probabilities(prior.update(part).log_joint(X)))

    same = refit(1.0)
    changes = [np.abs(refit(a) - same).max(axis=1) for a in (0.8, 1.25)]
    np.testing.assert_allclose(table["likelihood"], np.mean(changes, axis=0) / np.log2(1.25), atol=0.01)


def test_weighted_parameters_are_those_of_a_refit(gaussian):
    prior, power, moments, draws, _, tree = gaussian
    w = power_weights(tree["log_prior"]["all"].to_numpy(), 1.25)
    refit = power(prior, 1.25).update(moments).draw(20000, random_seed=3)
    # Resampled by weight, so that the shared judge applies.
    picked = np.random.default_rng(4).choice(20000, size=5000, p=np.exp(w.log_weights))
    for name in refit:
        assert_same_mean(draws[name][picked], refit[name].mean(axis=0), ess=3000)


# ── Predictions of a regression against quadrature ──────────────────────────────────────────────────────────────────


def test_logistic_predictions_against_quadrature():
    rng = np.random.default_rng(5)
    x = rng.normal(size=12)
    y = (rng.random(12) < expit(2 * x)).astype(int)
    grid = np.linspace(-8, 8, 20001)
    signed = np.where(y == 1, 1, -1) * x
    log_prior = stats.norm.logpdf(grid, -1, 0.7)
    log_likelihood = log_expit(grid[:, None] * signed).sum(axis=1)

    def density(a, b):
        p = np.exp(a * log_prior + b * log_likelihood - (a * log_prior + b * log_likelihood).max())
        return p / p.sum()

    w = np.interp((np.arange(8000) + 0.5) / 8000, np.cumsum(density(1, 1)), grid)
    w = np.random.default_rng(6).permutation(w)
    new = np.array([-1.0, 0.5, 2.0])
    a = w[:, None] * new
    tree = tree_of({"w": w}, {"w": stats.norm.logpdf(w, -1, 0.7)}, {"y": log_expit(w[:, None] * signed)})
    table = prior_sensitivity(
        tree, log_joint=np.stack([log_expit(-a), log_expit(a)], axis=-1), class_names=["no", "yes"]
    ).predictions

    def truth(a, b):
        p = density(a, b) @ expit(grid[:, None] * new)
        return np.column_stack([1 - p, p])

    same = truth(1, 1)
    assert table["class"].tolist() == [["no", "yes"][k] for k in same.argmax(axis=1)]
    np.testing.assert_allclose(table["probability"], same.max(axis=1), atol=1e-3)
    for column, P in (("lower", truth(0.8, 1)), ("upper", truth(1.25, 1))):
        np.testing.assert_allclose(table[column], P[np.arange(3), same.argmax(axis=1)], atol=2e-3)
    flips = (truth(0.8, 1).argmax(axis=1) != same.argmax(axis=1)) | (
        truth(1.25, 1).argmax(axis=1) != same.argmax(axis=1)
    )
    assert table["flips"].tolist() == flips.tolist()
    for name, powers in (("prior", lambda a: (a, 1)), ("likelihood", lambda a: (1, a))):
        change = [np.abs(truth(*powers(a)) - same).max(axis=1) for a in (0.8, 1.25)]
        np.testing.assert_allclose(table[name], np.mean(change, axis=0) / np.log2(1.25), atol=5e-3)


def test_densities_are_averaged_not_probabilities():
    L = np.log(np.array([[[0.9, 0.1]], [[0.001, 0.009]]]))
    p = weighted_probabilities(L, np.log([0.5, 0.5]))
    np.testing.assert_allclose(p, [[0.901 / 1.01, 0.109 / 1.01]])


# ── The answer in words ─────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_named_and_a_calm_prediction_is_said():
    theta, log_prior, log_likelihood = normal_mean(scale=1.0, y=np.full(3, 6.0))
    tree = tree_of({"theta": theta, "fixed": np.ones_like(theta)}, {"theta": log_prior}, {"y": log_likelihood})

    def predict(a):
        return np.stack([log_expit(-a), log_expit(a)], axis=-1)

    moving = prior_sensitivity(tree, log_joint=predict(np.column_stack([0 * theta, 3 * (theta - theta.mean())])))
    assert "1 of 2 rows change a probability by 0.05 or more" in moving.reason
    assert "row 1" in moving.reason
    assert moving.predictions["diagnosis"].tolist() == [FINE, CONFLICT]
    calm = prior_sensitivity(tree, log_joint=predict(0 * theta[:, None]).reshape(4, -1, 1, 2))
    assert "No row of 1 changes" in calm.reason
    assert "can be used as they are" in calm.next_step
    assert list(calm.worst().index) == ["theta"]  # constants are left out
    assert calm.alphas == (0.8, 1.25)
    assert (calm.weights["pareto_k"] < 0.7).all()
    assert list(calm.weights.index) == [(c, a) for c in ("prior", "likelihood") for a in (0.8, 1.25)]


def test_unreliable_weights_are_said():
    rng = np.random.default_rng(7)
    theta = rng.normal(size=1000)
    tree = tree_of({"theta": theta}, {"theta": -6 * rng.exponential(size=1000)}, {"y": theta})
    result = prior_sensitivity(tree)
    assert "The weights for prior^0.8 are unreliable" in result.reason
    assert "The sensitivities to the prior that follow cannot be relied on." in result.reason
    assert "Sample more draws" in result.next_step


def test_one_line_errors():
    theta, log_prior, log_likelihood = normal_mean(S=400)
    tree = tree_of({"theta": theta}, {"theta": log_prior}, {"y": log_likelihood})
    L = np.zeros((400, 2, 2))
    with pytest.raises(DataError, match="log_prior is missing"):
        prior_sensitivity(xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()}))
    with pytest.raises(DataError, match=r"`alphas` must be one power in \(0, 1\) and one above 1"):
        prior_sensitivity(tree, alphas=(1.25, 0.8))
    with pytest.raises(DataError, match=r"`var_names` must be variables of the posterior, \['theta'\]; got \['mu'\]"):
        prior_sensitivity(tree, var_names=["mu"])
    with pytest.raises(DataError, match="must have the 400 draws of the posterior; got 399"):
        prior_sensitivity(tree, log_joint=L[:-1])
    with pytest.raises(DataError, match=r"`log_joint` must be \(S, n, K\)"):
        prior_sensitivity(tree, log_joint=L[0])
    with pytest.raises(DataError, match="`log_joint` must not be nan"):
        prior_sensitivity(tree, log_joint=L * np.nan)
    with pytest.raises(DataError, match="`class_names` must hold 2 names, one for each class of `log_joint`; got 3"):
        prior_sensitivity(tree, log_joint=L, class_names="abc")
    with pytest.raises(DataError, match="No parameter of the posterior varies"):
        prior_sensitivity(tree_of({"theta": 0 * theta}, {"theta": log_prior}, {"y": log_likelihood}))
    with pytest.raises(DataError, match="at least 25 finite numbers, one per draw; got 400, 1 of them not finite"):
        power_weights(np.where(np.arange(400) == 3, -np.inf, log_prior), 0.8)
    with pytest.raises(DataError, match="`alpha` must be finite and greater than 0; got 0"):
        power_weights(log_prior, 0)
    short = tree_of({"theta": theta}, {"theta": log_prior[:200]}, {"y": log_likelihood})
    with pytest.raises(DataError, match=r"`log_prior` must have the \(4, 100\) chains and draws"):
        prior_sensitivity(short)
    broken = tree.copy()
    broken["log_likelihood"] = xr.DataTree(xr.Dataset({"y": ("draw", np.zeros(100))}))
    with pytest.raises(DataError, match="`log_likelihood` must have the dims chain and draw; 'y' has"):
        prior_sensitivity(broken)
