"""A saved model predicts the same in another process, bit for bit; a file that is not whole is never a model."""

import copy
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import arviz_stats
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from old_formats import write_format_1
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_answers import answers

from bayes_gda import LKJ, NIW, HierarchicalScale, Moments, Normal, load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import InferenceWarning, StoreError
from bayes_gda.estimators import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
)
from bayes_gda.store import LIMIT, files, formats, load, save

IRIS = load_example("iris")
X3, Y3 = IRIS.X, np.array(IRIS.class_names)[IRIS.y]
FRAME = pd.DataFrame(X3, columns=["sepal/length", "π ²", "a" * 100_000, "nul\0!"])
X2, Y2 = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
MOMENTS = Moments.from_arrays(X3, IRIS.y, 3)
FEW = {"draws": 60, "chains": 2}

# name: estimator, X, y
CASES = {
    "lda-exact": (BayesianLDA(**FEW), X3, Y3),
    "lda-exact-frame": (BayesianLDA(prior=NIW.default(MOMENTS), random_state=3, **FEW), FRAME, Y3),
    "qda-exact-int": (BayesianQDA(**FEW), X3, IRIS.y.astype(np.int8) * 10),
    "naive-exact-float": (BayesianNaiveGaussian(**FEW), X3, IRIS.y.astype(np.float32)),
    "naive-exact-object": (BayesianNaiveGaussian(**FEW), X3, Y3.astype(object)),
    "rda-exact-frame": (BayesianRDA(random_state=2, **FEW), FRAME, Y3),
    "lda-laplace": (BayesianLDA(prior=LKJ.default(MOMENTS), inference="laplace", **FEW), FRAME, Y3),
    "lda-mcmc": (BayesianLDA(inference="mcmc", **FEW), FRAME, Y3),
    "logistic-laplace": (BayesianLogisticRegression(inference="laplace", prior_scale=1, **FEW), X2, Y2 == 1),
    "logistic-corrected": (BayesianLogisticRegression(features=2, **FEW), X2, Y2),
    "logistic-mcmc": (BayesianLogisticRegression(inference="mcmc", prior=HierarchicalScale(2.0), **FEW), X2, Y2),
    "softmax-laplace": (BayesianLogisticRegression(inference="laplace", prior=Normal(scale=1.0), **FEW), FRAME, Y3),
}
# The same by other ways, which take longer.
MORE = {
    "lda-exact-default": (BayesianLDA(), X3, Y3),
    "qda-corrected": (BayesianQDA(prior=LKJ.default(MOMENTS), **FEW), X3, Y3),
    "qda-mcmc": (BayesianQDA(inference="mcmc", **FEW), X2, Y2),
    "naive-mcmc": (BayesianNaiveGaussian(inference="mcmc", **FEW), X3, Y3),
    "logistic-laplace-flat": (BayesianLogisticRegression(intercept_scale=np.inf, inference="laplace"), X2, Y2),
    "logistic-laplace-map": (
        BayesianLogisticRegression(features=FeatureMap.fit(X2, degree=2), inference="laplace"),
        X2,
        Y2,
    ),
    "softmax-corrected": (BayesianLogisticRegression(random_state=np.random.RandomState(1), **FEW), X3, Y3),
    "softmax-mcmc": (BayesianLogisticRegression(inference="mcmc", **FEW), X3, Y3),
}
ALL = CASES | MORE


def fit(name):
    model, X, y = ALL[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # 60 draws are few, and it says so
        return copy.deepcopy(model).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    """Every case of CASES, fitted."""
    return {name: fit(name) for name in CASES}


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """The same, in files."""
    return save_all(fitted, tmp_path_factory.mktemp("models"))


def save_all(models, folder):
    paths = {name: folder / f"{name}.nc" for name in models}
    for name, path in paths.items():
        models[name].save(path)
    return paths


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def check_in_a_new_process(models, paths, folder):
    """Every answer of every model, from a process that knows nothing but the files."""
    script = f"""
import sys
import numpy as np, pandas as pd
from bayes_gda.store import load
from stored_answers import answers
data = np.load({str(folder / "X.npz")!r})
for case, path in {[(name, str(path)) for name, path in paths.items()]!r}:
    model = load(path)
    named = hasattr(model, "feature_names_in_")
    X = pd.DataFrame(data[case], columns=model.feature_names_in_) if named else data[case]
    np.savez(path + ".npz", **answers(model, X))
assert "pymc" not in sys.modules
"""
    np.savez(folder / "X.npz", **{name: np.asarray(ALL[name][1])[::5] for name in models})
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, env=environment)
    for name, model in models.items():
        assert model.inference_ == name.split("-")[1]
        expected = answers(model, ALL[name][1][::5])
        with np.load(f"{paths[name]}.npz") as found:
            assert set(found) == set(expected)
            for key, value in expected.items():
                assert same_bits(found[key], value), (name, key)


def test_predictions_are_the_same_bits_in_a_new_process(fitted, saved, tmp_path):
    check_in_a_new_process(fitted, saved, tmp_path)


@pytest.mark.slow
def test_and_so_are_those_of_all_other_ways_to_fit(tmp_path):
    models = {name: fit(name) for name in MORE}
    paths = save_all(models, tmp_path)
    check_in_a_new_process(models, paths, tmp_path)
    for name, model in models.items():
        back = load(paths[name])
        assert vars(back).keys() == vars(model).keys()
        assert back.posterior_.identical(model._draws())


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_estimator_is_as_it_was_fitted(fitted, saved, name):
    model, back = fitted[name], load(saved[name])
    assert type(back) is type(model)
    assert vars(back).keys() == vars(model).keys()
    assert same_bits(back.classes_, model.classes_) or back.classes_.tolist() == model.classes_.tolist()
    assert back.classes_.dtype == model.classes_.dtype
    assert str(back.trust_) == str(model.trust_)
    assert back.posterior_.identical(model._draws())
    assert back.get_params().keys() == model.get_params().keys()
    assert repr(back) == repr(model)
    assert type(back.prior_) is type(model.prior_)
    for parameter in ("inference", "draws", "chains", "sampler", "progress"):
        assert getattr(back, parameter) == getattr(model, parameter)
    if hasattr(model, "feature_names_in_"):
        assert back.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        assert back.feature_names_in_.dtype == model.feature_names_in_.dtype


@pytest.mark.parametrize("name", ["lda-exact-frame", "logistic-corrected", "logistic-mcmc"])
def test_saving_again_and_fitting_again(fitted, saved, tmp_path, name):
    _, X, y = CASES[name]
    back = load(saved[name])
    back.save(tmp_path / "again.nc")
    again = load(tmp_path / "again.nc")
    assert same_bits(again.predict_proba(X), fitted[name].predict_proba(X))
    assert again.posterior_.identical(fitted[name]._draws())
    if "mcmc" not in name:
        assert same_bits(again.fit(X, y).predict_proba(X), fitted[name].predict_proba(X))


def test_a_random_state_goes_on_where_it_stood(tmp_path):
    model = BayesianLDA(random_state=np.random.RandomState(1), **FEW).fit(X3, Y3)
    model.save(tmp_path / "model.nc")
    back = load(tmp_path / "model.nc")
    assert same_bits(back.random_state.random_sample(700), model.random_state.random_sample(700))


@pytest.mark.parametrize("name", ["lda-exact-frame", "logistic-corrected", "lda-mcmc"])
def test_arviz_reads_the_posterior_group(fitted, saved, name):
    with xr.open_datatree(saved[name]) as tree:
        tree.load()
    posterior, expected = tree["posterior"], fitted[name].posterior_["posterior"]
    for variable, values in expected.data_vars.items():
        assert posterior[variable].dims == values.dims
        assert same_bits(posterior[variable].values, values.values)
    table = arviz_stats.summary(tree, var_names=["w" if "w" in expected else "pi"], kind="stats")
    assert len(table) == expected["w" if "w" in expected else "pi"][0, 0].size
    assert {"bayes_gda_format", "bayes_gda_version", "numpy_version"} <= tree.attrs.keys()
    assert ("data_fingerprint" in tree.attrs) == ("mcmc" in name)
    assert posterior.attrs["random_seed"] == fitted[name].seed_


def test_names_that_netcdf_cannot_hold_are_escaped_for_other_readers(saved):
    with xr.open_datatree(saved["lda-exact-frame"]) as tree:
        labels = tree["posterior"]["feature"].to_numpy().tolist()
    assert labels == ["sepal/length", "π ²", "a" * 100_000, r"'nul\x00!'"]
    assert load(saved["lda-exact-frame"]).posterior_["posterior"]["feature"].to_numpy().tolist() == list(FRAME)


def test_five_thousand_features(tmp_path):
    """Names beyond HDF5's 64 KB for an attribute, and a design that is not tiny."""
    rng = np.random.default_rng(0)
    names = [f"a rather long name of a feature, number {j}" for j in range(5000)]
    phi = FeatureMap.fit(rng.standard_normal((5, 5000)), names)
    model = BayesianLogisticRegression(inference="laplace", **FEW).fit(X2, Y2)
    drawn = {"posterior": None, "certificate": None, "draws": rng.standard_normal((20, 5001))}
    model.model_ = replace(model.model_, features=phi, **drawn)
    model.features_, model.prior_, model.n_features_in_ = phi, Normal(scale=1.0), 5000
    model.save(tmp_path / "wide.nc")
    X = rng.standard_normal((3, 5000))
    back = load(tmp_path / "wide.nc")
    assert same_bits(back.predict_proba(X), model.predict_proba(X))
    assert list(back.features_.names) == ["intercept", *names]


def test_a_posterior_too_large_is_cut_for_other_readers_only(tmp_path, monkeypatch):
    assert LIMIT >= 10**6  # what every other test here stays below
    monkeypatch.setattr("bayes_gda.store.LIMIT", 1000)
    model = BayesianQDA().fit(X3, Y3)
    model.save(tmp_path / "model.nc")
    numbers = 3 + 3 * 4 + 3 * 16
    with xr.open_datatree(tmp_path / "model.nc") as tree:
        assert dict(tree["posterior"].sizes)["draw"] == 1000 // numbers
        assert "draws_left_out" in tree["posterior"].attrs
    assert load(tmp_path / "model.nc").posterior_.identical(model._draws())


# ── What cannot be saved ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BayesianLDA(), r"must be fitted; this BayesianLDA is not\. Call fit"),
        (LinearDiscriminantAnalysis(), r"must be one of BayesianLDA.*got LinearDiscriminantAnalysis"),
        (make_pipeline(StandardScaler(), BayesianLDA()), r"got Pipeline\. Save that step alone"),
    ],
)
def test_what_is_not_a_fitted_model_of_ours_is_refused(tmp_path, model, message):
    with pytest.raises(StoreError, match=message):
        save(model, tmp_path / "model.nc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("as_map", [True, False])
def test_a_function_of_the_user_is_refused_and_the_old_file_kept(tmp_path, as_map):
    path = tmp_path / "model.nc"
    BayesianLDA(**FEW).fit(X2, Y2).save(path)
    before = path.read_bytes()
    features = FeatureMap.fit(X2, function=np.abs) if as_map else np.abs
    model = BayesianLogisticRegression(features=features, inference="laplace").fit(X2, Y2)
    with pytest.raises(StoreError, match=r"is a function of your own.*apply the function to X before `fit`"):
        model.save(path)
    assert path.read_bytes() == before


def test_what_would_not_load_is_not_saved(tmp_path):
    model = BayesianLDA(**FEW).fit(X2, Y2)
    model.model_ = replace(model.model_, posterior=replace(model.model_.posterior, kappa=np.array([1.0, np.nan])))
    with pytest.raises(StoreError, match=r"`model_\.posterior` is not a valid NIWPosterior: `kappa` must be finite"):
        model.save(tmp_path / "model.nc")
    assert not list(tmp_path.iterdir())


# ── Older formats ───────────────────────────────────────────────────────────────────────────────────────────────────


def content_of(path):
    return formats.unpack(*files.read(path))


@pytest.mark.parametrize("name", ["naive-exact-float", "logistic-corrected", "logistic-mcmc"])
def test_a_file_of_format_1_still_loads(fitted, saved, tmp_path, name):
    write_format_1(content_of(saved[name]), tmp_path / "old.nc")
    back, X = load(tmp_path / "old.nc"), CASES[name][1]
    assert same_bits(back.predict_proba(X), fitted[name].predict_proba(X))
    assert same_bits(back.classes_, fitted[name].classes_)
    posterior = back.posterior_["posterior"].to_dataset()
    assert posterior.drop_attrs().identical(fitted[name].posterior_["posterior"].to_dataset().drop_attrs())
    back.save(tmp_path / "new.nc")  # and is brought up to date
    assert files.read(tmp_path / "new.nc")[1] == files.FORMAT == 3
