"""A model file from a stranger, sealed as `save` seals it, is harmless: refused in one line, soon, in little memory."""

import copy
import io
import json
import os
import sys
import warnings

import h5py
import numpy as np
import pytest
from hostile.limited import limited
from hostile.profiles import examples
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda import load, load_example
from bayes_gda.errors import BayesGDAError, InferenceWarning, StoreError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.store import files, formats, records, trees

IRIS, PIMA = load_example("iris"), load_example("pima")


def saved(estimator, path):
    estimator.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    """Small models of several kinds, as bytes of their files."""
    folder = tmp_path_factory.mktemp("wholes")
    few = {"draws": 5, "chains": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        made = {
            "lda": BayesianLDA(**few).fit(IRIS.X, IRIS.y),
            "qda": BayesianQDA(**few).fit(IRIS.X, IRIS.y),
            "naive": BayesianNaiveGaussian(**few).fit(IRIS.X, IRIS.y),
            "logistic": BayesianLogisticRegression(inference="laplace", **few).fit(PIMA.X, PIMA.y),
            "sampled": BayesianQDA(inference="mcmc", **few).fit(IRIS.X, IRIS.y),
        }
    return {name: saved(model, folder / f"{name}.nc") for name, model in made.items()}


def resealed(whole, edit):
    """The bytes of a file that was edited by someone who knows how to seal it."""
    memory = io.BytesIO(whole)
    with h5py.File(memory, "r+") as file:
        edit(file)
    return memory.getvalue() + files.seal(memory.getvalue())


# ── Structures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def external(path):
    def edit(file):
        name = "model_.posterior.m"
        shape = file["bayes_gda"][name].shape
        del file["bayes_gda"][name]
        file["bayes_gda"].create_dataset(name, shape, "f8", external=[(str(path), 0, 8 * int(np.prod(shape)))])

    return edit


def nested(file):
    group = file
    for _ in range(3000):
        group = group.create_group("g")


def cycle(file):
    for i in range(8):
        file["bayes_gda"][f"again{i}"] = file["bayes_gda"]


def twice(file):
    file["bayes_gda"]["copy"] = file["bayes_gda"]["model_.posterior.m"]


def declared(file):
    file["bayes_gda"].create_dataset("vast", (10**9,), "f8")  # no value is written


def declared_in_chunks(file):
    file["bayes_gda"].create_dataset("vast", (10**9,), "f8", chunks=(10**6,))


def zeros(file):
    data = file["bayes_gda"].create_dataset("vast", (10**8,), "f8", chunks=(10**6,), compression="gzip")
    for i in range(20):  # 160 MB of 800 declared, in 160 kB
        data[i * 10**6 : (i + 1) * 10**6] = 0.0


def virtual(file):
    layout = h5py.VirtualLayout(shape=(10,), dtype="f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "x", shape=(10,))
    file["bayes_gda"].create_virtual_dataset("elsewhere", layout)


def scaled(file):
    file["bayes_gda"]["model_.posterior.m"].attrs["scale_factor"] = 1e200


def many_attributes(file):
    for i in range(1500):
        file["bayes_gda"].attrs[f"a{i}"] = i


def many_variables(file):
    for i in range(6000):
        file["bayes_gda"].create_dataset(f"v{i}", data=1.0)


def vast_labels(file):
    record = json.loads(file["bayes_gda"].attrs["record"])
    (path,) = (path for path in leaves(record) if path[-2:] == ("classes_", "dtype"))
    *way, last = path
    node = record
    for key in way:
        node = node[key]
    node[last] = "<U99999999"
    file["bayes_gda"].attrs["record"] = json.dumps(record)


def put(name, make):
    return lambda file: file["bayes_gda"].__setitem__(name, make(file))


def stuck(whole):
    """The room that is left in the first heap takes 0 bytes: HDF5 looks for what stands behind it for ever."""
    body = bytearray(whole[: -len(files.seal(b""))])
    heap = body.index(b"GCOL\x01")
    at = heap + 16
    while number := int.from_bytes(body[at : at + 2], "little"):
        at += 16 + -(-int.from_bytes(body[at + 8 : at + 16], "little") // 8) * 8
    assert number == 0
    assert any(body[at + 8 : at + 16])
    body[at + 8 : at + 16] = bytes(8)
    return bytes(body) + files.seal(bytes(body))


STRUCTURES = {
    "nested groups": nested,
    "hard-link cycle": cycle,
    "one variable twice": twice,
    "soft link": put("link", lambda file: h5py.SoftLink("/bayes_gda")),
    "external link": put("link", lambda file: h5py.ExternalLink("/etc/hostname", "/")),
    "values declared, not there": declared,
    "chunks declared, not there": declared_in_chunks,
    "bomb of zeros": zeros,
    "virtual variable": virtual,
    "compound type": put("odd", lambda file: np.zeros(2, dtype=[("a", "f8"), ("b", "i4")])),
    "opaque type": put("odd", lambda file: np.void(b"abc")),
    "enum type": put("odd", lambda file: np.array([True, False])),
    "reference": put("odd", lambda file: file["bayes_gda"].ref),
    "named type": put("odd", lambda file: np.dtype("f8")),
    "scale of values": scaled,
    "many attributes": many_attributes,
    "many variables": many_variables,
    "variable without dimensions": put("odd", lambda file: np.zeros(3)),
    "labels of 100 million characters": vast_labels,
    "list of texts as an attribute": lambda file: file["bayes_gda"].attrs.__setitem__("many", ["a"] * 5),
}
LOADING = """
    from bayes_gda import load
    from bayes_gda.errors import StoreError
    import h5netcdf, xarray, pandas, dask.config
    load(sys.argv[1])
"""
EACH = """
    out = []
    for path in sys.argv[2:]:
        begun = time.monotonic()
        try:
            load(path)
            said = ""
        except StoreError as error:
            said = str(error)
        out.append((said, time.monotonic() - begun))
    print(json.dumps(out))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and pipes as Linux has them")
def test_structures_that_save_never_writes_are_refused(wholes, tmp_path):
    """20 kinds of structures, a heap without end and 4 paths, in 500 MB and seconds each; none opens another file."""
    whole, paths = wholes["lda"], []
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    os.mkfifo(pipe)  # to open it would be to hang
    other.write_bytes(np.ones(100).tobytes())
    forgeries = STRUCTURES | {"pipe as storage": external(pipe), "file as storage": external(other)}
    for i, edit in enumerate(forgeries.values()):
        paths.append(tmp_path / f"{i}.nc")
        paths[-1].write_bytes(resealed(whole, edit))
        assert paths[-1].stat().st_size < 5_000_000
    heap = tmp_path / "heap.nc"
    heap.write_bytes(stuck(whole))
    good = tmp_path / "good.nc"
    good.write_bytes(whole)
    results = limited(LOADING, EACH, str(good), *map(str, paths), str(heap), str(pipe), str(tmp_path))
    for name, (said, seconds) in zip([*forgeries, "a heap without end", "a pipe", "a folder"], results, strict=True):
        assert said, f"{name} was loaded"
        assert "\n" not in said, name
        assert "phony_dims" not in said, name  # which is an option of h5netcdf, not of ours
        assert seconds < 5, f"{name}: {seconds:.1f} s"
    assert len(results) == 25


def test_a_class_named_as_a_heap_is_loaded(tmp_path):
    """What HDF5 writes before its texts may stand in a text."""
    model = BayesianLDA(draws=5, chains=1).fit(IRIS.X, np.array(["GCOL", "GCOLGCOL", "GCOL1"])[IRIS.y])
    model.save(tmp_path / "model.nc")
    assert load(tmp_path / "model.nc").classes_.tolist() == ["GCOL", "GCOL1", "GCOLGCOL"]


# ── Contents ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Contents(dict):
    """Whole models by name. Hypothesis prints the arguments of a failure, and warns of long ones."""

    def __repr__(self):
        return f"the contents of {', '.join(self)}"


@pytest.fixture(scope="module")
def contents(wholes, tmp_path_factory):
    path = tmp_path_factory.mktemp("contents") / "model.nc"
    out = Contents()
    for name, whole in wholes.items():
        path.write_bytes(whole)
        out[name] = formats.unpack(*files.read(path))
    return out


def restored(record, arrays, groups):
    """What `load` does with the content of a file."""
    estimator = records.from_record(record, arrays)
    posterior = trees.restore(groups, record.get("groups"))
    if estimator.inference_ == "mcmc":
        records.check_sampled(estimator, posterior)
    return estimator


def harmless(content, record, arrays):
    """Whether a forged content is refused, or makes a model that has probabilities and warns of nothing."""
    try:
        model = restored(record, arrays, content.groups)
    except MemoryError:
        raise
    except Exception:  # `load` turns these into its one line; a bomb or a hang it could not
        return "refused"
    X = (IRIS if model.n_features_in_ == IRIS.d else PIMA).X[:5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InferenceWarning)
        try:
            P = model.predict_proba(X)
        except BayesGDAError:
            return "refused"
    assert np.isfinite(P).all()
    assert np.allclose(P.sum(axis=1), 1)
    return "loaded"


NUMBERS = st.sampled_from([0.0, -1.0, 1e-300, 1e-200, 1e60, 1e149, 1e200, -1e200, 1e308, np.nan, np.inf, -np.inf])


def leaves(node, path=()):
    """Every place of a record, from the top down."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.sampled_from([0, 1, -1, 2**31, 10**9, 10**18]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([{"float": "nan"}, {"float": "inf"}, {"tuple": []}, {"list": []}, {"map": {}}, [], {}]),
    st.sampled_from([{"labels": [1], "dtype": "<U99999999"}, {"labels": ["a"], "dtype": "<U999999999"}]),
    st.builds(lambda name: {"array": name}, st.sampled_from(["model_.shares", "model_.posterior.m", "x"])),
)


@given(
    name=st.sampled_from(["lda", "logistic", "naive", "qda", "sampled"]),
    which=st.integers(0, 10**6),
    kind=st.sampled_from(["entry", "all", "factor", "shape", "rounded", "permuted"]),
    number=NUMBERS,
    where=st.integers(0, 10**6),
)
@examples(60, 3000)
def test_numbers_of_a_forger(contents, name, which, kind, number, where):
    """One entry, one array, or its shape, is another."""
    content = contents[name]
    arrays = dict(content.arrays)
    key = sorted(arrays)[which % len(arrays)]
    value = arrays[key].copy()
    if kind == "entry":
        value.flat[where % value.size] = number
    elif kind == "all":
        value[...] = number
    elif kind == "factor":
        with np.errstate(all="ignore"):
            value = value * number
    elif kind == "shape":
        value = value.reshape(-1)[: where % (value.size + 1)]
    elif kind == "rounded":
        value = value.astype("f4")
    else:
        value = value[::-1] if value.ndim else -value
    arrays[key] = value
    harmless(content, copy.deepcopy(content.record), arrays)


@given(data=st.data())
@examples(60, 6000)
def test_records_of_a_forger(contents, data):
    """One to three places of the record hold something else, or what another place holds."""
    name = data.draw(st.sampled_from(sorted(contents)))
    content = contents[name]
    record = copy.deepcopy(content.record)
    for _ in range(data.draw(st.integers(1, 3))):
        places = [path for path in leaves(record) if path and path[0] != "groups"]
        *way, last = data.draw(st.sampled_from(places))
        node = record
        for key in way:
            node = node[key]
        kind = data.draw(st.sampled_from(["other", "swap", "drop"]))
        if kind == "other":
            node[last] = copy.deepcopy(data.draw(JSON))  # those that stand ready must stay as they are
        elif kind == "swap":
            *way, other = data.draw(st.sampled_from(places))
            source = record
            for key in way:
                source = source[key]
            node[last] = copy.deepcopy(source[other])
        elif isinstance(node, dict):
            del node[last]
    json.dumps(record)
    harmless(content, record, content.arrays)


@given(data=st.data())
@examples(10, 1000)
def test_bytes_of_a_forger(wholes, data, tmp_path_factory):
    """Any bytes of the HDF5 file are others, and the file is sealed again."""
    whole = bytearray(wholes[data.draw(st.sampled_from(["lda", "logistic"]))][: -len(files.seal(b""))])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "forged.nc"
    path.write_bytes(bytes(whole) + files.seal(bytes(whole)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = ""
        try:
            load(path)
        except StoreError as error:
            said = str(error)
    assert "\n" not in said


FORGED = {
    "a posterior far away": ("lda", "model_.posterior.m", lambda m: m * 1e200),
    "a posterior beside the data": ("lda", "model_.posterior.m", lambda m: m + 1),
    "other shares": ("lda", "model_.posterior.alpha", lambda alpha: alpha * [1, 1, 1e6]),
    "other prior shares": ("lda", "model_.alpha", lambda alpha: alpha * [1, 1, 1e6]),
    "a wider covariance": ("qda", "model_.posterior.Psi", lambda Psi: Psi * 4),
    "fewer degrees of freedom": ("qda", "model_.posterior.nu", lambda nu: nu - 1),
    "other variances": ("naive", "model_.posterior.b", lambda b: b * 4),
    "weights beyond all": ("logistic", "model_.posterior.mean", lambda w: w * 1e200),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_number_that_the_rules_would_not_have_made_is_refused(contents, forgery):
    name, key, change = FORGED[forgery]
    content = contents[name]
    restored(content.record, content.arrays, content.groups)
    with pytest.raises(StoreError):
        restored(content.record, {**content.arrays, key: change(content.arrays[key])}, content.groups)


@pytest.mark.parametrize("params", [{"draws": 10**9}, {"chains": 10**9}, {"draws": 10**5, "chains": 10**5}])
def test_draws_beyond_all_are_refused(contents, params):
    content = contents["lda"]
    record = copy.deepcopy(content.record)
    record["params"] |= params
    with pytest.raises(StoreError, match="`draws` × `chains` must be at most"):
        restored(record, content.arrays, content.groups)
