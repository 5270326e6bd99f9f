"""A file that is cut short, damaged or edited is never a model, and says so in one line."""

import copy
import io
import json
import warnings
from dataclasses import replace

import h5py
import numpy as np
import pytest

from bayes_gda import load_example
from bayes_gda.errors import InferenceWarning, StoreError
from bayes_gda.estimators import BayesianLDA
from bayes_gda.store import files, formats, load, records, trees

IRIS = load_example("iris")
Y = np.array(IRIS.class_names)[IRIS.y]


@pytest.fixture(scope="module")
def lda(tmp_path_factory):
    """A small model in a file."""
    path = tmp_path_factory.mktemp("models") / "lda.nc"
    BayesianLDA(draws=5, chains=1).fit(IRIS.X, Y).save(path)
    return path


def content_of(path):
    return formats.unpack(*files.read(path))


def restored(content):
    """What `load` does with the content of a file."""
    trees.restore(content.groups, content.record["groups"])
    return records.from_record(content.record, content.arrays)


def edits(record):
    """Ways to spoil the record of an LDA model, each of which must be noticed."""
    fitted, params = record["fitted"], record["params"]
    model = fitted["model_"]["fields"]

    def put(where, key, value):
        return lambda: where.__setitem__(key, value)

    nan = {"float": "nan"}
    yield from (put(record, "estimator", value) for value in ("BayesianQDA", "Lda", "os.system", 3, None))
    yield from (
        put(record, key, value) for key in ("params", "fitted", "groups") for value in (None, [], {"a": 1}, "x")
    )
    yield from (lambda key=key: fitted.pop(key) for key in list(fitted))
    yield from (lambda key=key: params.pop(key) for key in list(params))
    yield from (put(fitted, key, value) for key in fitted for value in ([], {"array": "nowhere"}, {"tuple": [1]}))
    yield from (put(fitted, "classes_", {"labels": v, "dtype": "<U10"}) for v in (["a"], ["b", "a", "c"], ["a"] * 3))
    yield from (put(fitted, "classes_", {"labels": [1, 2, 3], "dtype": d}) for d in ("O8", "<U3", "|V8", "<f8,<f8"))
    yield from (put(fitted, "n_features_in_", value) for value in (3, 4.0, True, -1))
    yield from (put(fitted, "inference_", value) for value in ("mcmc", "magic", "laplace", None))
    yield from (put(fitted, "seed_", value) for value in (-1, 2**40, 1.5))
    yield from (put(fitted, key, value) for key in ("log_evidence_", "trust_") for value in ("0", None, 1, {}))
    yield from (put(fitted, "extra_", 1), put(params, "extra", 1))
    yield from (put(params, key, value) for key in ("draws", "chains") for value in (0, -1, 2.5, "1", nan, True))
    yield from (put(params, "inference", "magic"), put(params, "sampler", 3), put(params, "progress", "yes"))
    yield from (put(params, "prior", value) for value in (1.0, "NIW", fitted["trust_"]))
    yield from (put(model, key, value) for key in model for value in (1, "x", {"map": {}}))
    yield from (put(model, "covariance", value) for value in ("own", "diagonal"))
    yield from (put(model["prior"]["fields"], key, value) for key in ("kappa", "nu") for value in (-1.0, nan, 1, "2"))
    yield put(model["posterior"], "type", "NIGPosterior")
    yield put(model["posterior"], "type", "builtins.eval")
    yield put(model["posterior"]["fields"], "log_evidence", nan)
    yield put(model["moments"]["fields"], "mean", {"array": "model_.moments.count"})


def spoil_array(home, rng):
    """NaN, inf or a wrong sign in one of the arrays."""
    arrays = [x for x in home.values() if x.attrs.get("CLASS") != b"DIMENSION_SCALE"]
    array = arrays[rng.integers(len(arrays))]
    signed = array.name.endswith((".m", ".mean"))
    kind = rng.choice(["nan", "inf"] if signed else ["nan", "inf", "sign"])
    values = array[()]
    values.flat[rng.integers(values.size)] = np.nan if kind == "nan" else np.inf
    array[()] = -np.abs(array[()]) if kind == "sign" else values


def test_two_hundred_damaged_files_are_all_refused(lda, tmp_path):
    """90 cut short, 90 with flipped bits, 20 edited and sealed again; the next test has every way to edit."""
    rng = np.random.default_rng(20)
    path = tmp_path / "model.nc"
    whole = lda.read_bytes()
    record = content_of(lda).record
    path.write_bytes(whole)
    assert load(path).classes_.tolist() == list(IRIS.class_names)
    ways = list(edits(copy.deepcopy(record)))
    chosen = iter(rng.choice(len(ways), 14, replace=False))

    def cut():
        return whole[: rng.integers(len(whole))]

    def flipped():
        spoiled = bytearray(whole)
        for i in rng.choice(8 * len(whole), size=rng.integers(1, 4), replace=False):
            spoiled[i // 8] ^= 1 << i % 8
        return bytes(spoiled)

    def edited():
        changed = copy.deepcopy(record)
        list(edits(changed))[next(chosen)]()
        return resealed(whole, lambda home: home.attrs.__setitem__("record", json.dumps(changed)))

    def spoiled():
        return resealed(whole, lambda home: spoil_array(home, rng))

    refused = 0
    for damage in [cut] * 90 + [flipped] * 90 + [edited] * 14 + [spoiled] * 6:
        path.write_bytes(damage())
        refused += refuses(path)
    assert refused == 200


def resealed(whole, edit):
    """The bytes of a file whose group `bayes_gda` was edited by someone who knows how to seal it."""
    memory = io.BytesIO(whole)
    with h5py.File(memory, "r+") as file:
        edit(file["bayes_gda"])
    return memory.getvalue() + files.seal(memory.getvalue())


def refuses(path):
    """Whether loading raises our error, on one line that names the file and says what to do."""
    with pytest.raises(StoreError) as caught:
        load(path)
    text = str(caught.value)
    return "\n" not in text and repr(str(path)) in text and text.endswith((".", "`save`."))


def test_every_way_to_edit_a_record_is_refused(lda):
    content = content_of(lda)
    ways = len(list(edits(copy.deepcopy(content.record))))
    for i in range(ways):
        record = copy.deepcopy(content.record)
        list(edits(record))[i]()
        with pytest.raises(StoreError):
            restored(replace(content, record=record))


def test_draws_that_are_not_the_models_are_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # ten draws are few, and it says so
        model = BayesianLDA(inference="mcmc", draws=10, chains=2).fit(IRIS.X, Y)
    model.save(tmp_path / "model.nc")
    content, path = content_of(tmp_path / "model.nc"), tmp_path / "edited.nc"
    posterior = content.groups["posterior"]
    record = content.record | {"groups": {"posterior": content.record["groups"]["posterior"]}}  # the others take time
    content = replace(content, record=record, groups={"posterior": posterior})
    files.write(path, formats.pack(content))
    load(path)
    for spoiled in (
        posterior.drop_vars("mu"),
        posterior.assign(pi=posterior["pi"] + 0.1),
        posterior.isel(draw=slice(9)),
    ):
        files.write(path, formats.pack(replace(content, groups={"posterior": spoiled})))
        with pytest.raises(StoreError, match="must hold the draws of the model"):
            load(path)
    notes = copy.deepcopy(content.record)
    notes["groups"]["posterior"]["text"]["class"]["labels"].pop()
    files.write(path, formats.pack(replace(content, record=notes)))
    with pytest.raises(StoreError, match=r"`posterior\.class` must hold 3 labels"):
        load(path)


@pytest.mark.parametrize("change", ["format", "group", "json", "nan"])
def test_a_layout_that_is_not_ours_is_refused(lda, tmp_path, change):
    tree, _ = files.read(lda)
    text = tree["bayes_gda"].attrs["record"]
    if change == "format":
        tree.attrs["bayes_gda_format"] = 1
    elif change == "group":
        del tree["bayes_gda"]
    else:
        tree["bayes_gda"].attrs["record"] = text[:-1] if change == "json" else text.replace(": 0.0", ": NaN", 1)
        assert tree["bayes_gda"].attrs["record"] != text
    files.write(tmp_path / "edited.nc", tree)
    with pytest.raises(StoreError, match="does not hold a valid model"):
        load(tmp_path / "edited.nc")
