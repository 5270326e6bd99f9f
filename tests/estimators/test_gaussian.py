"""LDA, QDA and naive Gaussian: exact answers, scikit-learn's in the limit, shifted classes, new rows."""

import numpy as np
import pandas as pd
import pytest
from judge import assert_same_mean
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.estimators import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.priors import LKJ, NIG, NIW

IRIS = load_example("iris")
LABELS = np.array(IRIS.class_names)[IRIS.y]
EXACT = {
    BayesianLDA: (lda_posterior, NIW),
    BayesianQDA: (qda_posterior, NIW),
    BayesianNaiveGaussian: (naive_posterior, NIG),
}
every_class = pytest.mark.parametrize("cls", EXACT)


def simulate(n, shares, seed, K=3, d=2):
    """Gaussian classes with one covariance, so that all three models and logistic regression hold."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, size=n, p=shares)
    return np.array([[0.0, 0.0], [2.0, 0.5], [0.5, 2.0]])[y] + rng.normal(size=(n, d)), y


@every_class
def test_the_posterior_is_the_closed_form(cls):
    moments = Moments.from_arrays(IRIS.X, IRIS.y, 3)
    make, family = EXACT[cls]
    truth = make(moments, family.default(moments))
    model = cls().fit(IRIS.X, LABELS)
    assert model.inference_ == model.trust_.verdict == "exact"
    assert model.log_evidence_ == pytest.approx(truth.log_evidence, rel=1e-12)
    assert model.log_evidence_error_ == 0
    joint = truth.log_joint(IRIS.X)
    np.testing.assert_allclose(
        model.predict_log_proba(IRIS.X), joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), atol=1e-9
    )
    assert model.score(IRIS.X, LABELS) > 0.94
    np.testing.assert_array_equal(model.classes_, IRIS.class_names)


@every_class
def test_scikit_learn_is_the_limit_of_a_weak_prior_and_many_rows(cls):
    """The Student-t is a normal up to a part in n, so ten times the rows leave a tenth of the difference."""
    weak = {
        BayesianLDA: NIW(np.zeros(2), 1e-6, 1e-6 * np.eye(2), 2.0),
        BayesianQDA: NIW(np.zeros(2), 1e-6, 1e-6 * np.eye(2), 2.0),
        BayesianNaiveGaussian: NIG(np.zeros(2), 1e-6, 1e-6, 1e-6),
    }
    theirs = {
        BayesianLDA: LinearDiscriminantAnalysis(solver="lsqr"),
        BayesianQDA: QuadraticDiscriminantAnalysis(),
        BayesianNaiveGaussian: GaussianNB(),
    }
    grid, _ = simulate(500, [0.5, 0.3, 0.2], 9)
    difference = []
    for n in (2000, 20_000):
        X, y = simulate(n, [0.5, 0.3, 0.2], 0)
        ours = cls(prior=weak[cls]).fit(X, y)
        difference.append(np.abs(ours.predict_proba(grid) - theirs[cls].fit(X, y).predict_proba(grid)).max())
    assert difference[1] < 0.002
    assert difference[1] < difference[0] / 4


@every_class
def test_other_class_shares_are_a_refit_on_reweighted_rows(cls):
    shares = np.array([0.1, 0.2, 0.7])
    X, y = simulate(20_000, [1 / 3] * 3, 1)
    model = cls().fit(X, y)
    weight = (shares / np.bincount(y) * len(y))[y]
    refitted = cls().fit(X, y, sample_weight=weight)
    grid = X[:2000]
    np.testing.assert_allclose(model.predict_proba(grid, shares), refitted.predict_proba(grid), atol=0.005)
    assert np.abs(model.predict_proba(grid) - refitted.predict_proba(grid)).max() > 0.1


@every_class
def test_em_recovers_a_shifted_prior_within_its_error(cls):
    shares = np.array([0.75, 0.05, 0.2])
    X, y = simulate(20_000, [1 / 3] * 3, 2)
    model = cls().fit(X, y)
    unlabelled, _ = simulate(3000, shares, 3)
    found = model.estimate_class_prior(unlabelled)
    assert (np.abs(found.prior - shares) < 3 * found.standard_error).all()
    assert found.p_value < 1e-6
    # So corrected, the model is right about as often as it says.
    test_X, test_y = simulate(5000, shares, 4)
    P = model.predict_proba(test_X, found.prior)
    assert abs((P.argmax(axis=1) == test_y).mean() - P.max(axis=1).mean()) < 0.02


@every_class
def test_new_rows_look_like_the_old_ones(cls):
    model = cls(random_state=1).fit(IRIS.X, LABELS)
    X, y = model.sample(20_000)
    assert X.shape == (20_000, 4)
    for k, label in enumerate(model.classes_):
        assert_same_mean(X[y == label], model.model_.posterior.m[k])
    np.testing.assert_array_equal(X, model.sample(20_000)[0])
    assert (X[:5] != model.sample(5, random_state=9)[0]).any()
    with pytest.raises(DataError, match="`n` must be a whole number"):
        model.sample(0)


@every_class
def test_intervals_hold_the_prediction(cls):
    model = cls().fit(IRIS.X, IRIS.y)
    P, ends = model.predict_proba(IRIS.X), model.predict_interval(IRIS.X, prob=0.9)
    assert ends.shape == (150, 3, 2)
    # The mean of a skewed posterior near 0 or 1 may lie just beyond its 95 % quantile.
    assert (ends[..., 0] - 1e-6 <= P).all()
    assert (ends[..., 1] + 1e-6 >= P).all()
    assert (model.uncertainty(IRIS.X).epistemic >= 0).all()


@every_class
def test_a_lone_row_a_class_and_odd_columns_are_no_error(cls):
    """Proper priors need no rows, and the default's scale falls back by its rule."""
    X = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 1.0], [4.0, 5.0, 1.0]])
    model = cls().fit(X, ["a", "b", "b"])
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    # Without correlations Ψ = ν D with ν = d + 2, and 2b = 3 D for single features.
    scale = np.diag(model.prior_.Psi) / 5 if cls is not BayesianNaiveGaussian else 2 * model.prior_.b / 3
    # Feature 0: variance 2 within classes, on one degree of freedom; 1: constant, so 1; 2: none within, 2/9 in all.
    np.testing.assert_allclose(scale, [2, 1, 2 / 9], rtol=1e-12)


@every_class
def test_weights_are_rows(cls):
    weight = np.random.default_rng(0).integers(0, 3, size=150)
    repeated = cls().fit(np.repeat(IRIS.X, weight, axis=0), np.repeat(IRIS.y, weight))
    weighted = cls().fit(IRIS.X, IRIS.y, sample_weight=weight)
    np.testing.assert_allclose(weighted.predict_proba(IRIS.X), repeated.predict_proba(IRIS.X), rtol=1e-12)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-14)


def test_priors_are_checked_by_name():
    with pytest.raises(PriorError, match="`prior` of BayesianLDA must be NIW or LKJ or None"):
        BayesianLDA(prior=NIG(np.zeros(4), 1.0, 1.0, 1.0)).fit(IRIS.X, IRIS.y)
    with pytest.raises(PriorError, match="`prior` has 2 features, `X` has 4"):
        BayesianQDA(prior=NIW(np.zeros(2), 1, np.eye(2), 4)).fit(IRIS.X, IRIS.y)
    lkj = LKJ(np.ones(4), np.zeros(4), np.full(4, 10.0))
    with pytest.raises(PriorError, match="inference='exact' needs a conjugate prior"):
        BayesianLDA(prior=lkj, inference="exact").fit(IRIS.X, IRIS.y)


def test_laplace_of_an_lkj_prior_is_close_to_the_conjugate_answer_with_many_rows():
    """With 3000 rows no prior matters: the LKJ model must predict what the NIW model does."""
    X, y = simulate(3000, [0.5, 0.3, 0.2], 5)
    lkj = LKJ(np.full(2, 5.0), np.zeros(2), np.full(2, 20.0))
    exact = BayesianLDA().fit(X, y)
    model = BayesianLDA(prior=lkj).fit(X, y)
    assert model.inference_ in {"laplace", "corrected"}
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.005)
    assert np.isfinite(model.log_evidence_)
    assert model.n_iter_ >= 1


def test_corrected_laplace_has_the_exact_evidence():
    """The conjugate model by the other road: Laplace in Bartlett's coordinates, weighted."""
    exact = BayesianQDA().fit(IRIS.X, IRIS.y)
    laplace = BayesianQDA(inference="laplace").fit(IRIS.X, IRIS.y)
    assert laplace.inference_ == "laplace"
    assert abs(laplace.log_evidence_ - exact.log_evidence_) < 4 * laplace.log_evidence_error_
    assert np.abs(laplace.predict_proba(IRIS.X) - exact.predict_proba(IRIS.X)).max() < 0.05


def test_labels_and_names_travel():
    frame = pd.DataFrame(IRIS.X, columns=IRIS.feature_names)
    model = BayesianQDA(draws=100, chains=2).fit(frame, LABELS)
    posterior = model.posterior_["posterior"]
    assert list(posterior["class"].values) == list(IRIS.class_names)
    assert list(posterior["feature"].values) == list(IRIS.feature_names)
    assert posterior["Sigma"].dims == ("chain", "draw", "class", "feature", "feature_bis")
    assert dict(posterior.sizes) == {"chain": 2, "draw": 100, "class": 3, "feature": 4, "feature_bis": 4}
    assert model.posterior_ is model.posterior_
    table = model.summary(prob=0.8)
    assert list(table.columns) == ["mean", "sd", "10%", "90%"]
    assert table.loc["mu[setosa, petal width (cm)]", "mean"] == pytest.approx(0.25, abs=0.05)
