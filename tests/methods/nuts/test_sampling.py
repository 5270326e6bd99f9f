"""MCMC against truths that it did not make: closed forms, published numbers, quadrature, importance sampling."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from functools import cache

import arviz_stats as azs
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_array_equal

from bayes_gda import (
    LKJ,
    NIG,
    NIW,
    DataError,
    HierarchicalScale,
    MissingDependencyError,
    Moments,
    Normal,
    load_example,
    sample,
)
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.loo import exact_loo, psis_loo
from bayes_gda.families.built import family_of
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.methods.density import Smoothed
from bayes_gda.methods.diagnostics import diagnose
from bayes_gda.methods.importance.trust import assess
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.models import lda, logistic, naive, qda

IRIS = load_example("iris")
PIMA = load_example("pima")
MOMENTS = Moments.from_arrays(IRIS.X, IRIS.y, IRIS.K)
CASES = {
    "lda": (lda.build, lda_posterior, NIW),
    "qda": (qda.build, qda_posterior, NIW),
    "naive": (naive.build, naive_posterior, NIG),
}
QUIET = {"random_seed": 7, "progress": False}


def scores(tree, truth):
    """Return z of the mean and of the sd of every scalar, by ArviZ's Monte Carlo errors and those of the truth."""
    for name, exact in truth.items():
        draws = tree["posterior"].to_dataset()[[name]]
        for kind, f in (("mean", np.mean), ("sd", np.std)):
            error = azs.mcse(draws, method=kind)[name].values
            size = len(exact)
            sd = exact.std(axis=0)
            noise = sd / np.sqrt(size if kind == "mean" else 2 * size)
            ours = f(draws[name].values, axis=(0, 1))
            z = (ours - f(exact, axis=0)) / np.sqrt(error**2 + noise**2)
            yield name, kind, z[sd > 0] if z.ndim else z


@cache
def sampled(name):
    return sample(CASES[name][0](IRIS), **QUIET)


@pytest.mark.parametrize("name", CASES)
def test_mcmc_is_exact_for_conjugate_models(name):
    _, posterior, prior = CASES[name]
    tree = sampled(name)
    truth = posterior(MOMENTS, prior.default(MOMENTS)).draw(50_000, random_seed=1)
    for variable, kind, z in scores(tree, truth):
        assert np.abs(z).max() < 4, (variable, kind)
    assert diagnose(tree).verdict == "good"
    assert tree["posterior"].attrs["incomplete"] == 0


@pytest.mark.parametrize("name", CASES)
def test_psis_loo_of_the_sampled_posterior_is_the_exact_one(name):
    _, posterior, prior = CASES[name]
    tree = sampled(name)
    joint = tree["log_likelihood"]["y"] + tree["log_likelihood"]["x"]  # log p(y | x, θ) + log p(x | θ)
    ours = psis_loo(joint.to_numpy().reshape(-1, IRIS.n), kind="joint")
    truth = exact_loo(posterior(MOMENTS, prior.default(MOMENTS)), IRIS.X, IRIS.y).joint
    good = ours.pareto_k < ours.threshold
    assert good.mean() > 0.9
    # A row's error is Monte Carlo: a few percent of its density where k̂ is good.
    assert np.abs(ours.pointwise - truth.pointwise)[good].max() < 0.25
    assert abs(ours.elpd - truth.elpd) < 1.0
    assert ours.n_bad == int((~good).sum())


def test_pima_against_published_polya_gamma_posterior():
    """Raw features, N(0, 10 I): means and sds of a Gibbs sampler with Pólya-Gamma variables."""
    raw = FeatureMap.fit(PIMA.X, PIMA.feature_names, standardize=False)
    model = logistic.build(PIMA, Normal(scale=np.sqrt(10.0)), features=raw)
    tree = sample(model, draws=1500, **QUIET)
    w = tree["posterior"].to_dataset()[["w"]]
    mean_error, sd_error = azs.mcse(w)["w"], azs.mcse(w, method="sd")["w"]
    for name, mean, sd in (("intercept", -8.8827, 0.9151), ("ped", 1.2425, 0.3556)):
        draws = w["w"].sel(coefficient=name)
        assert abs(float(draws.mean()) - mean) < 4 * float(mean_error.sel(coefficient=name)) + 5e-5
        assert abs(float(draws.std()) - sd) < 4 * float(sd_error.sel(coefficient=name)) + 5e-5


def test_lkj_against_importance_sampling():
    model = lda.build(IRIS, LKJ.default(MOMENTS))
    tree = sample(model, **QUIET)
    density = family_of(model).density
    target = Smoothed(density)
    posterior = laplace_approximation(target, density.start)
    weighed = assess(target, posterior, mean=lindley_mean(posterior, target), random_seed=3)
    assert weighed.importance.corrected_k < weighed.importance.threshold
    variables = density.variables(weighed.importance.draws)
    weight = np.exp(weighed.importance.log_weights)
    for name in ("mu", "Sigma", "pi"):
        x = variables[name].reshape(len(weight), -1)
        truth = weight @ x
        noise2 = weight**2 @ (x - truth) ** 2
        data = tree["posterior"].to_dataset()[[name]]
        error = azs.mcse(data)[name].values.ravel()
        ours = data[name].values.reshape(-1, x.shape[1]).mean(axis=0)
        assert (np.abs(ours - truth) < 4 * np.sqrt(error**2 + noise2)).all(), name


def test_hierarchical_scale_against_quadrature():
    """One slope: (τ, w₀, w₁) on a grid."""
    data = Dataset(PIMA.X[:40, :1], PIMA.y[:40], PIMA.feature_names[:1], PIMA.class_names)
    prior = HierarchicalScale(2.0, 3.0)
    tree = sample(logistic.build(data, prior), **QUIET)
    Phi = FeatureMap.fit(data.X, data.feature_names)(data.X)
    t = np.linspace(-9, 3, 300)
    w0, w1 = np.meshgrid(np.linspace(-4, 4, 201), np.linspace(-4, 4, 401), indexing="ij")
    a = w0[..., None] * Phi[:, 0] + w1[..., None] * Phi[:, 1]
    like = (a * data.y - np.logaddexp(0, a)).sum(axis=-1) - 0.5 * (w0 / 3) ** 2
    weights = np.empty((len(t), 3))
    for i, log_tau in enumerate(t):
        tau = np.exp(log_tau)
        log_p = like - 0.5 * (w1 / tau) ** 2 - log_tau - 0.5 * (tau / 2) ** 2 + log_tau
        p = np.exp(log_p - like.max())
        weights[i] = p.sum(), (p * w1).sum(), p.sum() * tau
    # A narrow τ falls between grid points of w₁: there the integral over w₁ is its density at 0, width τ√2π.
    step = w1[0, 1] - w1[0, 0]
    narrow = np.exp(t) < 3 * step
    at_zero = np.exp(like - like.max())[:, w1.shape[1] // 2].sum()
    tau = np.exp(t[narrow])
    weights[narrow, 0] = at_zero * np.sqrt(2 * np.pi) * tau / step * np.exp(-0.5 * (tau / 2) ** 2)
    weights[narrow, 1], weights[narrow, 2] = 0.0, weights[narrow, 0] * tau
    total = weights.sum(axis=0)
    posterior = tree["posterior"].to_dataset()
    slope = posterior["w"].isel(coefficient=1)
    error = float(azs.mcse(posterior[["w"]])["w"][1]), float(azs.mcse(posterior[["tau"]])["tau"])
    assert abs(float(slope.mean()) - total[1] / total[0]) < 4 * error[0] + 0.005
    assert abs(float(posterior["tau"].mean()) - total[2] / total[0]) < 4 * error[1] + 0.01


@pytest.mark.parametrize(
    ("n", "d", "scale", "least"),
    # Centred, these had ESS 60, 47, 258 and 2521 and 26, 19, 4 and 0 divergences; non-centred, as w = τz with the mass
    # matrix of Laplace's method, ESS 1205, 1583, 1648 and 688 and 0, 0, 40 and 0 divergences.
    [
        (25, 12, 1.0, 300),
        pytest.param(25, 12, 0.0, 500, marks=pytest.mark.slow),
        pytest.param(200, 12, 0.0, 500, marks=pytest.mark.slow),
        (1000, 12, 1.0, 1500),
    ],
)
def test_an_unknown_scale_is_sampled_whether_the_data_say_little_or_much(n, d, scale, least):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), scale * rng.standard_normal(d)
    y = (X @ w + rng.logistic(size=n) > 0).astype(np.intp)
    data = Dataset(X, y, tuple(f"x{j}" for j in range(d)), (0, 1))
    found = diagnose(sample(logistic.build(data, HierarchicalScale()), draws=1000, **QUIET))
    assert found.divergences <= 4
    assert found.table["r_hat"].max() < 1.02
    assert found.table[["ess_bulk", "ess_tail"]].min(axis=None) > least


def test_any_pymc_model_gets_the_geometry():
    y = np.array([1.2, 0.4, 2.2, 1.9, 0.3])
    with pm.Model(coords={"row": range(5)}) as model:
        theta = pm.Normal("theta", 0, 2)
        pm.Deterministic("double", 2 * theta)
        pm.Normal("y", theta, 1.0, observed=y, dims="row")
    tree = sample(model, draws=1000, **QUIET)
    precision = 1 / 4 + 5
    draws = tree["posterior"]["theta"].values
    error = float(azs.mcse(tree["posterior"].to_dataset()[["theta"]])["theta"])
    assert abs(draws.mean() - y.sum() / precision) < 4 * error
    assert draws.std() == pytest.approx(precision**-0.5, rel=0.1)
    np.testing.assert_allclose(tree["posterior"]["double"], 2 * draws)
    assert tree["posterior"].attrs["tuning_steps"] == 200


def test_a_model_without_a_mode_learns_its_mass_matrix():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        pm.Normal("x", 0, scale, shape=2)
    tree = sample(model, draws=20, chains=1, **QUIET)
    assert tree["posterior"].attrs["tuning_steps"] == 1000


def test_the_same_seed_gives_the_same_draws_whatever_the_cores():
    model = naive.build(IRIS)
    one, two, other = (
        sample(model, draws=50, tune=50, chains=3, cores=cores, random_seed=seed, progress=False)
        for cores, seed in ((1, 5), (2, 5), (2, 6))
    )
    assert_array_equal(one["posterior"]["mu"], two["posterior"]["mu"])
    assert_array_equal(one["sample_stats"]["energy"], two["sample_stats"]["energy"])
    assert (one["posterior"]["mu"] != other["posterior"]["mu"]).any()


def test_groups_dims_and_attributes():
    tree = sample(logistic.build(PIMA), draws=60, tune=100, chains=2, **QUIET)
    posterior = tree["posterior"]
    assert posterior["w"].dims == ("chain", "draw", "coefficient")
    assert list(posterior["coefficient"].values) == ["intercept", *PIMA.feature_names]
    assert {"posterior", "sample_stats", "log_likelihood", "log_prior", "observed_data", "constant_data"} <= set(
        tree.children
    )
    assert tree["log_likelihood"]["y"].shape == (2, 60, PIMA.n)
    assert_array_equal(tree["observed_data"]["y"], PIMA.y)
    assert posterior.attrs["fingerprint"] == PIMA.fingerprint
    assert posterior.attrs["random_seed"] == 7
    assert posterior.attrs["sampler"] == "pymc"
    assert "pymc" in posterior.attrs["versions"]
    assert all(posterior.attrs[part] > 0 for part in ("compile_time", "warm_up_time", "draw_time"))
    assert {"diverging", "energy", "tree_depth", "acceptance_rate"} <= set(tree["sample_stats"].data_vars)
    # The parts add up to the density that was sampled.
    total = tree["log_likelihood"]["y"].sum("row") + tree["log_prior"]["w"]
    np.testing.assert_allclose(total, tree["sample_stats"]["lp"], rtol=1e-9)


def test_progress_is_silent_unless_asked_for(capfd):
    model = naive.build(IRIS)
    sample(model, draws=20, tune=20, chains=2, random_seed=1)
    assert capfd.readouterr() == ("", "")
    sample(model, draws=20, tune=20, chains=2, random_seed=1, progress=True)
    shown = capfd.readouterr().out
    assert "Chain 2" in shown
    assert "40/40" in shown
    assert "0 divergences" in shown


@pytest.mark.parametrize("cores", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_an_interruption_returns_what_was_sampled(cores):
    script = f"""
        import os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
        import threading, time
        from bayes_gda import load_example, sample
        from bayes_gda.models import naive
        model = naive.build(load_example("iris"))
        threading.Timer(6, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        tree = sample(model, draws=2_000_000, tune=20, chains=2, cores={cores}, random_seed=1)
        attrs = tree["posterior"].attrs
        print("incomplete", attrs["incomplete"], "draws", tree["posterior"].sizes["draw"], attrs["requested_draws"])
    """
    env = {**os.environ, "PYTENSOR_FLAGS": "mode=FAST_COMPILE,blas__ldflags="}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
        check=True,
    )
    _, incomplete, _, draws, requested = done.stdout.split()
    assert incomplete == "1"
    assert 0 < int(draws) < int(requested)


def test_bad_arguments_name_the_remedy(monkeypatch):
    model = naive.build(IRIS)
    with pytest.raises(DataError, match=r"`draws` must be a whole number, at least 1; got 0\."):
        sample(model, draws=0)
    with pytest.raises(DataError, match="`sampler` must be hmc or one of pymc, nutpie, numpyro; got 'stan'"):
        sample(model, sampler="stan")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bayes-gda\[nutpie\]'"):
        sample(model, sampler="nutpie")


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nutpie", "numpyro"])
@pytest.mark.parametrize("name", ["naive", "qda"])
def test_other_samplers_agree(sampler, name):
    pytest.importorskip(sampler, reason=f"{sampler} is an extra: pip install 'bayes-gda[{sampler}]'")
    build, posterior, prior = CASES[name]
    tree = sample(build(IRIS), sampler=sampler, **QUIET)
    truth = posterior(MOMENTS, prior.default(MOMENTS)).draw(200_000, random_seed=1)
    for variable, kind, z in scores(tree, truth):
        assert np.abs(z).max() < 4, (variable, kind)
    assert tree["posterior"].attrs["sampler"] == sampler
    assert "log_likelihood" in tree.children
