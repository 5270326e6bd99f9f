"""Missing values behind the estimators: exact marginals, SciPy's densities, quadrature, and clear refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from gaps import assert_predicts, marginal_prior, remove, simulate, with_gaps_in_one_feature
from scipy import stats
from scipy.special import comb

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.priors import LKJ, NIG, NIW
from bayes_gda.priors.defaults import default_nig, default_niw

MAKE = {BayesianLDA: lda_posterior, BayesianQDA: qda_posterior, BayesianNaiveGaussian: naive_posterior}
GAUSSIAN = [BayesianLDA, BayesianQDA, BayesianNaiveGaussian]
MODELS = pytest.mark.parametrize("cls", GAUSSIAN)
SAMPLED = pytest.mark.parametrize("cls", GAUSSIAN[:2])
FEW = {"draws": 200, "chains": 2}
X, Y = simulate(n=60, d=3, K=2, seed=0)
GAPS = remove(X, 0.25, seed=1)
GAPS[4] = np.nan


def quick(cls, **options):
    return cls(**{"tolerance": 0.2} | FEW | options)


# ── Predictions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@MODELS
def test_a_model_of_complete_rows_predicts_the_marginals(cls):
    """A model of some features alone, with the marginal prior, is the model of all with the others missing."""
    given = NIG(*(np.arange(1.0, 4.0) * s for s in (0.1, 0.5, 1.0, 2.0)))
    part = NIG(given.m[:2], given.kappa[:2], given.a[:2], given.b[:2])
    if cls is not BayesianNaiveGaussian:
        given = NIW(m=np.zeros(3), kappa=0.5, Psi=np.eye(3) + 0.3, nu=6.0)
        part = NIW(m=np.zeros(2), kappa=0.5, Psi=np.eye(2) + 0.3, nu=5.0)
    rows = X[:9].copy()
    rows[:, 2] = np.nan
    whole, small = quick(cls, prior=given).fit(X, Y), quick(cls, prior=part).fit(X[:, :2], Y)
    np.testing.assert_allclose(whole.predict_log_proba(rows), small.predict_log_proba(rows[:, :2]), rtol=1e-9)
    np.testing.assert_array_equal(whole.predict(rows), small.predict(rows[:, :2]))
    shares = [0.3, 0.7]
    np.testing.assert_allclose(whole.predict_proba(rows, shares), small.predict_proba(rows[:, :2], shares), rtol=1e-9)


@MODELS
def test_nothing_observed_leaves_the_class_shares(cls):
    model = quick(cls).fit(X, Y)
    empty = np.full((1, 3), np.nan)
    shares = (np.bincount(Y) + 1) / (len(Y) + 2)  # a uniform Dirichlet prior adds one row a class
    np.testing.assert_allclose(model.predict_proba(empty)[0], shares)
    split = model.uncertainty(empty)
    assert split.total[0] == pytest.approx(stats.entropy(shares))
    low, high = model.predict_interval(empty)[0, 0]
    beta = stats.beta(*(np.bincount(Y) + 1))
    np.testing.assert_allclose([low, high], beta.ppf([0.05, 0.95]), atol=0.02)


@MODELS
def test_every_answer_is_there_with_gaps(cls):
    model = quick(cls).fit(GAPS, Y)
    P = model.predict_proba(GAPS)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(GAPS), P.argmax(axis=1))
    ends = model.predict_interval(GAPS)
    assert (ends[..., 0] <= ends[..., 1]).all()
    assert (model.uncertainty(GAPS).epistemic > -1e-9).all()
    costs = np.array([[0.0, 3.0], [1.0, 0.0]])
    np.testing.assert_array_equal(model.decide(GAPS, costs).action, (P @ costs.T).argmin(axis=1))
    assert model.estimate_class_prior(GAPS).prior.sum() == pytest.approx(1)
    assert model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.where(np.isnan(GAPS), np.inf, GAPS))


# ── Fitting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def log_labels(labels):
    """log p(y) under uniform class shares: 1/(n + 1) for the counts of two classes, over the orders they come in."""
    n = len(labels)
    return -np.log(n + 1) - np.log(comb(n, labels.sum()))


def test_the_naive_model_is_exact_feature_by_feature():
    """Each feature alone is a complete data set of the rows that have it."""
    prior = default_nig(GAPS, Y, 2)
    model = BayesianNaiveGaussian(prior=prior).fit(GAPS, Y)
    assert (model.inference_, model.trust_.verdict) == ("exact", "exact")
    evidence = 0.0
    for j in range(3):
        there = ~np.isnan(GAPS[:, j])
        one = NIG(prior.m[j : j + 1], prior.kappa[j : j + 1], prior.a[j : j + 1], prior.b[j : j + 1])
        alone = BayesianNaiveGaussian(prior=one).fit(GAPS[there, j : j + 1], Y[there])
        for name in ("m", "kappa", "a", "b"):
            ours, theirs = getattr(model.model_.posterior, name), getattr(alone.model_.posterior, name)
            np.testing.assert_allclose(ours[:, j], theirs[:, 0])
        # What the labels of these rows say is in each part; it counts once, for all rows.
        evidence += alone.log_evidence_ - log_labels(Y[there])
    assert model.log_evidence_ == pytest.approx(evidence + log_labels(Y))
    assert model.prior_ is prior
    assert model.log_evidence_error_ == 0


@SAMPLED
def test_draws_of_rows_with_few_gaps_are_near_the_exact_answer_without(cls):
    data = load_example("penguins")  # two rows have nothing but their species
    model = cls(draws=500).fit(data.X, data.y)
    assert (model.inference_, model.trust_.verdict) == ("mcmc", "sampled")
    assert model.trust_.diagnosis.verdict == "good"
    complete = ~np.isnan(data.X).any(axis=1)
    exact = cls(prior=model.prior_).fit(data.X[complete], data.y[complete])
    there = data.X[complete]
    assert np.abs(model.predict_proba(there) - exact.predict_proba(there)).max() < 0.02
    # Rows without values count for the shares alone: E[π] of all rows, and Pólya's urn in the evidence.
    count = np.bincount(data.y)
    np.testing.assert_allclose(model.model_.class_shares, (count + 1) / (data.n + 3))
    urn, factor = np.bincount(data.y[complete]) + 1.0, 0.0
    for label in data.y[~complete]:
        factor += np.log(urn[label] / urn.sum())
        urn[label] += 1
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_ + factor, abs=1e-6)
    tree = model.posterior_
    assert set(tree["posterior"].data_vars) == {"pi", "mu", "Sigma"}
    S = 4 * tree["posterior"].sizes["draw"]  # 500 of each chain, or more: `auto` extends a run that is too rough
    assert S >= 2000
    assert tree["log_likelihood"]["y"].shape == (4, S // 4, data.n)
    np.testing.assert_array_equal(tree["observed_data"]["x"], data.X)
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].to_numpy()[..., ~complete].reshape(S, -1),
        np.log(tree["posterior"]["pi"].to_numpy().reshape(S, -1))[:, data.y[~complete]],
    )


@MODELS
def test_the_default_prior_looks_at_what_was_observed(cls):
    model = quick(cls).fit(GAPS, Y)
    expected = (default_nig if cls is BayesianNaiveGaussian else default_niw)(GAPS, Y, 2)
    for name in ("m", "kappa"):
        np.testing.assert_allclose(getattr(model.prior_, name), getattr(expected, name))


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA])
def test_an_offset_of_a_feature_changes_nothing_but_its_means(cls):
    plain = quick(cls, random_state=1).fit(GAPS, Y)
    moved = quick(cls, random_state=1).fit(GAPS + 2.0**30, Y)
    np.testing.assert_allclose(moved.predict_proba(GAPS + 2.0**30), plain.predict_proba(GAPS), atol=1e-5)
    assert moved.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-3)
    # Beside an offset that leaves no digit for a spread there is still an answer, and no overflow.
    constant = np.where(np.isnan(GAPS), np.nan, np.where(np.arange(3) == 0, 1e19, GAPS))
    assert np.isfinite(quick(cls).fit(constant, Y).predict_proba(constant)).all()


@MODELS
def test_weights_drop_rows_and_do_nothing_else(cls):
    weight = np.ones(len(Y))
    weight[:5] = 0
    model, other = quick(cls).fit(GAPS, Y, weight), quick(cls).fit(GAPS[5:], Y[5:])
    np.testing.assert_array_equal(model.predict_proba(GAPS), other.predict_proba(GAPS))
    with pytest.raises(DataError, match=r"must be 0 or 1 where `X` has missing values; got 2\. Repeat the rows"):
        quick(cls).fit(GAPS, Y, weight * 2)
    only_gap = np.where(np.isnan(GAPS).any(axis=1), 0.0, 2.0)  # the gaps are gone with the weight
    assert quick(cls).fit(GAPS, Y, only_gap).inference_ == "exact"


def near_the_data(cls):
    """Return a prior with the data's own centre and scales, of some rows' weight: a default one is hard to draw from.

    The default prior spreads a mean that was never observed over ten standard deviations, so that few draws of it come
    near any row.
    """
    spread = X.var(axis=0)
    if cls is BayesianNaiveGaussian:
        return NIG(X.mean(axis=0), np.full(3, 2.0), np.full(3, 6.0), 5 * spread)
    return NIW(m=X.mean(axis=0), kappa=2.0, Psi=8 * np.cov(X.T), nu=12.0)


def assert_evidence(model, truth):
    """Within the stated error, which is none for the naive model."""
    assert model.log_evidence_error_ < 0.2
    assert abs(model.log_evidence_ - truth) < 4.5 * model.log_evidence_error_ + 1e-6


@MODELS
def test_a_class_without_values_has_the_prior_and_the_share_of_its_labels(cls):
    rows = X.copy()
    rows[Y == 1] = np.nan
    model = cls(draws=1000, chains=2, prior=near_the_data(cls)).fit(rows, Y)
    # All that was observed is of class 0; the labels count for the shares, of which a uniform prior adds one each.
    alone = MAKE[cls](Moments.from_arrays(X[Y == 0], Y[Y == 0], 2), model.prior_)
    assert_predicts(model, X, replace(alone, alpha=np.bincount(Y) + 1.0).log_joint(X))
    assert_evidence(model, alone.log_evidence - log_labels(Y[Y == 0]) + log_labels(Y))
    # Where classes have covariances of their own, the class without values has the prior predictive, a Student-t.
    if cls is BayesianQDA:
        prior = model.prior_
        shape = prior.Psi * (1 + 1 / prior.kappa) / (prior.nu - 2)
        prior_predictive = stats.multivariate_t(prior.m, shape, prior.nu - 2).logpdf(X)
        ours = replace(alone, alpha=np.ones(2)).log_joint(X)[:, 1] - np.log(0.5)
        np.testing.assert_allclose(ours, prior_predictive, rtol=1e-9)
    # With gaps in the other class too, under the default prior, there is an answer for every row.
    rows = GAPS.copy()
    rows[Y == 1] = np.nan
    assert np.isfinite(quick(cls).fit(rows, Y).predict_proba(X)).all()


@MODELS
def test_a_feature_without_values_in_one_class(cls):
    """What that class has of the other features is learnt from them; how this one goes with them, elsewhere."""
    rows = X.copy()
    rows[Y == 1, 2] = np.nan
    model = cls(draws=1000, chains=2, prior=near_the_data(cls)).fit(rows, Y)
    log_joint, evidence = with_gaps_in_one_feature(MAKE[cls], model.prior_, rows, Y, 2, X)
    assert_predicts(model, X, log_joint)
    assert_evidence(model, evidence)
    rows = GAPS.copy()
    rows[Y == 1, 2] = np.nan
    assert np.isfinite(cls(draws=400).fit(rows, Y).predict_proba(X)).all()  # enough draws for no warning


@MODELS
def test_a_feature_without_values_changes_nothing(cls):
    """Its prior is the same in all classes: what it says of a new row, given the other features, cancels."""
    rows, others = X.copy(), [0, 2]
    rows[:, 1] = np.nan
    prior = near_the_data(cls)
    model = cls(draws=1000, chains=2, prior=prior).fit(rows, Y)
    without = cls(prior=marginal_prior(prior, others)).fit(X[:, others], Y)
    assert without.inference_ == "exact"
    before = MAKE[cls](Moments.from_arrays(X[:0], Y[:0], 2), prior)
    beside = MAKE[cls](Moments.from_arrays(X[:0, others], Y[:0], 2), marginal_prior(prior, others))
    conditional = before.log_joint(X) - beside.log_joint(X[:, others])
    np.testing.assert_allclose(conditional[:, 0], conditional[:, 1])
    assert_predicts(model, X, without.model_.log_joint(X[:, others]) + conditional)
    np.testing.assert_allclose(model.predict_proba(rows), without.predict_proba(X[:, others]), atol=0.01)
    assert_evidence(model, without.log_evidence_)
    # Without a prior there is no scale for it.
    named = pd.DataFrame(GAPS, columns=["a", "b", "c"]).assign(b=np.nan)
    with pytest.raises(DataError, match=r"Feature 'b' has no values: all are missing\. Drop it, or give `prior`"):
        quick(cls).fit(named, Y)
    with pytest.raises(DataError, match="no values"):
        quick(cls).fit(np.full((6, 3), np.nan), np.arange(6) % 2)


@MODELS
def test_a_feature_that_is_constant_where_it_is_there(cls):
    rows = X.copy()
    rows[:, 1] = np.where(np.arange(len(X)) % 4, 3.0, np.nan)
    model = cls(draws=1000, chains=2).fit(rows, Y)
    complete = np.where(np.isnan(rows), 3.0, rows)
    log_joint, evidence = with_gaps_in_one_feature(MAKE[cls], model.prior_, rows, Y, 1, complete)
    assert_predicts(model, complete, log_joint)
    assert_evidence(model, evidence)
    rows = GAPS.copy()
    rows[~np.isnan(rows[:, 1]), 1] = 3.0
    assert np.isfinite(quick(cls).fit(rows, Y).predict_proba(rows)).all()


def test_what_cannot_be_is_said():
    for cls in GAUSSIAN[:2]:
        for inference in ("exact", "laplace"):
            with pytest.raises(PriorError, match="no closed form and no Laplace"):
                cls(inference=inference).fit(GAPS, Y)
    with pytest.raises(PriorError, match="the naive model is exact, or sampled"):
        BayesianNaiveGaussian(inference="laplace").fit(GAPS, Y)
    for cls in GAUSSIAN:
        with pytest.raises(PriorError, match="need a conjugate `prior`; got LKJ"):
            cls(prior=LKJ(np.ones(3), np.zeros(3), np.full(3, 3.0))).fit(GAPS, Y)
    with pytest.raises(PriorError, match="2 features, `X` has 3"):
        BayesianLDA(prior=NIW(m=np.zeros(2), kappa=1.0, Psi=np.eye(2), nu=4.0)).fit(GAPS, Y)


@MODELS
def test_streams_send_gaps_to_fit(cls):
    model = quick(cls).fit(X, Y)
    for method in (model.partial_fit, model.unlearn):
        with pytest.raises(DataError, match=r"missing values \(NaN\) in .* of 60 rows.*Use `fit` with all rows"):
            method(GAPS, Y)
    gapped = quick(cls).fit(GAPS, Y)
    for call in (
        lambda: gapped.partial_fit(X, Y),
        lambda: gapped.unlearn(X, Y),
        lambda: gapped.forget(0.5),
        lambda: gapped.stream(),
        lambda: quick(cls, prior=gapped.prior_).fit(X, Y).merge(gapped),
    ):
        with pytest.raises(DataError, match=r"fitted to rows with missing values.*Use `fit`"):
            call()
    np.testing.assert_array_equal(model.predict_proba(X), quick(cls).fit(X, Y).predict_proba(X))


@pytest.mark.slow
def test_nuts_of_the_naive_model_is_its_exact_answer():
    exact = BayesianNaiveGaussian().fit(GAPS, Y)
    model = BayesianNaiveGaussian(inference="mcmc", draws=500, chains=2).fit(GAPS, Y)
    assert (model.inference_, model.log_evidence_) == ("mcmc", exact.log_evidence_)
    assert np.abs(model.predict_proba(GAPS) - exact.predict_proba(GAPS)).max() < 0.03


# ── Regression ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_regression_drops_rows_or_says_what_to_do():
    with pytest.raises(DataError, match=r"NaN.*such as in 'x1'.*missing='drop', or use BayesianLDA"):
        BayesianLogisticRegression().fit(GAPS, Y)
    complete = ~np.isnan(GAPS).any(axis=1)
    weight = np.linspace(0.5, 2, len(Y))
    model = BayesianLogisticRegression(missing="drop", inference="laplace").fit(GAPS, Y, weight)
    other = BayesianLogisticRegression(inference="laplace").fit(GAPS[complete], Y[complete], weight[complete])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    with pytest.raises(DataError, match=r"NaN.*predicts complete rows only.*BayesianLDA"):
        model.predict(GAPS)
    with pytest.raises(DataError, match="`missing` must be 'error' or 'drop'; got 'keep'"):
        BayesianLogisticRegression(missing="keep").fit(X, Y)
    with pytest.raises(DataError, match="no complete row among 60"):
        BayesianLogisticRegression(missing="drop").fit(np.where(np.arange(3) == 1, np.nan, X), Y)
    batch = BayesianLogisticRegression(missing="drop", inference="laplace").partial_fit(GAPS, Y)
    assert batch.n_samples_seen_ == complete.sum()
    with pytest.raises(DataError, match="NaN"):
        BayesianLogisticRegression(inference="laplace").partial_fit(GAPS, Y)


# ── Novelty, and what to measure ────────────────────────────────────────────────────────────────────────────────────


@MODELS
def test_novel_rows_are_found_with_gaps_at_the_stated_rate(cls):
    model = quick(cls).fit(X, Y)
    rows, _ = model.sample(4000, random_state=1)
    rows[:2000, 0] = np.nan
    found = model.novelty(rows, false_alarm=0.05)
    for part in (slice(2000), slice(2000, None)):  # 2000 rows at 5 %: an sd of .0049
        assert abs(found.novel[part].mean() - 0.05) < 4 * 0.0049
    far = X[:4] + 100
    far[0, 1:] = np.nan
    far[3] = np.nan
    assert model.novelty(far).novel.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(found.novel, found.largest < found.threshold)
    with pytest.raises(DataError, match="`false_alarm` must lie between 0 and 1"):
        model.novelty(X, 0)


@MODELS
def test_worth_of_the_last_feature_is_that_of_simulating_it(cls):
    """The row with the feature drawn from its predictive, decided anew each time, against the row as it is."""
    model = quick(cls).fit(X, Y)
    row = X[1:2].copy()
    row[0, 1] = np.nan
    costs = np.array([[0.0, 2.0], [1.0, 0.0]])
    worth = model.worth_measuring(row, costs)
    assert np.isnan(worth[0, [0, 2]]).all()
    grid = np.linspace(X[:, 1].min() - 30, X[:, 1].max() + 30, 20_001)
    filled = np.repeat(row, len(grid), axis=0)
    filled[:, 1] = grid
    log_joint = model.model_.log_joint(filled)
    density = np.exp(log_joint - model.model_.log_joint(row).max()).sum(axis=1)
    step = grid[1] - grid[0]
    after = (model.predict_proba(filled) @ costs.T).min(axis=1) @ density * step / (density.sum() * step)
    before = (model.predict_proba(row) @ costs.T).min()
    assert worth[0, 1] == pytest.approx(before - after, abs=1e-3)
    assert np.isnan(model.worth_measuring(X[:2])).all()


# ── Real data ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cls", "dropped", "kept"),
    [(BayesianLDA, -0.440, -0.431), (BayesianQDA, -0.616, -0.532), (BayesianNaiveGaussian, -0.606, -0.512)],
)
def test_incomplete_rows_pay_on_pima(cls, dropped, kept):
    """Ripley's 300 training rows, a third of them with gaps, and his 332 test rows: log score and errors."""
    train, test = load_example("pima-missing"), load_example("pima").subset(np.arange(200, 532))
    labels = np.array(train.class_names)
    complete = train.subset(~np.isnan(train.X).any(axis=1))
    found = {}
    for name, rows in (("dropped", complete), ("kept", train)):
        model = cls(draws=500, tolerance=0.05).fit(rows.X, labels[rows.y])
        log_p = model.predict_log_proba(test.X)
        found[name] = log_p[np.arange(test.n), test.y].mean(), (log_p.argmax(axis=1) != test.y).mean()
    assert found["dropped"][0] == pytest.approx(dropped, abs=0.002)
    assert found["kept"][0] == pytest.approx(kept, abs=0.005)
    assert found["kept"][1] <= found["dropped"][1] + 0.02


def test_biopsy_with_gaps_in_one_feature():
    data = load_example("biopsy")
    names = np.array(data.class_names)
    model = BayesianNaiveGaussian().fit(data.X, names[data.y])
    assert (model.predict(data.X) == names[data.y]).mean() > 0.95
    gaps = np.isnan(data.X).any(axis=1)
    assert (model.predict(data.X[gaps]) == names[data.y[gaps]]).sum() >= 14  # of 16
    moments = Moments.from_arrays(data.X[~gaps], data.y[~gaps], 2)
    assert model.model_.moments.n == moments.n + gaps.sum()
