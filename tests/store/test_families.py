"""Models of families that a user registers come back from a file, as long as the family is registered there, too."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from stored_answers import answers

from bayes_gda.errors import InferenceWarning, StoreError
from bayes_gda.estimators.family import FamilyClassifier
from bayes_gda.families.base import Family
from bayes_gda.families.registry import register, unregister
from bayes_gda.store import files, formats, load, save

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b"], 20)
X = RNG.poisson(np.where(Y[:, None] == "a", [2.0, 6.0], [5.0, 3.0])).astype(float)
FEW = {"draws": 50, "chains": 2}


@dataclass(frozen=True)
class Rates:
    """Gamma prior of the rates."""

    shape: float
    rate: float


class Counts(Family):
    """Independent counts within a class."""

    name, title, kind = "counts", "Poisson naive Bayes", "generative"
    sentence = "Within a class, every feature is a count of its own rate."
    formula = ("y ~ Categorical(π)", "xⱼ | y = k ~ Poisson(rₖⱼ)")
    variables = ("pi", "rate")
    stored = (Rates,)

    @classmethod
    def bind(cls, data, prior=None):
        return cls(data, Rates(2.0, 0.5) if prior is None else prior)

    def build(self):
        import pymc as pm

        data = self.plain_data
        with pm.Model() as model:
            pi = pm.Dirichlet("pi", np.ones(data.K))
            rate = pm.Gamma("rate", self.prior.shape, self.prior.rate, shape=(data.K, data.d))
            pm.Categorical("y", pi, observed=data.y)
            pm.Poisson("x", rate[data.y], observed=data.X.astype(int))
        return model

    @staticmethod
    def log_terms(variables, X):
        rate = variables["rate"]
        joint = np.einsum("nd,skd->snk", X, np.log(rate)) - rate.sum(axis=2)[:, None]
        return joint + np.log(variables["pi"])[:, None]


@pytest.fixture(autouse=True)
def _registered():
    register(Counts)
    yield
    unregister("counts")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model of counts, and its file."""
    register(Counts)
    model = FamilyClassifier("counts", inference="laplace", **FEW).fit(X, Y)
    path = tmp_path_factory.mktemp("models") / "counts.nc"
    model.save(path)
    return model, path


def check_same(model, back):
    before, after = answers(model, X), answers(back, X)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name].tobytes() == after[name].tobytes(), name
    assert vars(back).keys() == vars(model).keys()
    assert str(back.trust_) == str(model.trust_)
    assert back.posterior_.identical(model._draws())


def test_a_model_of_a_users_family_comes_back_with_its_prior(saved):
    model, path = saved
    assert (model.predict(X) == Y).mean() > 0.8
    back = load(path)
    check_same(model, back)
    assert back.prior_ == Rates(2.0, 0.5)
    assert back.family == "counts"


def test_a_sampled_one_comes_back_with_its_draws(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # 50 draws are few, and it says so
        model = FamilyClassifier("counts", inference="mcmc", **FEW).fit(X, Y)
    model.save(tmp_path / "m.nc")
    check_same(model, load(tmp_path / "m.nc"))


@pytest.mark.parametrize("name", ["lda", "naive", "rda", "logistic"])
def test_a_family_of_ours_may_come_by_the_same_door(name, tmp_path):
    inference = "laplace" if name == "logistic" else "exact"
    model = FamilyClassifier(name, inference=inference, **FEW).fit(X, Y)
    model.save(tmp_path / "m.nc")
    back = load(tmp_path / "m.nc")
    check_same(model, back)
    assert type(back.prior_) is type(model.prior_)


def test_a_family_that_is_not_registered_says_what_to_do(saved):
    model, path = saved
    unregister("counts")
    with pytest.raises(
        StoreError, match=r"^'[^\n]*counts\.nc' cannot be read yet: There is no family 'counts' here\. "
    ):
        load(path)
    with pytest.raises(StoreError, match=r"There is no family 'counts' here\. Import the module that registers it"):
        save(model, path)


def test_a_model_of_another_family_is_refused(saved, tmp_path):
    content = formats.unpack(*files.read(saved[1]))
    for place, message in (
        (content.record["params"], "`model_.family` must be 'lda'"),
        (content.record["fitted"]["model_"]["fields"], "`model_.family` must be 'counts'"),
    ):
        kept, place["family"] = place["family"], "lda"
        files.write(tmp_path / "edited.nc", formats.pack(content))
        with pytest.raises(StoreError, match=message):
            load(tmp_path / "edited.nc")
        place["family"] = kept
