"""Comparisons where the better model is known, against ArviZ, scikit-learn and plain arithmetic."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import brier_score, log_score
from bayes_gda.evaluation.loo import Loo, exact_loo, psis_loo
from bayes_gda.evaluation.model_comparison import Evidence, ModelScore, compare_scores, kfold
from bayes_gda.families.gaussian.continuum import Grid, fit_continuum
from bayes_gda.families.gaussian.exact import lda_posterior, qda_posterior
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIW


def exact_entry(data, fit, **more):
    moments = Moments.from_arrays(data.X, data.y, data.K)
    posterior = fit(moments, NIW.default(moments))
    loo = exact_loo(posterior, data.X, data.y).conditional
    return ModelScore("generative", loo=loo, evidence=Evidence(posterior.log_evidence, "joint"), **more)


def gaussian_fit(fit):
    def fit_predict(train, X):
        moments = Moments.from_arrays(train.X, train.y, train.K)
        return log_class_probabilities(fit(moments, NIW.default(moments)).log_joint(X))

    return fit_predict


def logistic_fit(train, X):
    from sklearn.linear_model import LogisticRegression

    a = LogisticRegression(max_iter=1000).fit(train.X, train.y).decision_function(X)
    return np.column_stack([log_expit(-a), log_expit(a)])  # predict_log_proba underflows


def unequal_covariances(n=400, seed=0):
    """Two Gaussians around one centre: QDA is the truth, and no linear boundary tells them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return Dataset.from_arrays(rng.normal(size=(n, 2)) * np.where(y == 0, 0.5, 2.0)[:, None], y)


def linear_but_not_gaussian(n=400, seed=0):
    """Log-normal features with a logistic truth: LDA is misled by the long tails."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, size=(n, 2))
    p = 1 / (1 + np.exp(-1.5 * (X[:, 0] - X[:, 1])))
    return Dataset.from_arrays(X, (rng.random(n) < p).astype(int))


def pointwise(rows):
    """Log probabilities (n, 2) with given log p of class 0, and y = 0."""
    p = np.exp(rows)
    return np.log(np.column_stack([p, 1 - p]))


# ── The verdict ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_generative_family_wins_where_it_is_true():
    data = unequal_covariances()
    result = compare_scores(
        {
            "qda": exact_entry(data, qda_posterior, kfold=kfold(data, gaussian_fit(qda_posterior))),
            "logistic": ModelScore("discriminative", kfold=kfold(data, logistic_fit)),
        },
        y=data.y,
    )
    assert "generative model qda predicts the class better than the discriminative model logistic" in (
        result.generative_vs_discriminative
    )
    assert "beyond noise" in result.generative_vs_discriminative
    assert "K-fold" in result.generative_vs_discriminative  # where both were scored
    assert list(result.kfold.index) == ["qda", "logistic"]
    assert list(result.loo.index) == ["qda"]
    assert result.sentences[0] == result.generative_vs_discriminative


def test_the_discriminative_family_wins_where_features_are_not_gaussian():
    data = linear_but_not_gaussian()
    result = compare_scores(
        {
            "lda": ModelScore("generative", kfold=kfold(data, gaussian_fit(lda_posterior))),
            "logistic": ModelScore("discriminative", kfold=kfold(data, logistic_fit)),
        },
        y=data.y,
    )
    assert "discriminative model logistic predicts the class better" in result.generative_vs_discriminative
    assert "beyond noise" in result.generative_vs_discriminative


@pytest.mark.parametrize(
    ("gain", "noise", "n", "words"),
    [
        (0.001, 0.001, 400, "cannot be distinguished: elpd differs by 0.4 (SE 0.0) over 400 rows, less than 4"),
        (0.02, 0.4, 400, "within noise"),
        (0.05, 0.01, 400, "beyond noise"),
        (0.1, 0.01, 60, "though below 100 rows the error is rough"),
    ],
)
def test_words_follow_the_difference(gain, noise, n, words):
    base = np.full(n, -1.0)
    wave = noise * np.resize([1.0, -1.0], n)
    entries = {
        "a": ModelScore("generative", held_out=pointwise(base + gain + wave)),
        "b": ModelScore("discriminative", held_out=pointwise(base)),
    }
    result = compare_scores(entries, y_test=np.zeros(n, dtype=int))
    assert words in result.generative_vs_discriminative
    assert f"{gain * n:.1f} (SE " in result.generative_vs_discriminative
    row = result.held_out.loc["b"]
    assert row["difference"] == pytest.approx(-gain * n)
    assert row["difference_se"] == pytest.approx(np.sqrt(n) * wave.std(ddof=1))


def test_the_verdict_stands_where_the_families_meet():
    log_P, loo = pointwise(np.full(200, -1.0)), Loo("conditional", np.full(200, -1.0), np.full(200, -1.0))
    entries = {name: ModelScore("generative", loo=loo) for name in ("a", "b")}
    entries["c"] = ModelScore("generative", loo=loo, held_out=log_P)
    entries["d"] = ModelScore("discriminative", held_out=log_P)
    result = compare_scores(entries, y_test=np.zeros(200, dtype=int))
    assert result.generative_vs_discriminative.startswith("By held-out rows the generative model c ")
    assert "Not in this comparison, as not known by held-out rows: 'a', 'b'." in result.sentences


def test_one_family_gets_no_verdict_between_families():
    data = load_example("iris")
    result = compare_scores(
        {"lda": exact_entry(data, lda_posterior), "qda": exact_entry(data, qda_posterior)}, y=data.y
    )
    assert result.generative_vs_discriminative is None
    assert "generative model" in result.sentences[0]
    assert result.kfold is None
    assert result.held_out is None


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leave_one_out_table_equals_arviz():
    import arviz_base
    import arviz_stats

    rng = np.random.default_rng(1)
    n = 120
    base = -rng.exponential(size=n)
    draws = {
        "generative": base + rng.normal(0, 0.2, (4, 500, n)),
        "discriminative": base + rng.normal(0, 0.3, n) - 0.1 + rng.normal(0, 0.2, (4, 500, n)),
    }
    theirs = arviz_stats.compare(
        {
            name: arviz_stats.loo(
                arviz_base.from_dict({"posterior": {"theta": L[..., 0]}, "log_likelihood": {"y": L}}),
                pointwise=True,
                reff=1.0,
            )
            for name, L in draws.items()
        },
        round_to="none",
    )
    ours = compare_scores({n: ModelScore(n, loo=psis_loo(L, kind="conditional")) for n, L in draws.items()}).loo
    assert list(ours.index) == list(theirs.index)
    for column, name in (("elpd", "elpd"), ("se", "se"), ("difference", "elpd_diff"), ("p_eff", "p")):
        np.testing.assert_allclose(ours[column], theirs[name].to_numpy(dtype=float), atol=1e-8)
    ratio = ours["difference_se"].iloc[1] / theirs["dse"].iloc[1]
    assert ratio == pytest.approx(1, abs=1 / n)  # the variance over n − 1 here, over n there
    np.testing.assert_allclose(ours["stacking"], theirs["weight"].to_numpy(dtype=float), atol=1e-3)
    assert "brier" not in ours  # unknown without the probabilities of all classes


def test_scores_are_those_of_calibration():
    data = load_example("iris")
    train, test = data.split(0.4)
    log_P = gaussian_fit(qda_posterior)(train, test.X)
    entry = exact_entry(data, qda_posterior, held_out=log_P)
    result = compare_scores({"qda": entry}, y=data.y, y_test=test.y)
    row = result.held_out.loc["qda"]
    assert row["log_score"] == pytest.approx(log_score(np.exp(log_P), test.y))
    assert row["brier"] == pytest.approx(brier_score(np.exp(log_P), test.y))
    hits = log_P.argmax(axis=1) == test.y
    assert row["accuracy"] == pytest.approx(hits.mean())
    assert row["accuracy_se"] == pytest.approx(stats.sem(hits))
    assert row["se"] == pytest.approx(np.sqrt(test.n) * np.log(np.exp(log_P)[np.arange(test.n), test.y]).std(ddof=1))
    loo = result.loo.loc["qda"]
    assert loo["elpd"] == pytest.approx(entry.loo.elpd)
    assert loo["brier"] == pytest.approx(brier_score(np.exp(entry.loo.log_probabilities), data.y))


def test_model_probabilities_stay_within_a_kind():
    entries = {
        "lda": ModelScore("generative", evidence=Evidence(-100.0, "joint")),
        "qda": ModelScore("generative", evidence=Evidence(-102.0, "joint", error=0.1)),
        "logistic": ModelScore("discriminative", evidence=Evidence(-50.0, "conditional", error=0.9)),
    }
    result = compare_scores(entries)
    p = result.evidence["probability"]
    assert p["lda"] / p["qda"] == pytest.approx(np.exp(2))
    assert p["lda"] + p["qda"] == pytest.approx(1)
    assert p["logistic"] == 1
    assert any("different data" in sentence for sentence in result.sentences)
    assert any("'logistic' has an error of 0.9" in sentence for sentence in result.sentences)
    assert not any("different data" in s for s in compare_scores({k: entries[k] for k in ("lda", "qda")}).sentences)
    assert result.generative_vs_discriminative is None


def test_bad_rows_and_absent_models_are_said():
    L = np.full((500, 30), -1.0)
    L[:, 4] = -1.5 * np.random.default_rng(0).exponential(size=500)
    result = compare_scores(
        {
            "a": ModelScore("discriminative", loo=psis_loo(L, kind="conditional")),
            "b": ModelScore("generative", loo=psis_loo(L, kind="conditional")),
            "c": ModelScore("generative", evidence=Evidence(0.0, "joint")),
        }
    )
    text = " ".join(result.sentences)
    assert "'a': Leave-one-out is unreliable for 1 of 30 rows" in text
    assert "Not in this comparison, as not known by leave-one-out: 'c'" in text
    assert result.loo["bad_k"].tolist() == [1, 1]


def test_an_impossible_truth_is_not_hidden():
    log_P = pointwise(np.full(20, -0.5))
    broken = np.array(log_P)
    broken[3] = [-np.inf, 0.0]
    result = compare_scores(
        {"a": ModelScore("generative", kfold=log_P), "b": ModelScore("discriminative", kfold=broken)},
        y=np.zeros(20, dtype=int),
    )
    assert result.kfold.loc["b", "elpd"] == -np.inf
    assert "b gave the true class of a row probability 0" in result.generative_vs_discriminative


# ── K-fold ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def dealt(data, folds, **options):
    """The fold of every row, read from what `fit_predict` is given; feature 0 is the row's number."""
    fold, seen = np.empty(data.n, dtype=int), []

    def fit_predict(train, X):
        assert not set(train.X[:, 0]) & set(X[:, 0])
        assert train.n + len(X) == data.n
        assert (train.class_counts > 0).all()
        fold[X[:, 0].astype(int)] = len(seen)
        seen.append(len(X))
        return np.full((len(X), data.K), -np.log(data.K))

    kfold(data, fit_predict, folds=folds, **options)
    return fold, seen


def test_folds_cover_all_rows_in_proportion():
    y = np.repeat([0, 1, 2], [40, 23, 7])
    data = Dataset.from_arrays(np.column_stack([np.arange(70), np.random.default_rng(0).normal(size=70)]), y)
    fold, sizes = dealt(data, 5)
    assert sizes == [14] * 5
    for k in range(3):
        counts = np.bincount(fold[y == k], minlength=5)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(dealt(data, 5)[0], fold)
    assert (dealt(data, 5, random_seed=1)[0] != fold).any()


def test_kfold_equals_scikit_learn_on_the_same_folds():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    rng = np.random.default_rng(2)
    y = np.resize([0, 1, 2], 60)
    data = Dataset.from_arrays(np.column_stack([np.arange(60), rng.normal(size=60) + y]), y)
    fold, _ = dealt(data, 4)
    standard = data.X * [0.01, 1]

    def fit_predict(train, X):
        return LogisticRegression().fit(train.X * [0.01, 1], train.y).predict_log_proba(X * [0.01, 1])

    theirs = cross_val_predict(LogisticRegression(), standard, y, cv=PredefinedSplit(fold), method="predict_log_proba")
    np.testing.assert_allclose(kfold(data, fit_predict, folds=4), theirs, rtol=1e-6)


def test_n_folds_are_leave_one_out():
    data = load_example("iris").split(30)[1]
    moments = Moments.from_arrays(data.X, data.y, data.K)
    prior = NIW.default(moments)

    def fit_predict(train, X):
        return log_class_probabilities(lda_posterior(Moments.from_arrays(train.X, train.y, 3), prior).log_joint(X))

    exact = exact_loo(lda_posterior(moments, prior), data.X, data.y).conditional.log_probabilities
    np.testing.assert_allclose(kfold(data, fit_predict, folds=data.n), exact, atol=1e-8)


# ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_line_errors():
    half = np.full((4, 2), np.log(0.5))
    joint = Loo("joint", np.zeros(3), np.zeros(3))
    with pytest.raises(DataError, match=r"`loo` must be conditional.*GenerativeLoo\.conditional"):
        ModelScore("generative", loo=joint)
    with pytest.raises(DataError, match="`family` must be 'generative' or 'discriminative'; got 'lda'"):
        ModelScore("lda")
    with pytest.raises(DataError, match="`kfold` must be log probabilities; those of row 0 sum to 2"):
        ModelScore("generative", kfold=np.array([[1.0, -np.inf]]))
    with pytest.raises(DataError, match="`held_out` must be log probabilities; those of row 1 sum to nan"):
        ModelScore("generative", held_out=np.array([[np.log(0.5)] * 2, [np.nan, 0.0]]))
    with pytest.raises(DataError, match="`of` must be 'joint'"):
        Evidence(0.0, "both")
    with pytest.raises(DataError, match="`log_value` must be finite"):
        Evidence(np.nan, "joint")
    with pytest.raises(DataError, match="`entries` must hold at least one model"):
        compare_scores({})
    with pytest.raises(DataError, match="`y_test` must be given, as 'a' has held_out probabilities"):
        compare_scores({"a": ModelScore("generative", held_out=half)})
    with pytest.raises(DataError, match=r"`y` must have a code for each of the 4 rows of 'a'; got \(3,\)"):
        compare_scores({"a": ModelScore("generative", kfold=half)}, y=np.zeros(3, dtype=int))
    with pytest.raises(DataError, match=r"`y` must hold class codes in 0…1"):
        compare_scores({"a": ModelScore("generative", kfold=half)}, y=np.full(4, 2))
    with pytest.raises(DataError, match="`evidence` of a discriminative model must be conditional"):
        ModelScore("discriminative", evidence=Evidence(0.0, "joint"))
    data = load_example("iris")
    with pytest.raises(DataError, match="`y` must be the classes that the leave-one-out of 'lda' was made with"):
        compare_scores({"lda": exact_entry(data, lda_posterior)}, y=data.y[::-1])
    loos = [Loo("conditional", np.zeros(n), np.zeros(n)) for n in (3, 4)]
    with pytest.raises(DataError, match="same rows; got by leave-one-out 'a' 3, 'b' 4"):
        compare_scores({"a": ModelScore("generative", loo=loos[0]), "b": ModelScore("generative", loo=loos[1])})


def test_kfold_errors():
    data = load_example("iris")
    with pytest.raises(DataError, match="`folds` must be a whole number in 2…150, the number of rows; got 1"):
        kfold(data, gaussian_fit(lda_posterior), folds=1)
    small = data.subset(np.r_[0:50, 50:100, 100])
    with pytest.raises(DataError, match="Class 'virginica' has 1 row; K-fold cross-validation needs at least 2"):
        kfold(small, gaussian_fit(lda_posterior))
    with pytest.raises(DataError, match=r"`fit_predict, fold 0` must return shape \(15, 3\); got \(15, 2\)"):
        kfold(data, lambda train, X: np.full((len(X), 2), np.log(0.5)))
    with pytest.raises(DataError, match="`fit_predict, fold 0` must be log probabilities"):
        kfold(data, lambda train, X: np.full((len(X), 3), 1 / 3))


# ── Between naive, LDA and QDA ──────────────────────────────────────────────────────────────────────────────────────


def test_a_comparison_says_where_the_data_sit():
    data = unequal_covariances()
    entries = {"lda": exact_entry(data, lda_posterior), "qda": exact_entry(data, qda_posterior)}
    place = fit_continuum(Moments.from_arrays(data.X, data.y, 2))
    found = compare_scores(entries, y=data.y, continuum=place)
    assert found.continuum is place
    assert place.sentence in found.sentences
    assert place.toward_lda < 0.1  # sds of .5 and 2: nothing to be shared
    assert compare_scores(entries, y=data.y).continuum is None


def test_leave_one_out_of_the_average_is_near_that_of_refitting():
    data = unequal_covariances(60)
    grid = Grid(pooling=(0.1, 0.5, 0.9), diagonal=(0.0, 1.0))  # a few models will do
    average = fit_continuum(Moments.from_arrays(data.X, data.y, 2), grid=grid)
    fast = exact_loo(average, data.X, data.y).conditional
    elpd = 0.0
    for i in range(data.n):
        rest = np.arange(data.n) != i
        refit = fit_continuum(Moments.from_arrays(data.X[rest], data.y[rest], 2), grid=grid)
        elpd += log_class_probabilities(refit.log_joint(data.X[[i]]))[0, data.y[i]]
    assert fast.elpd == pytest.approx(elpd, abs=0.05 * fast.se)
