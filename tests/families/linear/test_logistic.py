"""The log posteriors of logistic and softmax regression: truths first, then PyMC's compiled derivatives."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_softmax

from bayes_gda import linalg
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.linear import logistic
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.priors import Normal

n, m, K = 40, 3, 4
rng = np.random.default_rng(1)
PHI = np.column_stack([np.ones(n), rng.standard_normal((n, m - 1))])
Y = rng.integers(0, 2, n)
CODES = rng.integers(0, K, n)
WEIGHT = rng.integers(0, 4, n).astype(float)
TRIALS = rng.integers(1, 6, n)
COUNTS = rng.binomial(TRIALS, 0.4)
FULL = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]])
PRIORS = {
    "scalar": Normal(scale=2.5),
    "vector": Normal(mean=[0.1, -0.2, 0.3], scale=[5.0, 2.0, 1.0]),
    "full": Normal(mean=[0.1, -0.2, 0.3], covariance=FULL),
    "flat": Normal(scale=np.inf),
    "partly flat": Normal(scale=[np.inf, 1.0, 2.0]),
}


def logistic_target(prior="vector"):
    return LogisticTarget(PHI, COUNTS, PRIORS[prior], sample_weight=WEIGHT, trials=TRIALS)


def softmax_target(prior="vector", reference=False):
    return SoftmaxTarget(PHI, CODES, K, PRIORS[prior], sample_weight=WEIGHT, reference=reference)


TARGETS = [
    pytest.param(make, id=f"{name}-{prior}")
    for prior in PRIORS
    for name, make in {
        "binomial": lambda prior=prior: logistic_target(prior),
        "softmax": lambda prior=prior: softmax_target(prior),
        "reference": lambda prior=prior: softmax_target(prior, reference=True),
    }.items()
]


def point(target, seed=0):
    return np.random.default_rng(seed).standard_normal(target.dim)


def central(f, w, h=1e-5):
    """Central differences of f, along a new first axis."""
    return np.array([(f(w + h * e) - f(w - h * e)) / (2 * h) for e in np.eye(len(w))])


def log_prior(prior, w):
    """Row by row with scipy.stats, a flat direction left out."""
    mean = prior.mean_vector(m)
    if prior.covariance is not None:
        return stats.multivariate_normal(mean, prior.covariance).logpdf(w)
    proper = np.isfinite(prior.scale_vector(m))
    return stats.norm(mean, prior.scale_vector(m)).logpdf(w)[..., proper].sum()


@pytest.mark.parametrize("prior", PRIORS)
def test_log_density_is_that_of_scipy_stats(prior):
    target = logistic_target(prior)
    w = point(target)
    truth = WEIGHT @ stats.binom(TRIALS, expit(PHI @ w)).logpmf(COUNTS) + log_prior(PRIORS[prior], w)
    assert target.log_density(w) == pytest.approx(truth, rel=1e-12)

    target = softmax_target(prior)
    w = point(target)
    P = log_softmax(PHI @ w.reshape(K, m).T, axis=1)
    truth = WEIGHT @ P[np.arange(n), CODES] + sum(log_prior(PRIORS[prior], row) for row in w.reshape(K, m))
    assert target.log_density(w) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("make", TARGETS)
def test_derivatives_are_those_of_finite_differences(make):
    target = make()
    w = point(target)
    value, g, H = target.value_gradient_precision(w)
    assert value == pytest.approx(float(target.log_density(w)), rel=1e-13)
    np.testing.assert_allclose(g, central(target.log_density, w), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(H, -central(target.gradient, w), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(target.gradient(w), g, rtol=1e-12)
    np.testing.assert_allclose(target.precision(w), H, rtol=1e-12)
    np.testing.assert_array_equal(H, H.T)

    # T_ijk = ∂H_jk/∂wᵢ with the sign changed
    T = -central(target.precision, w)
    V = np.cov(np.random.default_rng(2).standard_normal((target.dim, 50)))
    np.testing.assert_allclose(target.third_order_trace(w, V), np.einsum("ijk,jk->i", T, V), rtol=1e-6, atol=1e-6)
    h = np.random.default_rng(3).standard_normal((5, target.dim))
    truth = np.einsum("ijk,si,sj,sk->s", T, h, h, h)
    np.testing.assert_allclose(target.third_order_form(w, h), truth, rtol=1e-6, atol=1e-6)


def test_third_order_trace_uses_the_symmetric_part_of_v():
    V = np.arange(81.0).reshape(9, 9)
    for target in (logistic_target(), softmax_target(reference=True)):
        W, block = point(target), V[: target.dim, : target.dim]
        got, truth = target.third_order_trace(W, block), target.third_order_trace(W, (block + block.T) / 2)
        np.testing.assert_allclose(got, truth, rtol=1e-12)


@pytest.mark.parametrize("kind", ["logistic", "softmax", "reference"])
def test_derivatives_are_those_that_pymc_compiles(kind):
    pm = pytest.importorskip("pymc")
    import pytensor
    import pytensor.tensor as pt

    prior = PRIORS["full"]
    with pm.Model() as model:
        if kind == "logistic":
            target = LogisticTarget(PHI, COUNTS, prior, trials=TRIALS)
            w = pm.MvNormal("w", prior.mean, FULL, shape=m)
            pm.Binomial("y", n=TRIALS, logit_p=PHI @ w, observed=COUNTS)
        else:
            R = K - (kind == "reference")
            target = SoftmaxTarget(PHI, CODES, K, prior, reference=kind == "reference")
            W = pm.MvNormal("w", prior.mean, FULL, shape=(R, m))
            a = pt.dot(PHI, W.T)
            if kind == "reference":
                a = pt.concatenate([a, pt.zeros((n, 1))], axis=1)
            pm.Categorical("y", logit_p=a, observed=CODES)

    flat = pt.dvector("flat")
    h = pt.dvector("h")
    V = pt.dmatrix("V")
    value = model.value_vars[0]
    log_p = pytensor.graph.replace.graph_replace(
        model.logp(), {value: flat.reshape(np.shape(model.initial_point()["w"]))}
    )
    g = pt.grad(log_p, flat)
    H = pt.stack([pt.grad(g[i], flat) for i in range(target.dim)])
    along = pt.grad(pt.dot(pt.grad(pt.dot(g, h), flat), h), flat)
    compiled = pytensor.function(
        [flat, h, V],
        [log_p, g, -H, pt.grad((H * V).sum(), flat), pt.dot(along, h)],
        mode=pytensor.compile.Mode(linker="py", optimizer=None),
    )
    x, direction = point(target), point(target, seed=5)
    C = np.cov(np.random.default_rng(2).standard_normal((target.dim, 50)))
    ours = (*target.value_gradient_precision(x), target.third_order_trace(x, C), target.third_order_form(x, direction))
    for got, truth in zip(ours, compiled(x, direction, C), strict=True):
        np.testing.assert_allclose(got, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", TARGETS)
def test_many_draws_at_once_are_the_same_as_one_by_one(make):
    target = make()
    W = np.random.default_rng(4).standard_normal((7, target.dim))
    w = point(target)
    for f in (target.log_density, target.log_likelihood, lambda h: target.third_order_form(w, h)):
        assert f(W).shape == (7,)
        assert f(W[0]).shape == ()
        np.testing.assert_allclose(f(W), [float(f(row)) for row in W], rtol=1e-11)


@pytest.mark.parametrize("make", TARGETS[:3])
@pytest.mark.parametrize(("elements", "draws"), [(1, 1), (20, 2), (100, 3)])
def test_block_sizes_do_not_matter(make, elements, draws, monkeypatch):
    target = make()
    w, W = point(target), np.random.default_rng(4).standard_normal((7, target.dim))
    V = np.eye(target.dim)

    def everything():
        parts = (
            *target.value_gradient_precision(w),
            target.gradient(w),
            target.log_density(W),
            target.third_order_trace(w, V),
            target.third_order_form(w, W),
        )
        return np.concatenate([np.ravel(part) for part in parts])

    truth = everything()
    monkeypatch.setattr(linalg, "BLOCK_ELEMENTS", elements)
    monkeypatch.setattr(linalg, "BLOCK_DRAWS", draws)
    np.testing.assert_allclose(everything(), truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reference", [False, True])
def test_no_weights_are_weights_of_one_in_every_block(reference, monkeypatch):
    plain = SoftmaxTarget(PHI, CODES, K, PRIORS["vector"], reference=reference)
    ones = SoftmaxTarget(PHI, CODES, K, PRIORS["vector"], sample_weight=np.ones(n), reference=reference)
    w, W = point(plain), np.random.default_rng(4).standard_normal((7, plain.dim))
    monkeypatch.setattr(linalg, "BLOCK_ELEMENTS", 20)
    for f in ("gradient", "log_density", "third_order_form"):
        args = (w, W) if f == "third_order_form" else (w,)
        np.testing.assert_allclose(getattr(plain, f)(*args), getattr(ones, f)(*args), rtol=1e-12)


@pytest.mark.parametrize("rows", [127, 128, 255, 511, 1001, 4003])
def test_rows_that_share_a_logarithm_give_the_same_sum(rows):
    E = np.random.default_rng(0).random((3, rows)) ** 40  # many tiny entries
    truth = np.log1p(E).sum(axis=1)
    np.testing.assert_allclose(logistic.weighted_log1p(E.copy(), np.ones(rows)), truth, rtol=1e-13)
    tiny = np.full((1, rows), 1e-30)
    np.testing.assert_allclose(logistic.weighted_log1p(tiny, np.ones(rows)), rows * 1e-30, rtol=1e-13)


def test_weights_are_repeated_rows_and_counts_are_expanded_rows():
    w = point(logistic_target())
    prior = PRIORS["full"]
    repeat = np.repeat(np.arange(n), WEIGHT.astype(int))
    weighted = LogisticTarget(PHI, Y, prior, sample_weight=WEIGHT)
    repeated = LogisticTarget(PHI[repeat], Y[repeat], prior)
    for a, b in zip(weighted.value_gradient_precision(w), repeated.value_gradient_precision(w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)

    W = np.random.default_rng(0).standard_normal(K * m)
    weighted = SoftmaxTarget(PHI, CODES, K, prior, sample_weight=WEIGHT)
    repeated = SoftmaxTarget(PHI[repeat], CODES[repeat], K, prior)
    for a, b in zip(weighted.value_gradient_precision(W), repeated.value_gradient_precision(W), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)

    counts = LogisticTarget(PHI, COUNTS, prior, trials=TRIALS)
    labels = np.concatenate([[1] * s + [0] * (t - s) for s, t in zip(COUNTS, TRIALS, strict=True)])
    expanded = LogisticTarget(np.repeat(PHI, TRIALS, axis=0), labels, prior)
    assert counts.log_density(w) - counts.log_coefficient == pytest.approx(float(expanded.log_density(w)), rel=1e-12)
    for a, b in zip(counts.value_gradient_precision(w)[1:], expanded.value_gradient_precision(w)[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_two_class_softmax_with_reference_is_logistic():
    prior, w = PRIORS["full"], np.array([0.3, -1.0, 2.0])
    # The last class has zero weights, so class 0 of the softmax is class 1 of the logistic regression.
    binary, two = LogisticTarget(PHI, 1 - Y, prior), SoftmaxTarget(PHI, Y, 2, prior, reference=True)
    for a, b in zip(binary.value_gradient_precision(w), two.value_gradient_precision(w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(binary.third_order_trace(w, FULL), two.third_order_trace(w, FULL), rtol=1e-10)
    np.testing.assert_allclose(binary.third_order_form(w, FULL), two.third_order_form(w, FULL), rtol=1e-10)


def test_symmetric_softmax_does_not_see_a_common_shift():
    target = softmax_target("flat")
    w, shift = point(target), np.tile([1.0, -2.0, 0.5], K)
    assert target.log_density(w + shift) == pytest.approx(float(target.log_density(w)), rel=1e-12)
    np.testing.assert_allclose(target.precision(w) @ shift, 0, atol=1e-10)
    np.testing.assert_allclose(target.third_order_form(w, shift), 0, atol=1e-10)


@pytest.mark.parametrize("a", [-1000.0, -40.0, 40.0, 1000.0])
def test_saturated_rows_neither_overflow_nor_round_to_nothing(a):
    flat = Normal(scale=np.inf)
    # log σ(x) is x for very negative x and −e^{−x} for very positive x, to full precision.
    truth = {y: (-np.exp(-abs(a)) if (a > 0) == (y == 1) else -abs(a)) for y in (0, 1)}
    curvature = np.exp(-abs(a))
    for y in (0, 1):
        binary = LogisticTarget([[1.0]], [y], flat)
        two = SoftmaxTarget([[1.0]], [1 - y], 2, flat, reference=True)
        for target in (binary, two):
            w = np.array([a])
            value, g, H = target.value_gradient_precision(w)
            assert value == pytest.approx(truth[y], rel=1e-14)
            assert target.log_density(w) == pytest.approx(truth[y], rel=1e-14)
            assert target.log_likelihood(w[None]) == pytest.approx(truth[y], rel=1e-14)
            assert H[0, 0] == pytest.approx(curvature, rel=1e-13)
            assert g[0] == pytest.approx(expit(-a) if y == 1 else -expit(a), rel=1e-13)
            assert np.isfinite(target.third_order_form(w, w))


def test_subset_keeps_weights_trials_and_coding():
    rows = np.array([3, 1, 7, 7])
    sub = logistic_target().subset(rows, weight=2.0)
    truth = LogisticTarget(PHI[rows], COUNTS[rows], PRIORS["vector"], 2 * WEIGHT[rows], TRIALS[rows])
    w = point(sub)
    assert sub.log_density(w) == truth.log_density(w)
    assert logistic_target().subset(np.arange(n)).log_density(w) == logistic_target().log_density(w)
    sub = softmax_target(reference=True).subset(rows)
    assert sub.n == 4
    assert sub.shape == (K - 1, m)


def test_the_design_matrix_is_neither_copied_nor_changed():
    Phi = PHI.copy()
    target = LogisticTarget(Phi, Y, Normal(scale=1.0))
    assert np.shares_memory(target.Phi, Phi)
    assert Phi.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        target.Phi[0, 0] = 2.0
    with pytest.raises(AttributeError):
        target.y = Y


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogisticTarget(PHI[:, 0], Y, Normal(scale=1.0)), "`Phi` must be a matrix"),
        (lambda: LogisticTarget(np.where(PHI == 1, np.nan, PHI), Y, Normal(scale=1.0)), "got nan in row 0, column 0"),
        (lambda: LogisticTarget(PHI, Y[1:], Normal(scale=1.0)), "each of the 40 rows"),
        (lambda: LogisticTarget(PHI, Y + 1, Normal(scale=1.0)), "must be 0 or 1; got 2"),
        (lambda: LogisticTarget(PHI, Y, Normal(scale=1.0), sample_weight=-WEIGHT), "must not be negative"),
        (lambda: LogisticTarget(PHI, TRIALS + 1, Normal(scale=1.0), trials=TRIALS), "y ≤ trials"),
        (lambda: SoftmaxTarget(PHI, CODES, 3, Normal(scale=1.0)), "class codes 0 to 2; got 3"),
        (lambda: SoftmaxTarget(PHI, CODES, 1, Normal(scale=1.0)), "at least 2"),
    ],
)
def test_errors_name_the_rule_and_the_value(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_a_prior_of_the_wrong_length_is_an_error():
    with pytest.raises(PriorError, match="vector of 3"):
        LogisticTarget(PHI, Y, Normal(scale=[1.0, 2.0]))


@pytest.mark.parametrize(("rows", "columns"), [(10, 30), (1000, 30), (873, 90), (500, 200)])
def test_pieces_of_a_product_make_the_whole(rows, columns):
    A = np.random.default_rng(0).standard_normal((rows, columns))
    B = np.random.default_rng(1).standard_normal((columns, 40))
    H = linalg.gram(A)
    np.testing.assert_allclose(H, A.T @ A, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(H, H.T)
    np.testing.assert_allclose(linalg.product(A, B), A @ B, rtol=1e-11, atol=1e-11)
