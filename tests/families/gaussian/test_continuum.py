"""The continuum: its corners are the models it joins, and data from each corner are found there."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, softmax

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.continuum import Grid, fit_continuum
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW, Dirichlet

KINDS = ["lda", "qda", "naive", "diagonal"]


def truth(kind, seed, d=4, K=3):
    """Means (K, d) and covariances (K, d, d) of a world in which one of the models is right."""
    rng = np.random.default_rng(seed)
    if kind in ("lda", "qda"):
        root = rng.normal(size=(K, d, d))
        Sigma = root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)
    else:
        Sigma = np.exp(rng.normal(size=(K, d)))[:, :, None] * np.eye(d)
    if kind in ("lda", "diagonal"):
        Sigma = np.tile(Sigma[0], (K, 1, 1))
    sd = np.sqrt(np.diagonal(Sigma, axis1=1, axis2=2).mean(axis=0))
    return sd * rng.normal(size=(K, d)), Sigma


def simulate(mu, Sigma, n, seed):
    rng = np.random.default_rng(seed)
    K, d = mu.shape
    y = np.concatenate([np.arange(K).repeat(2), rng.integers(0, K, n - 2 * K)])
    return mu[y] + (np.linalg.cholesky(Sigma)[y] @ rng.normal(size=(n, d, 1)))[..., 0], y


def charge_of(moments, c):
    """What the text says a cell pays, written out once more."""
    d = moments.d
    w = c.prior_rows[:, None]
    N = (moments.count * w / (w + moments.count)).sum(axis=1)
    off = np.where(np.isnan(c.delta), 0.0, (1 - np.nan_to_num(c.delta)) ** 2 * N)
    return 0.5 * d * np.log(1 + N) + 0.25 * d * (d - 1) * np.log(1 + off)


# ── the corners ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_corners_are_the_models_that_the_continuum_joins():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, 3)
    shares = Dirichlet([1.0, 2.0, 3.0])
    c = fit_continuum(moments, shares)
    evidence = c.log_evidence + charge_of(moments, c)
    weak = c.prior_rows == 1
    pooled, center = moments.scatter.sum(axis=0) / moments.n, moments.count @ moments.mean / moments.n
    variance = np.diag(pooled)
    qda = qda_posterior(moments, NIW(center, 0.01, np.diag(variance), 4 + 2), shares)
    (cell,) = np.flatnonzero(weak & (c.delta == 1))
    assert evidence[cell] == pytest.approx(qda.log_evidence, rel=1e-12)
    np.testing.assert_allclose(c.posteriors[cell].log_joint(data.X), qda.log_joint(data.X))
    naive = naive_posterior(moments, NIG(center, 0.01, 1.5, variance / 2), shares)
    (cell,) = np.flatnonzero(weak & np.isnan(c.delta))
    assert evidence[cell] == pytest.approx(naive.log_evidence, rel=1e-12)
    # w → ∞: every class has the pooled covariance, as plug-in LDA, known exactly
    cell = int(np.flatnonzero(c.delta == 0)[-1])
    posterior = c.posteriors[cell]
    for k in range(3):
        np.testing.assert_allclose(posterior.Psi[k] / (posterior.nu[k] - 4 - 1), pooled, rtol=5e-3, atol=5e-3)
    lda = lda_posterior(moments, NIW.default(moments), shares)
    gap = np.abs(
        np.exp(log_class_probabilities(lda.log_joint(data.X)))
        - np.exp(log_class_probabilities(posterior.log_joint(data.X)))
    )
    assert gap.max() < 0.05


def test_charge_makes_up_for_estimating_the_pooled_variance():
    """One feature, LDA: integrate over σ² under a prior worth one row, against the best σ² and the charge."""
    X, y = simulate(*truth("lda", 1, d=1, K=2), 300, 2)
    moments = Moments.from_arrays(X, y, 2)
    c = fit_continuum(moments)
    default = NIW.default(moments)
    pooled = float(moments.scatter.sum() / moments.n)

    def log_evidence(s2):
        """Of LDA with σ² known, in closed form: the means have a normal prior; the shares a uniform one."""
        return qda_posterior(moments, NIW(default.m, default.kappa, [[1e9 * s2]], 1e9)).log_evidence

    best = log_evidence(pooled)
    # log σ² ~ N(log pooled, 2), as the information of one row about log σ² is ½
    integral, _ = integrate.quad(
        lambda t: np.exp(log_evidence(pooled * np.exp(t)) - best) * stats.norm.pdf(t, 0, np.sqrt(2)), -1, 1
    )
    charge = charge_of(moments, c)[-1]
    assert -np.log(integral) == pytest.approx(charge, abs=0.05)


def test_average_is_the_weighted_sum_of_the_cells():
    data = load_example("iris")
    c = fit_continuum(Moments.from_arrays(data.X, data.y, 3))
    assert c.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.log(c.weight[c.best] / c.weight), c.log_evidence[c.best] - c.log_evidence, atol=1e-6)
    brute = sum(w * np.exp(p.log_joint(data.X)) for w, p in zip(c.weight, c.posteriors, strict=True))
    np.testing.assert_allclose(c.log_joint(data.X), np.log(brute), rtol=1e-6, atol=1e-6)


# ── where data are found ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_data_end_up_in_the_corner_that_they_come_from(kind, seed):
    X, y = simulate(*truth(kind, seed), 400, seed + 100)
    c = fit_continuum(Moments.from_arrays(X, y, 3))
    assert (c.toward_lda > 0.6) if kind in ("lda", "diagonal") else (c.toward_lda < 0.15)
    assert (c.toward_naive > 0.6) if kind in ("naive", "diagonal") else (c.toward_naive < 0.15)
    assert f"{c.toward_lda:.2f} of the way from QDA to LDA" in c.sentence


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_near_the_best_corner(kind):
    """Mean log score over worlds, small samples: above the worst corner, and near the best one."""
    scores = []
    for seed in range(5):
        mu, Sigma = truth(kind, seed)
        (X, y), (X_new, y_new) = simulate(mu, Sigma, 100, seed + 100), simulate(mu, Sigma, 1500, seed + 200)
        moments = Moments.from_arrays(X, y, 3)
        models = (
            fit_continuum(moments),
            lda_posterior(moments, NIW.default(moments)),
            qda_posterior(moments, NIW.default(moments)),
            naive_posterior(moments, NIG.default(moments)),
        )
        rows = np.arange(len(y_new))
        scores.append([log_class_probabilities(model.log_joint(X_new))[rows, y_new].mean() for model in models])
    ours, *corners = np.mean(scores, axis=0)
    assert ours > min(corners) + 0.02
    assert ours > max(corners) - 0.02


@pytest.mark.parametrize("name", ["iris", "pima"])
def test_real_data_are_better_predicted_than_by_the_worst_corner(name):
    data = load_example(name)
    train, test = data.split(0.4, random_seed=0)
    moments = Moments.from_arrays(train.X, train.y, data.K)
    c = fit_continuum(moments)
    corners = (
        lda_posterior(moments, NIW.default(moments)),
        qda_posterior(moments, NIW.default(moments)),
        naive_posterior(moments, NIG.default(moments)),
    )
    score, *others = (
        log_class_probabilities(model.log_joint(test.X))[np.arange(test.n), test.y].mean() for model in (c, *corners)
    )
    assert score > min(others)
    # their classes differ in covariance and their features go together: QDA's evidence beats the other two by far
    assert c.toward_lda < 0.3
    assert c.toward_naive < 0.3


# ── borders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_feature_has_no_way_to_naive():
    X, y = simulate(*truth("qda", 0, d=1), 300, 1)
    c = fit_continuum(Moments.from_arrays(X, y, 3))
    assert c.toward_naive == 0
    assert not np.isnan(c.delta).any()


def test_singular_pooled_covariance_leaves_its_cells_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 12)), np.repeat([0, 1], 5)
    c = fit_continuum(Moments.from_arrays(X, y, 2))
    assert not (c.delta == 0).any()
    assert np.isfinite(c.log_joint(X)).all()


def test_an_empty_class_is_taken_from_the_prior():
    """Each cell predicts it by its prior: a Student-t about the grand mean, of the target's scale, times 1/(n + 3)."""
    X, y = simulate(*truth("lda", 0, K=2), 60, 1)
    d, kappa, moments = 4, 0.01, Moments.from_arrays(X, y, 3)
    c = fit_continuum(moments)
    S, center = moments.scatter.sum(axis=0) / 60, X.mean(axis=0)
    log_share = np.log(1 / 63)  # uniform shares: one of 60 + 3
    cells = []
    for w, delta in zip(c.prior_rows, c.delta, strict=True):
        if np.isnan(delta):
            # σ²_j ~ IG((w + 2)/2, w S_jj/2): a t of w + 2 degrees of freedom for each feature
            scale = np.sqrt(w * np.diag(S) / (w + 2) * (1 + 1 / kappa))
            cells.append(stats.t.logpdf(X, w + 2, center, scale).sum(axis=1))
        else:
            # Σ ~ IW(wT, w + d + 1): a t of w + 2 degrees of freedom
            T = (1 - delta) * S + delta * np.diag(np.diag(S))
            cells.append(stats.multivariate_t(center, w * T / (w + 2) * (1 + 1 / kappa), w + 2).logpdf(X))
    for posterior, cell in zip(c.posteriors, cells, strict=True):
        np.testing.assert_allclose(posterior.log_joint(X)[:, 2], cell + log_share, rtol=1e-9)
    expected = logsumexp(np.array(cells) + np.log(c.weight)[:, None], axis=0) + log_share
    np.testing.assert_allclose(c.log_joint(X)[:, 2], expected, rtol=1e-9)
    # All that the other classes feel of it is the share that it takes.
    for posterior, w, delta in zip(c.posteriors, c.prior_rows, c.delta, strict=True):
        if np.isnan(delta):
            prior = NIG(center, kappa, (w + 2) / 2, w * np.diag(S) / 2)
            two = naive_posterior(Moments.from_arrays(X, y, 2), prior)
        else:
            T = (1 - delta) * S + delta * np.diag(np.diag(S))
            two = qda_posterior(Moments.from_arrays(X, y, 2), NIW(center, kappa, w * T, w + d + 1.0))
        np.testing.assert_allclose(posterior.log_joint(X)[:, :2], two.log_joint(X) + np.log(62 / 63), rtol=1e-9)


def test_errors_name_the_cause():
    with pytest.raises(DataError, match="more rows than classes; got 3 rows of 3"):
        fit_continuum(Moments(np.ones(3), np.zeros((3, 2)), np.tile(np.eye(2), (3, 1, 1))))


# ── leave-one-out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leave_one_out_is_that_of_refitting_with_the_targets_kept():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, 3)
    c = fit_continuum(moments, grid=Grid(pooling=(0.1, 0.5, 0.9), diagonal=(0.0, 0.5, 1.0)))
    S = moments.scatter.sum(axis=0) / moments.n
    center, charge = moments.count @ moments.mean / moments.n, charge_of(moments, c)
    for i in (0, 70, 106, 133):
        rest = np.arange(150) != i
        left = Moments.from_arrays(data.X[rest], data.y[rest], 3)
        cells = []
        for w, delta in zip(c.prior_rows, c.delta, strict=True):
            if np.isnan(delta):
                cells.append(naive_posterior(left, NIG(center, 0.01, (w + 2) / 2, w * np.diag(S) / 2)))
            else:
                T = (1 - delta) * S + delta * np.diag(np.diag(S))
                cells.append(qda_posterior(left, NIW(center, 0.01, w * T, w + 5.0)))
        weight = softmax(np.array([cell.log_evidence for cell in cells]) - charge)
        brute = sum(v * np.exp(cell.log_joint(data.X[[i]])) for v, cell in zip(weight, cells, strict=True))
        np.testing.assert_allclose(c.leave_one_out(data.X[[i]], data.y[[i]]), np.log(brute), rtol=1e-7)


def test_targets_hang_little_on_one_row():
    """Refitting all, targets too, moves no probability of iris by more than a hundredth."""
    data = load_example("iris")
    fast = log_class_probabilities(fit_continuum(Moments.from_arrays(data.X, data.y, 3)).leave_one_out(data.X, data.y))
    for i in (70, 77, 83, 106, 133):  # the rows that are hardest to tell
        rest = np.arange(150) != i
        refit = fit_continuum(Moments.from_arrays(data.X[rest], data.y[rest], 3))
        gap = np.exp(fast[i]) - np.exp(log_class_probabilities(refit.log_joint(data.X[[i]])))
        assert np.abs(gap).max() < 0.01


# ── what is said of them, and what is drawn ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lda", "naive", "near"),
    [
        (0.95, 0.95, ": features independent within classes, with one variance for all."),
        (0.5, 0.95, ": features independent within classes."),
        (0.95, 0.05, ": one covariance for all classes."),
        (0.05, 0.05, ": a covariance for each class."),
        (0.5, 0.05, " naive."),
        (0.95, 0.5, " naive."),
        (0.05, 0.5, " naive."),
    ],
)
def test_a_corner_is_named_only_where_the_data_sit_in_it(lda, naive, near):
    data = load_example("iris")
    c = fit_continuum(Moments.from_arrays(data.X, data.y, 3))
    there = replace(c, pooling=np.full(len(c.weight), lda), independence=np.full(len(c.weight), naive))
    assert f"lie {lda:.2f} of the way from QDA to LDA, and {naive:.2f} of the way to naive" in there.sentence
    assert there.sentence.endswith(near)


def test_two_features_have_every_share_of_their_correlation_and_one_has_none():
    X, y = simulate(*truth("qda", 3, d=2), 60, 4)
    c = fit_continuum(Moments.from_arrays(X, y, 3))
    assert sorted({*c.delta[~np.isnan(c.delta)]}) == [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    assert {*fit_continuum(Moments.from_arrays(X[:, :1], y, 3)).delta} == {0.0}


def test_draws_have_the_moments_of_the_average():
    X, y = simulate(*truth("diagonal", 5, d=2), 80, 6)
    c = fit_continuum(Moments.from_arrays(X, y, 3))
    used = [(w, p) for w, p in zip(c.weight, c.posteriors, strict=True) if w > 1e-6]
    assert {type(p).__name__ for _, p in used} == {"NIWPosterior", "NIGPosterior"}
    draws = c.draw(20_000, random_seed=7)
    assert {name: values.shape[1:] for name, values in draws.items()} == {"pi": (3,), "mu": (3, 2), "Sigma": (3, 2, 2)}
    mean = sum(w * p.m for w, p in used)
    np.testing.assert_allclose(draws["mu"].mean(axis=0), mean, atol=5 * draws["mu"].std(axis=0).max() / np.sqrt(20_000))

    def precision(p):  # E[Σ⁻¹] = ν Ψ⁻¹, and a/b where the features are independent
        return (p.a / p.b)[..., None] * np.eye(2) if hasattr(p, "b") else p.nu[:, None, None] * np.linalg.inv(p.Psi)

    inverse = np.linalg.inv(draws["Sigma"])
    error = inverse.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(inverse.mean(axis=0) - sum(w * precision(p) for w, p in used)) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("diagonal", [(0.0, 0.5), (0.5, 1.0), (0.0, 1.0, 1.1), (-0.1, 0.0, 1.0)])
def test_a_grid_has_both_ends_and_nothing_beyond(diagonal):
    with pytest.raises(PriorError, match="both ends among them"):
        Grid(diagonal=diagonal)
