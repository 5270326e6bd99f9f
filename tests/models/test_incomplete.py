"""PyMC models of rows with gaps: their density is that of SciPy's marginals row by row, and NUTS agrees with Gibbs."""

import numpy as np
import pytest
from gaps import SHARED, brute_log_likelihood, each, remove, simulate

import bayes_gda
from bayes_gda.data.examples import load_example
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.built import family_of
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.models import lda, naive, qda
from bayes_gda.priors import LKJ, NIW, Dirichlet
from bayes_gda.priors.defaults import default_nig, default_niw

X, Y = simulate(n=40, d=3, K=2, seed=3)
X = remove(X, 0.3, seed=4)
X[5] = np.nan  # counts for the class shares alone
DATA = Dataset.from_arrays(X, Y, missing="keep")
SHARES = Dirichlet([2.0, 0.5])


def evaluated(model, *names):
    """Functions of a point: the variables by name, and the log likelihood as the model sums it."""
    variables = model.compile_fn(model.replace_rvs_by_values([model[name] for name in names]), mode="FAST_COMPILE")
    potentials = model.compile_fn(
        model.replace_rvs_by_values([*model.summed.values()]), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return variables, lambda point: float(sum(potentials(point)))


def points(model, size=4):
    rng = np.random.default_rng(0)
    start = model.initial_point()
    return [{name: v + 0.3 * rng.normal(size=v.shape) for name, v in start.items()} for _ in range(size)]


@pytest.mark.parametrize("family", [NIW, LKJ])
@SHARED
def test_the_likelihood_is_that_of_scipys_marginals(shared, family):
    prior = None if family is NIW else LKJ(np.ones(3), np.zeros(3), np.full(3, 3.0))
    model = (lda if shared else qda).build(DATA, prior, SHARES)
    assert family_of(model) is None  # nothing is fused
    variables, potentials = evaluated(model, "pi", "mu", "Sigma")
    patterns = PatternMoments.from_arrays(X, Y, 2)
    for point in points(model):
        pi, mu, Sigma = variables(point)
        ours = potentials(point)
        assert ours == pytest.approx(brute_log_likelihood(X, Y, pi, mu, each(Sigma, 2)), rel=1e-10)
        assert ours == pytest.approx(float(patterns.log_likelihood(pi, mu, Sigma)), rel=1e-10)


@SHARED
def test_the_whole_density_is_that_of_the_complete_model_plus_the_likelihoods(shared):
    """Prior and Jacobian do not know of gaps: what is left of the density beside the likelihood is the same."""
    module, prior = (lda if shared else qda), default_niw(X, Y, 2)
    gapped = module.build(DATA, prior, SHARES)
    complete = module.build(Dataset.from_arrays(np.nan_to_num(X), Y), prior, SHARES)
    rest = []
    for model in (gapped, complete):
        _, potentials = evaluated(model, "pi")
        density = model.compile_logp(mode="FAST_COMPILE")
        rest.append([density(point) - potentials(point) for point in points(gapped)])
    np.testing.assert_allclose(rest[0], rest[1], rtol=1e-9)


def test_the_gradient_is_that_of_differences():
    model = qda.build(DATA)
    logp, dlogp = model.compile_logp(mode="FAST_COMPILE"), model.compile_dlogp(mode="FAST_COMPILE")
    point = points(model)[0]
    direction = {name: np.ones_like(v) for name, v in point.items()}
    h = 1e-5
    ahead, behind = ({name: v + s * direction[name] for name, v in point.items()} for s in (h, -h))
    assert dlogp(point).sum() == pytest.approx((logp(ahead) - logp(behind)) / (2 * h), rel=1e-6)


def test_the_naive_likelihood_leaves_out_what_is_missing():
    model = naive.build(DATA, None, SHARES)
    variables, potentials = evaluated(model, "pi", "mu", "sigma2")
    for point in points(model):
        pi, mu, sigma2 = variables(point)
        expected = brute_log_likelihood(X, Y, pi, mu, sigma2[:, :, None] * np.eye(3))
        assert potentials(point) == pytest.approx(expected, rel=1e-10)


def test_default_priors_are_on_the_scale_of_what_was_observed():
    model = lda.build(DATA)
    start = model.initial_point()
    given = lda.build(DATA, default_niw(X, Y, 2))
    assert model.compile_logp(mode="FAST_COMPILE")(start) == given.compile_logp(mode="FAST_COMPILE")(start)
    model, given = naive.build(DATA), naive.build(DATA, default_nig(X, Y, 2))
    start = model.initial_point()
    assert model.compile_logp(mode="FAST_COMPILE")(start) == given.compile_logp(mode="FAST_COMPILE")(start)


def test_the_cost_grows_with_patterns_and_not_with_rows():
    """The same nodes on arrays of the same sizes for 40 rows and for 4000."""

    def sizes(repeats):
        rows = Dataset.from_arrays(np.tile(X, (repeats, 1)), np.tile(Y, repeats), missing="keep")
        model = qda.build(rows, default_niw(X, Y, 2))
        graph = model.compile_fn(model.logp(), mode="FAST_COMPILE").f.maker.fgraph
        constants = [node.data for apply in graph.apply_nodes for node in apply.inputs if hasattr(node, "data")]
        return len(graph.apply_nodes), max(np.size(c) for c in constants)

    assert sizes(1) == sizes(100)


def test_the_row_wise_form_needs_complete_rows():
    with pytest.raises(DataError, match="The row-wise form needs complete rows"):
        lda.build(DATA, rowwise=True)


@pytest.mark.slow
@SHARED
def test_nuts_and_augmentation_have_one_posterior(shared):
    """Means and covariances of two measures of penguins with gaps, within 4 standard errors of both together."""
    rows = load_example("penguins")
    some = rows.subset(np.arange(0, rows.n, 4))
    gapped = remove((some.X / some.X[0])[:, :2], 0.25, seed=1)
    data = Dataset(gapped, some.y, some.feature_names[:2], some.class_names)
    prior = default_niw(gapped, some.y, data.K)
    tree = bayes_gda.sample((lda if shared else qda).build(data, prior), draws=500, chains=2, random_seed=0)
    posterior = tree["posterior"].to_dataset()
    patterns = PatternMoments.from_arrays(gapped, some.y, data.K)
    gibbs = draw_posterior(patterns, prior, shared=shared, draws=2000, random_seed=1)
    from arviz_stats.base import array_stats

    for name in ("mu", "Sigma"):
        nuts = posterior[name].to_numpy()
        ours = gibbs[name]
        for i in np.ndindex(nuts.shape[2:]):
            a, b = nuts[:, :, *i], ours[:, :, *i]
            error = np.hypot(*(float(array_stats.mcse(x, method="mean")) for x in (a, b)))
            assert abs(a.mean() - b.mean()) < 4 * error, (name, i)
