"""Split HMC as a sampler of our models: exact posteriors, NUTS, the tree, the estimators."""

import arviz_stats as azs
import numpy as np
import pytest

from bayes_gda import sample
from bayes_gda.data.examples import load_example
from bayes_gda.data.labels import draws_of
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.estimators import BayesianLogisticRegression, BayesianQDA
from bayes_gda.families.gaussian.family import LDA, QDA, Naive
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.families.sampled import sample_hmc, sample_nuts
from bayes_gda.models import logistic

IRIS, PIMA = load_example("iris"), load_example("pima")
QUIET = {"random_seed": 3, "progress": False}


def scores(tree, truth, names):
    """z of means and of squares against a truth `{name: (S, …)}`, by the errors of independent chains."""
    for name in names:
        x, t = tree["posterior"][name].to_numpy(), truth[name]
        center, scale = t.mean(axis=0), t.std(axis=0) + 1e-300
        for power in (1, 2):
            a, b = ((x - center) / scale) ** power, ((t - center) / scale) ** power
            by_chain = a.mean(axis=1)
            error = np.hypot(by_chain.std(axis=0, ddof=1) / np.sqrt(len(a)), b.std(axis=0) / np.sqrt(len(t)))
            yield name, power, (by_chain.mean(axis=0) - b.mean(axis=0)) / (error + 1e-300)


@pytest.mark.parametrize(
    ("kind", "names"), [(LDA, ("pi", "mu", "Sigma")), (QDA, ("pi", "mu", "Sigma")), (Naive, ("pi", "mu", "sigma2"))]
)
def test_it_is_the_exact_posterior_of_the_gaussian_models(kind, names):
    family = kind.bind(IRIS)
    tree = sample_hmc(family, None, draws=2000, chains=4, **QUIET)
    truth = family.exact().model.posterior.draw(100_000, random_seed=1)
    for name, power, z in scores(tree, truth, names):
        # 16 chains: t with 15 degrees of freedom, of up to 60 numbers
        assert np.abs(z).max() < 5.5, (name, power)


@pytest.mark.parametrize(
    "family",
    [
        Logistic.bind(PIMA),
        Softmax.bind(IRIS),
        pytest.param(Logistic.bind(PIMA, prior_scale="hierarchical"), marks=pytest.mark.slow),
    ],
    ids=["logistic", "softmax", "hierarchical"],
)
def test_it_agrees_with_nuts(family):
    ours = sample_hmc(family, None, draws=2000, chains=4, **QUIET)
    nuts = sample_nuts(family, family.build(), None, draws=2000, chains=4, cores=1, **QUIET)
    a, b = ours["posterior"].to_dataset()["w"], nuts["posterior"].to_dataset()["w"]
    for power in (1, 2):
        center, scale = b.mean(("chain", "draw")).to_numpy(), b.std(("chain", "draw")).to_numpy()
        p, q = (((x - center) / scale) ** power for x in (a, b))
        error = np.hypot(*(azs.mcse(x.to_dataset(name="w"))["w"].to_numpy() for x in (p, q)))
        z = (p.mean(("chain", "draw")) - q.mean(("chain", "draw"))).to_numpy() / error
        assert np.abs(z).max() < 4.5


def test_the_tree_is_like_that_of_nuts():
    family = Logistic.bind(PIMA)
    _, tree = family.sample(settings(sampler="hmc"), None)
    posterior, stats = tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()
    assert dict(posterior.sizes) == {"chain": 16, "draw": 63, "coefficient": 8}
    assert list(posterior["coefficient"].to_numpy()) == list(family.features.names)
    assert posterior.attrs["sampler"] == "hmc"
    assert {"lp", "energy", "diverging", "acceptance_rate", "n_steps"} <= set(stats)
    assert stats["diverging"].dtype == bool
    assert {"log_prior", "log_likelihood", "observed_data", "constant_data"} <= set(tree.children)
    w = posterior["w"].to_numpy().reshape(-1, 8)
    np.testing.assert_allclose(stats["lp"].to_numpy().ravel(), family.target.log_density(w), rtol=1e-10)
    azs.summary(tree)  # as ArviZ reads it
    assert (azs.bfmi(tree)["energy"] > 0.3).all() if hasattr(azs, "bfmi") else True


def settings(**options):
    from bayes_gda.methods.settings import Settings

    return Settings("mcmc", draws=250, chains=4, **options)


def test_the_same_seed_gives_the_same_draws_and_pymc_is_not_imported():
    import subprocess
    import sys

    family = Logistic.bind(PIMA)
    one, two, other = (draws_of(sample_hmc(family, None, random_seed=s, progress=False))["w"] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    code = (
        "import sys; from bayes_gda import BayesianLogisticRegression as B, load_example; d = load_example('pima'); "
        "B(inference='mcmc', sampler='hmc').fit(d.X, d.y); assert 'pymc' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_estimators_take_it_and_name_it():
    model = BayesianLogisticRegression(inference="mcmc", sampler="hmc").fit(PIMA.X, PIMA.y)
    assert (model.inference_, model.trust_.verdict, model.trust_.diagnosis.verdict) == ("mcmc", "sampled", "good")
    assert model.trust_.diagnosis.chains == 16
    assert np.isfinite(model.log_evidence_)
    with pytest.raises(DataError, match="`sampler` must be one of auto, pymc, hmc, nutpie, numpyro; got 'stan'"):
        BayesianQDA(sampler="stan").fit(IRIS.X, IRIS.y)


def test_where_it_does_not_apply_it_says_so():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(DataError, match=r"is for the models of bayes_gda\.models"):
        sample(model, sampler="hmc")
    tree = sample(logistic.build(PIMA), sampler="hmc", draws=100, **QUIET)
    assert tree["posterior"].attrs["sampler"] == "hmc"

    class Without(Logistic):
        density = None

    family = Without.bind(PIMA)
    with pytest.raises(ConvergenceError, match=r"has no density written by hand\. Use sampler='pymc'"):
        sample_hmc(family, None, **QUIET)
