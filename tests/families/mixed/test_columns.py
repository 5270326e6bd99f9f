"""Each distribution of a column against truths from elsewhere: SciPy's predictives, quadrature, one-step ones."""

import numpy as np
import pytest
from scipy import integrate, stats

from bayes_gda.families.mixed.column import Statistic
from bayes_gda.families.mixed.distributions import DISTRIBUTIONS
from bayes_gda.priors.mixed import NUMBERS

N = 40
Y = np.arange(N) % 2


def make_values(word, seed=0):
    rng = np.random.default_rng(seed)
    values = {
        "normal": rng.normal(3, 2, N),
        "log-normal": np.exp(rng.normal(1, 0.5, N)),
        "logit-normal": rng.beta(2, 3, N),
        "beta": rng.beta(2, 3, N),
        "gamma": rng.gamma(3, 2, N),
        "poisson": rng.poisson(3, N).astype(float),
        "negative-binomial": rng.negative_binomial(2, 0.3, N).astype(float),
        "bernoulli": rng.binomial(1, 0.3, N).astype(float),
        "binomial": rng.binomial(7, 0.3, N).astype(float),
        "categorical": rng.integers(0, 4, N).astype(float),
    }[word]
    values[5] = np.nan
    return values


def make_posterior(word, x=None, weight=None, y=Y):
    cls = DISTRIBUTIONS[word]
    x = make_values(word) if x is None else x
    numbers = cls.default(make_values(word), Y, 2, None, levels=4, trials=7)
    return cls.of_rows(numbers, x, y, 2, weight)


def test_the_words_are_those_of_the_priors():
    assert set(DISTRIBUTIONS) == set(NUMBERS)


def scipy_predictive(word, numbers, x):
    """The predictive density of one class with rows x, as SciPy has it."""
    n = len(x)
    if word in ("normal", "log-normal", "logit-normal"):
        scale = {"normal": lambda v: v, "log-normal": np.log, "logit-normal": lambda v: np.log(v / (1 - v))}[word]
        slope = {"normal": lambda v: 1 + 0 * v, "log-normal": lambda v: 1 / v}.get(word, lambda v: 1 / (v * (1 - v)))
        z, (m, k, a, b) = scale(x), numbers
        mean, k1, a1 = z.mean(), k + n, a + n / 2
        b1 = b + ((z - mean) ** 2).sum() / 2 + k * n * (mean - m) ** 2 / (2 * k1)
        t = stats.t(2 * a1, (k * m + n * mean) / k1, np.sqrt(b1 * (k1 + 1) / (a1 * k1)))
        return lambda v: t.pdf(scale(v)) * slope(v)
    if word == "poisson":
        c, m = numbers
        return stats.nbinom(c + x.sum(), (c / m + n) / (c / m + n + 1)).pmf
    if word == "bernoulli":
        return stats.betabinom(1, numbers[0] + x.sum(), numbers[1] + n - x.sum()).pmf
    if word == "binomial":
        trials, a, b = numbers
        return stats.betabinom(int(trials), a + x.sum(), b + trials * n - x.sum()).pmf
    assert word == "categorical"
    counts = np.bincount(x.astype(int), minlength=5)
    p = stats.dirichlet_multinomial(numbers + counts, 1)
    return lambda v: np.array([p.pmf(np.eye(5)[int(level)]) for level in np.atleast_1d(v)])


@pytest.mark.parametrize(
    "word", ["normal", "log-normal", "logit-normal", "poisson", "bernoulli", "binomial", "categorical"]
)
def test_conjugate_predictives_are_those_of_scipy(word):
    x = make_values(word)
    posterior = make_posterior(word)
    present = ~np.isnan(x)
    for k in range(2):
        truth = scipy_predictive(word, posterior.numbers, x[present & (k == Y)])
        np.testing.assert_allclose(np.exp(posterior.log_predictive(x)[present, k]), truth(x[present]), rtol=1e-10)
    assert (posterior.log_predictive(np.array([np.nan])) == 0).all()


def integrate_both(word, numbers, x):
    """log p(x) by Simpson's rule over both parameters, with SciPy's densities, on a box that holds them."""
    first, second = np.linspace(-9, 9, 601), np.linspace(-6, 9, 601)
    t, u = first[:, None, None], second[None, :, None]
    if word == "gamma":
        c, m, center, spread = numbers
        t, a = t / 4 + np.log(m), np.exp(u)
        prior = stats.norm.logpdf(u, center, spread) + stats.invgamma.logpdf(np.exp(t), c, scale=c * m) + t - np.log(4)
        rows = stats.gamma.logpdf(x, a, scale=np.exp(t) / a)
    elif word == "negative-binomial":
        c, m, center, spread = numbers
        r, p = np.exp(u), 1 / (1 + np.exp(-t))
        prior = stats.norm.logpdf(u, center, spread) + stats.beta.logpdf(p, 1 + c * r / m, c) + np.log(p * (1 - p))
        rows = stats.nbinom.logpmf(x, r, p)
    else:
        m, v, center, spread = numbers
        t = t / 4 + m
        mean, precision = 1 / (1 + np.exp(-t)), np.exp(u)
        prior = stats.norm.logpdf(t, m, v) + stats.norm.logpdf(u, center, spread) - np.log(4)
        rows = stats.beta.logpdf(x, mean * precision, (1 - mean) * precision)
    log_p = prior[..., 0] + rows.sum(axis=2)
    top = log_p.max()
    return top + np.log(integrate.simpson(integrate.simpson(np.exp(log_p - top), x=second, axis=1), x=first))


@pytest.mark.parametrize("word", ["gamma", "negative-binomial", "beta"])
def test_evidence_over_shapes_is_that_of_a_double_integral(word):
    x = make_values(word)[:12]
    x = x[~np.isnan(x)]
    posterior = make_posterior(word, x, y=np.zeros(len(x), dtype=int))
    assert posterior.log_evidence[0] == pytest.approx(integrate_both(word, posterior.numbers, x), abs=2e-6)
    assert posterior.rule.error[0] < 1e-3  # the error itself is about the square of this


@pytest.mark.parametrize("word", DISTRIBUTIONS)
def test_evidence_is_the_product_of_one_step_predictions(word):
    x = make_values(word)
    start = 4 if word == "beta" else 0  # two parameters and no rows: the rule is coarse there, and says so
    total = make_posterior(word, x[:start], y=Y[:start]).log_evidence.sum()
    for i in range(start, N):
        total += make_posterior(word, x[:i], y=Y[:i]).log_predictive(x[i : i + 1])[0, Y[i]]
    tolerance = 2e-3 if word == "beta" else 1e-9
    assert make_posterior(word).log_evidence.sum() == pytest.approx(total, abs=tolerance)


@pytest.mark.parametrize("word", DISTRIBUTIONS)
def test_leave_one_out_is_a_fit_without_the_row(word):
    x = make_values(word)
    without = make_posterior(word).without(x, Y)
    for i in (0, 5, 11, 18):
        keep = np.arange(N) != i
        other = make_posterior(word, x[keep], y=Y[keep]).log_predictive(x[i : i + 1])[0, Y[i]]
        assert without[i] == pytest.approx(other, abs=1e-7)


@pytest.mark.parametrize("word", DISTRIBUTIONS)
def test_statistics_add_subtract_and_weigh(word):
    x = make_values(word)
    whole, cls = make_posterior(word), DISTRIBUTIONS[word]
    parts = [make_posterior(word, x[i::2], y=Y[i::2]) for i in range(2)]
    joined = cls(whole.numbers, cls.add(parts[0].statistic, parts[1].statistic))
    np.testing.assert_allclose(joined.log_evidence, whole.log_evidence, rtol=1e-10)
    left = cls(whole.numbers, cls.add(whole.statistic, parts[1].statistic, -1.0))
    np.testing.assert_allclose(left.log_evidence, parts[0].log_evidence, rtol=1e-9, atol=1e-9)
    twice = make_posterior(word, np.tile(x, 2), y=np.tile(Y, 2))
    weighed = make_posterior(word, weight=np.full(N, 2.0))
    np.testing.assert_allclose(weighed.log_predictive(x), twice.log_predictive(x), rtol=1e-9, atol=1e-9)
    half = cls(whole.numbers, cls.scale(twice.statistic, 0.5))
    np.testing.assert_allclose(half.log_evidence, whole.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("word", DISTRIBUTIONS)
def test_draws_have_the_predictive_as_their_mean_density(word):
    posterior, rng = make_posterior(word), np.random.default_rng(1)
    x = make_values(word)
    x = x[~np.isnan(x)]
    draws = posterior.draw(20_000, rng)
    log_p = np.einsum("skq,nq->snk", posterior.coefficients(draws), posterior.terms(x))
    extra = posterior.extra(x, draws)
    p = np.exp(log_p if extra is None else log_p + extra)
    error = p.std(axis=0) / np.sqrt(len(p))
    off = (p.mean(axis=0) - np.exp(posterior.log_predictive(x))) / error
    assert np.abs(off).max() < 5
    assert np.sqrt((off**2).mean()) < 2


@pytest.mark.parametrize("word", DISTRIBUTIONS)
def test_nodes_integrate_the_predictive(word):
    posterior, rng = make_posterior(word), np.random.default_rng(2)
    values, weight = posterior.nodes(rng)
    np.testing.assert_allclose(weight.sum(axis=0), 1.0, rtol=1e-9)
    draws = posterior.draw(40_000, rng)
    for k in range(2):
        own = {name: value[:, k] for name, value in draws.items()}
        simulated = posterior.draw_values(own, rng)
        cut = np.median(simulated)
        below = (simulated < cut).mean()
        assert weight[values < cut, k].sum() == pytest.approx(below, abs=0.015)


def test_a_level_never_seen_has_what_the_prior_leaves():
    x = np.array([0.0, 0, 1, 1, 2, 2])
    y = np.array([0, 0, 0, 0, 0, 1])
    posterior = DISTRIBUTIONS["categorical"].of_rows(np.ones(4), x, y, 2, None)
    p = np.exp(posterior.log_predictive(np.array([3.0, 0.0])))
    np.testing.assert_allclose(p, [[1 / 9, 1 / 5], [3 / 9, 1 / 5]])  # the more the fewer rows a class has


def test_the_negative_binomial_becomes_poisson():
    x = make_values("poisson")
    poisson = make_posterior("poisson")
    numbers = np.array([*poisson.numbers, 40.0, 0.1])  # r about e⁴⁰
    limit = DISTRIBUTIONS["negative-binomial"].of_rows(numbers, x, Y, 2, None)
    np.testing.assert_allclose(limit.log_evidence, poisson.log_evidence, rtol=1e-6)
    np.testing.assert_allclose(limit.log_predictive(x), poisson.log_predictive(x), atol=1e-6)


def test_a_statistic_that_cannot_be_is_refused():
    from bayes_gda.errors import DataError

    normal = make_posterior("normal")
    other = DISTRIBUTIONS["normal"].summarise(np.array([1e6]), np.array([0]), 2, None, normal.numbers)
    gone = DISTRIBUTIONS["normal"].add(normal.statistic, other, -1.0)
    with pytest.raises(DataError, match="never learnt"):
        DISTRIBUTIONS["normal"](normal.numbers, gone).check("x1")
    counts = make_posterior("categorical")
    fewer = Statistic(counts.statistic.sums - 100, counts.statistic.support)
    with pytest.raises(DataError, match="never learnt"):
        DISTRIBUTIONS["categorical"](counts.numbers, fewer).check("x1")
