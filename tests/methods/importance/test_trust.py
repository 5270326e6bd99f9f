"""The verdict, and what stands behind it: smoothed weights, proposals, corrected posteriors and evidence."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from judge import assert_same_mean
from scipy import integrate, stats
from scipy.special import logsumexp
from targets import cushings, one_dimensional

from bayes_gda.data.examples import load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.drawn import DrawPredictor
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.importance import proposal as proposals
from bayes_gda.methods.importance import psis, trust
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import fit_pareto, smooth
from bayes_gda.methods.importance.trust import assess, correct, decide_verdict
from bayes_gda.methods.laplace import FunctionTarget, GaussianPosterior, NewtonInfo, laplace_approximation
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.methods.verdict import Importance, PredictionShift
from bayes_gda.priors import Normal


def judge(target, *, predictor=True, **options):
    posterior = regression_laplace(target)
    rows = None
    if predictor:
        rows = (
            BinaryPredictor(target.Phi)
            if isinstance(target, LogisticTarget)
            else SoftmaxPredictor(target.Phi, target.K, target.reference)
        )
    return assess(target, posterior, mean=lindley_mean(posterior, target), predictor=rows, **options), posterior


def breast_cancer(scale):
    data = load_example("breast-cancer")
    return LogisticTarget(FeatureMap.fit(data.X)(data.X), data.y, Normal(scale=scale))


def pima_raw():
    """532 rows, raw features, N(0, 10 I) on all weights."""
    data = load_example("pima")
    return LogisticTarget(np.column_stack([np.ones(data.n), data.X]), data.y, Normal(scale=np.sqrt(10)))


# ── Pareto smoothing ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("df", [2, 3, 8, 100])
@pytest.mark.parametrize("S", [100, 1000, 4001])
def test_smoothing_equals_arviz(df, S):
    from arviz_stats.base import array_stats

    ratios = np.random.default_rng(df).standard_t(df, S)
    expected, k = array_stats.psislw(-ratios)  # ArviZ negates its input
    log_weights, ours, ess = smooth(ratios)
    assert ours == pytest.approx(float(k), rel=1e-9)
    np.testing.assert_allclose(log_weights, expected - logsumexp(expected), atol=1e-9)
    assert ess == pytest.approx(1 / np.sum(np.exp(2 * log_weights)) / S)


@pytest.mark.parametrize("k", [0.1, 0.5, 0.9])
def test_the_pareto_fit_recovers_its_shape(k):
    x = np.sort(stats.genpareto(k).rvs(20_000, random_state=0))
    shape, scale = fit_pareto(x)
    assert shape == pytest.approx(k, abs=0.03)
    assert scale == pytest.approx(1, abs=0.05)


def test_degenerate_ratios():
    log_weights, k, ess = smooth(np.full(1000, 3.0))
    assert (k, ess) == (0.0, pytest.approx(1.0))
    np.testing.assert_allclose(log_weights, -np.log(1000))
    some = np.random.default_rng(0).normal(size=1000)
    some[:300] = -np.inf
    some[300] = np.nan
    log_weights, _, _ = smooth(some)
    assert np.isneginf(log_weights[:301]).all()
    assert logsumexp(log_weights) == pytest.approx(0)
    assert smooth(np.random.default_rng(1).standard_cauchy(4001))[1] == np.inf  # one ratio outweighs all others
    with pytest.raises(ConvergenceError, match="zero at every draw"):
        smooth(np.full(10, -np.inf))


def test_a_shape_of_zero_is_the_limit_of_small_ones(monkeypatch):
    """The tail is then exponential: quantiles −σ log(1 − p)."""
    ratios = np.random.default_rng(0).normal(size=1000)
    monkeypatch.setattr(psis, "fit_pareto", lambda x: (0.0, 0.7))
    at_zero = smooth(ratios)[0]
    monkeypatch.setattr(psis, "fit_pareto", lambda x: (1e-8, 0.7))
    np.testing.assert_allclose(at_zero, smooth(ratios)[0], atol=1e-6)


# ── proposals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("skew", [-0.5, 0.0, 0.4])
def test_split_t_is_normalised_and_has_the_mean_it_says(skew):
    proposal = SplitT(np.array([2.0]), np.array([[0.7]]), np.array([skew]))
    density = lambda w: float(np.exp(proposal.log_density(np.array([[w]])))[0])  # noqa: E731
    # The t's tail beyond 30 scales holds less than 1e-15.
    pieces = [integrate.quad(density, a, b, limit=200)[0] for a, b in [(-25, 1), (1, 2), (2, 3), (3, 30)]]
    assert sum(pieces) == pytest.approx(1, abs=1e-8)


def test_split_t_draws_come_with_their_density_and_can_be_refitted():
    rng = np.random.default_rng(0)
    root = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [-0.3, 0.1, 0.4]])
    proposal = SplitT(np.array([1.0, -2.0, 0.0]), root, np.array([0.5, 0.0, -0.4]))
    w, log_q = proposal.draw(200_000, rng)
    np.testing.assert_allclose(log_q[:50], proposal.log_density(w[:50]), rtol=1e-9)
    again = SplitT.from_weighted(w, np.full(len(w), 1 / len(w)))
    np.testing.assert_allclose(again.location, w.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again.root @ again.root.T, np.cov(w.T, ddof=0), rtol=1e-8, atol=1e-9)
    assert again.skew[0] > 0.3
    assert abs(again.skew[1]) < 0.1
    assert again.skew[2] < -0.2


@pytest.mark.parametrize("skew", [-0.5, 0.3])
def test_without_heavy_tails_location_and_root_are_mean_and_sd(skew, monkeypatch):
    monkeypatch.setattr(proposals, "DEGREES", 1e6)
    proposal = SplitT(np.array([2.0]), np.array([[0.7]]), np.array([skew]))
    x = np.linspace(-8, 12, 200_001)
    p = np.exp(proposal.log_density(x[:, None]))
    assert np.trapezoid(p, x) == pytest.approx(1, abs=1e-4)
    assert np.trapezoid(p * x, x) == pytest.approx(2, abs=1e-4)
    assert np.trapezoid(p * (x - 2) ** 2, x) == pytest.approx(0.49, abs=1e-4)


def test_the_tail_is_heavy_enough_for_a_logistic_posterior():
    """Far out such a posterior falls like exp(−a|w|): at 15 sd its ratio to a Gaussian is e⁹²; ours is bounded."""
    x = np.linspace(-60, 60, 1201)
    proposal = SplitT(np.zeros(1), np.eye(1), np.zeros(1))
    ratio = stats.laplace(scale=np.sqrt(0.5)).logpdf(x) - proposal.log_density(x[:, None])
    assert ratio.max() < 6
    assert ratio[0] < 0


def test_a_skewness_is_followed_as_far_as_it_is_known():
    """A fit to 2000 normal draws does not follow their chance skewness, of sd √(6/2000); one to skewed draws does."""
    rng = np.random.default_rng(0)
    equal = np.full(2000, 1 / 2000)
    chance = [SplitT.from_weighted(rng.normal(size=(2000, 1)), equal).skew[0] for _ in range(50)]
    assert np.std(chance) < 0.4 * np.sqrt(6 / 2000) / 1.6
    truth = SplitT(np.zeros(1), np.eye(1), np.array([0.4]))
    fits = [SplitT.from_weighted(truth.draw(2000, rng)[0], equal).skew[0] for _ in range(50)]
    assert np.mean(fits) == pytest.approx(0.4, abs=0.1)


def test_no_skewness_of_draws_makes_a_side_of_the_proposal_vanish():
    w = np.random.default_rng(0).lognormal(size=(4000, 1), sigma=1.5)
    for sign in (1, -1):
        proposal = SplitT.from_weighted(sign * w, np.full(4000, 1 / 4000))
        assert 0.3 < sign * proposal.skew[0] < 0.9
        assert np.isfinite(proposal.log_density(np.array([[-5.0], [5.0]]))).all()


# ── the verdict ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_gaussian_target_is_trusted_with_perfect_figures():
    target = FunctionTarget(2, lambda w: float(-0.5 * w @ w), lambda w: -w, lambda w: np.eye(2))
    result = assess(target, laplace_approximation(target), draws=1000)
    assert result.verdict == "trusted"
    assert result.ess_fraction == pytest.approx(1)
    assert result.pareto_k == 0
    assert np.abs(result.importance.mean_shift).max() < 0.1
    assert result.log_evidence == pytest.approx(np.log(2 * np.pi), abs=4 * result.log_evidence_error)


def test_pima_is_easy_and_its_raw_figures_are_the_published_ones():
    """Raw Laplace at S = 20 000: k̂ ≈ .24, ESS/S ≈ .92."""
    target = pima_raw()
    posterior = regression_laplace(target)
    w = posterior.draw(20_000, random_seed=0)
    _, k, ess = smooth(target.log_density(w) - posterior.log_density(w))
    assert k == pytest.approx(0.24, abs=0.1)
    assert ess == pytest.approx(0.92, abs=0.01)
    result, _ = judge(target)
    assert result.verdict == "trusted"
    assert "no decision flips" in result.reason
    assert str(result) == f"trusted: {result.reason} Use it as it is."
    assert result.importance.corrected_ess_fraction * len(result.importance.draws) >= 3000


def test_breast_cancer_needs_the_correction_and_gets_it():
    """With N(0, 1) weights a few per cent of raw draws count; the fitted proposal brings more than 30 %."""
    target = breast_cancer(1.0)
    posterior = regression_laplace(target)
    w = posterior.draw(20_000, random_seed=0)
    _, _, raw = smooth(target.log_density(w) - posterior.log_density(w))
    assert raw < 0.08
    result, _ = judge(target)
    assert result.verdict == "corrected"
    assert result.importance.corrected_ess_fraction > 0.30
    assert result.importance.corrected_k < result.importance.threshold
    assert result.shift is not None
    assert result.shift.largest > 0.05
    assert result.shift.posterior_largest > 5 * result.shift.link_largest  # it is the Gaussian, not the probit link


def test_the_verdict_turns_to_mcmc_when_nothing_fits():
    """Two far modes: every draw sits at one, and the ratios have no finite variance in between."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(12, 12))

    def log_density(w):
        return float(-np.sum(np.abs(directions @ w) ** 0.5))  # a star with spikes: nothing like a Gaussian

    target = FunctionTarget(12, log_density)
    fake = laplace_approximation(FunctionTarget(12, lambda w: float(-0.5 * w @ w), lambda w: -w, lambda w: np.eye(12)))
    result = assess(target, fake, draws=1000)
    assert result.verdict == "needs-mcmc"
    assert "inference='mcmc'" in result.next_step


def test_the_same_seed_gives_the_same_verdict_and_figures():
    a, b = judge(cushings())[0], judge(cushings())[0]
    assert a.reason == b.reason
    np.testing.assert_array_equal(a.importance.draws, b.importance.draws)


# ── the corrected posterior ───────────────────────────────────────────────────────────────────────────────────────────


def test_corrected_mean_sd_and_evidence_equal_quadrature():
    target = one_dimensional(20)
    result, posterior = judge(target, draws=8000)
    grid = np.linspace(posterior.mean[0] - 10 * posterior.sd[0], posterior.mean[0] + 20 * posterior.sd[0], 20_001)
    log_p = target.log_density(grid[:, None])
    Z = np.trapezoid(np.exp(log_p - log_p.max()), grid)
    p = np.exp(log_p - log_p.max()) / Z
    mean = np.trapezoid(p * grid, grid)
    sd = np.sqrt(np.trapezoid(p * (grid - mean) ** 2, grid))
    effective = result.importance.corrected_ess_fraction * len(result.importance.draws)
    assert abs(result.importance.mean[0] - mean) < 4 * sd / np.sqrt(effective)
    assert np.sqrt(result.importance.covariance[0, 0]) == pytest.approx(sd, rel=4 / np.sqrt(effective))
    assert abs(result.log_evidence - (np.log(Z) + log_p.max())) < 4 * result.log_evidence_error
    assert result.importance.mean_shift[0] == pytest.approx((mean - posterior.mean[0]) / sd, abs=0.1)
    # Resampled draws are equally weighted and keep the mean.
    assert_same_mean(result.importance.draw(4000, random_seed=0), result.importance.mean, ess=effective / 2)


def test_the_error_of_the_evidence_is_the_one_stated():
    """Over seeds the corrected evidence scatters as its error says, without bias: against a run of 50 × the draws."""
    rng = np.random.default_rng(0)
    Phi = np.column_stack([np.ones(20), rng.normal(size=(20, 9))])
    target = LogisticTarget(Phi, rng.integers(0, 2, 20), Normal.default(10))
    posterior = regression_laplace(target)
    mean = lindley_mean(posterior, target)
    truth = assess(target, posterior, mean=mean, draws=100_000, random_seed=99)
    z = []
    for seed in range(20):
        one = assess(target, posterior, mean=mean, draws=2000, random_seed=seed)
        z.append((one.log_evidence - truth.log_evidence) / np.hypot(one.log_evidence_error, truth.log_evidence_error))
    assert abs(np.mean(z)) < 3 / np.sqrt(20)
    assert 0.5 < np.std(z) < 1.7


def test_softmax_is_judged_as_well_and_two_classes_agree_with_logistic():
    data = load_example("pima")
    Phi = FeatureMap.fit(data.X)(data.X)[:150]
    soft, _ = judge(SoftmaxTarget(Phi, data.y[:150], 2, Normal(scale=1.5), reference=True))
    hard, _ = judge(LogisticTarget(Phi, 1 - data.y[:150], Normal(scale=1.5)))
    assert soft.verdict == hard.verdict
    assert soft.log_evidence == pytest.approx(hard.log_evidence, abs=0.05)
    assert soft.shift is not None
    assert hard.shift is not None
    assert soft.shift.largest == pytest.approx(hard.shift.largest, abs=0.01)


def test_predictors_of_draws_and_of_their_gaussian_agree():
    """A million draws of the Laplace Gaussian itself have the reference link's probabilities."""
    data = load_example("iris")
    Phi = FeatureMap.fit(data.X)(data.X)
    target = SoftmaxTarget(Phi, data.y, 3, Normal.default(5))
    posterior = regression_laplace(target)
    rows = SoftmaxPredictor(Phi[::15], 3)
    draws = posterior.draw(50_000, random_seed=0)
    mean, error = rows.averaged(draws, np.full(50_000, 1 / 50_000))
    reference = rows.gaussian(posterior, "exact")
    assert (np.abs(mean - reference) < 5 * error + 2e-3).all()  # 512 Sobol points
    np.testing.assert_allclose(reference.sum(axis=1), 1)
    np.testing.assert_allclose(rows.gaussian(posterior, "probit").sum(axis=1), 1)
    binary = LogisticTarget(Phi, (data.y == 1).astype(int), Normal.default(5))
    gaussian = regression_laplace(binary)
    two = BinaryPredictor(Phi[::15])
    mean, error = two.averaged(gaussian.draw(50_000, random_seed=0), np.full(50_000, 1 / 50_000))
    assert (np.abs(mean - two.gaussian(gaussian, "exact")) < 5 * error + 1e-8).all()


@pytest.mark.parametrize("slope", [10, 1e3, 1e7])
def test_all_weight_on_one_draw_needs_mcmc_and_no_warning(slope):
    """A density that grows without bound: its ratios differ by more than a float holds."""

    class Growing:
        def log_density(self, w):
            return slope * w[:, 0] ** 3

    trust = assess(Growing(), GaussianPosterior(np.zeros(2), np.eye(2), 0.0, NewtonInfo(True, 1, 0.0)))
    assert trust.verdict == "needs-mcmc"
    assert np.isfinite(trust.importance.mean_shift).all()
    assert np.isfinite(trust.importance.sd_ratio).all()


# ── The rules, each by what its number means ────────────────────────────────────────────────────────────────────────


def evidence(*, k=0.2, ess=0.9, corrected_k=0.2, effective=4000, largest=None, error=0.0, shift=0.0, ratio=1.0):
    """Figures of an easy posterior, but for those that are given."""
    compared = None if largest is None else PredictionShift(largest, 0, 0, 0, 0, 0, 0, error, error, 0.02, 10)
    S = 8000
    # The worst of three weights counts.
    shifts, ratios = np.array([0.0, shift, 0.0]), np.array([1.0, ratio, 1.0])
    return Importance(
        k, ess, 0.7, corrected_k, effective / S, 0, 0, shifts, ratios, compared, np.zeros((S, 3)), np.ones(1)
    )


@pytest.mark.parametrize(
    ("variation", "word"), [(0.06, "trusted"), (0.069, "trusted"), (0.073, "corrected"), (0.3, "corrected")]
)
def test_a_heavy_tail_of_ratios_that_vary_by_less_than_7_percent_is_no_alarm(variation, word):
    """ESS/S = 1/(1 + cv²) for ratios of coefficient of variation cv."""
    found = decide_verdict(evidence(k=0.9, ess=1 / (1 + variation**2), largest=0.001), 0.02)
    assert found[0] == word
    # The same for the proposal behind the corrected draws.
    found = decide_verdict(evidence(corrected_k=0.9, ess=1 / (1 + variation**2), largest=0.001), 0.02)
    assert (found[0] == "needs-mcmc") == (word == "corrected")


@pytest.mark.parametrize(("sd_error", "word"), [(0.049, "trusted"), (0.051, "needs-mcmc")])
def test_means_must_be_known_to_5_percent_of_a_posterior_sd(sd_error, word):
    """The mean of E effective draws has a standard error of 1/√E standard deviations."""
    assert decide_verdict(evidence(effective=1 / sd_error**2, largest=0.001), 0.02)[0] == word


@pytest.mark.parametrize(("largest", "error", "word"), [(0.0155, 0.002, "trusted"), (0.0165, 0.002, "corrected")])
def test_a_change_is_within_the_tolerance_only_with_two_standard_errors(largest, error, word):
    assert decide_verdict(evidence(largest=largest, error=error), 0.02)[0] == word
    assert decide_verdict(evidence(largest=largest, error=0.0), 0.02)[0] == "trusted"


@pytest.mark.parametrize(
    ("figures", "word"),
    [
        ({"ess": 0.51}, "trusted"),
        ({"ess": 0.49}, "corrected"),
        ({"shift": 0.099}, "trusted"),
        ({"shift": -0.101}, "corrected"),
        ({"ratio": np.exp(0.099)}, "trusted"),
        ({"ratio": np.exp(-0.101)}, "corrected"),
    ],
)
def test_without_rows_half_of_the_draws_must_be_effective_and_moments_within_a_tenth(figures, word):
    assert decide_verdict(evidence(**figures), 0.02)[0] == word


@pytest.mark.parametrize(
    ("figures", "fault"),
    [
        ({"largest": 0.0165, "error": 0.002}, "may be inaccurate, as its error with two Monte Carlo standard errors"),
        ({"largest": 0.021, "error": 0.002}, "is inaccurate"),
        ({"largest": 0.001, "k": 0.9}, "is not reliable by its own importance weights (k̂ = 0.90"),
        ({"ess": 0.49}, "may be inaccurate, as only 49 % of its importance-weighted draws are effective"),
        ({"shift": 0.101}, "is inaccurate"),
    ],
)
def test_an_approximation_is_called_inaccurate_only_where_its_measured_error_says_so(figures, fault):
    word, reason, _ = decide_verdict(evidence(**{"ess": 0.8} | figures), 0.02)
    assert word == "corrected"
    assert reason.startswith(f"The fast approximation {fault}")


def test_draws_of_all_rounds_are_weighed_against_the_mixture_of_their_proposals(monkeypatch):
    """Then the mean ratio over the pool is the evidence, 1 here, whatever the rounds were."""
    ratios = []
    monkeypatch.setattr(trust, "smooth", lambda r: ratios.append(r) or smooth(r))

    class TwoHills:
        def log_density(self, w):
            return np.logaddexp(*(stats.norm(at, 0.5).logpdf(w[:, 0]) for at in (-1.5, 1.5))) - np.log(2)

    start = SplitT(np.array([1.5]), np.array([[0.8]]), np.zeros(1))
    correct(TwoHills(), start, 1000, np.random.default_rng(1))
    pools = [np.exp(r) for r in ratios if len(r) in (2000, 3000)]
    assert pools
    for pool in pools:
        assert abs(pool.mean() - 1) < 4 * pool.std() / np.sqrt(len(pool))


@pytest.mark.parametrize("draws", [100, 300, 1000, 2000, 10_000])
def test_the_limit_of_k_is_what_so_many_draws_can_correct(draws):
    """Vehtari et al. (2024): a tail index k needs 10^(1/(1 − k)) draws, and beyond .7 no number within reason does."""
    target = FunctionTarget(1, lambda w: float(-0.5 * w @ w), lambda w: -w, lambda w: np.eye(1))
    limit = assess(target, laplace_approximation(target), draws=draws).importance.threshold
    assert limit <= 0.7
    assert 10 ** (1 / (1 - limit)) == pytest.approx(min(draws, 10 ** (1 / 0.3)))


def test_figures_do_not_depend_on_the_unit_of_the_weights():
    class Growing:
        def __init__(self, unit):
            self.unit = unit

        def log_density(self, w):
            return 1e3 * (w[:, 0] / self.unit) ** 3

    def shift(unit):
        posterior = GaussianPosterior(np.zeros(2), np.eye(2) / unit, 0.0, NewtonInfo(True, 1, 0.0))
        return assess(Growing(unit), posterior).importance.mean_shift

    np.testing.assert_allclose(shift(1e-5), shift(1.0), rtol=1e-6)
    np.testing.assert_allclose(shift(1e5), shift(1.0), rtol=1e-6)


def test_the_error_beside_the_largest_change_is_that_of_its_probability():
    class Rows:
        def gaussian(self, posterior, link):
            return np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])

        def averaged(self, draws, weight):
            truth = np.array([[0.88, 0.12], [0.48, 0.52], [0.31, 0.69]])
            return truth, np.array([[0.04, 0.04], [0.002, 0.002], [0.03, 0.03]])

    target = FunctionTarget(1, lambda w: float(-0.5 * w @ w), lambda w: -w, lambda w: np.eye(1))
    shift = assess(target, laplace_approximation(target), predictor=Rows()).shift
    assert shift.largest == pytest.approx(0.08)
    assert (shift.largest_error, shift.error, shift.flips, shift.rows) == (0.002, 0.04, 0, 3)


class Counted:
    """A normal density in m dimensions that keeps how many draws it was asked for each time."""

    def __init__(self):
        self.sizes = []

    def log_density(self, w):
        self.sizes.append(len(w))
        return -0.5 * (w**2).sum(axis=1)


@pytest.mark.parametrize(
    ("m", "shares", "sizes"),
    [
        # The share of all draws that is effective after each round and, every second time, of a round's own draws.
        pytest.param(2, {1000: 0.2, 2000: 0.1025}, [1000, 1000, 8000], id="the second adds 5, less than 1 % of 1000"),
        pytest.param(2, {1000: 0.2, 2000: 0.2, 3000: 0.1355}, [1000] * 3 + [8000], id="the third adds 6.5"),
        pytest.param(10, {1000: 0.015}, [1000], id="15 effective draws of 20 parameters, and hopeless"),
        pytest.param(10, {1000: 0.06, 2000: 0.031}, [1000, 1000, 8000], id="8000 draws will have 400 effective ones"),
    ],
)
def test_rounds_go_on_while_they_pay(m, shares, sizes, monkeypatch):
    """At least 1 % of a round's draws, and twice as many effective ones as there are parameters."""

    def known_share(ratios):
        log_weights, k, _ = smooth(ratios)
        return log_weights, k, shares.get(len(ratios), 0.1)

    monkeypatch.setattr(trust, "smooth", known_share)
    target = Counted()
    correct(target, SplitT(np.zeros(m), np.eye(m), np.zeros(m)), 1000, np.random.default_rng(0))
    assert target.sizes == sizes


def test_a_row_that_no_weighted_draw_allows_has_an_infinite_error():
    """Found by the thorough run of tests/hostile: 0/0, with a raw warning."""
    log_f = np.array([[[0.0, -1.0], [0.0, 0.0]], [[-2000.0, -2000.0], [0.0, 0.0]]])  # (draws, rows, classes)
    model = SimpleNamespace(log_terms=lambda variables, X: log_f, draw_variables=lambda size: None)
    predictor = DrawPredictor(SimpleNamespace(from_coordinates=lambda draws: model), np.zeros((2, 1)), 2, 0)
    p, error = predictor.averaged(np.zeros((2, 1)), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(p, 0.5)
    np.testing.assert_array_equal(error, [[np.inf, np.inf], [0, 0]])


def test_a_tail_far_beyond_any_pareto_has_its_largest_ratio_and_no_raw_warning():
    """Found by the thorough run of tests/hostile: quantiles of k̂ in the hundreds overflow."""
    ratios = np.append(np.linspace(-1000.0, -600.0, 999), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log_weights, k, share = smooth(ratios)
    assert k > 10
    assert log_weights.argmax() == 999
    assert np.exp(log_weights).sum() == pytest.approx(1)
    assert share * 1000 < 100
