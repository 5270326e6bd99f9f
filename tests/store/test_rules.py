"""Each number of a stored object that our own code would not have made is refused, one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from bayes_gda.data.features import FeatureMap
from bayes_gda.data.gaps import ObservedCounts
from bayes_gda.data.moments import Moments
from bayes_gda.errors import BayesGDAError, StoreError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo
from bayes_gda.methods.verdict import Importance, PredictionShift, Propagation
from bayes_gda.priors import NIG, NIW
from bayes_gda.store.rules import check

# Two classes of three features, so that no shape passes for another.
K, d = 2, 3
X = np.random.default_rng(0).normal(size=(20, d))
MOMENTS = Moments.from_arrays(X, np.repeat([0, 1], 10), K)
WHOLE = {
    "lda": lda_posterior(MOMENTS, NIW.default(MOMENTS)),
    "qda": qda_posterior(MOMENTS, NIW.default(MOMENTS)),
    "naive": naive_posterior(MOMENTS, NIG.default(MOMENTS)),
    "gaussian": GaussianPosterior(np.zeros(3), np.tril(np.ones((3, 3))), -1.0, NewtonInfo(True, 1, 0.0)),
    "propagation": Propagation(PredictionShift(*[0.0] * 8), 0.0, 0.0, 0.0, -1.0, 0.0, 0),
    "importance": Importance(
        0.1, 1.0, 0.7, 0.1, 1.0, -1.0, 0.0, np.zeros(3), np.ones(3), None, np.zeros((5, 3)), np.full(5, -np.log(5))
    ),
    "features": FeatureMap.fit(X, ("a", "b", "c"), degree=2),
    "moments": MOMENTS,
    "counts": ObservedCounts(np.array([2.0, 3.0]), np.ones((2, 3))),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_our_own_code_makes_is_whole(name):
    check(WHOLE[name])


def test_an_improper_prior_has_no_evidence_and_is_whole():
    for name in ("lda", "qda", "naive"):
        check(replace(WHOLE[name], log_evidence=np.nan))
        for value in (np.inf, -np.inf):
            with pytest.raises(StoreError, match="log_evidence"):
                check(replace(WHOLE[name], log_evidence=value))


def changed(value, where, number):
    out = np.array(value, dtype=float)
    out[where] = number
    return out


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e301])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        *[(name, field) for name in ("lda", "qda") for field in ("m", "kappa", "Psi", "nu", "alpha")],
        *[("naive", field) for field in ("m", "kappa", "a", "b", "alpha")],
        *[("gaussian", field) for field in ("mean", "chol_precision")],
        ("importance", "draws"),
        *[("moments", field) for field in ("mean", "scatter", "count")],
        *[("counts", field) for field in ("values", "count")],
    ],
)
def test_every_number_is_finite_and_has_a_square(name, field, number):
    whole = WHOLE[name]
    last = (-1,) * getattr(whole, field).ndim
    with pytest.raises(BayesGDAError):
        check(replace(whole, **{field: changed(getattr(whole, field), last, number)}))


@pytest.mark.parametrize("number", [0.0, -1.0])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        *[(name, field) for name in ("lda", "qda") for field in ("kappa", "alpha")],
        *[("naive", field) for field in ("kappa", "a", "b", "alpha")],
    ],
)
def test_every_scale_count_and_shape_is_positive(name, field, number):
    whole = WHOLE[name]
    last = (-1,) * getattr(whole, field).ndim
    with pytest.raises(StoreError, match=f"`{field}`"):
        check(replace(whole, **{field: changed(getattr(whole, field), last, number)}))


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_an_inverse_wishart_has_more_than_d_minus_1_degrees_of_freedom(name):
    whole = WHOLE[name]
    check(replace(whole, nu=changed(whole.nu, -1, d - 1 + 1e-6)))
    with pytest.raises(StoreError, match="`nu`"):
        check(replace(whole, nu=changed(whole.nu, -1, d - 1)))
    for wrong in (-np.eye(d), np.ones((d, d)), np.triu(np.ones((d, d)))):
        with pytest.raises(StoreError, match="`Psi`"):
            check(replace(whole, Psi=changed(whole.Psi, -1, wrong)))
    for shape in ((3, d, d), (0, d, d), (d, d), (len(whole.Psi), d, d + 1)):
        with pytest.raises(StoreError, match="`Psi`"):
            check(replace(whole, Psi=np.ones(shape)))


@pytest.mark.parametrize(
    ("name", "field"),
    [
        *[(name, field) for name in ("lda", "qda") for field in ("m", "kappa", "nu", "alpha")],
        *[("naive", field) for field in ("m", "kappa", "a", "b", "alpha")],
        *[("gaussian", field) for field in ("mean", "chol_precision")],
        *[("importance", field) for field in ("draws", "log_weights", "mean_shift", "sd_ratio")],
    ],
)
def test_shapes_fit_together(name, field):
    whole = WHOLE[name]
    value = np.asarray(getattr(whole, field))
    for wrong in (np.concatenate([value, value[:1]]), value[None], value[:0]):
        with pytest.raises(StoreError):
            check(replace(whole, **{field: wrong}))


def test_a_cholesky_factor_is_lower_triangular_with_a_positive_diagonal():
    whole = WHOLE["gaussian"]
    for where, number in (((0, 1), 1e-9), ((1, 1), 0.0), ((2, 2), -1.0)):
        with pytest.raises(StoreError, match="chol_precision"):
            check(replace(whole, chol_precision=changed(whole.chol_precision, where, number)))


def test_errors_and_passes_are_not_negative():
    for field in ("certificate", "laplace_error", "better_error"):
        for number in (-1e-9, np.nan):
            with pytest.raises(StoreError, match=f"`{field}` must be a number of at least 0"):
                check(replace(WHOLE["propagation"], **{field: number}))
    with pytest.raises(StoreError, match="`passes` must not be negative; got -1"):
        check(replace(WHOLE["propagation"], passes=-1))


def test_weights_sum_to_one():
    whole = WHOLE["importance"]
    check(replace(whole, log_weights=np.array([0.0, *[-np.inf] * 4])))
    half = np.log(0.5)
    for log_weights in ([half, half, half, -np.inf, -np.inf], [0.1, *[-np.inf] * 4], [np.nan] * 5, [-2.0] * 5):
        with pytest.raises(StoreError, match="must be normalised"):
            check(replace(whole, log_weights=np.array(log_weights)))


def test_a_feature_map_is_of_its_own_columns():
    whole = WHOLE["features"]
    (center, scale), m = whole.outer, len(whole.monomials)
    for wrong in (
        {"monomials": None},
        {"monomials": whole.monomials[:-1]},
        {"monomials": (), "names": whole.names[:1]},
        {"monomials": (*whole.monomials[:-1], ())},
        {"monomials": (*whole.monomials[:-1], (0, d))},
        {"monomials": (*whole.monomials[:-1], (-1,))},
        {"names": whole.names[1:]},
        {"intercept": False},
        {"feature_names": ()},
        {"outer": (center[:-1], scale)},
        {"outer": (center, scale[:-1])},
        {"outer": (np.full(m, np.nan), scale)},
        {"outer": (center, np.zeros(m))},
        {"outer": (center, np.full(m, np.inf))},
        {"inner": (whole.inner[0][:-1], whole.inner[1])},
        {"inner": (whole.inner[0], -whole.inner[1])},
    ):
        with pytest.raises(StoreError):
            check(replace(whole, **wrong))


def test_objects_without_a_rule_are_whole():
    check(object())
