"""The small version of `make sbc`: right posteriors stay inside the bands, wrong ones do not; runs can be taken up."""

import json

import numpy as np
import pytest
from gaps import brute_log_likelihood
from proof import sbc, store
from proof.catalogue import MODELS
from proof.methods import METHODS, SOUND, Posterior, exact
from proof.ranks import quantities
from proof.sbc import Job, conclude, plan, run, simulate, simulate_with
from proof.verdicts import Records, judge
from scipy import stats
from scipy.special import expit, softmax

from bayes_gda.validation.ranks import rank_truth

# All judgements of this file together are wrong by chance once in a thousand runs of another seed.
LEVEL = 0.999


def records_of(model, method, size, *, name="exact"):
    """Simulate with any method, as `run` does, without files."""
    lines = [simulate_with(MODELS[model], method, (model, name), index) for index in range(size)]
    simulation = MODELS[model].draw(np.random.default_rng(0))
    names = tuple(quantities(simulation, simulation.theta))
    drawn = np.array([line["ranks"] for line in lines if line["ranks"] is not None])
    return Records(model, name, "", names, drawn, tuple(line["outcome"] for line in lines))


def judged(records):
    return judge([records])["results"][0]


def by_name(result):
    return {q["name"]: q for q in result["quantities"]}


def least_p(result):
    """The smallest p-value, after Bonferroni over the quantities."""
    return len(result["quantities"]) * min(q["p_value"] for q in result["quantities"])


@pytest.mark.parametrize(
    ("model", "method", "size"),
    [
        ("lda", "exact", 100),
        ("naive", "exact", 100),
        ("lda-10", "exact", 60),
        ("lda-wide", "exact", 60),
        ("naive-gaps", "exact", 100),
        ("mixed", "exact", 60),
        ("qda-gaps", "mcmc", 20),
        ("logistic", "corrected", 50),
        ("logistic-wide", "corrected", 20),
        ("mixture-diagonal", "hmc", 20),
        pytest.param("mixture", "corrected", 60, marks=pytest.mark.slow),
        pytest.param("mixture", "hmc", 60, marks=pytest.mark.slow),
        pytest.param("student", "corrected", 30, marks=pytest.mark.slow),
        pytest.param("student", "mcmc", 20, marks=pytest.mark.slow),
        pytest.param("lda-gaps", "mcmc", 60, marks=pytest.mark.slow),
        pytest.param("hierarchical", "mcmc", 30, marks=pytest.mark.slow),
    ],
)
def test_right_posteriors_stay_inside(model, method, size):
    result = judged(records_of(model, METHODS[method], size, name=method))
    assert result["simulations"] + result["refused"] == size
    # The data alone decide whether one is refused, so that the ranks of the others stay uniform. Weights give up on
    # half of the mixtures, whose posteriors have several modes.
    assert result["refused"] <= (3 * size // 4 if (model, method) == ("mixture", "corrected") else size // 10)
    assert least_p(result) > (1 - LEVEL) / 10


@pytest.mark.parametrize(("model", "method"), [("logistic", "ep"), ("softmax", "variational")])
def test_the_better_gaussians_stay_inside_where_laplace_is_seen_to_be_off(model, method):
    better, laplace = (judged(records_of(model, METHODS[name], 40, name=name)) for name in (method, "laplace"))
    assert better["simulations"] == laplace["simulations"] == 40
    assert least_p(better) > (1 - LEVEL) / 10
    assert least_p(laplace) < least_p(better)
    assert method not in SOUND


@pytest.mark.parametrize("model", ["rda", "logistic-eb"])
def test_empirical_bayes_is_shown_but_need_not_hold(model):
    records = records_of(model, METHODS["empirical-bayes"], 12, name="empirical-bayes")
    assert len(records.ranks) >= 6
    assert not records.must_hold
    assert "empirical-bayes" not in SOUND


def test_gaps_are_in_the_data_and_the_likelihood_is_of_what_was_observed():
    simulation = MODELS["lda-gaps"].draw(np.random.default_rng(2))
    X, y, theta = simulation.data.X, simulation.data.y, {name: x[0] for name, x in simulation.theta.items()}
    assert 0.1 < np.isnan(X).mean() < 0.4
    Sigma = np.tile(theta["Sigma"], (3, 1, 1))
    truth = brute_log_likelihood(X, y, theta["pi"], theta["mu"], Sigma)
    assert quantities(simulation, simulation.theta)["log likelihood"][0] == pytest.approx(truth)


def changed(change):
    """The exact method with its means changed: draws, their mean and sd → new draws."""

    def method(simulation, size, seed):
        variables = dict(exact(simulation, size, seed).variables)
        mu = variables["mu"]
        variables["mu"] = change(mu, mu.mean(axis=0), mu.std(axis=0))
        return Posterior("drawn", variables)

    return method


def test_a_posterior_that_is_too_narrow_leaves_the_bands():
    result = judged(records_of("naive", changed(lambda mu, mean, sd: mean + 0.6 * (mu - mean)), 250))
    found = by_name(result)
    assert result["outside"] > 0
    for name in ("mu[0,0]", "mu[2,1]"):
        assert found[name]["spread"] > 1.3
        assert "too narrow" in found[name]["words"]
    assert not found["sigma2[0,0]"]["outside"]


def test_a_posterior_that_is_shifted_leaves_the_bands():
    result = judged(records_of("naive", changed(lambda mu, mean, sd: mu + 0.5 * sd), 250))
    found = by_name(result)
    assert result["outside"] > 0
    for name in ("mu[0,0]", "mu[2,1]"):
        assert found[name]["outside"]
        assert found[name]["shift"] == pytest.approx(-0.5, abs=0.25)
        assert "too high by" in found[name]["words"]


def test_the_log_likelihood_sees_a_method_that_ignores_the_data():
    """Draws of the prior have uniform ranks for every parameter (Modrák et al. 2023): only the data give them away."""

    def prior(simulation, size, seed):
        rng = np.random.default_rng(seed)
        drawn = MODELS["naive"].prior.draw(3 * size, random_seed=rng)
        theta = {"pi": rng.dirichlet(np.full(3, 2.0), size=size)}
        return Posterior("drawn", theta | {name: x.reshape(size, 3, 2) for name, x in drawn.items()})

    found = by_name(judged(records_of("naive", prior, 60)))
    assert found["log likelihood"]["outside"]
    assert not any(q["outside"] for q in found.values() if q["group"] == "parameters")


def test_ranks_count_what_is_below_and_break_ties_at_random():
    rng = np.random.default_rng(3)
    draws = {"a": np.array([1.0, 2.0, 3.0]), "b": np.zeros(3)}
    truth = {"a": np.array([2.5]), "b": np.zeros(1)}
    found = [rank_truth(truth, draws, rng) for _ in range(400)]
    assert {one["a"] for one in found} == {2}
    assert np.bincount([one["b"] for one in found], minlength=4) == pytest.approx(100, abs=40)


def test_quantities_of_each_model_are_finite_and_whole():
    sizes = {"lda": 23, "qda": 29, "naive": 26, "lda-lkj": 23, "qda-lkj": 29, "naive-lkj": 26}
    sizes |= {"logistic": 8, "softmax": 20, "lda-10": 99, "lda-wide": 99, "lda-gaps": 23, "qda-gaps": 29}
    sizes |= {
        "naive-gaps": 26,
        "rda": 28,
        "logistic-10": 16,
        "logistic-wide": 16,
        "hierarchical": 11,
        "logistic-eb": 10,
        "student": 19,
        "student-shared": 15,
        "mixture": 15,  # 2 shares, means and variances of 2 × 2 features, 3 probabilities, 2 log densities
        "mixture-shared": 15,
        "mixture-diagonal": 15,
        "mixed": 31,  # 2 shares, 8 × 2 parameters, 2 × 4 levels, 3 probabilities, 2 log densities
    }
    for name, model in MODELS.items():
        simulation = model.draw(np.random.default_rng(4))
        found = quantities(simulation, simulation.theta)
        assert len(found) == sizes[name]
        assert all(value.shape == (1,) and np.isfinite(value).all() for value in found.values())


def test_probabilities_and_likelihoods_are_those_of_scipy():
    simulation = MODELS["qda"].draw(np.random.default_rng(5))
    theta, data = {name: x[0] for name, x in simulation.theta.items()}, simulation.data
    classes = [stats.multivariate_normal(m, S) for m, S in zip(theta["mu"], theta["Sigma"], strict=True)]
    found = quantities(simulation, simulation.theta)
    joint = np.array([p * c.pdf(simulation.new_rows[1]) for p, c in zip(theta["pi"], classes, strict=True)])
    assert expit(found["p(y=2 | x2)"][0]) == pytest.approx(joint[2] / joint.sum())
    rows = [np.log(theta["pi"][k]) + classes[k].logpdf(x) for x, k in zip(data.X, data.y, strict=True)]
    assert found["log likelihood"][0] == pytest.approx(sum(rows))


@pytest.mark.parametrize("model", ["logistic", "softmax"])
def test_probabilities_of_the_regressions_are_those_of_the_softmax(model):
    simulation = MODELS[model].draw(np.random.default_rng(5))
    w = simulation.theta["w"][0]
    a = simulation.new_rows[2] @ np.vstack([np.zeros(3), w]).T if model == "logistic" else simulation.new_rows[2] @ w.T
    found = quantities(simulation, simulation.theta)
    assert expit(found["p(y=1 | x3)"][0]) == pytest.approx(softmax(a)[1])


@pytest.mark.parametrize("model", ["lda", "qda", "naive"])
def test_a_class_without_rows_is_fine(model):
    rng = np.random.default_rng(6)
    drawn = (MODELS[model].draw(rng) for _ in range(1000))
    simulation = next(one for one in drawn if (np.bincount(one.data.y, minlength=3) == 0).any())
    truth = quantities(simulation, simulation.theta)
    for method in ("exact", "laplace"):
        posterior = METHODS[method](simulation, 9, 1)
        assert quantities(simulation, posterior.variables).keys() == truth.keys()


# ── Running ─────────────────────────────────────────────────────────────────────────────────────────────────────────

JOBS = (Job("naive", "exact", 60), Job("logistic", "laplace", 30))


def without_times(tree):
    return {name: value for name, value in tree.items() if name != "seconds"}


def test_an_interrupted_run_is_taken_up_where_it_stopped(tmp_path, monkeypatch):
    run(JOBS, tmp_path / "whole")
    whole = without_times(conclude(JOBS, tmp_path / "whole"))

    folder, calls = tmp_path / "cut", []
    work = sbc._work

    def interrupted(model, method, indices):
        calls.append((model, method, tuple(indices)))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return work(model, method, indices)

    monkeypatch.setattr(sbc, "_work", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(JOBS, folder)
    path = JOBS[0].path(folder)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"index":59,"outc')  # as a crash in the middle of a write leaves it
    before = len(path.read_text(encoding="utf-8").splitlines())
    calls.clear()
    calls.extend([()] * 3)
    run(JOBS, folder)
    repeated = [indices for model, _, indices in calls[3:] if model == "naive"]
    assert before > 2
    assert sum(map(len, repeated)) == 60 - (before - 2)  # neither the header nor the half line is a simulation
    assert without_times(conclude(JOBS, folder)) == whole
    assert without_times(json.loads((folder / sbc.NUMBERS).read_text(encoding="utf-8"))) == json.loads(
        json.dumps(whole)
    )


def test_nothing_is_done_twice_and_other_questions_begin_anew(tmp_path, monkeypatch):
    jobs = (Job("naive", "exact", 20),)
    run(jobs, tmp_path)
    monkeypatch.setattr(sbc, "_work", lambda *_: pytest.fail("it was done"))
    run(jobs, tmp_path)
    header = jobs[0].header()
    path = jobs[0].path(tmp_path)
    assert store.open_file(path, header) == set(range(20))
    assert store.open_file(path, header | {"seed": 1}) == set()


def test_order_does_not_matter():
    alone = simulate("naive", "laplace", 7)
    simulate("naive", "laplace", 3)
    again = simulate("naive", "laplace", 7)
    assert alone["ranks"] == again["ranks"]


def test_every_model_is_planned_by_every_method_that_it_has():
    jobs = plan(1000)
    assert len(jobs) == sum(len(model.methods) for model in MODELS.values())
    sizes = {(job.model, job.method): job.simulations for job in jobs}
    assert all(sizes[model, "mcmc"] == 1000 for model in ("lda", "qda", "naive", "logistic", "softmax"))
    assert {size for (_, method), size in sizes.items() if method == "exact"} == {5000}
    assert set(sbc.FEWER) <= {f"{model}:{method}" for model, method in sizes}
    assert plan(10, ["lda:exact", "skew-modal"]) == [
        Job("lda", "exact", 50),
        *(Job(model, "skew-modal", 10) for model in ("logistic", "softmax", "logistic-10", "logistic-wide")),
    ]
    with pytest.raises(ValueError, match="`only` must name models, methods or model:method; got 'ldo'"):
        plan(10, ["ldo"])


def test_the_command_writes_numbers_and_page(tmp_path, capsys):
    arguments = ["--simulations", "4", "--only", "naive:exact", "--workers", "1", "--folder", str(tmp_path)]
    assert sbc.main(arguments) == 0
    assert "0 of 26 quantities" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "index.html").exists()
    assert json.loads((tmp_path / "sbc.json").read_text(encoding="utf-8"))["holds"]


@pytest.mark.slow
def test_processes_do_not_change_the_numbers(tmp_path):
    run(JOBS, tmp_path / "one")
    run(JOBS, tmp_path / "two", workers=2)
    assert without_times(conclude(JOBS, tmp_path / "one")) == without_times(conclude(JOBS, tmp_path / "two"))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lda", "logistic"])
def test_mcmc_stays_inside(model):
    result = judged(records_of(model, METHODS["mcmc"], 20, name="mcmc"))
    assert result["simulations"] >= 18
    assert least_p(result) > (1 - LEVEL) / 2


def test_a_class_of_few_rows_whose_density_has_no_mode_is_refused_at_once():
    # Here the search for the mode leads to a covariance that vanishes, where the curvature overflows; it never ended.
    assert simulate("qda-lkj", "laplace", 734)["outcome"] == "no mode"
