"""The choice of a method: MCMC where it must be, and PyMC nowhere else."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from bayes_gda.data.examples import load_example
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, InferenceWarning, PriorError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.families.base import Family
from bayes_gda.families.registry import get_family
from bayes_gda.methods import ladder
from bayes_gda.methods.ladder import CORRECTED_DRAWS, EXACT, SAMPLE_PART, Exact, fit, fit_every
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo
from bayes_gda.priors import LKJ

IRIS, PIMA = load_example("iris"), load_example("pima")
FRAME = pd.DataFrame(IRIS.X, columns=["intercept", "a b", "chain", "Σ"])
LABELS = np.array(IRIS.class_names)[IRIS.y]
HARD = np.random.default_rng(0).normal(size=(12, 40))
WITHOUT_PYMC = """
import sys
import numpy as np
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression
from bayes_gda.priors import LKJ
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
for model in (BayesianLDA(), BayesianLDA(prior=LKJ(np.ones(2), np.zeros(2), np.full(2, 5.0))),
              BayesianLogisticRegression(), BayesianLogisticRegression(prior_scale=1.0, inference="laplace")):
    model.fit(X, y).predict_interval(X)
    model.uncertainty(X), model.decide(X, 1 - np.eye(2)), model.posterior_, model.summary()
print(sorted({name.split(".")[0] for name in sys.modules} & {"pymc", "pytensor", "arviz", "matplotlib"}))
"""


def test_pymc_is_not_imported_where_nothing_is_sampled():
    run = subprocess.run([sys.executable, "-c", WITHOUT_PYMC], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "cls", [BayesianLDA, pytest.param(BayesianQDA, marks=slow), pytest.param(BayesianNaiveGaussian, marks=slow)]
)
def test_mcmc_of_a_conjugate_model_is_the_exact_answer(cls):
    exact = cls().fit(FRAME, LABELS)
    model = cls(inference="mcmc", draws=500, chains=2).fit(FRAME, LABELS)
    assert (model.inference_, model.trust_.verdict) == ("mcmc", "sampled")
    assert model.trust_.diagnosis.verdict in {"good", "caution"}
    assert np.abs(model.predict_proba(FRAME) - exact.predict_proba(FRAME)).max() < 0.03
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_)
    tree = model.posterior_
    spread = "sigma2" if cls is BayesianNaiveGaussian else "Sigma"
    assert set(tree["posterior"].data_vars) == {"pi", "mu", spread}
    assert list(tree["posterior"]["feature"].to_numpy()) == ["intercept (2)", "a b", "chain", "Σ"]
    assert tree["log_likelihood"]["y"].shape == (2, 500, 150)
    # Rows are pooled and sorted for the sampler, but come back as they were given.
    np.testing.assert_array_equal(tree["observed_data"]["y"].to_numpy(), IRIS.y)
    joint = exact.model_.log_joint(IRIS.X)[np.arange(150), IRIS.y]
    likelihood = tree["log_likelihood"]["y"] + tree["log_likelihood"]["x"]  # log p(y | x, θ) + log p(x | θ)
    density = np.exp(likelihood.to_numpy())
    averaged, error = np.log(density.mean(axis=(0, 1))), density.std(axis=(0, 1)) / density.mean(axis=(0, 1))
    assert (np.abs(averaged - joint) < 4 * error / np.sqrt(500)).all()  # of 1000 draws 500 are effective
    assert {"ess_bulk", "r_hat"} <= set(model.summary().columns)


@slow
def test_mcmc_of_a_regression_is_the_corrected_answer():
    quick = BayesianLogisticRegression().fit(PIMA.X, PIMA.y)
    model = BayesianLogisticRegression(inference="mcmc", draws=1000, chains=2).fit(PIMA.X, PIMA.y)
    assert np.abs(model.predict_proba(PIMA.X) - quick.predict_proba(PIMA.X)).max() < 0.015
    error = np.hypot(model.log_evidence_error_, quick.log_evidence_error_)
    assert abs(model.log_evidence_ - quick.log_evidence_) < 4 * error
    np.testing.assert_array_equal(model.posterior_["constant_data"]["X"].to_numpy(), PIMA.X)
    copy = BayesianLogisticRegression(inference="mcmc", draws=1000, chains=2)
    doubled = copy.fit(PIMA.X, PIMA.y, sample_weight=np.full(len(PIMA.y), 2.0))
    ratio = doubled.summary()["sd"] / model.summary()["sd"]
    assert ratio.between(0.6, 0.82).all()  # 1/√2 but for the prior


def test_auto_samples_where_it_must_and_says_so_once():
    with pytest.warns(InferenceWarning) as caught:  # the second one is about so few draws
        model = BayesianLogisticRegression(prior_scale=20.0, draws=30, chains=2).fit(HARD, np.arange(12) % 2)
    told = [w for w in caught if "Sampling the posterior by MCMC instead" in str(w.message)]
    assert len(told) == 1
    assert told[0].filename == __file__
    assert model.inference_ == "mcmc"
    assert model.trust_.before.verdict == "needs-mcmc"
    assert model.predict_proba(HARD).shape == (12, 2)


def test_a_funnel_without_a_mode_is_sampled_by_auto_and_refused_by_laplace():
    """One row in a class: its own covariance runs to 0, and the density to infinity."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [1, 5])
    X = rng.normal(size=(6, 2)) + y[:, None]
    prior = LKJ(scale=np.ones(2), m=np.zeros(2), mean_scale=np.full(2, 2.0))
    with pytest.raises(ConvergenceError, match="Use inference='mcmc', or 'auto'"):
        BayesianQDA(prior=prior, inference="laplace").fit(X, y)
    with pytest.warns(InferenceWarning) as caught:
        model = BayesianQDA(prior=prior, draws=100, chains=2).fit(X, y)
    assert "Sampling the posterior by MCMC instead" in str(caught[0].message)
    assert model.inference_ == "mcmc"
    assert isinstance(model.trust_.before, Verdict)
    assert set(model.posterior_["posterior"].data_vars) == {"pi", "mu", "Sigma"}


@slow
def test_softmax_is_sampled_too():
    model = BayesianLogisticRegression(inference="mcmc", draws=300, chains=2).fit(FRAME, LABELS)
    quick = BayesianLogisticRegression().fit(FRAME, LABELS)
    assert np.abs(model.predict_proba(FRAME) - quick.predict_proba(FRAME)).max() < 0.05
    w = model.posterior_["posterior"]["w"]
    assert w.dims == ("chain", "draw", "class", "coefficient")
    assert list(w["coefficient"].to_numpy()) == ["intercept", "intercept (2)", "a b", "chain", "Σ"]


@slow
@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianNaiveGaussian])
def test_auto_under_an_lkj_prior_agrees_with_mcmc(cls):
    prior = LKJ(2 * IRIS.X.std(axis=0), IRIS.X.mean(axis=0), 5 * IRIS.X.std(axis=0))
    quick = cls(prior=prior).fit(IRIS.X, IRIS.y)
    assert quick.inference_ in {"laplace", "corrected"}
    sampled = cls(prior=prior, inference="mcmc", draws=4000).fit(IRIS.X, IRIS.y)
    assert np.abs(quick.predict_proba(IRIS.X) - sampled.predict_proba(IRIS.X)).max() < 0.02
    assert sampled.log_evidence_ == pytest.approx(quick.log_evidence_, abs=0.05)  # by the bridge, and by weights


def test_a_fit_that_fails_leaves_the_one_before():
    model = BayesianLogisticRegression(inference="laplace").fit(PIMA.X[:, :2], PIMA.y)
    before = model.predict_proba(PIMA.X[:5, :2])
    model.set_params(prior_scale=np.inf, intercept_scale=np.inf)
    with pytest.raises(ConvergenceError, match="perfectly separated"):
        model.fit([[0.0, 0.1], [1.0, 0.3], [2.0, 0.2], [3.0, 0.0]], ["a", "a", "b", "b"])
    np.testing.assert_array_equal(model.predict_proba(PIMA.X[:5, :2]), before)
    np.testing.assert_array_equal(model.classes_, [0, 1])


# ── The choice alone, with a family whose answers are made up ───────────────────────────────────────────────────────

NORMAL = GaussianPosterior(np.zeros(1), np.eye(1), 3.0, NewtonInfo(True, 1, 0.0))
# Log densities in one coordinate, whose Gaussian is said to be N(0, 1): it is; it is N(2, 2²); it has no end.
SAME, WIDER, AWAY = (lambda w: 3 - w**2 / 2), (lambda w: 3 - (w - 2) ** 2 / 8), (lambda w: 10 * w**3)
DENSITIES = {"trusted": SAME, "corrected": WIDER, "needs-mcmc": AWAY}
CLOSED = Exact("exact model", -7.0)
NO_MODE = "There is no mode"


@dataclass
class Looked:
    """The target: it counts how often it is looked at. It is symmetric, or has no use for third derivatives."""

    function: Callable
    dim: int = 1
    calls: int = 0

    def log_density(self, w):
        self.calls += 1
        return self.function(w[..., 0]) - 0.5 * np.log(2 * np.pi)

    def third_order_trace(self, w, V):
        return np.zeros(1)


@dataclass
class Rows:
    """Rows x with p(y=1 | x, w) = σ(1 + wx); the Gaussian by quadrature."""

    x: tuple = (0.03, 0.1, -0.1)

    def gaussian(self, posterior, link):
        z, weight = np.polynomial.hermite_e.hermegauss(80)
        return self.averaged(posterior.mean + posterior.sd * z[:, None], weight / weight.sum())[0]

    def averaged(self, draws, weight):
        p = expit(1 + draws * np.array(self.x))
        mean, error = weight @ p, np.sqrt(weight**2 @ (p - weight @ p) ** 2)
        return np.column_stack([1 - mean, mean]), np.column_stack([error, error])


@dataclass(frozen=True, eq=False)
class Stub(Family):
    """A family that notes what it is asked for; its models are words and arrays."""

    data: Dataset = field(default_factory=lambda: PIMA.subset([0, 1, 2]))
    target: Looked = None
    closed: Exact | None = None
    climbs: bool = True
    mode: bool = True
    normalised: bool = True
    sampler: bool = True
    one_look: bool = False
    many_rows: int = 3
    predicted: Rows = field(default_factory=Rows)
    chains: Callable = lambda rng: rng.normal(size=(4, 500))
    noise: float = 0.002  # standard error of a probability
    asked: list = field(default_factory=list)

    title = "The stub"
    has_mode = property(lambda self: self.climbs)
    proper = property(lambda self: self.normalised)
    can_sample = property(lambda self: self.sampler)
    single_look = property(lambda self: self.one_look)
    cost_rows = property(lambda self: self.many_rows)

    def exact(self):
        self.asked.append("exact")
        return self.closed

    def laplace(self):
        self.asked.append("laplace")
        if not self.mode:
            raise ConvergenceError(NO_MODE)
        return NORMAL

    def predictor(self, random_seed):
        return self.predicted

    def skewed(self, gaussian, size, random_seed):
        return np.full((size, 1), 5.0)

    def from_gaussian(self, posterior, settings):
        return "Gaussian model"

    def from_coordinates(self, w):
        return w

    def monte_carlo(self, model, tolerance):
        if isinstance(model, str) and model != "sampled model":
            return None  # in closed form
        return MonteCarlo(3, "training", 0 if 2 * self.noise <= tolerance else 1, self.noise, tolerance)

    def sample(self, settings, gaussian):
        self.asked.append(("sample", gaussian))
        draws = self.chains(np.random.default_rng(settings.random_seed))
        return "sampled model", to_datatree({"w": draws.reshape(-1)}, {}, chains=len(draws))

    def sampled_evidence(self, model, chains):
        assert (model, chains) == ("sampled model", 4)
        return 2.5, 0.125

    @property
    def samples(self):
        return [given for name, given in (a for a in self.asked if isinstance(a, tuple)) if name == "sample"]


def stub(verdict="trusted", **options):
    return Stub(target=Looked(DENSITIES[verdict]), **options)


def apart(rng):
    """Chains that never met."""
    return rng.normal(size=(4, 500)) + 100 * np.arange(4)[:, None]


@contextmanager
def told(*parts):
    """Hold a block to one InferenceWarning for each of the parts, in this order, that points to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [w.category for w in caught] == [InferenceWarning] * len(parts), [str(w.message) for w in caught]
    for warning, part in zip(caught, parts, strict=True):
        assert part in str(warning.message)
        assert warning.filename == __file__


@pytest.mark.parametrize("inference", ["auto", "exact"])
def test_what_is_exact_wins_and_nothing_else_is_asked_for(inference):
    family = stub(closed=CLOSED)
    with told():
        found = fit(family, Settings(inference))
    assert (found.chosen, found.model, found.models) == ("exact", "exact model", {"exact": "exact model"})
    assert (found.verdict.verdict, found.verdict.reason, found.verdict.ess_fraction) == ("exact", EXACT, 1.0)
    assert found.evidence == {"exact": (-7.0, 0.0)}
    assert found.best_evidence == (-7.0, 0.0)
    assert family.asked == ["exact"]
    assert family.target.calls == 0


def test_exact_is_refused_where_there_is_none_and_not_asked_for_by_others():
    with pytest.raises(PriorError, match="The stub, whose posterior has no closed form"):
        fit(stub(), Settings("exact"))
    family = stub(closed=CLOSED)
    assert fit(family, Settings("laplace")).chosen == "laplace"
    assert fit(family, Settings("mcmc")).chosen == "mcmc"
    assert "exact" not in family.asked


@pytest.mark.parametrize("inference", ["auto", "laplace"])
def test_a_trusted_gaussian_is_kept(inference):
    family = stub("trusted")
    with told():
        found = fit(family, Settings(inference))
    assert (found.chosen, found.models) == ("laplace", {"laplace": "Gaussian model"})
    assert found.verdict.verdict == "trusted"
    assert found.gaussian is NORMAL
    assert found.tree is None
    assert found.evidence["laplace"][0] == 3.0
    assert np.isnan(found.evidence["laplace"][1])
    value, error = found.best_evidence
    assert abs(value - 3.0) <= 4 * error + 1e-9
    assert not family.samples


@pytest.mark.parametrize(("settings", "size"), [({}, CORRECTED_DRAWS), ({"draws": 10_000}, 40_000)])
def test_a_corrected_posterior_is_taken(settings, size):
    family = stub("corrected")
    with told():
        found = fit(family, Settings(**settings))
    assert (found.chosen, list(found.models)) == ("corrected", ["corrected"])
    assert found.verdict.verdict == "corrected"
    assert found.model.shape == (size, 1)
    assert found.model.std() == pytest.approx(2.0, rel=0.1)
    value, error = found.best_evidence
    assert abs(value - 3.0 - np.log(2)) < 4 * error < 0.2
    assert not family.samples


def test_a_tolerance_decides_what_is_trusted():
    moved = Stub(target=Looked(lambda w: 3 - (w - 0.8) ** 2 / 2))  # which moves a probability by .2 · .8 · .1
    assert fit(moved, Settings(tolerance=0.05)).chosen == "laplace"
    assert fit(moved, Settings(tolerance=0.005)).chosen == "corrected"


def test_laplace_that_was_asked_for_is_kept_where_a_correction_is_at_hand():
    with told():
        found = fit(stub("corrected"), Settings("laplace"))
    assert (found.chosen, found.models) == ("laplace", {"laplace": "Gaussian model"})
    assert found.verdict.verdict == "corrected"


def test_what_needs_mcmc_is_sampled_once_with_one_warning():
    family = stub("needs-mcmc")
    with told("Sampling the posterior by MCMC instead."):
        found = fit(family, Settings())
    assert family.samples == [NORMAL]  # which gives the sampler its geometry
    assert family.asked.count("laplace") == 1
    assert (found.chosen, found.model) == ("mcmc", "sampled model")
    assert found.models == {"laplace": "Gaussian model", "mcmc": "sampled model"}
    assert found.verdict.verdict == "sampled"
    assert found.verdict.diagnosis.verdict == "good"
    assert found.verdict.before.verdict == "needs-mcmc"
    assert found.evidence["bridge"] == (2.5, 0.125)
    assert found.tree["posterior"].sizes["chain"] == 4


def test_draws_that_are_bad_are_told():
    with told("Sampling the posterior by MCMC instead.", "The draws cannot be relied upon."):
        found = fit(stub("needs-mcmc", chains=apart), Settings())
    assert (found.chosen, found.verdict.diagnosis.verdict, found.verdict.light) == ("mcmc", "bad", "red")


def test_mcmc_that_was_asked_for_looks_at_nothing_else():
    family = stub(closed=CLOSED)
    with told():
        found = fit(family, Settings("mcmc"))
    assert family.asked == [("sample", None)]
    assert (found.chosen, found.models) == ("mcmc", {"mcmc": "sampled model"})
    assert found.verdict.before is None
    assert found.evidence == {"bridge": (2.5, 0.125)}
    assert family.target.calls == 0


def test_laplace_that_was_asked_for_is_kept_with_a_warning():
    family = stub("needs-mcmc")
    with told("needs-mcmc: Even the corrected approximation is far from the posterior"):
        found = fit(family, Settings("laplace"))
    assert (found.chosen, found.model, found.verdict.verdict) == ("laplace", "Gaussian model", "needs-mcmc")
    assert not family.samples


def test_without_a_mode_it_is_sampled_and_laplace_is_refused():
    family = stub(mode=False)
    with told(f"{NO_MODE}. Sampling the posterior by MCMC instead."):
        found = fit(family, Settings())
    assert family.samples == [None]
    assert (found.chosen, found.models) == ("mcmc", {"mcmc": "sampled model"})
    assert (found.verdict.before.verdict, found.verdict.before.reason) == ("needs-mcmc", f"{NO_MODE}.")
    with pytest.raises(ConvergenceError, match=rf"{NO_MODE}\. Use inference='mcmc', or 'auto'"):
        fit(family, Settings("laplace"))
    assert fit(family, Settings("mcmc")).chosen == "mcmc"


def test_what_has_nothing_to_climb_is_sampled_and_that_is_no_news():
    family = stub(climbs=False)
    with told():
        found = fit(family, Settings())
    assert family.asked == ["exact", ("sample", None)]
    assert (found.chosen, found.verdict.before) == ("mcmc", None)
    with pytest.raises(PriorError, match="no closed form"):
        fit(family, Settings("laplace"))


@pytest.mark.parametrize("inference", ["auto", "laplace", "mcmc"])
def test_an_improper_prior_without_a_mode_has_no_posterior(inference):
    family = stub(mode=False, normalised=False)
    with pytest.raises(ConvergenceError, match=f"^{NO_MODE}$"):
        fit(family, Settings(inference))
    assert not family.samples


@pytest.mark.parametrize(("verdict", "inference"), [("trusted", "auto"), ("needs-mcmc", "auto"), ("trusted", "mcmc")])
@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_an_improper_prior_has_no_evidence(verdict, inference):
    family = stub(verdict, normalised=False)
    found = fit(family, Settings(inference))
    assert found.evidence == {}
    assert np.isnan(found.best_evidence).all()
    assert family.samples in ([], [NORMAL])


def test_where_mcmc_is_out_of_reach_laplace_is_kept_with_the_remedy():
    for inference in ("auto", "laplace"):
        family = stub("needs-mcmc", sampler=False)
        with told(f"The Laplace approximation is kept. {SAMPLE_PART}"):
            found = fit(family, Settings(inference))
        assert (found.chosen, found.model) == ("laplace", "Gaussian model")
        assert (found.verdict.verdict, found.verdict.next_step) == ("needs-mcmc", SAMPLE_PART)
        assert not family.samples


def test_without_a_mode_and_without_mcmc_there_is_nothing_to_keep():
    with pytest.raises(ConvergenceError, match=NO_MODE):
        fit(stub(mode=False, sampler=False), Settings())


@pytest.mark.parametrize("verdict", ["trusted", "corrected", "needs-mcmc"])
@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_a_table_is_looked_at_three_times_at_most(verdict):
    family = stub(verdict, sampler=False, one_look=True, many_rows=10_000)
    assert fit(family, Settings()).verdict.verdict == verdict
    assert family.target.calls <= 3  # a first look, a second where it will not do, and one to refine
    rough = stub(verdict, sampler=False, one_look=True, many_rows=10_000, predicted=Rows((0.3, 1.0, -2.0)))
    fit(rough, Settings())
    assert rough.target.calls <= 3


def test_of_many_rows_few_draws_are_enough_to_trust():
    few, many = stub("trusted"), stub("trusted", many_rows=10**6)
    assert fit(few, Settings()).verdict.verdict == fit(many, Settings()).verdict.verdict == "trusted"
    assert many.target.calls == 1
    assert few.target.calls > 1
    assert fit(stub("corrected", many_rows=10_000), Settings()).chosen == "corrected"


def test_the_same_seed_gives_the_same_fit():
    """And another seed another one: in the draws that are weighed, and in those of the corrected model."""
    one, two, other = (fit(stub("corrected"), Settings(random_seed=seed)) for seed in (1, 1, 2))
    for draws in (lambda found: found.model, lambda found: found.verdict.importance.draws):
        np.testing.assert_array_equal(draws(one), draws(two))
        assert (draws(one) != draws(other)).any()


# ── Every method side by side ───────────────────────────────────────────────────────────────────────────────────────


def test_every_posterior_is_returned_and_the_exact_one_chosen():
    family, stages = stub("corrected", closed=CLOSED), []

    @contextmanager
    def stage(name):
        stages.append(name)
        yield

    with told():
        found = fit_every(family, Settings(), sampling=True, stage=stage)
    assert stages == ["fit", "sample"]
    assert list(found.models) == ["exact", "laplace", "skew-modal", "mcmc"]  # nobody corrects what is exact
    assert (found.models["laplace"], found.models["mcmc"]) == ("Gaussian model", "sampled model")
    assert (found.models["skew-modal"] == 5).all()
    assert (found.chosen, found.model) == ("exact", "exact model")
    assert (found.verdict.verdict, found.verdict.reason) == ("exact", EXACT)
    assert found.verdict.importance is not None
    assert found.verdict.diagnosis.verdict == "good"
    assert set(found.evidence) == {"exact", "laplace", "corrected"}  # beside the exact one a bridge is no news
    assert family.samples == [NORMAL]


def test_beside_the_exact_posterior_nothing_is_weighed_unless_sampled():
    family = stub("trusted", closed=CLOSED)
    found = fit_every(family, Settings(), sampling=False)
    assert list(found.models) == ["exact", "laplace", "skew-modal"]
    assert (found.chosen, found.verdict.importance, found.verdict.diagnosis) == ("exact", None, None)
    assert family.target.calls == 0
    assert not family.samples


def test_beside_an_exact_posterior_of_very_many_coordinates_laplace_is_left_out(monkeypatch):
    monkeypatch.setattr(ladder, "COMPARED_DIM", 0)
    found = fit_every(stub("trusted", closed=CLOSED), Settings(), sampling=False)
    assert (list(found.models), found.chosen, found.gaussian) == (["exact"], "exact", None)
    assert "laplace" in fit_every(stub("trusted"), Settings(), sampling=False).models


@pytest.mark.parametrize(
    ("verdict", "chains", "chosen"),
    [
        ("trusted", None, "laplace"),
        ("corrected", None, "corrected"),
        ("needs-mcmc", None, "laplace"),
        ("trusted", Stub.chains, "mcmc"),
        ("corrected", Stub.chains, "mcmc"),
        ("needs-mcmc", Stub.chains, "mcmc"),
        ("trusted", apart, "laplace"),
        ("corrected", apart, "corrected"),
        ("needs-mcmc", apart, "laplace"),
    ],
)
def test_the_best_of_every_method(verdict, chains, chosen):
    """MCMC that converged, then what the verdict says; None is without MCMC, `apart` did not converge."""
    family = stub(verdict, chains=chains)
    with told():
        found = fit_every(family, Settings(), sampling=chains is not None)
    made = {"laplace", "skew-modal"} | ({"corrected"} if verdict != "needs-mcmc" else set())
    assert set(found.models) == made | ({"mcmc"} if chains is not None else set())
    assert found.chosen == chosen
    weighing = found.verdict.before if chosen == "mcmc" else found.verdict
    assert weighing.verdict == verdict
    assert found.verdict.verdict == ("sampled" if chosen == "mcmc" else verdict)
    diagnosis = {None: None, apart: "bad"}.get(chains, "good")
    assert (found.verdict.diagnosis and found.verdict.diagnosis.verdict) == diagnosis
    assert ("bridge" in found.evidence) == (chains is not None)


def test_of_every_method_what_cannot_be_had_is_left_out():
    with told():
        only = fit_every(stub(mode=False, chains=apart), Settings(), sampling=True)
        assert (only.chosen, list(only.models), only.verdict.before.reason) == ("mcmc", ["mcmc"], f"{NO_MODE}.")
        flat = fit_every(stub(climbs=False), Settings(), sampling=True)
        assert (flat.chosen, list(flat.models)) == ("mcmc", ["mcmc"])
        table = stub("needs-mcmc", sampler=False)
        assert fit_every(table, Settings(), sampling=True).chosen == "laplace"
        assert not table.samples
    for nothing in (stub(mode=False), stub(climbs=False)):
        with pytest.raises(ConvergenceError, match="nothing was sampled"):
            fit_every(nothing, Settings(), sampling=False)


@pytest.mark.parametrize("inference", ["exact", "laplace", "mcmc"])
def test_every_method_is_the_same_whichever_was_asked_for(inference):
    found = fit_every(stub("corrected"), Settings(inference), sampling=False)
    auto = fit_every(stub("corrected"), Settings(), sampling=False)
    assert found.models.keys() == auto.models.keys()
    for name in found.models:
        np.testing.assert_array_equal(found.models[name], auto.models[name])
    # The one that was asked for is chosen where the model has it, else the best.
    assert auto.chosen == "corrected"
    assert found.chosen == {"laplace": "laplace"}.get(inference, "corrected")


def test_a_verdict_on_pooled_rows_says_that_they_are_different_ones():
    data = load_example("pima")
    twice = Dataset(np.vstack([data.X, data.X]), np.tile(data.y, 2), data.feature_names, data.class_names)
    family = get_family("logistic")
    for rows, words in ((data, "on 532 training rows"), (twice, "on 532 different training rows")):
        verdict = fit(family.bind(family.prepare(rows, "auto")), Settings()).verdict
        assert words in verdict.reason
