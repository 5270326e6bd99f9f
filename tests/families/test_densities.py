"""The hand-written densities are the model's own graph: value, gradient, variables, prior and likelihood."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from bayes_gda import LKJ, NIG, NIW, Dataset, Dirichlet, HierarchicalScale, Moments, Normal, load_example
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.built import family_of
from bayes_gda.families.linear.densities import HierarchicalDensity
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.registry import family_names, get_family
from bayes_gda.methods.adapter import ModelDensity
from bayes_gda.methods.density import Smoothed
from bayes_gda.methods.settings import Settings
from bayes_gda.models import lda, logistic, naive, qda, softmax

IRIS = load_example("iris")
PIMA = load_example("pima")
SMALL = PIMA.subset(np.arange(0, PIMA.n, 9))
MOMENTS = Moments.from_arrays(IRIS.X, IRIS.y, IRIS.K)
WISHART = NIW(m=IRIS.X.mean(axis=0), kappa=0.7, Psi=np.cov(IRIS.X.T) + 0.3 * np.eye(4), nu=6.5)
ALPHA = Dirichlet(np.array([1.0, 2.0, 0.5]))
WEIGHTS = np.linspace(0, 2, SMALL.n)
CORRELATED = Normal(mean=0.1, covariance=np.eye(8) + 0.5)

MODELS = {
    "lda": lambda: lda.build(IRIS, WISHART, ALPHA),
    "lda-lkj": lambda: lda.build(IRIS, LKJ.default(MOMENTS)),
    "qda": lambda: qda.build(IRIS, WISHART, ALPHA),
    "qda-moments": lambda: qda.build(MOMENTS),
    "qda-rowwise": lambda: qda.build(IRIS, rowwise=True),
    "qda-lkj": lambda: qda.build(IRIS, LKJ.default(MOMENTS)),
    "naive": lambda: naive.build(IRIS, NIG(m=1.0, kappa=0.3, a=2.0, b=np.array([1.0, 2.0, 3.0, 0.5])), ALPHA),
    "naive-lkj": lambda: naive.build(IRIS, LKJ.default(MOMENTS)),
    "logistic": lambda: logistic.build(SMALL),
    "logistic-full": lambda: logistic.build(SMALL, CORRELATED),
    "logistic-flat": lambda: logistic.build(SMALL, Normal(scale=np.array([np.inf, *[2.0] * 7]))),
    "logistic-weights": lambda: logistic.build(SMALL, sample_weight=WEIGHTS),
    "logistic-hierarchical": lambda: logistic.build(SMALL, HierarchicalScale()),
    "softmax": lambda: softmax.build(IRIS),
    "softmax-reference": lambda: softmax.build(IRIS, reference=True),
    "softmax-weights": lambda: softmax.build(IRIS, sample_weight=np.linspace(0, 2, IRIS.n)),
    "softmax-hierarchical": lambda: softmax.build(IRIS, HierarchicalScale(1.5, 3.0), reference=True),
}
HIERARCHICAL = ["logistic-hierarchical", "softmax-hierarchical"]
CONJUGATE = ["lda", "qda", "naive", "logistic", "softmax-reference", "logistic-hierarchical", "naive-lkj"]


def points(density, size=3):
    return density.start + 0.3 * np.random.default_rng(1).standard_normal((size, density.dim))


@pytest.mark.parametrize("name", MODELS)
def test_value_gradient_and_variables_are_those_of_the_graph(name):
    model = MODELS[name]()
    graph, density = ModelDensity.of(model), family_of(model).density
    assert density.dim == graph.dim
    W = points(density)
    values, gradients = graph.values_and_gradients(W)
    ours, slopes = density.values_and_gradients(W)
    # PyMC has the constant of a half-normal to 8 digits only.
    np.testing.assert_allclose(ours, values, rtol=1e-7)
    np.testing.assert_allclose(slopes, gradients, rtol=1e-8, atol=1e-8 * np.abs(gradients).max())
    one, slope = density.values_and_gradients(W[0])
    np.testing.assert_allclose(one, ours[0], rtol=1e-12)
    np.testing.assert_allclose(slope, slopes[0], rtol=1e-9, atol=1e-10 * np.abs(slopes).max())
    theirs, variables = graph.draws(W), density.variables(W)
    assert variables.keys() == theirs.keys()
    for key, value in variables.items():
        assert value.shape == theirs[key].shape, key
        np.testing.assert_allclose(value, theirs[key], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "name", ["lda-lkj", "qda-lkj", "naive-lkj", "logistic", "softmax-reference", "softmax", *HIERARCHICAL]
)
def test_coordinates_are_the_inverse_of_variables(name):
    density = family_of(MODELS[name]()).density
    W = points(density)
    np.testing.assert_allclose(density.coordinates(density.variables(W)), W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CONJUGATE)
def test_prior_and_likelihood_add_up_to_the_density(name):
    """For a regression they are all there is; for a Gaussian model the likelihood is PyMC's, row by row."""
    model = MODELS[name]()
    family = family_of(model)
    density = family.density
    W = points(density)
    variables = density.variables(W)
    likelihood = density.log_likelihood(variables, family.data)
    assert likelihood.shape == (3, family.data.n)
    if name in {"logistic", "softmax-reference", "logistic-hierarchical"}:
        prior = sum(density.log_prior(variables).values())
        total = prior + likelihood.sum(axis=1)
        if "z" in variables:
            # The prior is that of (log τ, w), whatever the data; w is linear in z, with |∂w/∂z| beyond.
            further = density.variables(W + np.append(0.0, np.ones(density.dim - 1)))
            total = total + np.log(further["w"] - variables["w"]).sum(axis=1)
        np.testing.assert_allclose(total, density.values_and_gradients(W)[0], rtol=1e-10)
    else:
        build = {"lda": lda, "qda": qda, "naive": naive, "naive-lkj": naive}[name].build
        graph = build(IRIS, family.prior, ALPHA, rowwise=True)
        logp = graph.compile_logp([graph["x"], graph["y"]], sum=False)
        coordinates = ModelDensity.of(graph)
        for i, w in enumerate(W):
            parts = logp(_point(coordinates, w))
            np.testing.assert_allclose(
                likelihood[i], sum(p.reshape(IRIS.n, -1).sum(axis=1) for p in parts), rtol=1e-9, atol=1e-9
            )


def _point(graph, w):
    from pymc.blocking import DictToArrayBijection

    model = graph.model
    point = model.initial_point()
    mapped = DictToArrayBijection.map({v.name: point[v.name] for v in model.value_vars})
    return DictToArrayBijection.rmap(type(mapped)(w, mapped.point_map_info))


def test_prior_densities_of_gaussian_parameters_against_scipy():
    from scipy import stats

    density = family_of(MODELS["qda"]()).density
    variables = density.variables(points(density, 2))
    prior = density.log_prior(variables)
    for s in range(2):
        Sigma, mu = variables["Sigma"][s], variables["mu"][s]
        wishart = sum(stats.invwishart(WISHART.nu, WISHART.Psi).logpdf(S) for S in Sigma)
        normal = sum(
            stats.multivariate_normal(WISHART.m, S / WISHART.kappa).logpdf(m) for S, m in zip(Sigma, mu, strict=True)
        )
        wishart += 0.5 * 5 * np.linalg.slogdet(Sigma)[1].sum()  # by |Σ|^{−(d+1)/2} dΣ, not dΣ
        assert prior["Sigma"][s] == pytest.approx(wishart, rel=1e-9)
        assert prior["mu"][s] == pytest.approx(normal, rel=1e-9)
        dirichlet = stats.dirichlet(ALPHA.alpha).logpdf(variables["pi"][s]) + np.log(variables["pi"][s]).sum()
        assert prior["pi"][s] == pytest.approx(dirichlet, rel=1e-9)


def test_lkj_normalizer_against_integration():
    from scipy.integrate import quad

    for eta in (1.0, 2.0, 3.5):
        area = quad(lambda r, eta=eta: (1 - r * r) ** (eta - 1), -1, 1)[0]
        assert LKJ(np.ones(2), 0.0, 1.0, eta).log_normalizer == pytest.approx(-np.log(area), rel=1e-9)
    # All 3 × 3 correlation matrices have the volume π²/2 (Rousseeuw & Molenberghs 1994).
    assert LKJ(np.ones(3), 0.0, 1.0, 1.0).log_normalizer == pytest.approx(-np.log(np.pi**2 / 2), rel=1e-9)


@pytest.mark.parametrize("name", ["qda", "lda-lkj", "naive"])
def test_smoothed_has_the_derivatives_of_the_graph(name):
    model = MODELS[name]()
    graph, smooth = ModelDensity.of(model), Smoothed(family_of(model).density)
    w = smooth.density.start
    value, g, H = graph.value_gradient_precision(w)
    ours = smooth.value_gradient_precision(w)
    assert ours[0] == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(ours[1], g, atol=1e-8 * np.abs(g).max() + 1e-8)
    np.testing.assert_allclose(ours[2], H, atol=1e-6 * np.abs(H).max())
    V = np.linalg.inv(H + np.eye(len(w)))
    np.testing.assert_allclose(smooth.third_order_trace(w, V), graph.third_order_trace(w, V), rtol=1e-3, atol=1e-3)


def test_one_feature_and_two_classes():
    data = Dataset(PIMA.X[:60, :1], PIMA.y[:60], PIMA.feature_names[:1], PIMA.class_names)
    for build in (lda.build, qda.build):
        model = build(data)
        density = family_of(model).density
        W = points(density)
        np.testing.assert_allclose(density.values_and_gradients(W)[0], ModelDensity.of(model).log_density(W), rtol=1e-9)


def test_a_changed_model_is_no_longer_of_its_family():
    model = logistic.build(SMALL)
    assert family_of(model) is not None
    with model:
        pm.Potential("more", model["w"].sum())
    assert family_of(model) is None
    other = logistic.build(SMALL)
    with other:
        pm.set_data({"Phi": 2 * np.asarray(other["Phi"].get_value())})
    assert family_of(other) is None
    assert family_of(pm.Model()) is None


def test_a_power_of_the_prior_is_the_prior_of_more_rows():
    """p(σ²)^α by d log σ² is IG(αa, αb): the inverse gamma worth α times as many rows."""
    from scipy import stats

    density = family_of(MODELS["naive"]()).density
    variables = density.variables(points(density, 2))
    power = 1.25 * density.log_prior(variables)["sigma2"]
    scaled = stats.invgamma(1.25 * 2.0, scale=1.25 * np.array([1.0, 2.0, 3.0, 0.5])).logpdf(variables["sigma2"])
    scaled = (scaled + np.log(variables["sigma2"])).sum(axis=(1, 2))
    assert power[1] - power[0] == pytest.approx(scaled[1] - scaled[0], rel=1e-9)


@pytest.mark.parametrize("name", ["lda", "qda", "logistic"])
def test_the_log_likelihood_of_all_rows_is_summed_some_draws_at_a_time(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 30)), np.arange(1500) % 2
    rows = Dataset(X, y, tuple(f"x{j}" for j in range(30)), ("a", "b"), weight=np.arange(1500) % 3 + 1.0)
    family = get_family(name).bind(rows)
    exact = family.exact()
    model = family.from_gaussian(family.laplace(), Settings()) if exact is None else exact.model
    variables = model.draw_variables(400, random_seed=1)
    few = {key: x[:5] for key, x in variables.items()}
    truth = family.density.log_likelihood(few, rows) @ rows.weight
    tracemalloc.start()
    found = family.density.total_log_likelihood(variables, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found[:5], truth, rtol=1e-10)
    assert peak < 120e6  # 400 × 1500 × 30 doubles alone are 144 MB


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", [n for n in family_names() if not get_family(n).averages])
def test_equal_rows_count_in_prior_and_likelihood_as_often_as_they_are_there(name, K):
    """The weights of pooled rows counted twice for regressions: power-scaling of Titanic had k̂ = 1.9 where it is .3."""
    family = get_family(name)
    try:
        family.check(K)
    except DataError:
        return  # logistic regression of three classes
    rows = np.flatnonzero(IRIS.y >= 3 - K)
    data = Dataset.from_arrays(np.round(IRIS.X[rows, :2]), IRIS.y[rows] - (3 - K))
    one_by_one, pooled = family.bind(family.prepare(data, "laplace")), family.bind(data.pooled())
    assert pooled.data.n < 20
    exact = one_by_one.exact()
    settings = Settings(draws=50, chains=2)
    model = exact.model if exact is not None else one_by_one.from_gaussian(one_by_one.laplace(), settings)
    draws = model.draw_variables(20, random_seed=0)
    for a, b in zip(one_by_one.prior_and_likelihood(draws), pooled.prior_and_likelihood(draws), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10)
    of_rows = model.log_likelihood(draws, data.X, data.y).sum(axis=1)
    np.testing.assert_allclose(pooled.prior_and_likelihood(draws)[1], of_rows, rtol=1e-10)


def test_weights_with_a_reference_class_are_read_from_all_classes_as_from_the_free_ones():
    density = get_family("softmax").bind(IRIS, Normal(scale=np.inf)).density
    W = points(density)
    variables = density.variables(W)
    np.testing.assert_array_equal(density.coordinates(variables), W)
    np.testing.assert_array_equal(density.coordinates({"w": variables["w"]}), W)


def test_a_hierarchical_density_is_finite_where_the_data_are_all():
    """A slope that the data determine to 1e-18 of its prior scale: 1 − r is then 0 as a number, and its log is not."""
    rng = np.random.default_rng(0)
    Phi = np.column_stack([np.ones(40), 1e9 * rng.standard_normal(40)])
    target = LogisticTarget(Phi, rng.integers(0, 2, 40), Normal(scale=np.array(np.inf)))
    density = HierarchicalDensity(target, HierarchicalScale())
    value, gradient = density.values_and_gradients(np.array([[0.0, 0.1, -0.2]]))
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    far = np.array([[-800.0, 1.0, 1.0], [400.0, 1.0, 1.0], [900.0, 1.0, 1.0]])
    assert (density.values_and_gradients(far)[0] == -np.inf).all()  # and no raw warning


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith(("logistic", "softmax"))])
def test_weights_are_counted_as_the_target_has_them(name):
    family = family_of(MODELS[name]())
    assert family.parameters == family.target.dim


def test_a_scale_beyond_floats_is_refused_and_one_far_out_is_impossible():
    """Found by the thorough run of tests/hostile: raw overflow, of features of 1e22 that differ by rounding."""
    density = family_of(logistic.build(SMALL, HierarchicalScale())).density
    far = np.array([density.start, density.start])
    far[1, 0] = 400.0
    assert np.isneginf(density.log_prior(density.variables(far))["tau"]).tolist() == [False, True]
    far[1, 0] = 800.0
    with pytest.raises(
        ConvergenceError, match=r"^Some draws of `tau` leave the range of floats.* `prior_scale` a number"
    ):
        density.variables(far)


def test_log_priors_are_those_of_scipy():
    """Of scales by their logarithms: half-normal or inverse-gamma, and normal means."""
    iris = load_example("iris").subset(range(0, 150, 5))
    rng, (K, d) = np.random.default_rng(0), (3, 4)
    s2, mu = rng.gamma(2.0, size=(2, K, d)), rng.standard_normal((2, K, d))
    draws = {"sigma2": s2, "mu": mu, "pi": np.full((2, K), 1 / K)}
    p = LKJ(scale=np.full(d, 1.3), m=np.full(d, 0.4), mean_scale=np.full(d, 2.0), eta=2.5)
    found = get_family("naive").bind(iris, p).density.log_prior(draws)
    half = (stats.halfnorm.logpdf(np.sqrt(s2), scale=1.3) + 0.5 * np.log(s2)).sum(axis=(1, 2))
    np.testing.assert_allclose(found["sigma"], half)
    np.testing.assert_allclose(found["mu"], stats.norm.logpdf(mu, 0.4, 2.0).sum(axis=(1, 2)))
    R = np.array([[1, 0.3, 0, 0], [0.3, 1, 0, 0], [0, 0, 1, -0.2], [0, 0, -0.2, 1]])
    root = np.sqrt(s2)
    Sigma = root[..., :, None] * R * root[..., None, :]
    plain, corr = (
        get_family("qda").bind(iris, replace(p, eta=e)).density.log_prior(draws | {"Sigma": Sigma}) for e in (1.0, 2.5)
    )
    volume = [K * replace(p, eta=e).log_normalizer for e in (1.0, 2.5)]
    np.testing.assert_allclose(plain["Sigma"], half + volume[0])
    np.testing.assert_allclose(corr["Sigma"], half + volume[1] + 1.5 * K * np.linalg.slogdet(R)[1])
    g = NIG(m=np.full(d, 0.4), kappa=np.full(d, 0.3), a=np.full(d, 2.5), b=np.full(d, 1.7))
    found = get_family("naive").bind(iris, g).density.log_prior(draws)
    gamma = (stats.invgamma.logpdf(s2, 2.5, scale=1.7) + np.log(s2)).sum(axis=(1, 2))
    np.testing.assert_allclose(found["sigma2"], gamma)
    np.testing.assert_allclose(found["mu"], stats.norm.logpdf(mu, 0.4, np.sqrt(s2 / 0.3)).sum(axis=(1, 2)))


@pytest.mark.parametrize("name", ["lda", "qda", "naive"])
@pytest.mark.parametrize("lkj", [False, True])
def test_a_density_at_many_points_is_that_at_each(name, lkj):
    iris = load_example("iris").subset(range(0, 150, 5))
    p = LKJ(scale=np.ones(4), m=np.zeros(4), mean_scale=np.full(4, 5.0), eta=1.5)
    density = get_family(name).bind(iris, p if lkj else None).density
    W = np.random.default_rng(0).normal(0, 0.3, (2, 3, density.dim))
    values, gradients = density.values_and_gradients(W)
    for i in range(2):
        for j in range(3):
            value, gradient = density.values_and_gradients(W[i, j])
            np.testing.assert_allclose(values[i, j], value)
            np.testing.assert_allclose(gradients[i, j], gradient, atol=1e-9)


def test_weights_are_drawn_from_their_prior():
    S, scale = 20_000, [5, 2.5, 2.5, 2.5, 2.5]
    for name, shape in (("logistic", (S, 5)), ("softmax", (S, 3, 5))):
        rows = IRIS if name == "softmax" else Dataset.from_arrays(IRIS.X[50:], IRIS.y[50:] - 1)
        family = get_family(name).bind(rows)
        drawn = family.draw_prior(S, 0)
        assert {key: x.shape for key, x in drawn.items()} == {"w": shape}
        np.testing.assert_allclose(drawn["w"].std(axis=0), np.broadcast_to(scale, shape[1:]), rtol=0.03)
        assert np.abs(np.corrcoef(drawn["w"].reshape(S, -1).T) - np.eye(np.prod(shape[1:]))).max() < 0.04
        assert replace(family, before=family.laplace()).draw_prior(S, 0) is None
        learnt = get_family(name).bind(rows, HierarchicalScale(scale=2.0, intercept_scale=3.0)).draw_prior(S, 0)
        np.testing.assert_allclose(learnt["w"][..., 0].std(axis=0), 3.0, rtol=0.03)
        slopes = learnt["w"][..., 1:] / learnt["tau"].reshape(-1, *[1] * (len(shape) - 1))
        np.testing.assert_allclose(slopes.std(axis=0), 1.0, rtol=0.03)
        assert get_family(name).bind(rows, Normal(scale=np.inf)).draw_prior(S, 0) is None


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_factor_of_a_covariance_has_entries_below_its_diagonal_from_two_features_on(d):
    family = get_family("qda").bind(Dataset.from_arrays(IRIS.X[:, :d], IRIS.y))
    variables = family.density.variables(points(family.density))
    below = {"Sigma_z": (3, 3, d * (d - 1) // 2)} if d > 1 else {}
    assert {name: x.shape for name, x in variables.items() if name == "Sigma_z"} == below
