"""`fit` takes tables: paths, tables opened before. The answers are those of `fit` to the same rows in memory."""

import numpy as np
import pandas as pd
import pytest

from bayes_gda.data.large.batches import open_batches
from bayes_gda.errors import DataError, InferenceWarning
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA

PARTS = {BayesianNaiveGaussian: ("m", "kappa", "a", "b", "alpha")}
WRITERS = {
    "t.csv": lambda df, path: df.to_csv(path, index=False),
    "t.parquet": lambda df, path: df.to_parquet(path, row_group_size=700),
}


def table(n=4000, K=3):
    rng = np.random.default_rng(K)
    X = rng.normal(size=(n, 3)) * [1, 5, 0.2] + 2
    y = ((X - 2) / [2, 10, 0.4] @ rng.normal(size=(3, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return pd.DataFrame(X, columns=["a", "b", "c"]), np.array(["u", "v", "w"])[y]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianNaiveGaussian])
def test_gaussian_models_from_a_path(cls, name, tmp_path):
    frame, y = table()
    WRITERS[name](frame.assign(kind=y), tmp_path / name)
    model, truth = cls().fit(str(tmp_path / name), "kind"), cls().fit(frame, y)
    for part in PARTS.get(cls, ("m", "kappa", "Psi", "nu", "alpha")):
        a, b = getattr(model.model_.posterior, part), getattr(truth.model_.posterior, part)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())
    assert model.log_evidence_ == pytest.approx(truth.log_evidence_, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(frame), truth.predict_proba(frame), atol=1e-10)


@pytest.mark.parametrize(("K", "name"), [(2, "t.csv"), (2, "t.parquet"), (3, "t.parquet")])
def test_regressions_from_a_path(K, name, tmp_path, monkeypatch):
    monkeypatch.setattr("bayes_gda.estimators.online.SUBSAMPLE_ROWS", 1500)
    monkeypatch.setattr("bayes_gda.data.large.batches.BATCH_ROWS", 900)
    frame, y = table(3000, K)
    WRITERS[name](frame.assign(kind=y), tmp_path / name)
    model = BayesianLogisticRegression().fit(tmp_path / name, "kind")
    truth = BayesianLogisticRegression(inference="laplace", features=model.features_, prior=model.prior_).fit(frame, y)
    a, b = model.model_.posterior, truth.model_.posterior
    # Both searches end at a step below 1e-7 posterior sd, which is still taken: the mode has an error of its square and
    # the curvature one of its size.
    assert np.abs(a.whiten(b.mean)).max() < 1e-10
    np.testing.assert_allclose(a.chol_precision, b.chol_precision, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(frame), truth.predict_proba(frame), atol=1e-8)
    np.testing.assert_allclose(model.model_.shares, truth.model_.shares, rtol=1e-12)
    # The verdict is on all rows, as in memory.
    assert model.trust_.verdict == truth.trust_.verdict == "trusted"
    error = np.hypot(model.log_evidence_error_, truth.log_evidence_error_)
    assert abs(model.log_evidence_ - truth.log_evidence_) < 5 * error
    # By expectation propagation, or by the variational Gaussian.
    seen, whole = model.trust_.propagation, truth.trust_.propagation
    assert seen.method == {2: "ep", 3: "variational"}[K]
    assert "on 3000 training rows" in model.trust_.reason
    assert seen.shift.largest == pytest.approx(whole.shift.largest, rel=0.01)
    assert seen.better_error == pytest.approx(whole.better_error, rel=0.5)
    rows = np.vstack([frame.to_numpy()[:50], 5 * frame.to_numpy()[:50]])
    rows = pd.DataFrame(rows, columns=frame.columns)
    np.testing.assert_allclose(model.trust_for(rows).error, truth.trust_for(rows).error, rtol=0.5, atol=1e-5)


def test_few_rows_of_three_classes_are_corrected(tmp_path):
    """The variational posterior of a table is that of `fit`, where it corrects Laplace and where it is asked for."""
    frame, y = table(60)
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    model, truth = BayesianLogisticRegression().fit(tmp_path / "t.parquet", "y"), BayesianLogisticRegression()
    truth.fit(frame, y)
    assert model.inference_ == truth.inference_ == "variational"
    np.testing.assert_allclose(model.predict_proba(frame), truth.predict_proba(frame), atol=1e-6)
    asked = BayesianLogisticRegression(inference="variational").fit(tmp_path / "t.parquet", "y")
    np.testing.assert_array_equal(asked.predict_proba(frame), model.predict_proba(frame))


def test_few_rows_are_corrected_or_named_as_what_they_are(tmp_path):
    """Sixty rows, nearly separated: the corrected posterior is that of `fit`, and a hopeless one keeps Laplace."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = (frame["a"] + 0.4 * rng.normal(size=60) > 0).astype(int).to_numpy()
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    model = BayesianLogisticRegression().fit(tmp_path / "t.parquet", "y")
    truth = BayesianLogisticRegression().fit(frame, y)
    assert model.inference_ == truth.inference_ == "ep"
    np.testing.assert_allclose(model.predict_proba(frame), truth.predict_proba(frame), atol=0.001)
    asked = BayesianLogisticRegression(inference="ep").fit(tmp_path / "t.parquet", "y")
    np.testing.assert_array_equal(asked.predict_proba(frame), model.predict_proba(frame))
    assert BayesianLogisticRegression(inference="laplace").fit(tmp_path / "t.parquet", "y").inference_ == "laplace"
    wide = pd.DataFrame(rng.normal(size=(40, 30)), columns=[f"x{j}" for j in range(30)])
    wide.assign(y=np.arange(40) % 2).to_parquet(tmp_path / "wide.parquet")
    with pytest.warns(InferenceWarning, match=r"The Laplace approximation is kept\. Fit a random part"):
        model = BayesianLogisticRegression(prior_scale=100.0).fit(tmp_path / "wide.parquet", "y")
    assert model.trust_.verdict == "needs-mcmc"
    assert model.inference_ == "laplace"


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianLogisticRegression])
def test_a_path_is_no_opened_table(cls):
    with pytest.raises(DataError, match=r"from `open_batches` or `open_cluster`; got str\. Use fit\(path, target\)"):
        cls().fit_batches("t.parquet")


def test_an_opened_table_and_what_does_not_go_with_it(tmp_path):
    frame, y = table(500)
    frame.assign(kind=y).to_parquet(tmp_path / "t.parquet")
    opened = open_batches(tmp_path / "t.parquet", target="kind", drop=["c"])
    model = BayesianLDA().fit(opened)
    assert list(model.feature_names_in_) == ["a", "b"]
    for args, message in [
        ((opened, "kind"), "`y` must be None for a table that was opened with its target"),
        ((tmp_path / "t.parquet", y), "`y` must be the name of the target column where `X` is a path; got ndarray"),
        ((tmp_path / "t.parquet",), "`y` must be the name of the target column"),
        ((tmp_path / "t.parquet", "kind", np.ones(500)), "`sample_weight` is for rows in memory"),
        ((tmp_path / "t.parquet", "knd"), "Did you mean 'kind'"),
        ((tmp_path / "u.parquet", "kind"), "No such file"),
    ]:
        with pytest.raises(DataError, match=message):
            BayesianLDA().fit(*args)
    with pytest.raises(DataError, match=r"`drop` names no column: 'd'"):
        open_batches(tmp_path / "t.parquet", target="kind", drop=["d"])
    with pytest.raises(DataError, match=r"`drop` names the target 'kind'"):
        open_batches(tmp_path / "t.parquet", target="kind", drop=["kind"])
    with pytest.raises(ValueError, match="requires y to be passed"):
        BayesianLDA().fit(frame)
