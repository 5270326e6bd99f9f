"""Whatever the public functions that are no estimators are given: a valid result, or one of our errors; no warning."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hostile.judge import Refused, check_classifier, lawful
from hostile.profiles import examples
from hostile.strategies import PLAIN_SCALES, tables
from hypothesis import example, given
from hypothesis import strategies as st

from bayes_gda import (
    LKJ,
    NIG,
    NIW,
    BayesianLDA,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    Dirichlet,
    HierarchicalScale,
    Moments,
    Normal,
    compare_posteriors,
    diagnose,
    prior_sensitivity,
)
from bayes_gda.errors import DataError, PriorError
from bayes_gda.evaluation.calibration import (
    calibration_error,
    calibration_table,
    interval_coverage,
    paired_difference,
    sharpness,
)
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.model_comparison import Evidence, ModelScore, compare_scores
from bayes_gda.evaluation.reliability import reliability_curve
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.methods.importance.trust import assess
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.prediction.decisions import (
    cost_curve,
    decide_with_draws,
    optimal_threshold,
    threshold_curve,
)
from bayes_gda.prediction.shift import estimate_class_prior, reweigh

FEW = {"draws": 10, "chains": 2}
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-3, 1e3, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 5e-324]),
    st.floats(-10, 10),
)
VECTORS = st.lists(NUMBERS, max_size=3)
MATRICES = st.one_of(
    st.lists(VECTORS, max_size=3),
    st.lists(NUMBERS, min_size=4, max_size=4).map(lambda v: [v[:2], v[2:]]),
    st.tuples(NUMBERS, NUMBERS).map(lambda v: np.diag(v)),
)
# What a number is not.
STRANGE = st.sampled_from([None, "a", "", [1, [2]], [None], 1j, {}, 10**400, np.eye(2), np.ones((2, 2, 2)), True])
ANYTHING = st.one_of(NUMBERS, NUMBERS, VECTORS, MATRICES, STRANGE)
# Probabilities of the event, or of two classes: fair ones more often than not.
SHARES = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 - 1e-16, 1e-13]), st.floats(0, 1))
FORECASTS = st.one_of(
    st.lists(SHARES, min_size=1, max_size=6).map(lambda p: np.column_stack([1 - np.array(p), p])), ANYTHING
)
CODES = st.one_of(st.lists(st.integers(0, 1), min_size=1, max_size=6), st.lists(st.integers(-1, 3)), ANYTHING)


def survives(call, *check):
    """Call; if the answer is not a lawful refusal, hold it to the checks."""
    try:
        with lawful():
            answer = call()
            for rule in check:
                rule(answer)
            return answer
    except Refused:
        return None


def all_finite(values):
    for value in values.values():
        assert np.isfinite(value).all()


# ── Priors and moments ──────────────────────────────────────────────────────────────────────────────────────────────


PRIORS = {
    "NIW": lambda v: NIW(m=v[0], kappa=v[1], Psi=v[2], nu=v[3]).draw(3, random_seed=0),
    "NIG": lambda v: NIG(m=v[0], kappa=v[1], a=v[2], b=v[3]).draw(3, random_seed=0),
    "LKJ": lambda v: LKJ(scale=v[0], m=v[1], mean_scale=v[2], eta=v[3]).draw(3, random_seed=0),
    "Dirichlet": lambda v: Dirichlet(v[0]).draw(3, 2, random_seed=0),
    "Normal": lambda v: Normal(mean=v[0], scale=v[1]).draw(3, 2, random_seed=0),
    "Normal, covariance": lambda v: Normal(mean=v[0], covariance=v[1]).draw(3, 2, random_seed=0),
    "Normal, precision": lambda v: {"precision": Normal(mean=v[0], scale=v[1]).precision(2)},
    "Normal, inverse": lambda v: {"precision": Normal(mean=v[0], covariance=v[1]).precision(2)},
    "Normal, default": lambda v: {"sd": np.isfinite(Normal.default(3, prior_scale=v[0]).scale)},
    "HierarchicalScale": lambda v: HierarchicalScale(v[0], v[1]).draw(3, 2, random_seed=0),
}


@pytest.mark.parametrize("prior", PRIORS)
@examples(25, 500)
@given(values=st.lists(ANYTHING, min_size=4, max_size=4), fair=st.lists(st.booleans(), min_size=4, max_size=4))
def test_any_prior_is_refused_or_drawn_from(prior, values, fair):
    """All arguments but some are fair, so that one odd one is not always hidden behind another."""
    survives(lambda: PRIORS[prior]([2.0 if ok else value for value, ok in zip(values, fair, strict=True)]), all_finite)


@examples(15, 500)
@given(
    chunks=st.lists(tables(max_classes=3, wide=False), min_size=1, max_size=3),
    strange=st.one_of(st.none(), ANYTHING),
    where=st.integers(0, 2),
)
def test_any_chunks(chunks, strange, where):
    parts = [[t.X, np.unique(t.y, return_inverse=True)[1], t.weight] for t in chunks]
    if strange is not None:
        parts[-1][where] = strange

    def finite(found):
        assert np.isfinite(found.scatter).all()
        assert np.isfinite((found - Moments.from_arrays(*parts[0][:2], 3, sample_weight=parts[0][2])).count).all()

    survives(lambda: Moments.from_chunks(map(tuple, parts), 3), finite)


def test_moments_whose_merger_overflows_are_refused():
    """Each chunk is fine by itself: it does not vary."""
    with pytest.raises(DataError, match="squares overflow"):
        Moments.from_chunks([(np.full((2, 1), size), [0, 0]) for size in (1e200, -1e200)], 1)


def test_a_prior_is_told_what_is_wrong_with_one_argument():
    with pytest.raises(PriorError, match=r"`nu` must be a single number; got shape \(2,\)"):
        NIW(m=[0, 0], kappa=1, Psi=np.eye(2), nu=[5, 5])
    with pytest.raises(PriorError, match="`Psi` must be a square matrix"):
        NIW(m=[], kappa=1, Psi=np.zeros((0, 0)), nu=5)
    with pytest.raises(PriorError, match="`Psi` must be numeric; got 1j"):
        NIW(m=[0], kappa=1, Psi=1j, nu=5)
    with pytest.raises(PriorError, match="leave the range of floats"):
        LKJ(scale=[1e308], m=0, mean_scale=1).draw(1000, random_seed=0)
    with pytest.raises(PriorError, match="leave the range of floats"):  # whose matrix products raise no flag
        NIW(m=0, kappa=2, Psi=np.diag([1.0, 1e308]), nu=2).draw(3, random_seed=0)


# ── Probabilities: scores, calibration, decisions, shift ────────────────────────────────────────────────────────────


@examples(40, 1000)
@given(P=FORECASTS, y=CODES, bins=st.one_of(st.integers(-1, 4), STRANGE))
def test_any_forecasts(P, y, bins):
    def within(table):
        assert table["brier"].between(0, 2).all()
        assert table["ece"].between(0, 1).all()

    survives(lambda: calibration_table(P, y), within)
    survives(lambda: sharpness(P), lambda s: (0.5 - 1e-12 <= s.confidence <= 1) or pytest.fail("confidence"))
    p = P[:, 1] if isinstance(P, np.ndarray) and P.ndim == 2 and P.shape[1] == 2 else P
    survives(lambda: calibration_error(p, y, bins=bins, resamples=5))
    survives(lambda: paired_difference(p, y))
    survives(lambda: interval_coverage(p, p, y))


@examples(12, 300)
@given(P=FORECASTS, y=CODES, prob=st.one_of(st.floats(0, 1), ANYTHING), points=st.one_of(st.integers(0, 5), STRANGE))
def test_any_reliability_curve(P, y, prob, points):
    p = P[:, 1] if isinstance(P, np.ndarray) and P.ndim == 2 and P.shape[1] == 2 else P

    def ordered(curve):
        for band in (curve.consistency, curve.confidence):
            assert ((band.lower >= 0) & (band.lower <= band.upper) & (band.upper <= 1)).all()

    survives(lambda: reliability_curve(p, y, prob=prob, points=points, resamples=39), ordered)
    survives(lambda: reliability_curve(p, y, resamples=39), ordered)


@examples(40, 1000)
@given(P=FORECASTS, y=CODES, costs=MATRICES, weights=ANYTHING, reject=st.one_of(st.none(), ANYTHING))
def test_any_decision(P, y, costs, weights, reject):
    def finite(found):
        assert np.isfinite(found.expected_loss).all()
        assert np.isfinite(found.value_of_information).all()
        assert ((found.probability_optimal >= 0) & (found.probability_optimal <= 1)).all()

    for C in (costs, [[0, 1], [1, 0]]):
        survives(lambda C=C: decide_with_draws(P, [P, P], C, weights=weights, reject_cost=reject), finite)
        survives(lambda C=C: optimal_threshold(C), lambda t: (0 <= t <= 1) or pytest.fail("threshold"))
        curve = survives(lambda C=C: threshold_curve(P, y, C), lambda c: np.isfinite(c.cost).all() or pytest.fail("c"))
        if curve is not None:
            survives(lambda curve=curve: cost_curve(curve, points=weights))


@examples(40, 1000)
@example(P=[[0.0, 0.0], [1e308, -1e308]], prior=[1.0, 0.0], tolerance=1.0)
@example(P=[[0.0, 0.0], [1e308, 1e308]], prior=[0.5, 0.5], tolerance=0.0)
@given(P=FORECASTS, prior=st.one_of(SHARES.map(lambda p: [1 - p, p]), ANYTHING), tolerance=st.one_of(NUMBERS, STRANGE))
def test_any_class_shares(P, prior, tolerance):
    def shares(found):
        assert (found.prior >= 0).all()
        np.testing.assert_allclose(found.prior.sum(), 1)

    with np.errstate(divide="ignore"):
        log_P = np.log(P) if isinstance(P, np.ndarray) and P.ndim == 2 and P.dtype == float and (P >= 0).all() else P
    survives(lambda: estimate_class_prior(log_P, prior), shares)
    survives(lambda: estimate_class_prior(log_P, [0.5, 0.5], tolerance=tolerance), shares)
    survives(
        lambda: reweigh(log_P, [0.5, 0.5], prior),
        lambda log_p: np.testing.assert_allclose(np.exp(log_p).sum(axis=-1), 1, rtol=1e-9),
    )


# ── Draws ───────────────────────────────────────────────────────────────────────────────────────────────────────────


DRAWS = {
    "fine": lambda rng, shape: rng.standard_normal(shape),
    "constant": lambda rng, shape: np.ones(shape),
    "zero": lambda rng, shape: np.zeros(shape),
    "stuck": lambda rng, shape: np.ones(shape) * np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)),
    "two values": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "integers": lambda rng, shape: rng.integers(3, size=shape),
    "nan": lambda rng, shape: np.where(rng.random(shape) < 0.1, np.nan, 1.0),
    "all nan": lambda rng, shape: np.full(shape, np.nan),
    "inf": lambda rng, shape: np.where(rng.random(shape) < 0.1, np.inf, rng.standard_normal(shape)),
    "minus inf": lambda rng, shape: np.full(shape, -np.inf),
    "huge": lambda rng, shape: 1e308 * rng.uniform(-1, 1, shape),
    "tiny": lambda rng, shape: 5e-324 * rng.integers(3, size=shape),
    "far": lambda rng, shape: 1e16 + rng.standard_normal(shape),
    "heavy": lambda rng, shape: np.exp(np.clip(100 * rng.standard_normal(shape), -700, 700)),
}


@st.composite
def trees(draw, like=None):
    """A DataTree of draws of which something may be wrong; with `like`, of the same shape more often than not."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    chains, size = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([0, 1, 3, 4, 25, 25]))
    kinds = draw(st.lists(st.sampled_from(["fine", *DRAWS]), min_size=0, max_size=3))
    data = {f"v{i}": (("chain", "draw"), DRAWS[kind](rng, (chains, size))) for i, kind in enumerate(kinds)}
    if draw(st.booleans()):
        data["w"] = (("chain", "draw", "dim"), DRAWS["fine"](rng, (chains, size, 2)))
    groups = {"posterior": xr.Dataset(data, coords={"chain": np.arange(chains), "draw": np.arange(size)})}
    for name in ("log_prior", "log_likelihood"):
        kind = draw(st.sampled_from(["fine", *DRAWS]))
        groups[name] = xr.Dataset({"x": (("chain", "draw"), DRAWS[kind](rng, (chains, size)))})
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(["diverging", "energy", "tree_depth", "acceptance_rate"]), unique=True))
        odd = {
            name: (("chain", "draw"), DRAWS[draw(st.sampled_from(list(DRAWS)))](rng, (chains, size))) for name in names
        }
        groups["sample_stats"] = xr.Dataset(odd)
    return xr.DataTree.from_dict(groups)


@examples(25, 400)
@given(tree=trees())
def test_any_draws_are_judged(tree):
    def judged(found):
        assert found.verdict in ("good", "caution", "bad")
        assert all(found.reasons)
        assert all(found.next_steps)
        found.worst()

    survives(lambda: diagnose(tree), judged)
    survives(lambda: prior_sensitivity(tree), lambda s: s.reason or pytest.fail("no reason"))


@examples(15, 300)
@given(a=trees(), b=trees())
def test_any_posteriors_are_compared(a, b):
    for pair in ({"exact": a, "laplace": b}, {"exact": a, "mcmc": a}):
        survives(lambda pair=pair: compare_posteriors(pair), lambda found: found.to_datatree())


# ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@examples(15, 300)
@given(
    scores=st.lists(st.tuples(FORECASTS, st.sampled_from(["generative", "discriminative"]), ANYTHING), max_size=3),
    y=CODES,
    loo=st.lists(NUMBERS, min_size=1, max_size=6),
)
def test_any_models_are_compared(scores, y, loo):
    def log(P):
        with np.errstate(divide="ignore"):
            return np.log(P) if isinstance(P, np.ndarray) and P.dtype == float and (P >= 0).all() else P

    def compare():
        entries = {
            f"m{i}": ModelScore(family, kfold=log(P), evidence=Evidence(value, "conditional"))
            for i, (P, family, value) in enumerate(scores)
        }
        return compare_scores(entries, y=y)

    survives(compare)
    held = {f"m{i}": (family, P) for i, (P, family, _) in enumerate(scores)}
    survives(lambda: compare_scores({n: ModelScore(f, held_out=log(P)) for n, (f, P) in held.items()}, y_test=y))
    survives(lambda: compare_scores({"a": ModelScore("generative", loo=Loo("conditional", loo, loo))}))


@examples(8, 200)
@given(table=tables(max_classes=4))
def test_any_table_for_the_average_between_the_models(table):
    survives(lambda: check_classifier(BayesianRDA(**FEW).fit(table.X, table.y, table.weight), table.new))


@pytest.mark.parametrize("cls", [BayesianQDA, BayesianNaiveGaussian])
@examples(2, 60)
@given(table=tables(max_classes=3, wide=False, scales=PLAIN_SCALES), costs=st.one_of(st.none(), MATRICES))
def test_any_gaps_are_priced_and_any_row_is_looked_at(cls, table, costs):
    def look():
        model = cls(**FEW).fit(table.X, table.y, table.weight)
        new = table.new.copy()
        new[::2, 0] = np.nan
        found = model.novelty(new)
        assert ((found.probability >= 0) & (found.probability <= 1)).all()
        worth = model.worth_measuring(new, costs)
        assert (worth[np.isnan(new)] >= 0).all()

    survives(look)


@examples(4, 100)
@given(table=tables(max_classes=2, wide=False))
def test_any_logistic_posterior_is_approximated_and_judged(table):
    def judge():
        Phi = np.column_stack([np.ones(len(table.X)), table.X])
        codes = np.unique(table.y, return_inverse=True)[1].astype(float)
        target = LogisticTarget(Phi, codes, Normal(scale=2.5))
        verdict = assess(target, laplace_approximation(target), draws=200)
        assert verdict.verdict in ("trusted", "corrected", "needs-mcmc")
        assert np.isfinite(verdict.importance.draws).all()

    survives(judge)


# ── Files, end to end ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "table.csv"


CELLS = st.sampled_from(["1", "2.5", "-3", "1e400", "1e300", "1e-320", "NA", "", "inf", "a", "é", '"', "True", "0"])


@examples(10, 300)
@given(
    header=st.sampled_from(["y,a,b", "y,a,a", "a,b", "y,a,", "y", ""]),
    rows=st.lists(st.tuples(st.sampled_from(["p", "q", "p", "q", "", "1"]), CELLS, CELLS), max_size=12),
    fair=st.booleans(),
)
def test_any_file(path, header, rows, fair):
    lines = [",".join(row) for row in rows]
    if fair:
        header, lines = "y,a,b", [f"{'pq'[i % 2]},{i * i % 7},{i % 5}.5" for i in range(20)] + lines[:1]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    new = pd.DataFrame({"a": [1.0, 1e6], "b": [2.5, -1e6]})
    for cls in (BayesianLDA, BayesianRDA):
        survives(lambda cls=cls: cls(**FEW).fit(path, "y"), lambda m: check_classifier(m, new[m.feature_names_in_]))
