"""BayesianRDA: near the true corner and beyond the wrong ones; as exact in parts as at once; its corners are known."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianLDA, BayesianNaiveGaussian, BayesianQDA, BayesianRDA
from bayes_gda.families.gaussian.continuum import Grid, fit_continuum
from bayes_gda.prediction.normalised import log_class_probabilities

IRIS = load_example("iris")
CORNERS = {"lda": BayesianLDA, "qda": BayesianQDA, "naive": BayesianNaiveGaussian}


def world(kind, seed, d=4, K=3):
    """Means (K, d) and roots (K, d, d) of the covariances of a world in which one of the corners is right."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(K, d, d))
    Sigma = root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)
    if kind == "lda":
        Sigma[:] = Sigma[0]
    if kind == "naive":
        Sigma = np.exp(rng.normal(size=(K, d)))[:, :, None] * np.eye(d)
    sd = np.sqrt(np.diagonal(Sigma, axis1=1, axis2=2).mean(axis=0))
    return sd * rng.normal(size=(K, d)), np.linalg.cholesky(Sigma)


def rows_of(mu, root, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % len(mu))
    return mu[y] + (root[y] @ rng.normal(size=(n, mu.shape[1], 1)))[..., 0], y


def own_scores(model, X, y):
    return model.predict_log_proba(X)[np.arange(len(y)), y]


# ── Predictions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", CORNERS)
def test_the_true_corner_is_matched_and_the_wrong_ones_are_beaten(kind):
    gains = {name: [] for name in CORNERS}
    for seed in range(3):
        truth = world(kind, seed)
        (X, y), (X_new, y_new) = rows_of(*truth, 120, seed + 100), rows_of(*truth, 1500, seed + 200)
        ours = own_scores(BayesianRDA().fit(X, y), X_new, y_new)
        for name, make in CORNERS.items():
            gains[name].append(ours - own_scores(make().fit(X, y), X_new, y_new))
    for name, parts in gains.items():
        gain = np.concatenate(parts)
        if name == kind:
            assert gain.mean() > -0.01  # not told from it by a hundredth of a nat
        else:
            assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))


def test_probabilities_are_those_of_the_continuum():
    model = BayesianRDA().fit(IRIS.X, IRIS.y)
    continuum = fit_continuum(Moments.from_arrays(IRIS.X, IRIS.y, 3))
    np.testing.assert_allclose(
        model.predict_log_proba(IRIS.X), log_class_probabilities(continuum.log_joint(IRIS.X)), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(model.continuum_.weight, continuum.weight, rtol=1e-6, atol=1e-12)
    cells = np.exp(continuum.log_evidence - continuum.log_evidence.max())
    assert model.log_evidence_ == pytest.approx(np.log(cells.mean()) + continuum.log_evidence.max())
    assert np.isnan(model.log_evidence_error_)
    assert model.inference_ == "exact"
    assert model.trust_.verdict == "exact"
    assert "empirical Bayes" in model.trust_.reason
    assert model.continuum_.sentence.startswith("By the evidence the covariances lie")


def test_the_corners_are_scikit_learn_s_for_many_rows():
    X, y = rows_of(*world("qda", 1), 30_000, 2)
    c = BayesianRDA().fit(X, y).continuum_
    new = X[:300]
    corners = {
        (1.0, 1.0): QuadraticDiscriminantAnalysis(),
        (c.prior_rows.max(), 0.0): LinearDiscriminantAnalysis(),
        (1.0, np.nan): GaussianNB(var_smoothing=0.0),
    }
    for (w, delta), theirs in corners.items():
        (cell,) = np.flatnonzero((c.prior_rows == w) & np.isclose(c.delta, delta, equal_nan=True))
        P = np.exp(log_class_probabilities(c.posteriors[cell].log_joint(new)))
        np.testing.assert_allclose(P, theirs.fit(X, y).predict_proba(new), atol=0.01)


def test_draws_are_of_the_shape_and_share_that_the_cells_say():
    X, y = rows_of(*world("naive", 3), 200, 4)
    model = BayesianRDA(draws=1000, chains=2).fit(X, y)
    posterior = model.posterior_["posterior"]
    assert posterior["Sigma"].dims == ("chain", "draw", "class", "feature", "feature_bis")
    Sigma = posterior["Sigma"].to_numpy().reshape(-1, 3, 4, 4)
    diagonal = (np.abs(Sigma[:, :, ~np.eye(4, dtype=bool)]).max(axis=(1, 2)) == 0).mean()
    p = model.continuum_.weight[np.isnan(model.continuum_.delta)].sum()
    assert diagonal == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 2000) + 1e-3)
    interval, P = model.predict_interval(X[:20]), model.predict_proba(X[:20])
    assert ((interval[..., 0] <= P) & (interval[..., 1] >= P)).mean() > 0.9
    parts = model.uncertainty(X[:20])
    np.testing.assert_allclose(parts.total, parts.aleatoric + parts.epistemic)


def test_new_rows_have_the_moments_of_the_posterior():
    model = BayesianRDA().fit(IRIS.X, IRIS.y)
    X, labels = model.sample(6000)
    share = np.bincount(labels, minlength=3) / 6000
    np.testing.assert_allclose(share, 1 / 3, atol=0.025)  # α + n: 51 of 153 each
    for k in range(3):
        rows = X[labels == k]
        gap = rows.mean(axis=0) - IRIS.X[IRIS.y == k].mean(axis=0)
        assert (np.abs(gap) < 5 * rows.std(axis=0) / np.sqrt(len(rows)) + 0.001).all()


# ── Moments add and subtract ────────────────────────────────────────────────────────────────────────────────────────


def test_parts_give_what_all_rows_give():
    whole = BayesianRDA().fit(IRIS.X, IRIS.y)
    first, rest = np.arange(150) % 3 == 0, np.arange(150) % 3 != 0
    parts = BayesianRDA().partial_fit(IRIS.X[first], IRIS.y[first]).partial_fit(IRIS.X[rest], IRIS.y[rest])
    merged = BayesianRDA().fit(IRIS.X[first], IRIS.y[first]).merge(BayesianRDA().fit(IRIS.X[rest], IRIS.y[rest]))
    for model in (parts, merged):
        np.testing.assert_allclose(model.predict_log_proba(IRIS.X), whole.predict_log_proba(IRIS.X), rtol=1e-7)
        assert model.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    less = BayesianRDA().fit(IRIS.X[first], IRIS.y[first])
    merged.unlearn(IRIS.X[rest], IRIS.y[rest])
    np.testing.assert_allclose(merged.predict_log_proba(IRIS.X), less.predict_log_proba(IRIS.X), rtol=1e-6)
    half = BayesianRDA().fit(IRIS.X, IRIS.y, sample_weight=np.full(150, 0.5))
    forgot = BayesianRDA().fit(IRIS.X, IRIS.y).forget(0.5)
    np.testing.assert_allclose(forgot.predict_log_proba(IRIS.X), half.predict_log_proba(IRIS.X), rtol=1e-7)
    assert not hasattr(whole, "stream")


def test_a_grid_is_kept():
    model = BayesianRDA().fit(IRIS.X, IRIS.y)
    assert model.prior_ == Grid()
    model.prior_ = Grid(pooling=(0.5,), diagonal=(0.0, 1.0))
    assert len(model.forget(1.0).continuum_.weight) == 6  # w of QDA and of one half, times two targets and naive


# ── Borders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_constant_and_repeated_features_do_no_harm():
    X = np.column_stack([IRIS.X, np.full(150, 7.0), IRIS.X[:, 0], (IRIS.y == 1) * 1.0])
    model = BayesianRDA().fit(X, IRIS.y)
    assert (model.predict(X) == IRIS.y).mean() > 0.95
    assert np.isfinite(model.posterior_["posterior"]["Sigma"]).all()


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 40)) + y[:, None]
    model = BayesianRDA().fit(X, y)
    assert (model.predict(rng.normal(size=(50, 40)) + 1) == 1).mean() > 0.9


def test_errors_name_the_cause():
    with pytest.raises(DataError, match="more rows than classes; got 3 rows of 3"):
        BayesianRDA().fit(IRIS.X[::50], IRIS.y[::50])
    with pytest.raises(DataError, match="`draws` must be a whole number"):
        BayesianRDA(draws=0).fit(IRIS.X, IRIS.y)
    with pytest.raises(DataError, match="must be a fitted BayesianRDA"):
        BayesianRDA().fit(IRIS.X, IRIS.y).merge(BayesianQDA().fit(IRIS.X, IRIS.y))


# ── Real data ───────────────────────────────────────────────────────────────────────────────────────────────────────


# Models that predict better than the average, beyond noise. The evidence judges densities of features, not classes:
# where features are far from Gaussian, as in breast-cancer, the model that describes them best need not classify best.
BETTER = {"iris": (), "wine": (), "crabs": (), "breast-cancer": ("lda", "qda")}


@pytest.mark.slow
@pytest.mark.parametrize("name", BETTER)
def test_real_data(name):
    """Mean log score over 20 splits: as good as the best corner, or better, where the classes are near Gaussian."""
    data = load_example(name)
    gains = {corner: [] for corner in CORNERS}
    for seed in range(20):
        train, test = data.split(0.3, seed)
        ours = own_scores(BayesianRDA().fit(train.X, train.y), test.X, test.y).mean()
        for corner, make in CORNERS.items():
            gains[corner].append(ours - own_scores(make().fit(train.X, train.y), test.X, test.y).mean())
    for corner, gain in gains.items():
        mean, error = np.mean(gain), np.std(gain, ddof=1) / np.sqrt(20)
        assert (mean < -2 * error) if corner in BETTER[name] else (mean > -2 * error)
    assert np.mean(gains["naive"]) > 0.05  # their features go together
