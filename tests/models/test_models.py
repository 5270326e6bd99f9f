"""The five PyMC models: their two forms agree, they equal hand-written densities, and data can be drawn from them."""

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit, log_softmax

from bayes_gda.data.examples import load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.methods.adapter import laplace
from bayes_gda.models import lda, logistic, naive, qda, softmax
from bayes_gda.models.generate import replicate
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal
from bayes_gda.priors.centering import Centering

# No rewriting of the graphs: for a few evaluations it costs more than it saves, and what is tested is what is written.
AS_WRITTEN = Mode(linker="py", optimizer="merge")
GAUSSIAN = {"lda": lda, "qda": qda, "naive": naive}


@pytest.fixture(scope="module")
def iris():
    return load_example("iris")


@pytest.fixture(scope="module")
def two_classes(iris):
    rows = iris.y > 0
    return Dataset.from_arrays(iris.X[rows][:, :2], iris.y[rows] - 1, feature_names=iris.feature_names[:2])


def value_and_gradient(model):
    return model.compile_fn([model.logp(), model.dlogp()], mode=AS_WRITTEN)


def random_points(model, size=4, seed=0):
    rng = np.random.default_rng(seed)
    start = model.initial_point()
    return [{name: v + 0.3 * rng.normal(size=v.shape) for name, v in start.items()} for _ in range(size)]


# ── Gaussian models ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prior", ["conjugate", "lkj"])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_row_wise_and_moment_forms_have_equal_densities_and_gradients(iris, name, prior):
    moments = Moments.from_arrays(iris.X, iris.y, iris.K)
    chosen = LKJ.default(moments) if prior == "lkj" else None
    class_prior = Dirichlet([1, 2, 3])
    on_moments = GAUSSIAN[name].build(iris, chosen, class_prior)
    row_wise = GAUSSIAN[name].build(iris, chosen, class_prior, rowwise=True)
    f, g = value_and_gradient(on_moments), value_and_gradient(row_wise)
    for point in random_points(on_moments):
        (a, da), (b, db) = f(point), g(point)
        assert a == pytest.approx(b, rel=1e-9)
        np.testing.assert_allclose(da, db, rtol=1e-7, atol=1e-7 * np.abs(db).max())


@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_graph_on_moments_does_not_know_n(iris, name):
    """The same nodes on arrays of the same sizes for 150 rows and for 15 000: so a gradient costs the same."""

    def sizes(repeats):
        X, y = np.tile(iris.X, (repeats, 1)), np.tile(iris.y, repeats)
        graph = value_and_gradient(GAUSSIAN[name].build(Moments.from_arrays(X, y, 3))).f.maker.fgraph
        constants = [node.data for apply in graph.apply_nodes for node in apply.inputs if hasattr(node, "data")]
        return len(graph.apply_nodes), max(np.size(c) for c in constants)

    small = sizes(1)
    assert small == sizes(100)
    assert small[1] < 150  # no array as long as the data


@pytest.mark.parametrize("shared", [True, False])
def test_density_with_the_niw_prior_is_the_textbooks(iris, shared):
    """log p(π, μ, Σ, X, y) by scipy at draws of the prior, against PyMC in its own coordinates plus Jacobians."""
    moments = Moments.from_arrays(iris.X, iris.y, iris.K)
    prior, class_prior = NIW.default(moments), Dirichlet([2, 2, 2])
    posterior = (lda_posterior if shared else qda_posterior)(moments, prior, class_prior)
    module = lda if shared else qda
    model = module.build(iris, prior, class_prior)
    names = ["pi", "Sigma", "mu"]
    rvs = [model[name] for name in names]
    evaluate = model.compile_fn(model.replace_rvs_by_values(rvs), mode=AS_WRITTEN)
    potentials = model.compile_fn(model.replace_rvs_by_values([*model.summed.values()]), mode=AS_WRITTEN)
    mean_logp = model.compile_logp(vars=[model["mu"]], sum=False, mode=AS_WRITTEN)
    for point in random_points(model, size=3):
        pi, Sigma, mu = evaluate(point)
        covariances = [Sigma] * 3 if shared else Sigma
        expected = [
            np.log(pi[k]) * np.sum(iris.y == k)
            + stats.multivariate_normal(mu[k], covariances[k]).logpdf(iris.X[iris.y == k]).sum()
            for k in range(3)
        ]
        assert sum(potentials(point)) == pytest.approx(sum(expected), rel=1e-10)
        of_means = [stats.multivariate_normal(prior.m, covariances[k] / prior.kappa).logpdf(mu[k]) for k in range(3)]
        np.testing.assert_allclose(mean_logp(point)[0], of_means, rtol=1e-9)
    assert np.isfinite(posterior.log_evidence)


@pytest.mark.parametrize("classes", [None, 2])
def test_the_bartlett_construction_is_inverse_wishart(classes):
    """Draws of Σ through PyMC against scipy's inverse-Wishart: a quadratic form, an entry and the log determinant."""
    Psi, nu = np.array([[2.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 0.5]]), 6.5
    prior = NIW(m=np.zeros(3), kappa=1.0, Psi=Psi, nu=nu)
    moments = Moments.empty(2, 3)
    model = (lda if classes is None else qda).build(moments, prior)
    drawn = pm.draw(model["Sigma"], draws=4000, random_seed=0, mode=AS_WRITTEN)
    ours = drawn if classes is None else drawn[:, 1]
    truth = stats.invwishart(nu, Psi).rvs(4000, random_state=1)
    for statistic in (lambda S: S[:, 0, 0], lambda S: S[:, 2, 1], lambda S: np.linalg.slogdet(S)[1]):
        assert stats.ks_2samp(statistic(ours), statistic(truth)).pvalue > 0.001


def test_naive_with_conjugate_prior_has_the_exact_posterior_as_density_ratio(iris):
    """Up to one constant, PyMC's log density is the exact posterior's (in the coordinates log σ²)."""
    moments = Moments.from_arrays(iris.X, iris.y, iris.K)
    prior = NIG.default(moments)
    exact = naive_posterior(moments, prior)
    model = naive.build(iris, prior)
    logp = model.compile_logp(vars=[model["mu"], model["sigma2"]], mode=AS_WRITTEN)
    (x,) = model.replace_rvs_by_values([model.summed["x"]])
    likelihood = model.compile_fn(x, inputs=model.value_vars, mode=AS_WRITTEN, on_unused_input="ignore")
    differences = []
    for point in random_points(model, size=5):
        s2, mu = np.exp(point["sigma2_log__"]), point["mu"]
        density = (
            stats.invgamma.logpdf(s2, exact.a, scale=exact.b).sum()
            + np.log(s2).sum()  # Jacobian of log σ²
            + stats.norm.logpdf(mu, exact.m, np.sqrt(s2 / exact.kappa)).sum()
        )
        differences.append(logp(point) + likelihood(point) - density)
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)


# ── regressions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "prior",
    [
        None,
        Normal(mean=[0.5, 0, 0], scale=[5, 1, 2]),
        Normal(covariance=[[4, 1, 0], [1, 2, 0.5], [0, 0.5, 3]]),
        Normal(scale=[np.inf, 1, np.inf]),
    ],
    ids=["default", "vector", "covariance", "partly flat"],
)
def test_logistic_density_equals_numpy(two_classes, prior):
    model = logistic.build(two_classes, prior)
    used = prior or Normal.default(3)
    Phi = FeatureMap.fit(two_classes.X)(two_classes.X)
    logp = model.compile_logp(mode=AS_WRITTEN)
    for point in random_points(model):
        w = point["w"]
        p = expit(Phi @ w)
        likelihood = np.sum(np.where(two_classes.y == 1, np.log(p), np.log1p(-p)))
        delta = w - used.mean_vector(3)
        expected = likelihood - 0.5 * delta @ used.precision(3) @ delta - used.log_normalizer(3)
        assert logp(point) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("reference", [False, True])
def test_softmax_density_equals_numpy(iris, reference):
    model = softmax.build(iris, reference=reference)
    Phi = FeatureMap.fit(iris.X)(iris.X)
    scale = Normal.default(5).scale_vector(5)
    logp = model.compile_logp(mode=AS_WRITTEN)
    for point in random_points(model):
        free = point["w_free" if reference else "w"]
        W = np.vstack([free, np.zeros((1, 5))]) if reference else free
        likelihood = log_softmax(Phi @ W.T, axis=1)[np.arange(iris.n), iris.y].sum()
        assert logp(point) == pytest.approx(likelihood + stats.norm.logpdf(free, 0, scale).sum(), rel=1e-10)


def test_hierarchical_scale_density_equals_numpy(two_classes):
    prior = HierarchicalScale(scale=1.5, intercept_scale=4.0)
    model = logistic.build(two_classes, prior)
    Phi = FeatureMap.fit(two_classes.X)(two_classes.X)
    at = Centering.of(prior, Phi, two_classes.y, [1])
    assert (at.information[0, 1:] > 0).all()
    logp = model.compile_logp(mode=AS_WRITTEN)
    for point in random_points(model):
        z, tau = point["z"], np.exp(point["tau_log__"])
        s = np.array([4.0, tau, tau])
        r = at.information[0] * s**2 / (1 + at.information[0] * s**2)
        sigma = s * np.sqrt(1 - r)
        w = r * at.estimate[0] + sigma * z
        a = Phi @ w
        expected = (
            np.sum(two_classes.y * a - np.logaddexp(0, a))
            + stats.norm.logpdf(w, 0, s).sum()
            + stats.halfnorm.logpdf(tau, scale=1.5)
            + np.log(tau)  # Jacobians, of log τ and of z
            + np.log(sigma).sum()
        )
        # PyMC's half-normal has its constant log √(2/π) to 8 digits only.
        assert logp(point) == pytest.approx(expected, abs=2e-8)


def test_softmax_of_two_classes_is_logistic_regression_under_matching_priors(two_classes):
    """Integrated over the sum of the two weight vectors, softmax is logistic regression with √2 times the scale.

    Shown on the densities: with w₀ = u − v/2, w₁ = u + v/2 the softmax posterior factors into N(u | 0, s²/2) times the
    logistic posterior of v under N(0, 2s²), so their log ratio depends on u alone; and predictions depend on v alone.
    """
    s = 1.7
    two = softmax.build(two_classes, Normal(scale=s)).compile_logp(mode=AS_WRITTEN)
    one = logistic.build(two_classes, Normal(scale=s * np.sqrt(2))).compile_logp(mode=AS_WRITTEN)
    rng = np.random.default_rng(0)
    Phi = FeatureMap.fit(two_classes.X)(two_classes.X)
    for _ in range(5):
        u, v = rng.normal(size=(2, 3))
        W = np.stack([u - v / 2, u + v / 2])
        ratio = two({"w": W}) - one({"w": v})
        assert ratio == pytest.approx(stats.norm.logpdf(u, 0, s / np.sqrt(2)).sum(), rel=1e-9)
        np.testing.assert_allclose(np.exp(log_softmax(Phi @ W.T, axis=1))[:, 1], expit(Phi @ v))


@pytest.mark.parametrize("module", [logistic, softmax])
def test_missing_values_are_refused_by_name(module):
    data = load_example("pima-missing")
    with pytest.raises(DataError, match=r"'bp' \(13\).*needs complete rows: load the data with missing=\"drop\""):
        module.build(data)


def test_logistic_refuses_three_classes(iris):
    with pytest.raises(DataError, match=r"two classes; the data have 3\. Use softmax"):
        logistic.build(iris)


# ── names, and data from the models ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("module", "variables"),
    [
        (lda, {"pi": ("class",), "mu": ("class", "feature"), "Sigma": ("feature", "feature_bis")}),
        (qda, {"pi": ("class",), "mu": ("class", "feature"), "Sigma": ("class", "feature", "feature_bis")}),
        (naive, {"pi": ("class",), "mu": ("class", "feature"), "sigma2": ("class", "feature")}),
        (softmax, {"w": ("class", "coefficient")}),
    ],
)
def test_variables_have_the_names_and_dims_of_the_notation_table(iris, module, variables):
    model = module.build(iris)
    for name, dims in variables.items():
        assert model.named_vars_to_dims[name] == dims
    assert model.coords["class"] == ("setosa", "versicolor", "virginica")
    inner = "coefficient" if module is softmax else "feature"
    assert model.coords[inner][-4:] == iris.feature_names


@pytest.mark.parametrize("name", [*GAUSSIAN, "softmax"])
def test_data_sets_drawn_from_the_prior_are_labelled_and_follow_their_parameters(iris, name):
    module = GAUSSIAN.get(name, softmax)
    model = module.build(iris, rowwise=True) if name in GAUSSIAN else module.build(iris)
    sets, tree = replicate(model, iris, size=3, random_seed=0)
    again, _ = replicate(model, iris, size=3, random_seed=0)
    assert len(sets) == 3
    for data, same in zip(sets, again, strict=True):
        assert data.X.shape == iris.X.shape
        assert data.class_names == iris.class_names
        assert data == same
    assert sets[0] != sets[1]
    if name in GAUSSIAN:
        mu = tree["prior"]["mu"].values[0]
        covariance = tree["prior"]["Sigma" if name != "naive" else "sigma2"].values[0]
        for s, data in enumerate(sets):
            k = int(np.argmax(data.class_counts))
            rows = data.X[data.y == k]
            variance = {
                "lda": lambda s, k: np.diag(covariance[s]),
                "qda": lambda s, k: np.diag(covariance[s, k]),
                "naive": lambda s, k: covariance[s, k],
            }[name](s, k)
            z = (rows.mean(axis=0) - mu[s, k]) / np.sqrt(variance / len(rows))
            assert np.abs(z).max() < 5


def test_logistic_replicates_of_a_posterior_keep_the_rows_and_follow_the_weights(two_classes):
    model = logistic.build(two_classes)
    w = np.array([0.0, 3.0, -1.0])
    import xarray as xr

    posterior = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"w": (("chain", "draw", "coefficient"), np.tile(w, (2, 100, 1)))})}
    )
    sets, _ = replicate(model, two_classes, posterior, size=200, random_seed=1)
    np.testing.assert_array_equal(sets[0].X, two_classes.X)
    frequency = np.mean([data.y for data in sets], axis=0)
    p = expit(FeatureMap.fit(two_classes.X)(two_classes.X) @ w)
    assert (np.abs(frequency - p) < 5 * np.sqrt(p * (1 - p) / 200) + 1e-9).all()


def test_replicates_of_a_gaussian_posterior_come_from_the_moments_form(iris):
    """Draws of the moments form feed the row-wise form: the two have the same free variables."""
    free = {rv.name for rv in qda.build(iris).free_RVs}
    assert free == {rv.name for rv in qda.build(iris, rowwise=True).free_RVs}


@pytest.mark.parametrize("name", ["lda", "naive"])
def test_data_sets_drawn_from_a_posterior_look_like_the_data(iris, name):
    """Posterior of the moments form, replicates of the row-wise form: class means scatter about the observed ones."""
    module = GAUSSIAN[name]
    posterior = laplace(module.build(iris)).to_datatree(50, chains=2, random_seed=0)
    sets, _ = replicate(module.build(iris, rowwise=True), iris, posterior, size=60, random_seed=1)
    observed = Moments.from_arrays(iris.X, iris.y, 3)
    means = np.array([Moments.from_arrays(data.X, data.y, 3).mean for data in sets])
    z = (observed.mean - means.mean(axis=0)) / means.std(axis=0)
    assert np.abs(z).max() < 1  # inside the bulk of the replicates, whose own mean has an error of 0.13
    counts = np.array([data.class_counts for data in sets])
    assert np.abs(counts.mean(axis=0) - 50).max() < 6


def test_what_cannot_be_replicated_says_why(iris):
    with pytest.raises(DataError, match=r"Build it with rowwise=True"):
        replicate(lda.build(iris), iris)
    with pytest.raises(DataError, match="Give a Dataset in place of Moments"):
        lda.build(Moments.empty(2, 2), NIW(m=[0, 0], kappa=1, Psi=np.eye(2), nu=4), rowwise=True)
    import xarray as xr

    empty = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), np.zeros((1, 5)))})})
    with pytest.raises(DataError, match="no draws of Sigma_chi2, Sigma_z, pi"):
        replicate(lda.build(iris, rowwise=True), iris, empty)
