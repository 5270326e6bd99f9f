"""Any PyMC model as plain functions: derivatives, the Jacobian, Laplace and the verdict against closed forms."""

import os
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import join_nonshared_inputs

import bayes_gda
from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.methods.adapter import ModelDensity, laplace, trust
from bayes_gda.models import lda, logistic, naive
from bayes_gda.priors import LKJ, NIG, NIW, HierarchicalScale, Normal


def normal_with_unknown_scale(n=12):
    x = np.random.default_rng(0).normal(0, 3, n)
    with pm.Model() as model:
        sigma = pm.HalfFlat("sigma")
        pm.Normal("x", 0.0, sigma, observed=x)
    return model, x


def test_the_jacobian_is_in_closed_form_on_a_normal_with_unknown_scale():
    """p(log σ) ∝ σ^{−n} e^{−SS/2σ²} · σ: mode at σ² = SS/(n−1), curvature 2(n−1); without the Jacobian, n."""
    model, x = normal_with_unknown_scale()
    posterior = laplace(model)
    n, squares = len(x), np.sum(x**2)
    assert posterior.density.names == ("sigma_log__",)
    assert posterior.gaussian.mean[0] == pytest.approx(0.5 * np.log(squares / (n - 1)), abs=1e-8)
    assert posterior.gaussian.sd[0] == pytest.approx(1 / np.sqrt(2 * (n - 1)), rel=1e-8)


def test_corrected_evidence_of_that_model_is_the_closed_form():
    """∫ (2π)^{−n/2} σ^{−n} e^{−SS/2σ²} dσ = ½ (2π)^{−n/2} Γ((n−1)/2) (SS/2)^{−(n−1)/2}."""
    from scipy.special import gammaln

    model, x = normal_with_unknown_scale()
    n, squares = len(x), np.sum(x**2)
    truth = -0.5 * n * np.log(2 * np.pi) - np.log(2) + gammaln((n - 1) / 2) - 0.5 * (n - 1) * np.log(squares / 2)
    result = trust(model)
    assert abs(result.log_evidence - truth) < 4 * result.log_evidence_error
    assert result.log_evidence_error < 0.01
    assert abs(laplace(model).log_evidence - truth) > result.log_evidence_error  # the correction has work to do


def symbolic_hessian(model, w):
    (log_p,), vector = join_nonshared_inputs(model.initial_point(), [model.logp()], model.value_vars)
    g = pt.grad(log_p, vector)
    H = pt.stack([pt.grad(g[i], vector) for i in range(len(w))])  # a loop of PyTensor's own would be compiled
    return pytensor.function([vector], H, mode="FAST_COMPILE")(w)


def test_derivatives_equal_pytensors_symbolic_ones():
    data = load_example("pima")
    model = logistic.build(data, HierarchicalScale())
    density = ModelDensity.of(model)
    w = density.start + 0.3 * np.random.default_rng(0).normal(size=density.dim)
    value, g, H = density.value_gradient_precision(w)
    np.testing.assert_allclose(H, -symbolic_hessian(model, w), rtol=1e-8, atol=1e-10 * np.abs(H).max())
    assert value == pytest.approx(float(density.log_density(w)))
    step = 1e-6 * np.eye(density.dim)
    numeric = [(density.log_density(w + e) - density.log_density(w - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(g, numeric, rtol=1e-5, atol=1e-4)
    # Many points at once are the points one by one.
    W = w + 0.1 * np.random.default_rng(1).normal(size=(7, density.dim))
    np.testing.assert_allclose(density.log_density(W), [float(density.log_density(row)) for row in W], rtol=1e-12)


def test_laplace_of_the_pymc_model_is_the_hand_written_one():
    """The same logistic regression through PyMC and by hand: mode, covariance, evidence, third-order mean."""
    data = load_example("pima")
    model = logistic.build(data, Normal(scale=2.0))
    by_model = laplace(model)
    from bayes_gda.data.features import FeatureMap

    target = LogisticTarget(FeatureMap.fit(data.X)(data.X), data.y, Normal(scale=2.0))
    by_hand = regression_laplace(target)
    np.testing.assert_allclose(by_model.gaussian.mean, by_hand.mean, atol=1e-7)
    np.testing.assert_allclose(by_model.gaussian.covariance, by_hand.covariance, rtol=1e-6, atol=1e-10)
    assert by_model.log_evidence == pytest.approx(by_hand.log_evidence, abs=1e-6)
    V = by_hand.covariance
    np.testing.assert_allclose(
        by_model.density.third_order_trace(by_hand.mean, V),
        target.third_order_trace(by_hand.mean, V),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ["naive", "lda"])
def test_corrected_evidence_and_mean_of_gaussian_models_equal_the_exact_ones(name):
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    model = {"naive": naive, "lda": lda}[name].build(data)
    exact = (
        naive_posterior(moments, NIG.default(moments))
        if name == "naive"
        else lda_posterior(moments, NIW.default(moments))
    )
    posterior = laplace(model)
    result = trust(posterior)
    assert result.verdict in {"trusted", "corrected"}
    assert abs(result.log_evidence - exact.log_evidence) < 4 * result.log_evidence_error
    drawn = posterior.density.draws(result.importance.draw(3000, random_seed=0))
    effective = result.importance.corrected_ess_fraction * len(result.importance.draws)
    error = drawn["mu"].std(axis=0) / np.sqrt(min(effective, 3000))
    assert (np.abs(drawn["mu"].mean(axis=0) - exact.m) < 5 * error).all()
    if name == "lda":
        Sigma = exact.Psi[0] / (exact.nu[0] - data.d - 1)
        error = drawn["Sigma"].std(axis=0) / np.sqrt(min(effective, 3000))
        assert (np.abs(drawn["Sigma"].mean(axis=0) - Sigma) < 5 * error).all()


def test_a_model_without_conjugacy_works_too_and_is_labelled():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    posterior = bayes_gda.laplace(naive.build(data, LKJ.default(moments)))
    tree = posterior.to_datatree(50, chains=2, random_seed=0)["posterior"]
    assert tree["mu"].dims == ("chain", "draw", "class", "feature")
    assert tree["sigma2"].dims == ("chain", "draw", "class", "feature")
    assert (tree["sigma2"] > 0).all()
    np.testing.assert_allclose(tree["pi"].sum("class"), 1)
    assert list(tree["feature"].values) == list(data.feature_names)
    assert bayes_gda.trust(posterior).verdict in {"trusted", "corrected"}


def test_the_density_is_made_stable_where_a_model_is_not():
    """log(1 − σ(w)) at w = 800 is −800, not log 0."""
    import pytensor.tensor as pt

    with pm.Model() as model:
        w = pm.Normal("w", 0, 100)
        pm.Potential("tail", pt.log(1 - pt.sigmoid(w)))
    value, gradient = ModelDensity.of(model).values_and_gradients(np.array([[800.0]]))
    prior = -0.5 * 8.0**2 - np.log(100) - 0.5 * np.log(2 * np.pi)
    assert value[0] == pytest.approx(prior - 800)
    assert gradient[0, 0] == pytest.approx(-0.08 - 1)


def test_models_that_have_no_laplace_approximation_say_why():
    with pm.Model() as discrete:
        pm.Poisson("k", 3)
    with pytest.raises(DataError, match="k is discrete"):
        laplace(discrete)
    with pm.Model() as improper:
        pm.Flat("w")
    with pytest.raises(ConvergenceError, match="not positive definite"):
        laplace(improper)


def test_nothing_is_compiled_to_machine_code(tmp_path):
    """The first approximation on a machine must not wait for a compiler, nor need one."""
    code = (
        "from bayes_gda import Moments, laplace, load_example\n"
        "from bayes_gda.models import lda\n"
        "data = load_example('iris')\n"
        "laplace(lda.build(Moments.from_arrays(data.X[:, :2], data.y, data.K)))"
    )
    env = {**os.environ, "PYTENSOR_FLAGS": f"blas__ldflags=,base_compiledir={tmp_path}"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=300)
    assert {path.parent.name for path in tmp_path.rglob("mod.cpp")} <= {"lazylinker_ext", "cutils_ext"}
