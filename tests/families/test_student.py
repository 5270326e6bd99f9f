"""Student-t classes: the density against scipy and PyMC, EM and Laplace against the truth, and rows far out."""

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json
from judge import assert_same_posterior
from scipy import stats
from scipy.special import gammaln

from bayes_gda import (
    BayesianLDA,
    BayesianQDA,
    BayesianStudent,
    Dataset,
    FamilyClassifier,
    load,
    load_example,
    write_report,
)
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.built import family_of
from bayes_gda.families.registry import default_families
from bayes_gda.families.student import SharedStudent, Student, StudentBlock, log_student
from bayes_gda.methods import differences
from bayes_gda.methods.adapter import ModelDensity
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.laplace import differentiate
from bayes_gda.methods.settings import Settings
from bayes_gda.models import student
from bayes_gda.models.generate import replicate
from bayes_gda.priors import NIW, Dirichlet
from bayes_gda.reporting.report import ReportSettings

IRIS = load_example("iris")
SCALES = ("own", "shared")
both = pytest.mark.parametrize("scales", SCALES)


@pytest.fixture(scope="module")
def families():
    weight = 1.0 + (np.arange(IRIS.n) % 3)
    data = Dataset.of_checked(IRIS.X, IRIS.y, IRIS.feature_names, IRIS.class_names, weight)
    return {scales: Student.bind(data, scales=scales) for scales in SCALES}


def points(family, size=5, spread=0.1):
    start = family.density.start
    return start + spread * np.random.default_rng(0).standard_normal((size, len(start)))


# ── The density ─────────────────────────────────────────────────────────────────────────────────────────────────────


@both
def test_density_and_gradient_are_those_of_the_pymc_model(families, scales):
    family = families[scales]
    W = points(family)
    graph = ModelDensity.of(family.build())
    value, gradient = family.density.values_and_gradients(W)
    expected, slopes = graph.values_and_gradients(W)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())
    np.testing.assert_array_equal(family.density.values(W), value)
    found, truth = family.density.variables(W), graph.draws(W)
    for name in family.variables:
        np.testing.assert_allclose(found[name], truth[name], rtol=1e-9)
    np.testing.assert_allclose(family.density.coordinates(found), W, atol=1e-9)


@both
def test_gradient_is_that_of_differences_and_blocks_do_not_matter(families, scales, monkeypatch):
    family = families[scales]
    w = points(family)[0]
    value, gradient = family.density.values_and_gradients(w)
    assert value.shape == ()
    np.testing.assert_allclose(gradient, differentiate(family.density.values, w), rtol=1e-6, atol=1e-5)
    W = points(family)
    whole = family.density.values_and_gradients(W)
    monkeypatch.setattr("bayes_gda.families.student.ELEMENTS", 1200)  # two points at once
    for a, b in zip(family.density.values_and_gradients(W), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@both
def test_rows_have_the_density_of_scipy(families, scales):
    family = families[scales]
    theta = family.density.variables(points(family, 3))
    model = family.from_variables(theta)
    terms = model.log_terms(model.draw_variables(3), IRIS.X[::20])
    for s in range(3):
        for k in range(3):
            own = (lambda x, s=s, k=k: x[s, k]) if scales == "own" else (lambda x, s=s: x[s])
            expected = stats.multivariate_t(theta["mu"][s, k], own(theta["Sigma"]), own(theta["nu"]))
            log_pi = np.log(theta["pi"][s, k])
            np.testing.assert_allclose(terms[s, :, k], expected.logpdf(IRIS.X[::20]) + log_pi, rtol=1e-10)
    rows = family.density.log_likelihood(theta, IRIS)
    own_terms = model.log_terms(theta, IRIS.X)[:, np.arange(IRIS.n), IRIS.y]
    np.testing.assert_allclose(rows, own_terms, rtol=1e-12)


@both
def test_log_posterior_is_prior_times_likelihood_by_scipy(families, scales):
    """In the variables themselves, with scipy's densities; the Jacobians between the two coordinate systems aside."""
    family = families[scales]
    W = points(family, 4)
    theta = family.density.variables(W)
    prior, likelihood = family.prior_and_likelihood(theta)
    a, b = family.freedom
    for s in range(4):
        nu, Sigma = np.atleast_1d(theta["nu"][s]), theta["Sigma"][s].reshape(-1, 4, 4)
        p = (stats.gamma(a, scale=1 / b).logpdf(nu - 1) + np.log(nu - 1)).sum()
        p += sum(stats.invwishart(family.prior.nu, family.prior.Psi).logpdf(S) for S in Sigma)
        p += sum(2.5 * np.linalg.slogdet(S)[1] for S in Sigma)  # by |Σ|^{−(d+1)/2} dΣ
        for k in range(3):
            S = Sigma[k if scales == "own" else 0]
            p += stats.multivariate_normal(family.prior.m, S / family.prior.kappa).logpdf(theta["mu"][s, k])
        p += gammaln(3)  # a uniform Dirichlet; and by the logarithms
        p += np.log(theta["pi"][s]).sum()
        assert prior[s] == pytest.approx(p, rel=1e-9)
        rows = family.density.log_likelihood(theta, IRIS)[s]
        assert likelihood[s] == pytest.approx(rows @ family.data.weight)


def test_weights_count_rows(families):
    data = families["own"].data
    rows = np.repeat(np.arange(data.n), data.weight.astype(int))
    repeated = Student.bind(Dataset.from_arrays(data.X[rows], data.y[rows]), families["own"].prior)
    W = points(families["own"])
    np.testing.assert_allclose(repeated.density.values(W), families["own"].density.values(W), rtol=1e-10)


def test_row_wise_form_has_the_same_density_and_generates():
    model, rowwise = (student.build(IRIS, rowwise=r) for r in (False, True))
    graphs = [ModelDensity.of(m) for m in (model, rowwise)]
    W = graphs[0].start + 0.1 * np.random.default_rng(1).standard_normal((3, graphs[0].dim))
    np.testing.assert_allclose(graphs[0].log_density(W), graphs[1].log_density(W), rtol=1e-9)
    sets, _ = replicate(rowwise, IRIS, size=2, random_seed=0)
    assert sets[0].X.shape == IRIS.X.shape
    assert type(family_of(model)) is Student
    assert isinstance(family_of(student.build(IRIS, shared=True, rowwise=True)), SharedStudent)


# ── The mode ────────────────────────────────────────────────────────────────────────────────────────────────────────


@both
def test_every_step_of_em_goes_up_and_ends_near_the_mode(families, scales):
    block = families[scales].density.blocks[1]
    assert isinstance(block, StudentBlock)
    values = [float(block.values(point)) for point in block.climb()]
    assert len(values) > 3
    assert (np.diff(values) > 0).all()
    gaussian = families[scales].laplace()
    _, gradient = families[scales].density.values_and_gradients(gaussian.mean)
    assert np.abs(gradient).max() < 1e-4
    assert 0 <= float(block.values(gaussian.mean[2:])) - values[-1] < 0.1


def test_the_hessian_of_independent_classes_is_that_of_all_coordinates(families):
    family = families["own"]
    w = family.density.start
    H = family.target.value_gradient_precision(w)[2]
    expected = -differentiate(lambda x: family.density.values_and_gradients(x)[1], w, 1 / np.sqrt(np.diag(H)))
    np.testing.assert_allclose(H, expected, atol=1e-6 * np.abs(H).max())
    V = np.linalg.inv(H)
    together = family.target.third_order_trace(w, V)
    apart = differences.third_order_trace(lambda x: family.density.values_and_gradients(x)[1], w, V)
    np.testing.assert_allclose(together, apart, atol=1e-4 * np.abs(apart).max())


def test_evidence_of_one_feature_is_that_of_quadrature():
    """d = 1 and the class shares known: ∫∫∫ over μ, σ² and ν by quadrature, against the corrected evidence."""
    rng = np.random.default_rng(3)
    X = rng.standard_t(3, size=(24, 1))
    data = Dataset.from_arrays(X, np.arange(24) % 2)
    prior = NIW(m=[0.0], kappa=0.5, Psi=[[3.0]], nu=4.0)
    family = SharedStudent(data, prior, alpha=Dirichlet().vector(2), freedom=(2.0, 0.1))
    log_shares = gammaln(13) * 2 - gammaln(26)  # of the class labels: Dirichlet(1, 1) with 12 rows each

    def nodes(low, high, size):
        x, weight = np.polynomial.legendre.leggauss(size)
        return low + (high - low) * (x + 1) / 2, weight * (high - low) / 2

    (log_s2, w_s), (log_v, w_v), (mu, w_mu) = nodes(-4.5, 2.5, 40), nodes(-2.5, 5.5, 40), nodes(-4, 4, 80)
    s2, excess = np.exp(log_s2)[:, None], np.exp(log_v)[None, :]
    v = 1 + excess
    weight = (
        stats.invgamma(2, scale=1.5).pdf(s2) * s2 * stats.gamma(2, scale=10).pdf(excess) * excess * w_s[:, None] * w_v
    )
    scale = np.sqrt(s2)[..., None]
    for k in range(2):
        terms = sum(stats.t.logpdf(x, v[..., None], mu, scale) for x in X[data.y == k, 0])
        weight = weight * (np.exp(terms + stats.norm.logpdf(mu, 0, scale / np.sqrt(0.5)) + 20) @ w_mu)
    total = weight.sum()
    truth = np.log(total) - 40 + log_shares
    fitted = fit(family, Settings())
    value, error = fitted.evidence["corrected"]
    assert value == pytest.approx(truth, abs=4 * error + 0.01)
    assert error < 0.05


# ── The posterior ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    X = stats.multivariate_t([0, 0], [[1, 0.5], [0.5, 1]], 4).rvs(60, random_state=rng) + 1.5 * y[:, None]
    return Dataset.from_arrays(X, y)


@both
def test_corrected_draws_are_those_of_nuts(small, scales):
    family = Student.bind(small, scales=scales)
    settings = Settings(draws=1000, chains=2, random_seed=1)
    corrected = fit(family, settings)
    assert corrected.chosen in ("corrected", "laplace")
    model, tree = family.sample(settings, corrected.gaussian)
    weighted = family.density.variables(corrected.verdict.importance.draw(4000, random_seed=0))
    drawn = {name: tree["posterior"][name].to_numpy().reshape(-1, *weighted[name].shape[1:]) for name in ("mu", "pi")}
    logs = {"nu": np.log(tree["posterior"]["nu"].to_numpy().reshape(-1, *weighted["nu"].shape[1:]))}
    # NUTS draws every fourth, so that they are nearly independent.
    thinned = {name: x[::4] for name, x in (drawn | logs).items()}
    assert_same_posterior(thinned, {"mu": weighted["mu"], "pi": weighted["pi"], "nu": np.log(weighted["nu"])})
    P, Q = (np.exp(m.log_probabilities(small.X)) for m in (model, corrected.model))
    assert np.abs(P - Q).max() < 0.03
    bridge, error = family.sampled_evidence(model, 2)
    value, other = corrected.evidence["corrected"]
    assert bridge == pytest.approx(value, abs=4 * np.hypot(error, other))


def test_rows_are_generated_from_the_model():
    S = 40_000
    theta = {
        "pi": np.tile([0.3, 0.7], (S, 1)),
        "mu": np.tile([[0.0, 0.0], [5.0, 1.0]], (S, 1, 1)),
        "Sigma": np.tile([[[1.0, 0.5], [0.5, 2.0]], [[1.0, 0.0], [0.0, 1.0]]], (S, 1, 1, 1)),
        "nu": np.tile([3.0, 30.0], (S, 1)),
    }
    X, y = Student.draw_rows(theta, 0)
    assert y.mean() == pytest.approx(0.7, abs=0.01)
    for k, (nu, root) in enumerate([(3.0, 1.0), (30.0, 1.0)]):
        z = (X[y == k, 0] - theta["mu"][0, k, 0]) / root
        assert stats.kstest(z, stats.t(nu).cdf).pvalue > 0.001
    direct = {name: value[:1] for name, value in theta.items()}
    log_p = log_student(direct, X[y == 0], 0)[0]
    expected = -stats.multivariate_t([0, 0], [[1, 0.5], [0.5, 2]], 3).entropy()
    assert log_p.mean() == pytest.approx(expected, abs=0.05)


# ── What it is for ──────────────────────────────────────────────────────────────────────────────────────────────────


def corrupted(rng, share, n=200, d=4):
    """Two Gaussian classes; a share of the training rows replaced by rows of a scale ten times as large."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d)) + 1.2 * y[:, None]
    bad = rng.random(n) < share
    X[bad] = 10 * rng.standard_normal((bad.sum(), d)) + 5
    return X, y


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_it_keeps_its_accuracy_where_lda_and_qda_lose_theirs(share):
    rng = np.random.default_rng(7)
    new_y = np.arange(4000) % 2
    new = rng.standard_normal((4000, 4)) + 1.2 * new_y[:, None]
    best = stats.norm.cdf(1.2)  # the distance between the classes is 2.4
    scores = {"lda": [], "qda": [], "shared": [], "own": []}
    for _ in range(3):
        X, y = corrupted(rng, share)
        data = Dataset.from_arrays(X, y)
        for name, model in {"lda": BayesianLDA(), "qda": BayesianQDA()}.items():
            scores[name].append(model.fit(X, y).score(new, new_y))
        for scales in SCALES:
            family = Student.bind(data, scales=scales)
            model = family.from_gaussian(family.laplace(), Settings(draws=250, chains=2))
            scores[scales].append((model.log_probabilities(new).argmax(axis=1) == new_y).mean())
    mean = {name: np.mean(values) for name, values in scores.items()}
    assert mean["shared"] > best - 0.02
    assert mean["own"] > best - 0.02
    assert mean["lda"] < best - 0.03
    assert mean["qda"] < best - 0.03


# ── The estimator ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_its_words_and_its_errors():
    X, y = IRIS.X[::3, :3], IRIS.y[::3]
    assert "robust LDA" in BayesianStudent.__doc__
    model = BayesianStudent(draws=100, inference="laplace").fit(X, y)
    assert set(model.posterior_["posterior"].data_vars) == {"pi", "mu", "Sigma", "nu"}
    assert model.posterior_["posterior"]["nu"].dims == ("chain", "draw", "class")
    assert model.sample(5)[0].shape == (5, 3)
    with pytest.raises(DataError, match="`scales` must be 'own' or 'shared'; got 'some'"):
        BayesianStudent(scales="some").fit(X, y)
    with pytest.raises(PriorError, match="two positive numbers, shape and rate"):
        BayesianStudent(freedom=3).fit(X, y)
    with pytest.raises(PriorError, match="must be a proper NIW or None"):
        BayesianStudent(prior=NIW.jeffreys(3)).fit(X, y)
    with pytest.raises(PriorError, match="has 2 features, `X` has 3"):
        BayesianStudent(prior=NIW(m=[0, 0], kappa=1, Psi=np.eye(2), nu=4)).fit(X, y)
    with pytest.raises(PriorError, match="no closed form"):
        BayesianStudent(inference="exact").fit(X, y)
    assert FamilyClassifier("student", draws=50, inference="laplace").fit(X, y).inference_ == "laplace"
    assert model.n_samples_seen_ == 50


@pytest.mark.slow  # `make test` has those of the mixture
def test_every_door_knows_it(small, tmp_path):
    """Store, command line, comparison and report."""
    frame = pd.DataFrame(small.X, columns=["a", "b"])
    labels, table = np.array(["x", "z"])[small.y], tmp_path / "rows.csv"
    frame.assign(kind=labels).to_csv(table, index=False)
    out, few = tmp_path / "model.nc", ("--target", "kind", "--draws", 200)
    run("fit", table, "-m", "student", "-o", out, *few)
    model = load(out)
    assert type(model) is BayesianStudent
    again = BayesianStudent(draws=200).fit(frame, labels)
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), rtol=1e-6)
    said = run_json("compare", table, "--models", "student,qda", *few)
    assert set(said["models"]) == {"student", "qda"}
    data = Dataset.from_arrays(frame.to_numpy(), labels)
    settings = ReportSettings(quick=True, models=("student", "qda"), draws=200)
    report = write_report(data, tmp_path / "report", settings=settings)
    assert "Student-t discriminant analysis" in report.page.read_text()
    assert "student" not in {family.name for family in default_families(3)}
