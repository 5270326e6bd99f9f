"""Classes that are mixtures of Gaussians: the density against scipy and PyMC, EM, order, evidence, and two humps."""

import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json
from scipy import stats
from scipy.special import gammaln, logsumexp

from bayes_gda import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianMixture,
    BayesianQDA,
    Dataset,
    load,
    load_example,
    save,
    write_report,
)
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import DataError, InferenceWarning, PriorError
from bayes_gda.families.built import family_of
from bayes_gda.families.mixture.density import class_moments
from bayes_gda.families.mixture.family import Mixture, SharedMixture, log_evidence
from bayes_gda.families.registry import default_families
from bayes_gda.methods.adapter import ModelDensity
from bayes_gda.methods.diagnostics import diagnose
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.laplace import differentiate
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import NIW, Dirichlet
from bayes_gda.priors.mixture import ordering_axes
from bayes_gda.reporting.report import ReportSettings
from bayes_gda.store import files, formats

_WHOLE = load_example("iris")
IRIS = Dataset.from_arrays(_WHOLE.X[:, 1:3], _WHOLE.y, feature_names=_WHOLE.feature_names[1:3])
COVARIANCES = ("own", "shared", "diagonal")
each = pytest.mark.parametrize("covariances", COVARIANCES)


@pytest.fixture(scope="module")
def families():
    weight = 1.0 + (np.arange(IRIS.n) % 3)
    data = Dataset.of_checked(IRIS.X, IRIS.y, IRIS.feature_names, IRIS.class_names, weight)
    return {name: Mixture.bind(data, components=(1, 2, 2), covariances=name) for name in COVARIANCES}


def points(family, size=5, spread=0.02):
    start = family.density.start
    return start + spread * np.random.default_rng(0).standard_normal((size, len(start)))


def covariance_of(theta, s, c):
    """Return the covariance of component c in draw s; SciPy takes variances for a diagonal one."""
    if "Sigma" in theta:
        return theta["Sigma"][s]
    return theta["component_sigma2" if "component_sigma2" in theta else "component_Sigma"][s, c]


def two_humps(rng, n):
    """Class 0 has two groups, at ±3 in the first feature; class 1 lies between them."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 2))
    X[:, 0] = np.where(y == 1, 0.7 * X[:, 0], X[:, 0] * 0.7 + 3 * rng.choice([-1.0, 1.0], size=n))
    return X, y


# ── The density ─────────────────────────────────────────────────────────────────────────────────────────────────────


@each
def test_density_and_gradient_are_those_of_the_pymc_model(families, covariances):
    family = families[covariances]
    W = points(family)
    model = family.build()
    graph = ModelDensity.of(model)
    value, gradient = family.density.values_and_gradients(W)
    expected, slopes = graph.values_and_gradients(W)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())
    found, truth = family.density.variables(W), graph.draws(W)
    for name in family.variables:
        np.testing.assert_allclose(found[name], truth[name], rtol=1e-8)
    np.testing.assert_allclose(family.density.coordinates(found), W, atol=1e-9)
    assert type(family_of(model)) is type(family)


@each
def test_gradient_is_that_of_differences_and_blocks_do_not_matter(families, covariances, monkeypatch):
    family = families[covariances]
    W = points(family)
    gradient = family.density.values_and_gradients(W[0])[1]
    np.testing.assert_allclose(gradient, differentiate(family.density.values, W[0]), rtol=1e-5, atol=1e-4)
    whole = family.density.values_and_gradients(W)
    monkeypatch.setattr("bayes_gda.families.mixture.density.ELEMENTS", 4000)  # two points at once
    for a, b in zip(family.density.values_and_gradients(W), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@each
def test_rows_have_the_density_of_scipy(families, covariances):
    family = families[covariances]
    theta = family.density.variables(points(family, 2))
    model = family.from_variables(theta)
    terms = model.log_terms(theta, IRIS.X[::10])
    owner = np.repeat(np.arange(3), (1, 2, 2))
    for s in range(2):
        for k in range(3):
            parts = [
                np.log(theta["weight"][s, c])
                + stats.multivariate_normal(theta["component_mu"][s, c], covariance_of(theta, s, c)).logpdf(
                    IRIS.X[::10]
                )
                for c in np.flatnonzero(owner == k)
            ]
            np.testing.assert_allclose(terms[s, :, k], np.log(theta["pi"][s, k]) + logsumexp(parts, axis=0), rtol=1e-9)
    rows = family.density.log_likelihood(theta, IRIS)
    np.testing.assert_allclose(rows, model.log_terms(theta, IRIS.X)[:, np.arange(IRIS.n), IRIS.y], rtol=1e-12)


def test_components_may_change_places_and_come_back_in_order(families):
    family = families["own"]
    w = points(family, 1)
    theta = family.density.variables(w)
    changed = {name: value.copy() for name, value in theta.items()}
    for name in ("weight", "component_mu", "component_Sigma"):
        changed[name][:, [1, 2]] = theta[name][:, [2, 1]]
    swapped = family.density.coordinates(changed)
    # The density is the same in any order, but in one alone it counts.
    np.testing.assert_allclose(family.density.values(swapped), family.density.values(w), rtol=1e-10)
    assert np.isfinite(family.target.log_density(w)).all()
    assert (family.target.log_density(swapped) == -np.inf).all()
    again = family.density.variables(swapped)
    for name, value in theta.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-9)


@each
def test_a_row_of_weight_two_is_two_equal_rows(covariances):
    """Equal data have equal posteriors, whatever their order; class 0 has a single row, which has no spread."""
    rng = np.random.default_rng(7)
    X = np.vstack([[0.0, 0.0, 0.0], rng.standard_normal((11, 3))])
    y = np.array([0, *np.repeat([1, 2], [6, 5])])
    weight = rng.integers(1, 4, size=len(y))
    order = rng.permutation(weight.sum())
    weighted = Dataset.of_checked(X, y, ("a", "b", "c"), (0, 1, 2), weight.astype(float))
    repeated = Dataset.of_checked(X.repeat(weight, axis=0)[order], y.repeat(weight)[order], ("a", "b", "c"), (0, 1, 2))
    for prepare in (lambda data: data, lambda data: Mixture.prepare(data, "laplace")):
        a, b = (
            Mixture.bind(prepare(data), components=2, covariances=covariances).laplace()
            for data in (weighted, repeated)
        )
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-9)
        np.testing.assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-10)


@each
def test_moments_of_a_class_are_those_of_its_density(families, covariances):
    family = families[covariances]
    theta = family.density.variables(points(family, 1))
    mean, covariance = class_moments(theta, family.components)
    X, y = family.from_variables(theta).sample(60_000, random_seed=0)
    for k in range(3):
        rows = X[y == k]
        np.testing.assert_allclose(mean[0, k], rows.mean(axis=0), atol=5 * rows.std() / len(rows) ** 0.5)
        np.testing.assert_allclose(covariance[0, k], np.cov(rows.T), rtol=0.05, atol=0.01)


def test_components_that_trade_places_do_not_spoil_the_diagnosis(families):
    family = families["diagonal"]
    draws = family.density.variables(family.laplace().draw(2000, random_seed=1))
    mixed = {name: value.copy() for name, value in draws.items()}
    for name in ("weight", "component_mu", "component_sigma2"):  # in the second chain those of class 1
        mixed[name][1000:, [1, 2]] = draws[name][1000:, [2, 1]]
    tree = to_datatree(mixed, family.coords, chains=2)
    assert diagnose(tree).verdict == "bad"
    found = family.diagnose(tree)
    assert found.verdict == "good"
    assert "does not depend on the numbering of components" in found.notes[0]
    assert {"class_mean[0, sepal width (cm)]", "log_likelihood", "weight[1 1]"} <= set(found.table.index)
    # Chains of different densities are told apart.
    mixed["component_mu"][1000:, 1] += 3 * draws["component_mu"][:, 1].std(axis=0)
    assert family.diagnose(to_datatree(mixed, family.coords, chains=2)).verdict == "bad"


# ── The mode, the number of components and the evidence ─────────────────────────────────────────────────────────────


@each
def test_every_step_of_em_goes_up_and_ends_near_the_mode(families, covariances):
    family = families[covariances]
    block = family.density.blocks[1]
    for seed in range(3):
        values = block.climb(np.random.default_rng(seed))[1]
        assert len(values) > 3
        assert (np.diff(values) > 0).all()
    _, gradient = family.density.values_and_gradients(family.laplace().mean)
    assert np.abs(gradient).max() < 1e-3


def test_one_component_is_qda():
    """With one component a class the model is QDA with this prior: the evidence against its closed form."""
    data = IRIS
    family = Mixture.bind(data, components=1)
    exact = BayesianQDA(prior=family.prior).fit(data.X, data.y)
    fitted = fit(family, Settings())
    value, error = fitted.evidence["corrected"]
    assert value == pytest.approx(exact.log_evidence_, abs=4 * error + 0.01)
    P = np.exp(fitted.model.log_probabilities(data.X))
    np.testing.assert_allclose(P, exact.predict_proba(data.X), atol=0.02)


def test_evidence_of_two_components_is_that_of_quadrature():
    """One feature, one class, all rows: ∫ over ω, two centres and two variances, by sums over all allocations.

    Given which row belongs to which component everything is conjugate: p(x) = Σ_z p(z) Π_c p(x_c), with 2^n terms.
    """
    rng = np.random.default_rng(2)
    n = 12
    X = np.concatenate([rng.normal(-2, 0.5, 6), rng.normal(2, 0.5, 6)])[:, None]
    prior = NIW(m=[0.0], kappa=0.05, Psi=[[1.0]], nu=3.0)
    codes = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    size = codes.sum(axis=1)
    log_z = gammaln(size + 1) + gammaln(n - size + 1) - gammaln(n + 2)  # ω uniform

    def log_marginal(member):
        m = member.sum(axis=1)
        mean = np.where(m > 0, member @ X[:, 0] / np.maximum(m, 1), 0.0)
        squares = member @ X[:, 0] ** 2 - m * mean**2
        kappa, nu = prior.kappa + m, prior.nu + m
        psi = 1.0 + squares + prior.kappa * m / kappa * mean**2
        out = gammaln(nu / 2) - gammaln(prior.nu / 2) - 0.5 * nu * np.log(psi) - 0.5 * m * np.log(np.pi)
        return out + 0.5 * np.log(prior.kappa / kappa)

    truth = logsumexp(log_z + log_marginal(codes) + log_marginal(1 - codes))
    data = Dataset.from_arrays(np.concatenate([X, X + 20]), np.repeat([0, 1], n))
    axis = ordering_axes(data.X, data.y, 2, prior)
    near = NIW(m=[0.0], kappa=0.05, Psi=[[1.0]], nu=3.0)
    family = Mixture(data, near, alpha=Dirichlet().vector(2), components=(2, 1), axis=axis)
    other = Mixture(data, near, alpha=Dirichlet().vector(2), components=(1, 1), axis=axis)
    single = log_marginal(np.ones((1, n), dtype=int))[0]
    settings = Settings(random_seed=3)
    (a, e), (b, f) = fit(family, settings).evidence["corrected"], fit(other, settings).evidence["corrected"]
    # The second class and the shares are the same in both: the difference is that of the first class alone.
    assert a - b == pytest.approx(truth - single, abs=4 * np.hypot(e, f) + 0.02)
    rows = Dataset.of_checked(X, np.zeros(n, dtype=np.intp), ("x",), (0,))
    assert log_evidence(rows, prior, (2,), axis[:1], "own") == pytest.approx(truth, abs=0.7)  # Laplace's


def test_the_evidence_chooses_the_groups_that_there_are():
    X, y = two_humps(np.random.default_rng(4), 200)
    assert Mixture.bind(Dataset.from_arrays(X, y)).components == (2, 1)


# ── What it is for ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_humps_are_told_from_what_lies_between():
    rng = np.random.default_rng(5)
    X, y = two_humps(rng, 200)
    new, new_y = two_humps(rng, 4000)
    model = BayesianMixture(draws=250).fit(X, y)
    assert model.inference_ in ("laplace", "corrected")
    assert model.model_.components == (2, 1)
    score = model.score(new, new_y)
    # A threshold at half of the way from 0 to 3 is nearly best: three tails of 1.5/0.7 standard deviations in four.
    assert score == pytest.approx(1 - 1.5 * stats.norm.sf(1.5 / 0.7), abs=0.01)
    # The failure of the lecture notes: no line tells the classes apart, one ellipse for both groups nearly does.
    assert BayesianLDA().fit(X, y).score(new, new_y) == pytest.approx(0.5, abs=0.05)
    assert BayesianLogisticRegression(inference="laplace").fit(X, y).score(new, new_y) == pytest.approx(0.5, abs=0.05)
    qda = BayesianQDA().fit(X, y).score(new, new_y)
    assert qda == pytest.approx(0.95, abs=0.02)
    assert score > qda
    drawn, labels = model.sample(3000)
    assert np.abs(np.abs(drawn[labels == 0, 0]).mean() - 3) < 0.1


@pytest.mark.slow
def test_nuts_agrees_and_label_switching_does_not_show():
    X, y = two_humps(np.random.default_rng(5), 100)
    model = BayesianMixture(components=(2, 1)).fit(X, y)
    nuts = BayesianMixture(inference="mcmc", components=(2, 1), draws=500, chains=2).fit(X, y)
    assert nuts.trust_.diagnosis.verdict != "bad"
    assert np.abs(nuts.predict_proba(X) - model.predict_proba(X)).max() < 0.03
    value, error = nuts.log_evidence_, nuts.log_evidence_error_
    assert value == pytest.approx(model.log_evidence_, abs=4 * np.hypot(error, model.log_evidence_error_))
    posterior = nuts.posterior_["posterior"]
    assert list(posterior["part"].to_numpy()) == ["0 1", "0 2", "1 1"]
    place = posterior["component_mu"].to_numpy()[..., 0]
    assert (place[..., 0] < place[..., 1]).all()


# ── Estimator and doors ─────────────────────────────────────────────────────────────────────────────────────────────


def test_its_errors():
    X, y = IRIS.X[::3], IRIS.y[::3]
    for components in (0, (1, 2), "many", 1.5, True):
        with pytest.raises(DataError, match=r"`components` must be 'evidence', or 1 or more for each of 3 classes"):
            BayesianMixture(components=components).fit(X, y)
    with pytest.raises(DataError, match="`covariances` must be 'own', 'shared' or 'diagonal'; got 'full'"):
        BayesianMixture(covariances="full").fit(X, y)
    with pytest.raises(PriorError, match="covariances='own' must be a proper NIW or None; got 3"):
        BayesianMixture(prior=3).fit(X, y)
    with pytest.raises(PriorError, match="covariances='diagonal' must be a proper NIG or None; got NIW"):
        BayesianMixture(prior=NIW(m=[0.0, 0.0], kappa=1.0, Psi=np.eye(2), nu=4.0), covariances="diagonal").fit(X, y)
    assert isinstance(Mixture.bind(Dataset.from_arrays(X, y), components=2, covariances="shared"), SharedMixture)


def test_the_command_line_sets_components_and_covariances_and_the_file_keeps_them(tmp_path):
    X, y = two_humps(np.random.default_rng(6), 80)
    frame, table, out = pd.DataFrame(X, columns=["a", "b"]), tmp_path / "rows.csv", tmp_path / "model.nc"
    frame.assign(kind=y).to_csv(table, index=False)
    words = ("fit", table, "-m", "mixture", "-t", "kind", "-o", out, "--inference", "laplace", "--draws", 50)
    run(*words, "--set", "covariances=diagonal", "--set", "components=2,1")
    model = load(out)
    assert (model.covariances, model.components, model.model_.components) == ("diagonal", (2, 1), (2, 1))
    assert "component_sigma2" in model.posterior_["posterior"]
    how = {"covariances": "diagonal", "components": (2, 1), "inference": "laplace", "draws": 50}
    again = BayesianMixture(**how).fit(frame, y)
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), rtol=1e-6)
    for wrong, message in (
        ("covariances", "must be NAME=VALUE"),
        ("colour=red", "mixture takes components and covariances"),
        ("covariances=round", "must be 'own', 'shared' or 'diagonal'; got 'round'"),
    ):
        assert message in run(*words, "--set", wrong, code=2).stderr
    lda = (*words[:2], "-m", "lda", "-t", "kind", "-o", out, "--set", "components=2")
    assert "lda takes none" in run(*lda, code=2).stderr


def test_files_that_call_the_dimension_component_load(tmp_path):
    X, y = two_humps(np.random.default_rng(6), 40)
    how = {"components": (2, 1), "inference": "mcmc", "sampler": "hmc", "draws": 30, "chains": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        model = BayesianMixture(**how).fit(X, y)
    save(model, tmp_path / "today.nc")
    content = formats.unpack(*files.read(tmp_path / "today.nc"))
    notes = content.record["groups"]["posterior"]
    notes["text"]["component"] = notes["text"].pop("part")
    groups = {**content.groups, "posterior": content.groups["posterior"].rename({"part": "component"})}
    files.write(tmp_path / "old.nc", formats.pack(formats.Content(content.record, content.arrays, groups)))
    old = load(tmp_path / "old.nc")
    assert old.posterior_["posterior"].identical(model.posterior_["posterior"])
    np.testing.assert_array_equal(old.predict_proba(X), model.predict_proba(X))


def test_every_door_knows_it(tmp_path):
    X, y = two_humps(np.random.default_rng(6), 80)
    frame, table = pd.DataFrame(X, columns=["a", "b"]), tmp_path / "rows.csv"
    labels = np.array(["outer", "inner"])[y]
    frame.assign(kind=labels).to_csv(table, index=False)
    out, few = tmp_path / "model.nc", ("--target", "kind", "--draws", 200)
    run("fit", table, "-m", "mixture", "-o", out, *few)
    model = load(out)
    assert type(model) is BayesianMixture
    assert model.model_.components == (1, 2)
    again = BayesianMixture(draws=200).fit(frame, labels)
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), rtol=1e-6)
    said = run_json("compare", table, "--models", "mixture,qda", *few)
    assert set(said["models"]) == {"mixture", "qda"}
    data = Dataset.from_arrays(X, labels)
    settings = ReportSettings(quick=True, models=("mixture", "qda"), draws=200)
    report = write_report(data, tmp_path / "report", settings=settings)
    assert "Mixture discriminant analysis" in report.page.read_text()
    assert "mixture" not in {family.name for family in default_families(3)}
