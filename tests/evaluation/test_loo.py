"""Leave-one-out against refitting without the row, against ArviZ, and against closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, logsumexp

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.evaluation.loo import (
    Loo,
    both_kinds,
    exact_loo,
    good_k,
    joint_blocks,
    psis_loo,
    psis_loo_discriminative,
    psis_loo_generative,
    take_out,
    told_apart,
)
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW

FITS = {"lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)}


@pytest.fixture(scope="module")
def iris():
    return load_example("iris")


def fitted(data, model):
    fit, prior = FITS[model]
    moments = Moments.from_arrays(data.X, data.y, data.K)
    return fit(moments, prior.default(moments)), lambda rows: fit(
        Moments.from_arrays(data.X[rows], data.y[rows], data.K), prior.default(moments)
    )


def logistic_draws(S=4000, n=60, seed=0):
    """Probabilities of any draws at all: the estimators are formulas of (S, n) numbers, whatever they came from."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = (rng.random(n) < expit(x[:, 0])).astype(int)
    w = rng.normal([1.0, 0.0], 0.3, size=(S, 2))
    a = w @ x.T
    return np.stack([log_expit(-a), log_expit(a)], axis=-1), y


# ── Exact ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", FITS)
def test_exact_is_refitting_without_the_row(iris, model):
    posterior, refit = fitted(iris, model)
    loo = exact_loo(posterior, iris.X, iris.y)
    for i in (0, 57, 149):
        joint = refit(np.delete(np.arange(iris.n), i)).log_joint(iris.X[[i]])[0]
        assert loo.joint.pointwise[i] == pytest.approx(joint[iris.y[i]], abs=1e-8)
        assert loo.conditional.pointwise[i] == pytest.approx(joint[iris.y[i]] - logsumexp(joint), abs=1e-8)
        np.testing.assert_allclose(loo.conditional.log_probabilities[i], joint - logsumexp(joint), atol=1e-8)
    assert loo.joint.kind == "joint"
    assert loo.conditional.kind == "conditional"
    assert loo.conditional.pareto_k is None
    assert loo.conditional.n_bad == 0
    assert "closed form" in loo.conditional.reason


def test_blocks_do_not_change_the_answer(iris, monkeypatch):
    from bayes_gda import linalg

    posterior, _ = fitted(iris, "qda")
    draws = posterior.draw(200, random_seed=0)
    once = exact_loo(posterior, iris.X, iris.y), psis_loo_generative(joint_blocks(draws, iris.X), iris.y)
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 2000)  # three rows of 200 × 3, four draws of 3 × 3 × 4
    twice = exact_loo(posterior, iris.X, iris.y), psis_loo_generative(joint_blocks(draws, iris.X), iris.y)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_allclose(a.joint.pointwise, b.joint.pointwise, rtol=1e-10)
        np.testing.assert_allclose(a.conditional.pointwise, b.conditional.pointwise, atol=1e-10)


def test_exact_refuses_rows_it_was_not_fitted_to(iris):
    posterior, _ = fitted(iris, "qda")
    with pytest.raises(DataError, match="were not among them"):
        exact_loo(posterior, iris.X + 100, iris.y)
    with pytest.raises(DataError, match="one code in 0…2 for each of 150 rows"):
        exact_loo(posterior, iris.X, iris.y[:-1])
    with pytest.raises(DataError, match=r"`X` must be a matrix"):
        exact_loo(posterior, iris.X[0], iris.y)


# ── From draws ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", [(1, 2000), (4, 500)])
def test_psis_equals_arviz(shape):
    import arviz_base
    import arviz_stats

    L = np.random.default_rng(1).normal(-1, 0.4, size=(*shape, 40))
    tree = arviz_base.from_dict({"posterior": {"theta": L[..., 0]}, "log_likelihood": {"y": L}})
    theirs = arviz_stats.loo(tree, pointwise=True, reff=1.0)
    ours = psis_loo(L, kind="conditional")
    np.testing.assert_allclose(ours.pointwise, theirs.elpd_i, atol=1e-9)
    np.testing.assert_allclose(ours.pareto_k, theirs.pareto_k, atol=1e-9)
    assert ours.elpd == pytest.approx(float(theirs.elpd), abs=1e-8)
    assert ours.p_eff == pytest.approx(float(theirs.p), abs=1e-8)
    assert ours.threshold == pytest.approx(theirs.good_k)
    assert ours.se == pytest.approx(float(theirs.se), rel=1e-9)
    flat = psis_loo(L.reshape(-1, 40), kind="conditional")
    np.testing.assert_array_equal(flat.pointwise, ours.pointwise)


def test_psis_of_a_normal_mean_is_its_closed_form():
    """y_i ~ N(θ, 1), θ flat: θ | y₋ᵢ ~ N(ȳ₋ᵢ, 1/(n−1)), so y_i | y₋ᵢ ~ N(ȳ₋ᵢ, 1 + 1/(n−1))."""
    rng = np.random.default_rng(2)
    n, S = 50, 20000
    y = rng.normal(size=n)
    theta = rng.normal(y.mean(), 1 / np.sqrt(n), size=S)
    ours = psis_loo(stats.norm.logpdf(y, theta[:, None], 1), kind="joint")
    others = (y.sum() - y) / (n - 1)
    np.testing.assert_allclose(ours.pointwise, stats.norm.logpdf(y, others, np.sqrt(1 + 1 / (n - 1))), atol=0.005)
    assert ours.p_eff == pytest.approx(1, abs=0.3)  # one parameter
    assert "reliable" in ours.reason
    assert ours.next_step == "Use it as it is."


@pytest.mark.parametrize("model", FITS)
def test_draws_agree_with_the_exact_answer(iris, model):
    posterior, _ = fitted(iris, model)
    exact = exact_loo(posterior, iris.X, iris.y)
    draws = posterior.draw(4000, random_seed=3)
    ours = psis_loo_generative(joint_blocks(draws, iris.X), iris.y)
    for a, b in ((ours.joint, exact.joint), (ours.conditional, exact.conditional)):
        good = a.pareto_k < 0.5
        assert good.mean() > 0.9
        np.testing.assert_allclose(a.pointwise[good], b.pointwise[good], atol=0.1)
        assert a.elpd == pytest.approx(b.elpd, abs=1.0)
        assert a.p_eff == pytest.approx(b.p_eff, abs=1.0)
    np.testing.assert_allclose(
        np.exp(ours.conditional.log_probabilities), np.exp(exact.conditional.log_probabilities), atol=0.05
    )


@pytest.fixture(scope="module")
def few():
    """24 rows, so few that the wrong averages show; exact leave-one-out, and joint densities of draws."""
    data = load_example("synth").split(24, random_seed=0)[1]
    posterior, _ = fitted(data, "qda")
    L = log_joint_per_draw(posterior.draw(20000, random_seed=4), data.X)
    return data.y, exact_loo(posterior, data.X, data.y).conditional.pointwise, L


def test_the_conditional_averages_densities_not_probabilities(few):
    """Σ_s w_s p(y | x, θ_s) under the same weights ignores what x says about θ: another number."""
    y, exact, L = few
    ours = psis_loo_generative(L, y).conditional.pointwise
    own = np.take_along_axis(L, y[None, :, None], axis=2)[..., 0]
    given_x = np.take_along_axis(log_class_probabilities(L), y[None, :, None], axis=2)[..., 0]
    weights = np.array([smooth(-column)[0] for column in own.T]).T
    wrong = logsumexp(weights + given_x, axis=0)
    assert np.abs(ours - exact).max() < 0.05
    assert np.abs(wrong - exact).sum() > 3 * np.abs(ours - exact).sum()


def test_the_conditional_is_the_harmonic_mean_of_conditionals(few):
    """1/E[1/p(y_i | x_i, θ)] over the posterior of all rows is p(x_i, y_i | D₋ᵢ)/p(x_i | D₋ᵢ): another way there."""
    y, _, L = few
    given_x = np.take_along_axis(log_class_probabilities(L), y[None, :, None], axis=2)[..., 0]
    harmonic = np.log(len(L)) - logsumexp(-given_x, axis=0)
    ours = psis_loo_generative(L, y).conditional.pointwise
    assert np.median(np.abs(ours - harmonic)) < 1e-3
    assert np.abs(ours - harmonic).max() < 0.1  # unsmoothed ratios have a heavy tail


def test_the_joint_is_psis_of_the_own_class(iris):
    posterior, _ = fitted(iris, "naive")
    L = log_joint_per_draw(posterior.draw(500, random_seed=5), iris.X)
    own = np.take_along_axis(L, iris.y[None, :, None], axis=2)[..., 0]
    ours, plain = psis_loo_generative(L, iris.y).joint, psis_loo(own, kind="joint")
    np.testing.assert_allclose(ours.pointwise, plain.pointwise, atol=1e-12)
    np.testing.assert_allclose(ours.pareto_k, plain.pareto_k, atol=1e-12)


def test_a_regression_gives_probabilities_too():
    log_P, y = logistic_draws()
    ours = psis_loo_discriminative(log_P, y)
    own = np.take_along_axis(log_P, y[None, :, None], axis=2)[..., 0]
    plain = psis_loo(own, kind="conditional")
    np.testing.assert_allclose(ours.pointwise, plain.pointwise, atol=1e-12)
    assert ours.p_eff == pytest.approx(plain.p_eff)
    np.testing.assert_allclose(np.exp(ours.log_probabilities).sum(axis=1), 1)
    np.testing.assert_array_equal(ours.log_probabilities[np.arange(len(y)), y], ours.pointwise)
    chains = psis_loo_discriminative(log_P.reshape(4, 1000, *log_P.shape[1:]), y)
    np.testing.assert_array_equal(chains.pointwise, ours.pointwise)


def test_blocks_of_joint_densities_are_those_of_all_rows(iris):
    posterior, _ = fitted(iris, "lda")
    draws = posterior.draw(30, random_seed=0)
    rows = slice(20, 90)
    whole = log_joint_per_draw(draws, iris.X)
    np.testing.assert_allclose(joint_blocks(draws, iris.X)(rows), whole[:, rows], rtol=1e-12)


def test_bad_rows_are_named():
    L = np.random.default_rng(6).normal(size=(1000, 20)) * 0.1
    L[:, 7] = -1.5 * np.random.default_rng(7).exponential(size=1000)  # ratios with the tail index 1.5
    ours = psis_loo(L, kind="conditional")
    np.testing.assert_array_equal(ours.bad, [7])
    assert ours.n_bad == 1
    assert ours.pareto_k[7] > 1
    assert "1 of 20 rows" in ours.reason
    assert "row 7" in ours.reason
    assert "exact_loo" in ours.next_step
    assert good_k(100) == pytest.approx(0.5)
    assert good_k(10**6) == 0.7


def test_one_line_errors():
    log_P, y = logistic_draws(S=50)
    with pytest.raises(DataError, match="`kind` must be 'joint' or 'conditional'; got 'both'"):
        psis_loo(log_P[..., 0], kind="both")
    with pytest.raises(
        DataError, match=r"`log_likelihood` must be \(S, n\) or \(chains, draws, n\); got shape \(50,\)"
    ):
        psis_loo(log_P[:, 0, 0], kind="joint")
    with pytest.raises(DataError, match="at least 25 draws; got 10"):
        psis_loo(log_P[:10, :, 0], kind="joint")
    with pytest.raises(DataError, match="sum to one over the classes; got a sum of 2"):
        psis_loo_discriminative(log_P + np.log(2), y)
    with pytest.raises(DataError, match="must have the 59 rows of `y`; got 60"):
        psis_loo_generative(log_P, y[:-1])
    with pytest.raises(DataError, match="`y` must hold codes in 0…1, one for each class of `log_joint`; got 2"):
        psis_loo_generative(log_P, y + 1)
    with pytest.raises(DataError, match=r"must be \(n,\) class codes"):
        psis_loo_generative(log_P, y.astype(float))
    broken = log_P.copy()
    broken[3, 4] = np.nan
    with pytest.raises(DataError, match="must not be nan or inf; got it in draw 3, row 4"):
        psis_loo_generative(broken, y)
    broken[3, 4] = -np.inf
    with pytest.raises(DataError, match="finite for a row's own class; got -inf in row 4"):
        psis_loo_generative(broken, y)
    with pytest.raises(DataError, match=r"must give \(S, 1, K\)"):
        psis_loo_generative(lambda rows: log_P, y)


def test_an_estimate_that_its_tail_makes_void_does_not_decide_whether_it_matters():
    """Ratios 1 + 1e-6 t with t Pareto(1) hardly vary in the draws: a heavier tail may be where none of them came."""
    t = np.random.default_rng(3).pareto(1.0, size=4000)
    sure, unsure = -np.log1p(1e-6 * t), -np.log1p(t)
    loo = psis_loo(np.stack([sure, unsure], axis=1), kind="conditional")
    assert (loo.pareto_k > loo.threshold).all()
    assert sorted(loo.bad) == [0, 1]
    assert "unreliable for 2 of 2 rows" in loo.reason


def test_refitted_rows_are_counted_and_no_longer_bad():
    k = np.array([0.1, 0.9, 1.2, 0.8])
    loo = Loo("conditional", np.full(4, -0.5), np.full(4, -0.4), k, 0.7, refitted=np.array([2, 1]))
    assert (loo.n_refitted, loo.bad.tolist()) == (2, [3])
    assert "unreliable for 1 of 4 rows, for which k̂ is not below 0.70: row 3 0.80." in loo.reason
    assert "refitted without each of 2 rows, because k̂ is not below 0.70 for 2 of them" in loo.reason
    whole = Loo("conditional", np.full(4, -0.5), np.full(4, -0.4), k, 0.7, refitted=np.array([2, 1, 3]))
    assert whole.n_bad == 0
    assert whole.reason.startswith("Leave-one-out of the 4 rows is reliable: the model was refitted without each of 3")
    assert whole.next_step == "Use it as it is."


@pytest.mark.parametrize(
    ("difference", "se", "apart"),
    [
        (3.9, 0.1, False),
        (4.1, 0.1, True),
        (10.0, 5.1, False),
        (10.0, 4.9, True),
        (np.inf, np.nan, True),
        (-9.0, 1.0, False),
    ],
)
def test_models_are_told_apart_by_4_in_elpd_and_two_standard_errors(difference, se, apart):
    """Sivula et al. (2020): below 4 the normal approximation of the difference does not hold, whatever its error."""
    assert told_apart(difference, se) is apart


def test_probabilities_may_miss_one_by_rounding_only():
    P, y = np.full((400, 3, 2), 0.5), np.array([0, 1, 0])
    assert psis_loo_discriminative(np.log(P * (1 + 1e-8)), y).elpd == pytest.approx(3 * np.log(0.5))
    with pytest.raises(DataError, match=r"must sum to one over the classes; got a sum of 1\.00001"):
        psis_loo_discriminative(np.log(P * (1 + 1e-5)), y)


def test_the_standard_error_of_two_rows_is_their_distance_and_of_one_unknown():
    """√2 sd of a and b, with sd = |a − b|/√2."""
    assert Loo("joint", [-1.0, -3.0], [-1.0, -3.0]).se == pytest.approx(2.0)
    assert np.isnan(Loo("joint", [-1.0], [-1.0]).se)


@pytest.mark.parametrize(
    ("pointwise", "fitted"), [([[1.0, 2.0]], [[1.0, 2.0]]), ([], []), ([1.0, 2.0], [1.0]), ([1.0], [[1.0]])]
)
def test_there_is_one_entry_a_row(pointwise, fitted):
    with pytest.raises(DataError, match="one entry a row"):
        Loo("joint", np.array(pointwise), np.array(fitted))


def test_the_worst_rows_come_first_but_for_those_that_were_refitted():
    loo = Loo("joint", np.zeros(6), np.zeros(6), np.array([0.2, 0.8, np.inf, 0.9, 0.7, 1.2]), 0.7)
    np.testing.assert_array_equal(loo.bad, [2, 5, 3, 1, 4])
    assert (loo.n_bad, loo.n_refitted) == (5, 0)
    assert "row 2 inf, row 5 1.20, row 3 0.90 and 2 more" in loo.reason
    again = Loo("joint", np.zeros(6), np.zeros(6), loo.pareto_k, 0.7, refitted=np.array([2, 3]))
    np.testing.assert_array_equal(again.bad, [5, 1, 4])
    assert (again.n_bad, again.n_refitted) == (3, 2)
    for part in ({"pareto_k": loo.pareto_k}, {"threshold": 0.7}):
        assert Loo("joint", np.zeros(6), np.zeros(6), **part).n_bad == 0
        assert "closed form" in Loo("joint", np.zeros(6), np.zeros(6), **part).reason


def test_rows_that_were_refitted_are_known_to_both_kinds():
    log_P, y = logistic_draws(S=50)
    both = both_kinds(log_P[0], log_P[1], y, None, None, np.array([3]))
    assert both.joint.n_refitted == both.conditional.n_refitted == 1
    assert both_kinds(log_P[0], log_P[1], y, None, None).joint.n_refitted == 0


def test_weights_of_draws_need_not_be_normalised_and_count_as_copies():
    log_P, y = logistic_draws(S=40)
    twice = np.concatenate([log_P, log_P[:10]])
    weights = np.log(np.where(np.arange(40) < 10, 2.0, 1.0)) + 5
    _, full, *_ = take_out(lambda rows: log_P[:, rows], y, "L", weights)
    np.testing.assert_allclose(full, logsumexp(twice, axis=0) - np.log(50), atol=1e-12)


def test_one_wrong_row_is_enough_for_an_error(iris):
    log_P, y = logistic_draws(S=50)
    log_P[3, 4] += np.log(2)
    with pytest.raises(DataError, match="sum to one over the classes; got a sum of 2"):
        psis_loo_discriminative(log_P, y)
    posterior, _ = fitted(iris, "qda")
    with pytest.raises(DataError, match="one code in 0…2 for each of 150 rows; got 150 up to 3"):
        exact_loo(posterior, iris.X, np.where(np.arange(150) == 9, 3, iris.y))
    with pytest.raises(DataError, match=r"must be \(S, n, K\), \(chains, draws, n, K\) or a function; got shape"):
        psis_loo_generative(log_P[0], y)
