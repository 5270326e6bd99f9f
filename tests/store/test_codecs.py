"""Values survive the way through JSON and arrays bit for bit; what is not on the list is refused by name."""

import json
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest

from bayes_gda import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Moments, Normal, load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.gaps import ObservedCounts
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import StoreError
from bayes_gda.families.base import Family
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.gaussian.classifier import AveragedClassifier, GaussianClassifier
from bayes_gda.families.gaussian.continuum import Grid
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.ep.row_certificate import RowCertificate
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.families.mixed.choice import Choice
from bayes_gda.families.mixed.classifier import MixedClassifier
from bayes_gda.families.mixed.column import Statistic
from bayes_gda.families.mixture.family import MixtureModel
from bayes_gda.families.registry import register, unregister
from bayes_gda.methods.diagnostics import diagnose
from bayes_gda.methods.importance.trust import assess
from bayes_gda.methods.verdict import Propagation, Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior
from bayes_gda.store.codecs import decode, encode, stored_types

IRIS = load_example("iris")
MOMENTS = Moments.from_arrays(IRIS.X, IRIS.y, IRIS.K)


def round_trip(value):
    """Through text, as a file has it."""
    arrays = {}
    text = json.dumps(encode(value, arrays, "value"), allow_nan=False)
    text.encode("ascii")  # netCDF's text takes neither NUL nor lone surrogates
    return decode(json.loads(text), {name: array.copy() for name, array in arrays.items()}, "value")


def same(a, b):
    """Equal in type and in every bit."""
    if isinstance(a, np.ndarray):
        if a.dtype.kind in "OT":
            return a.dtype == b.dtype and list(map(type, a)) == list(map(type, b)) and a.tolist() == b.tolist()
        return isinstance(b, np.ndarray) and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_exact=True)
        return True
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def a_trust():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    phi = FeatureMap.fit(X)
    target = LogisticTarget(phi(X), y, Normal.default(3))
    posterior = regression_laplace(target)
    return phi, posterior, assess(target, posterior, predictor=BinaryPredictor(phi(X)), draws=400)


def a_diagnosis():
    rng = np.random.default_rng(0)
    tree = to_datatree({"w": rng.standard_normal((400, 2))}, {"coefficient": ["intercept", "a\0"]}, chains=4)
    return diagnose(tree)


PHI, LAPLACE, TRUST = a_trust()
EXACT = lda_posterior(MOMENTS, NIW.default(MOMENTS))
COUNTS = ObservedCounts(MOMENTS.count, np.full((3, 4), 2.0))
NOISE = MonteCarlo(120, "training", 3, 0.0061, 0.01)
PROPAGATED = Verdict(
    "trusted", "reason", "step", propagation=Propagation(TRUST.shift, 1e-3, 0.1 / 3, 0.01, -12.5, 1 / 30, 7)
)
CERTIFICATE = RowCertificate(LAPLACE, LAPLACE, np.eye(3) / 3, np.eye(3) / 7, 0.1 / 3)
COMPONENTS = {
    "pi": np.full((5, 2), 0.5),
    "weight": np.tile([0.3, 0.7, 1.0], (5, 1)),
    "component_mu": np.arange(15.0).reshape(5, 3, 1),
    "component_Sigma": np.ones((5, 3, 1, 1)),
}
COLUMN = ColumnPrior("a", "normal", 0, 1, np.ones(4))
LEVELS = ColumnPrior("b", "categorical", 1, 2, np.ones(3), ("u", "v"), coded=True)
STATISTICS = Statistic(np.ones((2, 4))), Statistic(np.ones((2, 3)))
CHOICE = Choice("a", "normal", "evidence", {"normal": -1.5, "gamma": -2.0})
MIXED = MixedClassifier(MixedPrior((COLUMN, LEVELS)), np.ones(2), np.array([3.0, 4.0]), STATISTICS, (CHOICE,))
OBJECTS = [
    NIW.default(MOMENTS),
    NIG.default(MOMENTS),
    LKJ.default(MOMENTS),
    Dirichlet(),
    Dirichlet([1.0, 0.1, 2.0]),
    Normal(scale=np.inf),
    Normal(mean=[1.0, 0.1], covariance=[[2.0, 0.3], [0.3, 1.0]]),
    Normal.default(4, intercept_scale=np.inf),
    HierarchicalScale(1 / 3),
    MOMENTS,
    EXACT,
    qda_posterior(MOMENTS, NIW.default(MOMENTS)),
    naive_posterior(MOMENTS, NIG.default(MOMENTS)),
    PHI,
    FeatureMap.fit(IRIS.X, IRIS.feature_names, degree=3),
    FeatureMap.fit(IRIS.X, ["a\0b", "\udc80", "π/2", ""], standardize=False, intercept=False),
    LAPLACE,
    TRUST,
    Verdict("sampled", "reason", "step", diagnosis=a_diagnosis(), before=TRUST, monte_carlo=NOISE),
    GaussianClassifier("shared", MOMENTS, NIW.default(MOMENTS), np.ones(3), posterior=EXACT),
    GaussianClassifier("shared", MOMENTS, LKJ.default(MOMENTS), np.ones(3), draws=EXACT.draw(7, random_seed=1)),
    RegressionClassifier(PHI, 2, True, False, np.array([0.4, 0.6]), posterior=LAPLACE),
    RegressionClassifier(
        PHI, 3, False, True, np.array([0.4, 0.3, 0.3]), draws=np.ones((5, 6)) / 3, tau=np.arange(1.0, 6.0)
    ),
    COUNTS,
    CERTIFICATE,
    SoftmaxRowCertificate(LAPLACE, LAPLACE, np.ones((3, 2)) / 3, 0.1 / 3, 2, True),
    MixtureModel("mixture", 2, 1, np.array([0.4, 0.6]), COMPONENTS, components=(2, 1)),
    RegressionClassifier(PHI, 2, True, False, np.array([0.4, 0.6]), posterior=LAPLACE, certificate=CERTIFICATE),
    Grid(pooling=(0.1, 0.9), diagonal=(0.0, 1.0)),
    AveragedClassifier(MOMENTS, np.ones(3), MOMENTS.scatter.sum(axis=0) / 150, Grid((0.1, 0.9))),
    DrawnModel("lda", 3, 4, np.array([0.4, 0.3, 0.3]), EXACT.draw(7, random_seed=1)),
    PROPAGATED,
    COLUMN,
    MIXED,
    MIXED.prior,
    CHOICE,
    *STATISTICS,
]


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_come_back_bit_for_bit(value):
    assert same(round_trip(value), value)


def test_fields_that_came_later_may_be_absent():
    model = RegressionClassifier(PHI, 2, True, False, np.array([0.4, 0.6]), posterior=LAPLACE, certificate=CERTIFICATE)
    arrays = {}
    node = encode(model, arrays, "model")
    del node["fields"]["certificate"]
    assert decode(node, arrays, "model").certificate is None
    del node["fields"]["shares"]
    with pytest.raises(StoreError, match="does not have the fields of RegressionClassifier: shares"):
        decode(node, arrays, "model")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gap": np.nan}, "`gap` must lie between 0 and 1"),
        ({"third": np.eye(2)}, "two matrices"),
        ({"covariance_change": np.full((3, 3), np.nan)}, "covariance_change"),
    ],
)
def test_a_certificate_that_is_not_whole(change, words):
    with pytest.raises(StoreError, match=words):
        round_trip(replace(CERTIFICATE, **change))


def test_every_type_on_the_list_is_tested():
    seen = {type(value).__name__ for value in OBJECTS} | {
        "Diagnosis",
        "Importance",
        "MonteCarlo",
        "NewtonInfo",
        "PredictionShift",
        "Propagation",
        "Thresholds",
    }  # inside
    assert seen == set(stored_types())
    assert same(TRUST.shift, round_trip(TRUST).shift)


@dataclass(frozen=True)
class Rate:
    """A prior of the user's own."""

    shape: float


def family_of(*types):
    """A family that is known by nothing but its name and the types of its files."""
    return type("Mine", (Family,), {"name": "mine", "kind": "generative", "stored": types})


def test_the_types_of_a_registered_family_can_be_stored_while_it_is_registered():
    register(family_of(Rate))
    try:
        node = encode(Rate(0.5), {}, "prior_")
        assert decode(node, {}, "prior_") == Rate(0.5)
        with pytest.raises(StoreError, match=r"`prior_\.shape` must be float; got str 'x'"):
            decode({"type": "Rate", "fields": {"shape": "x"}}, {}, "prior_")
    finally:
        unregister("mine")
    with pytest.raises(StoreError, match="cannot be stored"):
        encode(Rate(0.5), {}, "prior_")
    with pytest.raises(StoreError, match="not a value that bayes_gda stores"):
        decode(node, {}, "prior_")


def test_a_family_cannot_take_the_place_of_a_type_of_ours():
    impostor = dataclass(frozen=True)(type("NIW", (), {"__annotations__": {"m": float}}))
    register(family_of(impostor))
    try:
        assert same(round_trip(NIW.default(MOMENTS)), NIW.default(MOMENTS))
        with pytest.raises(StoreError, match="cannot be stored"):
            encode(impostor(1.0), {}, "prior_")
    finally:
        unregister("mine")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**70),
        0.1,
        -0.0,
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        "a\0\udc80\n{}",
        (1, (2.0, "x"), ()),
        [1, None],
        {"a": {"b": (1,)}},
        np.array(["b", "äöü"]),
        np.array(["b", "", "long\0"], dtype=object),
        np.array(["b", "c"], dtype=np.dtypes.StringDType()),
        np.array([1, 5], dtype=np.int8),
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.array([0.1, np.inf, np.nan], dtype=np.float32),
        np.array([True, False]),
        np.array([True, 1, "x", 2.5], dtype=object),
        np.array([-0.0, np.nan, np.inf, 5e-324]),
        np.array(2.5),
        np.zeros((0, 3)),
    ],
    ids=repr,
)
def test_plain_values_keep_type_and_bits(value):
    back = round_trip(value)
    assert same(back, value)
    assert repr(back) == repr(value)


def test_numpy_scalars_become_python_ones():
    values = (np.float64(0.1), np.int64(3), np.bool_(True), np.float32(0.1))
    assert same(round_trip(values), (0.1, 3, True, float(np.float32(0.1))))


def test_a_function_is_refused_with_the_remedy():
    phi = FeatureMap.fit(IRIS.X, function=np.log)
    with pytest.raises(StoreError, match=r"`features\.function` is a function of your own.*before `fit`"):
        encode(phi, {}, "features")


@pytest.mark.parametrize("value", [object(), 1j, {1: 2}, b"x", np.array([1j]), np.ones((2, 2), int), {1, 2}])
def test_other_values_are_refused_by_name(value):
    with pytest.raises(StoreError, match=r"^`params\.x` cannot be stored: [^\n]*$"):
        encode(value, {}, "params.x")


def test_a_subclass_is_not_taken_for_its_parent():
    class Mine(NIW):
        pass

    prior = NIW.default(MOMENTS)
    with pytest.raises(StoreError, match="cannot be stored"):
        encode(Mine(prior.m, prior.kappa, prior.Psi, prior.nu), {}, "prior")


NIW_NODE = {"type": "NIW", "fields": {"m": {"array": "m"}, "kappa": 1.0, "Psi": {"array": "Psi"}, "nu": 4.0}}
NIW_ARRAYS = {"m": np.zeros(2), "Psi": np.eye(2), "three": np.zeros(3), "ints": np.zeros(2, int), "bad": -np.eye(2)}


def test_the_node_that_the_next_test_breaks_is_good():
    assert decode(NIW_NODE, NIW_ARRAYS, "prior").kappa == 1.0


@pytest.mark.parametrize(
    ("field", "node", "message"),
    [
        ("m", {"array": "three"}, "`m` must be a number or a vector of 2"),
        ("m", {"array": "ints"}, r"`prior\.m` must be .*got an array of dtype int64"),
        ("m", {"array": "nowhere"}, "not a value that bayes_gda stores"),
        ("m", 0.0, r"`prior\.m` must be"),
        ("Psi", {"array": "bad"}, "must be positive definite"),
        ("kappa", -1.0, "`kappa` must be finite and greater than 0"),
        ("kappa", 1, r"`prior\.kappa` must be float; got int 1"),
        ("kappa", True, r"`prior\.kappa` must be float; got bool True"),
        ("kappa", "1.0", r"`prior\.kappa` must be float; got str"),
        ("kappa", {"float": "nan"}, "`kappa` must be finite"),
        ("kappa", {"float": "__import__('os')"}, "not a value"),
        ("kappa", {"type": "os.system", "fields": {}}, "not a value"),
        ("kappa", {"type": "NIW", "fields": {}}, "does not have the fields of NIW"),
        ("kappa", {"labels": ["abc"], "dtype": "<U2"}, "does not fit"),
        ("kappa", {"labels": ["abc"], "dtype": "<i8"}, "must hold labels"),
        ("kappa", {"labels": [300], "dtype": "|i1"}, "does not fit"),
        ("kappa", {"labels": [1], "dtype": "i8,i8"}, "must hold labels"),
        ("kappa", [1.0], "not a value"),
        ("kappa", {}, "not a value"),
        ("nu", 0.5, "must exceed d - 1"),
        ("other", 1.0, "does not have the fields of NIW: other"),
    ],
)
def test_a_wrong_field_is_named(field, node, message):
    broken = {"type": "NIW", "fields": NIW_NODE["fields"] | {field: node}}
    with pytest.raises(StoreError, match=message) as caught:
        decode(broken, NIW_ARRAYS, "prior")
    assert "\n" not in str(caught.value)


def spoiled(value, path, change):
    """Encode, change one field of the JSON or one array, and try to read it."""
    arrays = {}
    node = encode(value, arrays, "value")
    name = f"value.{path}"
    if name in arrays:
        arrays[name] = change(arrays[name].copy())
    else:
        inner = node
        for part in path.split(".")[:-1]:
            inner = inner["fields"][part]
        inner["fields"][path.split(".")[-1]] = change(None)
    return decode(node, arrays, "value")


def put(index, new):
    def change(array):
        array[index] = new
        return array

    return change


def drop_last(array):
    return array[:-1]


def always(new):
    return lambda _: new


DRAWN = OBJECTS[-8]
SPOILERS = [
    (MOMENTS, "mean", put((0, 0), np.nan)),
    (MOMENTS, "count", drop_last),
    (EXACT, "m", drop_last),
    (EXACT, "kappa", put(0, -1.0)),
    (EXACT, "Psi", put((0, 0, 0), -1.0)),
    (EXACT, "Psi", put((0, 0, 1), 5.0)),
    (EXACT, "nu", put(0, 1.0)),
    (EXACT, "log_evidence", always({"float": "inf"})),
    (OBJECTS[19], "posterior.log_evidence", always({"float": "nan"})),  # its prior is proper
    (OBJECTS[12], "b", put((0, 0), 0.0)),
    (OBJECTS[12], "a", drop_last),
    (LAPLACE, "mean", put(0, np.inf)),
    (LAPLACE, "chol_precision", put((0, 0), 0.0)),
    (LAPLACE, "chol_precision", put((0, 1), 1.0)),
    (LAPLACE, "chol_precision", drop_last),
    (LAPLACE, "info", always(None)),
    (PROPAGATED, "propagation.better_error", always(-0.1)),
    (PROPAGATED, "propagation.laplace_error", always({"float": "nan"})),
    (PROPAGATED, "propagation.certificate", always(-1.0)),
    (PROPAGATED, "propagation.passes", always(-1)),
    (TRUST, "verdict", always("fine")),
    (TRUST, "importance", always({"map": {}})),
    (TRUST, "diagnosis", always(1)),
    (TRUST, "before", always("trusted")),
    (TRUST, "importance.log_weights", put(0, 0.0)),
    (TRUST, "importance.log_weights", put(0, np.nan)),
    (TRUST, "importance.draws", drop_last),
    (TRUST, "importance.draws", put((0, 0), np.nan)),
    (TRUST, "importance.sd_ratio", drop_last),
    (PHI, "names", always({"tuple": ["intercept"]})),
    (PHI, "monomials", always({"tuple": [{"tuple": [0]}, {"tuple": [7]}]})),
    (PHI, "monomials", always(None)),
    (PHI, "inner.0", put(0, np.nan)),
    (PHI, "outer.1", put(0, 0.0)),
    (PHI, "outer.1", drop_last),
    (OBJECTS[19], "covariance", always("own")),
    (OBJECTS[19], "covariance", always("diagonal")),
    (OBJECTS[19], "posterior", always(None)),
    (OBJECTS[19], "alpha", drop_last),
    (OBJECTS[19], "posterior.alpha", put(0, 0.0)),
    (OBJECTS[19], "posterior.alpha", put(1, -1.0)),
    (OBJECTS[20], "covariance", always("own")),
    (OBJECTS[20], "draws.pi", put((0, 0), -0.1)),
    (OBJECTS[20], "draws.Sigma", put((0, 0, 0), -0.1)),
    (OBJECTS[20], "draws.mu", drop_last),
    (OBJECTS[21], "K", always(3)),
    (OBJECTS[21], "shares", put(0, 0.9)),
    (OBJECTS[21], "binary", always(False)),
    (OBJECTS[22], "K", always(4)),
    (OBJECTS[22], "reference", always(False)),
    (OBJECTS[22], "draws", put((0, 0), np.nan)),
    (OBJECTS[22], "tau", drop_last),
    (COUNTS, "count", drop_last),
    (COUNTS, "count", put(0, np.inf)),
    (COUNTS, "values", put((0, 0), -1.0)),
    (COUNTS, "values", put((0, 0), 51.0)),
    (DRAWN, "family", always("nobody's")),
    (DRAWN, "K", always(4)),
    (DRAWN, "draws.mu", drop_last),
    (DRAWN, "draws.pi", put((0, 0), np.nan)),
    (DRAWN, "draws", always({"map": {}})),
]


@pytest.mark.parametrize(
    ("value", "path", "change"), SPOILERS, ids=[f"{type(v).__name__}-{p}-{i}" for i, (v, p, _) in enumerate(SPOILERS)]
)
def test_an_object_that_does_not_hold_together_is_refused(value, path, change):
    with pytest.raises(StoreError, match=r"^`value"):
        spoiled(value, path, change)
