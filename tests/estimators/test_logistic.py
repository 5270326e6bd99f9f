"""Logistic and softmax regression: every prior, every method, and the words where there is no answer."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from bayes_gda.data.examples import load_example
from bayes_gda.data.features import FeatureMap, fit_features
from bayes_gda.data.labels import distinct
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError, InferenceWarning, PriorError
from bayes_gda.estimators import BayesianLogisticRegression
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import empirical_bayes, regression_laplace, with_prior_scale
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.ladder import verify
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import HierarchicalScale, Normal

PIMA, IRIS = load_example("pima"), load_example("iris")
FLAT = {"prior_scale": np.inf, "intercept_scale": np.inf}


def test_a_flat_prior_has_scikit_learns_mode():
    model = BayesianLogisticRegression(inference="laplace", **FLAT).fit(PIMA.X, PIMA.y)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(model.features_(PIMA.X)[:, 1:], PIMA.y)
    np.testing.assert_allclose(model.model_.posterior.mean[1:], theirs.coef_[0], atol=1e-4)
    assert np.isnan(model.log_evidence_)
    assert not model.prior_.is_proper


def test_the_default_is_the_documented_prior_on_standardised_features():
    model = BayesianLogisticRegression(inference="laplace").fit(PIMA.X, PIMA.y)
    Phi = FeatureMap.fit(PIMA.X)(PIMA.X)
    target = LogisticTarget(Phi, PIMA.y, Normal.default(Phi.shape[1]))
    truth = regression_laplace(target)
    np.testing.assert_allclose(model.model_.posterior.mean, truth.mean, atol=1e-8)
    # The corrected evidence is better than Laplace's; both are within a few hundredths on these data.
    assert model.log_evidence_ == pytest.approx(truth.log_evidence, abs=0.1)
    assert model.trust_.verdict in {"trusted", "corrected"}
    assert model.n_iter_ == truth.info.n_iter


def test_a_trusted_approximation_is_used_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.random(3000) < 1 / (1 + np.exp(-X[:, 0]))
    model = BayesianLogisticRegression().fit(X, y)
    assert (model.inference_, model.trust_.verdict) == ("laplace", "trusted")
    assert model.classes_.dtype == bool
    assert model.predict(X[:3]).dtype == bool


def test_a_corrected_posterior_has_the_mean_of_the_weighted_draws():
    data = load_example("breast-cancer")
    model = BayesianLogisticRegression(prior_scale=1.0).fit(data.X, data.y)
    assert (model.inference_, model.trust_.verdict) == ("corrected", "corrected")
    shift = (model.model_.draws.mean(axis=0) - model.trust_.importance.mean) / np.sqrt(
        np.diag(model.trust_.importance.covariance)
    )
    assert np.abs(shift).max() < 0.03
    ends, P = model.predict_interval(data.X), model.predict_proba(data.X)
    inside = (ends[..., 0] <= P) & (ends[..., 1] >= P)
    assert inside[(P > 0.01).all(axis=1)].all()


def test_empirical_bayes_takes_the_scale_of_greatest_evidence():
    model = BayesianLogisticRegression(prior_scale="empirical-bayes", inference="laplace").fit(PIMA.X, PIMA.y)
    Phi = FeatureMap.fit(PIMA.X)(PIMA.X)
    target = LogisticTarget(Phi, PIMA.y, Normal.default(Phi.shape[1]))
    scale, _ = empirical_bayes(lambda s: with_prior_scale(target, s))
    np.testing.assert_allclose(model.prior_.scale, [5.0, *[scale] * (Phi.shape[1] - 1)], rtol=1e-3)


def test_empirical_bayes_without_information_says_so():
    rng = np.random.default_rng(1)
    with pytest.raises(ConvergenceError, match="the data do not determine it"):
        BayesianLogisticRegression(prior_scale="empirical-bayes").fit(rng.normal(size=(40, 2)), np.arange(40) % 2)


def test_a_hierarchical_scale_is_learnt_with_the_weights():
    model = BayesianLogisticRegression(prior_scale="hierarchical").fit(PIMA.X, PIMA.y)
    assert isinstance(model.prior_, HierarchicalScale)
    assert set(model.posterior_["posterior"].data_vars) == {"tau", "w"}
    tau = model.posterior_["posterior"]["tau"].to_numpy()
    assert 0.3 < np.median(tau) < 1.2
    fixed = BayesianLogisticRegression(prior_scale=float(np.median(tau))).fit(PIMA.X, PIMA.y)
    assert np.abs(model.predict_proba(PIMA.X) - fixed.predict_proba(PIMA.X)).max() < 0.03
    # A better prior has more evidence than the wide default, here by some nats.
    assert np.isfinite(model.log_evidence_)


def test_separation_under_a_flat_prior_names_the_direction():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    frame = pd.DataFrame(X, columns=["height"])
    for inference in ("auto", "laplace", "mcmc"):
        with pytest.raises(ConvergenceError, match=r"perfectly separated along .*height.* Give a proper prior"):
            BayesianLogisticRegression(inference=inference, **FLAT).fit(frame, [0, 0, 1, 1])


def test_exact_has_no_meaning_here():
    with pytest.raises(PriorError, match=r"no closed form.*inference='auto'"):
        BayesianLogisticRegression(inference="exact").fit(PIMA.X, PIMA.y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"inference": "gibbs"}, DataError, "`inference` must be one of auto, exact, laplace, ep, variational, mcmc"),
        ({"prior_scale": "wide"}, PriorError, "`prior_scale` must be a number, 'hierarchical' or 'empirical-bayes'"),
        ({"prior_scale": -1.0}, PriorError, "`prior_scale` must be greater than 0; got -1"),
        ({"prior_scale": [1.0, 2.0]}, PriorError, "`prior_scale` must be one number; got shape"),
        ({"intercept_scale": 0.0}, PriorError, "`intercept_scale` must be greater than 0"),
        ({"prior": 2.5}, PriorError, "`prior` must be Normal, HierarchicalScale or None; got 2.5"),
        ({"features": "squares"}, DataError, "`features` must be a FeatureMap, a degree, a function or None"),
        ({"features": FeatureMap.fit(np.eye(3))}, DataError, "`features` maps 3 features; `X` has 7"),
        ({"draws": 0}, DataError, "`draws` must be a whole number of at least 1; got 0"),
        ({"chains": 1.5}, DataError, "`chains` must be a whole number of at least 1; got 1.5"),
    ],
)
def test_bad_parameters_are_named_at_fit(parameters, error, message):
    model = BayesianLogisticRegression(**parameters)
    with pytest.raises(error, match=message):
        model.fit(PIMA.X, PIMA.y)


def test_features_may_be_a_degree_a_function_or_a_fitted_map():
    X, y = IRIS.X[50:, :2], IRIS.y[50:]
    square = BayesianLogisticRegression(features=2, inference="laplace").fit(X, y)
    assert square.features_.names == ("intercept", "x1", "x2", "x1^2", "x1*x2", "x2^2")
    given = BayesianLogisticRegression(features=FeatureMap.fit(X, degree=2), inference="laplace").fit(X, y)
    np.testing.assert_allclose(square.predict_proba(X), given.predict_proba(X), atol=1e-9)
    radius = BayesianLogisticRegression(features=_radius, inference="laplace").fit(X, y)
    assert radius.features_.names == ("intercept", "f1")
    raw = BayesianLogisticRegression(standardize=False, inference="laplace").fit(X, y)
    np.testing.assert_array_equal(raw.features_(X)[:, 1:], X)
    bare = BayesianLogisticRegression(features=FeatureMap.fit(X, intercept=False), inference="laplace").fit(X, y)
    np.testing.assert_array_equal(bare.prior_.scale, [2.5, 2.5])
    with pytest.raises(PriorError, match="needs a feature map with an intercept"):
        BayesianLogisticRegression(features=bare.features_, prior_scale="hierarchical").fit(X, y)


def _radius(X):
    return np.hypot(X[:, 0], X[:, 1])[:, None]


def test_weighted_standardisation_is_that_of_repeated_rows_and_spares_constant_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(20, 2)), np.full(20, 0.1)])
    weight = rng.integers(1, 4, size=20)
    found = fit_features(X, ("a", "b", "c"), 2, standardize=True, weight=weight.astype(float))
    repeated = np.repeat(X, weight, axis=0)
    Phi = found(repeated)[:, 1:]
    constant = [j for j, name in enumerate(found.names[1:]) if set(name) <= set("c^2")]
    np.testing.assert_allclose(Phi.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.delete(Phi, constant, axis=1).std(axis=0)[[0, 1, 2]], 1, atol=1e-12)
    np.testing.assert_allclose(found.outer[1][constant], 1)


@pytest.mark.parametrize(("ones", "expected"), [(2, 0.8224), (4, 0.8888)])
def test_a_rare_level_is_not_sure_of_its_class(ones, expected):
    """2 of 2, or 4 of 4, of class 1 among 2000 rows of both: E σ(w) by quadrature, w ~ N(0, 2.5²), intercept known.

    Scaled by its sd, the level had a prior of sd 79, or 56, and .987, or .993.
    """
    level, y = np.arange(2000) < ones, np.arange(2000) % 2
    y[:ones] = 1
    w = np.linspace(-40, 40, 40_001)
    density = norm.pdf(w, 0, 2.5) * expit(w) ** ones
    assert (density * expit(w)).sum() / density.sum() == pytest.approx(expected, abs=1e-4)
    for low, high in ((0.0, 1.0), (1.0, 2.0), (10.0, 20.0)):
        model = BayesianLogisticRegression().fit(np.where(level, high, low)[:, None], y)
        assert model.predict_proba([[high]])[0, 1] == pytest.approx(expected, abs=0.01)
        assert model.predict_proba([[low]])[0, 1] == pytest.approx(0.5, abs=0.01)


def test_a_constant_column_keeps_its_prior():
    X = np.column_stack([PIMA.X[:, 1], np.full(len(PIMA.X), 3.0)])
    model = BayesianLogisticRegression(inference="laplace").fit(X, PIMA.y)
    assert model.model_.posterior.mean[2] == 0
    assert model.model_.posterior.sd[2] == pytest.approx(2.5)


def test_other_class_shares_are_a_refit_on_reweighted_rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, size=8000)
    X = rng.normal(size=(8000, 2)) + 1.5 * y[:, None]
    model = BayesianLogisticRegression(inference="laplace").fit(X, y)
    share = np.array([0.9, 0.1])
    weight = (share / np.bincount(y) * len(y))[y]
    refitted = BayesianLogisticRegression(inference="laplace").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X[:500], share), refitted.predict_proba(X[:500]), atol=0.02)
    keep = rng.random(8000) < np.where(y == 1, 0.2, 1.0)
    found = model.estimate_class_prior(X[keep])
    truth = y[keep].mean()
    assert abs(found.prior[1] - truth) < 3 * found.standard_error[1]


def test_softmax_needs_a_reference_class_only_under_a_flat_prior():
    X, y = IRIS.X[:, :2], IRIS.y
    symmetric = BayesianLogisticRegression(inference="laplace").fit(X, y)
    assert not symmetric.model_.reference
    assert symmetric.posterior_["posterior"]["w"].dims == ("chain", "draw", "class", "coefficient")
    flat = BayesianLogisticRegression(inference="laplace", prior_scale=2.5, intercept_scale=np.inf).fit(X, y)
    assert flat.model_.reference
    assert (flat.posterior_["posterior"]["w"].to_numpy()[:, :, -1] == 0).all()
    np.testing.assert_allclose(flat.predict_proba(X).sum(axis=1), 1)


def test_laplace_that_will_not_do_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 40))
    with pytest.warns(InferenceWarning, match="Neither Laplace nor expectation propagation") as caught:
        model = BayesianLogisticRegression(inference="laplace", prior_scale=20.0).fit(X, np.arange(12) % 2)
    assert caught[0].filename == __file__
    assert (model.inference_, model.trust_.verdict) == ("laplace", "needs-mcmc")


def test_expectation_propagation_can_be_asked_for_and_is_judged_itself():
    """Its probabilities are nearer to those of long MCMC than Laplace's, and the verdict is on them."""
    data = PIMA.subset(np.arange(0, PIMA.n, 2))
    asked = BayesianLogisticRegression(inference="ep").fit(data.X, data.y)
    assert (asked.inference_, asked.trust_.verdict) == ("ep", "trusted")
    error = asked.trust_.propagation.better_error
    assert f"estimated at {error:.4f} on {data.n} training rows (tolerance 0.01)" in asked.trust_.reason
    sampled = BayesianLogisticRegression(inference="mcmc", draws=4000, random_state=1).fit(data.X, data.y)
    truth, noise = sampled.predict_proba(data.X, return_std_error=True)
    off = np.abs(asked.predict_proba(data.X) - truth).max()
    fast = np.abs(
        BayesianLogisticRegression(inference="laplace").fit(data.X, data.y).predict_proba(data.X) - truth
    ).max()
    assert off < error + 4 * noise.max() < fast
    with pytest.warns(InferenceWarning, match="Expectation propagation is not accurate enough"):
        few = BayesianLogisticRegression(inference="ep", tolerance=error / 2).fit(data.X, data.y)
    assert (few.inference_, few.trust_.verdict) == ("ep", "needs-mcmc")
    with pytest.raises(ConvergenceError, match="does not apply to Softmax regression"):
        BayesianLogisticRegression(inference="ep").fit(IRIS.X, IRIS.y)
    with pytest.raises(ConvergenceError, match="The Gaussian variational approximation does not apply to Logistic"):
        BayesianLogisticRegression(inference="variational").fit(data.X, data.y)


def test_softmax_is_corrected_by_the_variational_gaussian_and_says_so():
    """200 rows, four classes: Laplace is off by .05, the variational Gaussian within the tolerance of .01 of MCMC."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    y = (X @ rng.normal(size=(2, 4)) + rng.gumbel(size=(200, 4))).argmax(axis=1)
    model = BayesianLogisticRegression().fit(X, y)
    assert (model.inference_, model.trust_.verdict) == ("variational", "corrected")
    assert "The Gaussian variational approximation corrects it, with a largest error estimated at" in str(model.trust_)
    found = model.trust_.propagation
    assert found.method == "variational"
    sampled = BayesianLogisticRegression(inference="mcmc", draws=2000, random_state=1).fit(X, y)
    truth, noise = sampled.predict_proba(X, return_std_error=True)
    assert np.abs(model.predict_proba(X) - truth).max() < found.better_error + 4 * noise.max()
    assert np.abs(model.predict_interval(X) - sampled.predict_interval(X)).max() < 0.04
    assert model.log_evidence_ == pytest.approx(sampled.log_evidence_, abs=model.log_evidence_error_ + 0.1)
    asked = BayesianLogisticRegression(inference="variational").fit(X, y)
    assert (asked.inference_, asked.trust_.verdict) == ("variational", "trusted")
    np.testing.assert_allclose(asked.predict_proba(X), model.predict_proba(X), rtol=1e-9)


def test_many_rows_are_checked_with_few_draws(monkeypatch):
    from bayes_gda.methods import ladder

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    y = (rng.random((12_000, 1)) < np.cumsum(softmax(np.column_stack([X, X[:, 0] * 0]), axis=1), axis=1)).argmax(axis=1)
    # With a better Gaussian no draw would be weighed.
    monkeypatch.setattr(Softmax, "propagate", lambda self, gaussian: None)
    model = BayesianLogisticRegression().fit(X, y)
    assert model.trust_.verdict == "trusted"
    assert len(model.trust_.importance.draws) < 1000
    monkeypatch.setattr(ladder, "MANY_ROWS", 20_000)
    slow = BayesianLogisticRegression().fit(X, y)
    assert slow.trust_.verdict == "trusted"
    assert len(slow.trust_.importance.draws) >= 4000
    np.testing.assert_array_equal(model.predict_proba(X), slow.predict_proba(X))
    assert abs(model.trust_.shift.largest - slow.trust_.shift.largest) < 4 * model.trust_.shift.error < 0.01
    difference = abs(model.log_evidence_ - slow.log_evidence_)
    assert difference < 4 * np.hypot(model.log_evidence_error_, slow.log_evidence_error_)


def test_many_rows_that_are_separated_are_corrected():
    """Many rows are no promise of a Gaussian posterior: a few rows of the rarer class decide about the weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 3))
    y = X[:, 0] > 3
    assert 2 < y.sum() < 20
    model = BayesianLogisticRegression().fit(X, y)
    assert (model.trust_.verdict, model.inference_) == ("corrected", "ep")
    # The truth by importance sampling, which knows nothing of sites and certificates.
    family = Logistic.bind(Dataset.of_checked(X, y.astype(np.intp), ("a", "b", "c"), (False, True)))
    weighed = verify(family, family.laplace(), Settings()).importance
    truth, error = BinaryPredictor(family.Phi).averaged(weighed.draws, np.exp(weighed.log_weights))
    off = np.abs(model.predict_proba(X) - truth).max()
    found = model.trust_.propagation
    assert off < found.better_error + 4 * error.max()
    assert found.better_error <= 0.01
    fast = np.abs(BinaryPredictor(family.Phi).gaussian(family.laplace(), "exact") - truth).max()
    assert 0.02 < fast < found.laplace_error + 4 * error.max()


def test_distinct_names():
    assert distinct(["a", "a", "intercept", "a (2)", ""]) == ("a", "a (2)", "intercept (2)", "a (2) (2)", "")


def test_names_in_messages_are_in_one_line():
    rows = Dataset.of_checked(np.zeros((3, 1)), np.arange(3), ("x\t",), ("a\n\u202e", "b", "😁"))
    phi = FeatureMap.fit(np.arange(3.0)[:, None], ["x\t"])
    names = Softmax(rows, Normal(scale=1.0), features=phi, Phi=np.zeros((3, 2))).weight_names
    assert names[:2] == [r"intercept (a\n\u202e)", r"x\t (a\n\u202e)"]
    assert names[-1] == r"x\t (😁)"
