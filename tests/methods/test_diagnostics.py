"""Diagnostics against chains whose autocorrelation, disagreement and energy are known."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import DataError
from bayes_gda.methods.diagnostics import COLUMNS, Thresholds, diagnose, scalars

CHAINS, DRAWS = 4, 1000


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def autoregressive(rho, chains, draws, seed=2):
    """x_t = ρ x_{t−1} + √(1 − ρ²) ε_t, started in its stationary distribution N(0, 1)."""
    x = normal(chains, draws, seed=seed)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def tree_of(variables, stats=None, attrs=None, coords=None, dims=None):
    """A DataTree of arrays (chain, draw, …), and of statistics (chain, draw)."""

    def dataset(arrays):
        named = {
            name: (("chain", "draw", *(dims or {}).get(name, [f"{name}_{i}" for i in range(a.ndim - 2)])), a)
            for name, a in arrays.items()
        }
        return xr.Dataset(named, coords={"chain": np.arange(len(next(iter(arrays.values()))))})

    posterior = dataset(variables).assign_coords(coords or {}).assign_attrs(attrs or {})
    return xr.DataTree.from_dict({"posterior": posterior} | ({"sample_stats": dataset(stats)} if stats else {}))


def healthy(chains=CHAINS, draws=DRAWS, **changed):
    """Sampler statistics with nothing to complain about: independent energies have E-BFMI 2."""
    stats = {
        "diverging": np.zeros((chains, draws), bool),
        "energy": normal(chains, draws, seed=3),
        "tree_depth": np.full((chains, draws), 3),
        "reached_max_treedepth": np.zeros((chains, draws), bool),
        "acceptance_rate": np.full((chains, draws), 0.85),
        "step_size": np.full((chains, draws), 0.7),
    }
    return {name: value for name, value in (stats | changed).items() if value is not None}


def with_stats(**changed):
    return tree_of({"tau": normal(CHAINS, DRAWS)}, healthy(**changed))


# The verdict


def test_independent_draws_are_good():
    d = diagnose(tree_of({"mu": normal(CHAINS, DRAWS, 3)}))
    assert d.verdict == "good"
    assert d.next_steps == ("Use the draws as they are.",)
    assert len(d.reasons) == 1
    assert "limit 1.01" in d.reasons[0]
    assert "400 needed" in d.reasons[0]
    assert any("sample_stats" in note for note in d.notes)
    assert (d.chains, d.draws) == (CHAINS, DRAWS)
    assert d.divergences is d.max_depth_share is d.e_bfmi is d.acceptance is None


def test_a_healthy_sampler_is_good_and_nothing_is_left_unjudged():
    d = diagnose(with_stats())
    assert d.verdict == "good"
    assert d.notes == ()
    assert d.divergences == 0
    assert d.max_depth_share == 0
    np.testing.assert_allclose(d.e_bfmi, 2, atol=0.3)
    np.testing.assert_allclose(d.acceptance, 0.85)


def test_a_shifted_chain_is_bad_and_named():
    mu = normal(CHAINS, DRAWS, 3)
    mu[2, :, 1] += 3
    d = diagnose(tree_of({"mu": mu}, healthy(), dims={"mu": ["class"]}, coords={"class": ["a", "b", "c"]}))
    assert d.verdict == "bad"
    assert d.reasons[0].startswith("R-hat is above 1.01 for 1 of 3 parameters: mu[b] 1.")
    assert d.next_steps == ("Warm up longer: double `tune`.", "Reparametrise or use a stronger prior.")
    assert list(d.worst(1).index) == ["mu[b]"]


def test_longer_warm_up_is_counted_from_the_recorded_one():
    tau = normal(CHAINS, DRAWS) + 3 * np.arange(CHAINS)[:, None]
    tree = tree_of({"tau": tau}, healthy(), attrs={"tuning_steps": 500})
    assert diagnose(tree).next_steps[0] == "Warm up longer: tune=1000."


def test_chains_of_different_scale_are_seen_though_their_means_agree():
    tau = normal(CHAINS, DRAWS)
    tau[0] *= 5
    d = diagnose(tree_of({"tau": tau}))
    assert d.verdict == "bad"
    assert "R-hat" in d.reasons[0]
    assert "one posterior" in d.next_steps[0]


def test_chains_that_all_stand_still_in_different_places_are_bad():
    tau = np.repeat(np.arange(4.0)[:, None], DRAWS, axis=1)
    d = diagnose(tree_of({"tau": tau, "mu": normal(CHAINS, DRAWS)}, healthy()))
    assert d.verdict == "bad"
    assert d.constant == ()
    assert np.isinf(d.table.loc["tau", "r_hat"])
    assert "Chain 3 is stuck: its draws are all the same for tau." in d.reasons


def test_one_stuck_chain_among_moving_ones_is_bad():
    tau = normal(CHAINS, DRAWS)
    tau[1] = 0.0
    d = diagnose(tree_of({"tau": tau}))
    assert d.verdict == "bad"
    assert "Chain 1 is stuck: its draws are all the same for tau." in d.reasons


def test_interrupted_sampling_is_at_least_a_caution():
    for mark in (True, np.True_, 1, "True", "true"):
        d = diagnose(tree_of({"tau": normal(CHAINS, DRAWS)}, attrs={"incomplete": mark}))
        assert d.verdict == "caution"
        assert d.reasons == ("Sampling was interrupted, with 1000 draws per chain.",)
    for mark in (False, 0, "False"):
        assert diagnose(tree_of({"tau": normal(CHAINS, DRAWS)}, attrs={"incomplete": mark})).verdict == "good"


def test_the_worst_finding_comes_first_and_no_step_is_said_twice():
    tau = normal(CHAINS, DRAWS)
    tau[0] += 5
    d = diagnose(tree_of({"tau": tau}, healthy(energy=normal(CHAINS, DRAWS).cumsum(axis=1)), {"incomplete": True}))
    assert d.verdict == "bad"
    assert "R-hat" in d.reasons[0]
    assert len(d.reasons) >= 3
    assert len(set(d.next_steps)) == len(d.next_steps)


# Effective draws


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
def test_ess_of_autoregressive_chains(rho):
    """ESS = n (1 − ρ)/(1 + ρ), and the error of the mean is sd/√ESS."""
    draws = 20_000
    row = diagnose(tree_of({"x": autoregressive(rho, 2, draws)})).table.loc["x"]
    ess = 2 * draws * (1 - rho) / (1 + rho)
    assert row["ess_bulk"] == pytest.approx(ess, rel=0.1)
    assert row["mcse_mean"] == pytest.approx(1 / np.sqrt(ess), rel=0.1)
    assert row["sd"] == pytest.approx(1, rel=0.05)


def test_too_few_effective_draws_ask_for_as_many_as_are_missing():
    rho, lenient = 0.9, Thresholds(r_hat=1.5, r_hat_bad=2)
    tree = tree_of({"x": autoregressive(rho, 4, 1000), "y": normal(4, 1000)})
    d = diagnose(tree, thresholds=lenient)
    assert d.verdict == "caution"
    assert d.reasons[0].startswith("Bulk ESS is below 400 for 1 of 2 parameters: x ")
    fewest = d.table.loc["x", ["ess_bulk", "ess_tail"]].min()
    (step,) = d.next_steps
    draws = int(step.removeprefix("Sample more: draws=").removesuffix("."))
    # 400 effective draws, and a fifth more, rounded up to the next 500.
    assert 0 <= draws - 1.2 * 1000 * 400 / fewest < 500
    assert draws % 500 == 0
    assert diagnose(tree_of({"x": autoregressive(rho, 4, draws)}), thresholds=lenient).verdict == "good"


def test_hopelessly_few_effective_draws_are_bad_and_not_worth_waiting_for():
    d = diagnose(tree_of({"x": autoregressive(0.999, 4, 1000)}), thresholds=Thresholds(r_hat=9, r_hat_bad=9))
    assert d.verdict == "bad"
    assert d.next_steps == ("Reparametrise or use a stronger prior.",)


def test_more_chains_need_more_effective_draws():
    x = normal(8, 75)
    assert "below 800" in diagnose(tree_of({"x": x})).reasons[0]
    assert diagnose(tree_of({"x": x.reshape(4, 150)}), thresholds=Thresholds(r_hat=1.05)).verdict == "good"


def test_tail_ess_alone_can_fail():
    """A chain that enters its lower tail once, and stays a while, is well mixed in the bulk only."""
    x = np.abs(normal(4, 1000))
    x[:, 300:350] *= -1
    row = (d := diagnose(tree_of({"x": x}))).table.loc["x"]
    assert row["ess_tail"] < 400
    assert any(reason.startswith("Tail ESS is below 400") for reason in d.reasons)


# The table


@pytest.fixture(scope="module")
def gaussian():
    """Draws of μ and Σ with names, one entry of which mixes badly."""
    mu, x = normal(4, 200, 2, 2), autoregressive(0.8, 4, 200)
    mu[..., 1, 0] = 1e3 + x
    root = normal(4, 200, 2, 5, seed=9)
    Sigma = np.einsum("cdij,cdkj->cdik", root, root)
    names = {"class": ["setosa", "virginica"], "feature": ["petal width (cm)", "b"]}
    return tree_of(
        {"mu": mu, "Sigma": (Sigma + Sigma.swapaxes(2, 3)) / 2, "tau": np.exp(normal(4, 200))},
        dims={"mu": ["class", "feature"], "Sigma": ["feature", "feature_bis"]},
        coords=names | {"feature_bis": names["feature"]},
    )


def test_labels(gaussian):
    labelled = scalars(gaussian["posterior"].to_dataset())
    assert list(labelled) == [
        "mu[setosa, petal width (cm)]",
        "mu[setosa, b]",
        "mu[virginica, petal width (cm)]",
        "mu[virginica, b]",
        "Sigma[petal width (cm), petal width (cm)]",
        "Sigma[petal width (cm), b]",
        "Sigma[b, petal width (cm)]",
        "Sigma[b, b]",
        "tau",
    ]
    mu = gaussian["posterior"]["mu"]
    np.testing.assert_array_equal(labelled["mu[virginica, b]"], mu.sel({"class": "virginica", "feature": "b"}))
    assert list(diagnose(gaussian).table.index) == list(labelled)


def test_labels_without_coords_are_numbers_and_dims_may_stand_in_any_order():
    a = normal(2, 5, 3)
    data = xr.Dataset({"x": (("chain", "draw", "k"), a), "y": (("k", "draw", "chain"), a.T)})
    labelled = scalars(data)
    assert list(labelled) == ["x[0]", "x[1]", "x[2]", "y[0]", "y[1]", "y[2]"]
    np.testing.assert_array_equal(labelled["x[1]"], a[..., 1])
    np.testing.assert_array_equal(labelled["y[1]"], a[..., 1])


def test_the_table_is_arvizs_own(gaussian):
    """Except that the tail is at 5 % and 95 %, as in the paper; ArviZ's depends on its settings."""
    import arviz_stats as azs
    from arviz_base import rc_context

    table = diagnose(gaussian).table
    assert tuple(table.columns) == COLUMNS
    summary = azs.summary(gaussian, kind="all", round_to="none").loc[table.index]
    for column in set(COLUMNS) - {"ess_tail"}:
        np.testing.assert_allclose(table[column], summary[column].astype(float), rtol=1e-8, err_msg=column)
    tail = scalars(
        azs.ess(gaussian["posterior"].to_dataset(), method="tail", prob=(0.05, 0.95)).expand_dims(("chain", "draw"))
    )
    np.testing.assert_allclose(table["ess_tail"], [tail[label].item() for label in table.index], rtol=1e-8)
    with rc_context({"stats.ci_prob": 0.95}):  # as the docstring says
        other = azs.summary(gaussian, kind="all", round_to="none").loc[table.index]
    np.testing.assert_allclose(table["ess_tail"], other["ess_tail"].astype(float), rtol=1e-8)


def test_worst_parameters_by_name(gaussian):
    d = diagnose(gaussian)
    assert len(d.worst()) == 5
    assert d.worst().index[0] == "mu[virginica, petal width (cm)]"
    # Σ is symmetric: an entry and its mirror image are one parameter.
    everything = list(d.worst(100).index)
    assert len(everything) == 8
    assert "Sigma[petal width (cm), b]" in everything
    assert "Sigma[b, petal width (cm)]" not in everything


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-60, 2.0**60, 2.0**1000])
def test_units_do_not_matter(scale):
    x = normal(4, 200)
    one, other = (diagnose(tree_of({"x": a})).table.loc["x"] for a in (x, x * scale))
    np.testing.assert_allclose(other[["ess_bulk", "ess_tail", "r_hat"]], one[["ess_bulk", "ess_tail", "r_hat"]])
    moments = ["mean", "sd", "mcse_mean", "mcse_sd"]
    np.testing.assert_allclose(other[moments] / scale, one[moments])


def test_two_valued_draws_have_figures():
    x = (normal(4, 500) > 0).astype(int)
    d = diagnose(tree_of({"x": x}))
    assert d.verdict == "good"
    assert np.isfinite(d.table.loc["x", ["ess_bulk", "ess_tail", "r_hat"]]).all()


# Parameters that cannot be judged


def test_constant_parameters_are_left_out():
    """The zero weights of a reference class, and the diagonal of a correlation matrix, which is 1 but for rounding."""
    w, R = normal(CHAINS, DRAWS, 2, 2), np.ones((CHAINS, DRAWS, 2))
    w[:, :, 0] = 0.0
    R[..., 0] += 1e-15 * normal(CHAINS, DRAWS)
    R[..., 1] = np.tanh(normal(CHAINS, DRAWS))
    d = diagnose(tree_of({"w": w, "R": R}))
    assert d.verdict == "good"
    assert d.constant == ("w[0, 0]", "w[0, 1]", "R[0]")
    assert list(d.table.index) == ["w[1, 0]", "w[1, 1]", "R[1]"]
    assert d.table.notna().all(axis=None)
    assert "Left out, because constant: w[0, 0], w[0, 1], R[0]." in d.notes


def test_small_variation_is_not_constant():
    d = diagnose(tree_of({"x": 1e6 + 1e-3 * normal(CHAINS, DRAWS)}))
    assert d.constant == ()
    assert d.verdict == "good"


def test_if_nothing_varies_nothing_was_sampled():
    d = diagnose(tree_of({"x": np.ones((4, 100, 2))}))
    assert d.verdict == "bad"
    assert d.reasons == ("Nothing varies: all 2 parameters have the same value in every draw.",)
    assert d.table.empty
    assert d.worst().empty


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_draws_that_are_not_finite_are_bad_and_named(value):
    x = normal(CHAINS, DRAWS, 3)
    x[1, 5:7, 2] = value
    x[1, 5, 1] = value
    d = diagnose(tree_of({"x": x}))
    assert d.verdict == "bad"
    assert d.reasons == ("Draws are nan or infinite: 1 of x[1], 2 of x[2].",)
    assert d.table.loc[["x[1]", "x[2]"]].isna().all(axis=None)
    assert d.table.loc["x[0]"].notna().all()
    assert list(d.worst(2).index) == ["x[1]", "x[2]"]


def test_all_draws_nan():
    d = diagnose(tree_of({"x": np.full((2, 50), np.nan)}))
    assert d.verdict == "bad"
    assert d.reasons == ("Draws are nan or infinite: 100 of x.",)


@pytest.mark.parametrize("draws", [0, 1, 3])
def test_fewer_than_four_draws_are_refused(draws):
    with pytest.raises(DataError, match=rf"a chain of 4 draws; got 2 of {draws}\. Sample more"):
        diagnose(tree_of({"x": normal(2, draws)}))


@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize("draws", [4, 5, 7, 8, 9])
def test_short_chains_are_bad(chains, draws):
    d = diagnose(tree_of({"x": normal(chains, draws)}, healthy(chains, draws)))
    assert d.verdict == "bad"
    assert any("ESS is below 400" in reason for reason in d.reasons)
    assert list(d.worst(1).index) == ["x"]


# One chain


def test_one_chain_is_judged_by_its_halves_and_that_is_said():
    d = diagnose(tree_of({"x": normal(1, 2000)}, healthy(1, 2000)))
    assert d.verdict == "caution"
    assert d.reasons == ("One chain cannot show disagreement between chains: R-hat compares its two halves.",)
    assert d.next_steps == ("Sample at least 4 chains: chains=4.",)
    assert d.table.loc["x", "r_hat"] == pytest.approx(1, abs=0.01)


def test_independent_draws_in_one_chain_are_good_with_a_note():
    tree = to_datatree({"w": normal(2000, 2)}, {"coefficient": ["intercept", "a"]})
    d = diagnose(tree)
    assert d.verdict == "good"
    assert "One chain cannot show disagreement between chains: R-hat compares its two halves." in d.notes
    assert list(d.table.index) == ["w[intercept]", "w[a]"]


def test_one_drifting_chain_is_bad():
    d = diagnose(tree_of({"x": normal(1, 1000) + np.linspace(0, 3, 1000)}))
    assert d.verdict == "bad"
    assert d.reasons[0].startswith("R-hat is above 1.01 for 1 of 1 parameters: x ")


def test_r_hat_of_one_chain_is_the_same_formula():
    """R̂² = (B/W + n − 1)/n of the normal scores of the two halves, the larger of plain and folded."""
    from scipy.stats import norm, rankdata

    x = normal(1, 400) + np.linspace(0, 0.5, 400)
    halves = x.reshape(2, 200)
    values = []
    for a in (halves, np.abs(halves - np.median(halves))):
        z = norm.ppf((rankdata(a) - 3 / 8) / (400 + 1 / 4)).reshape(2, 200)
        between, within = 200 * z.mean(axis=1).var(ddof=1), z.var(axis=1, ddof=1).mean()
        values.append(np.sqrt((between / within + 199) / 200))
    assert diagnose(tree_of({"x": x})).table.loc["x", "r_hat"] == pytest.approx(max(values), rel=1e-10)


# The sampler


def test_divergences_are_counted():
    diverging = np.zeros((CHAINS, DRAWS), bool)
    diverging[0, 3] = diverging[2, 10:12] = True
    d = diagnose(with_stats(diverging=diverging))
    assert d.divergences == 3
    assert d.verdict == "caution"
    assert d.reasons == ("3 transitions diverged (limit 0), 0.07 % (bad above 1.00 %).",)
    assert d.next_steps == ("Raise target_accept to 0.95.", "Reparametrise or use a stronger prior.")
    diverging[1, :100] = True
    assert diagnose(with_stats(diverging=diverging)).verdict == "bad"


def test_a_target_that_was_tried_is_not_advised_again():
    diverging = np.ones((CHAINS, DRAWS), bool)
    d = diagnose(with_stats(diverging=diverging, acceptance_rate=np.full((CHAINS, DRAWS), 0.955)))
    assert d.next_steps[0] == "Raise target_accept to 0.99."


def test_e_bfmi_by_its_formula():
    """E-BFMI = Σ(E_t − E_{t−1})²/(n − 1) over the variance; 2(1 − ρ) for autocorrelated energies."""
    draws = 10_000
    energy = normal(CHAINS, draws)
    energy[3] = autoregressive(0.9, 1, draws)
    d = diagnose(tree_of({"tau": normal(CHAINS, draws)}, healthy(draws=draws, energy=energy)))
    step, spread = np.diff(energy, axis=1) ** 2, (energy - energy.mean(axis=1, keepdims=True)) ** 2
    np.testing.assert_allclose(d.e_bfmi, step.sum(axis=1) / spread.sum(axis=1))
    assert d.e_bfmi[3] == pytest.approx(2 * 0.1, rel=0.2)
    assert d.verdict == "caution"
    assert d.reasons == (f"E-BFMI is below 0.3: chain 3 {d.e_bfmi[3]:.2g}.",)
    assert d.next_steps == ("Reparametrise or use a stronger prior.",)


def test_an_energy_that_never_changes_counts_as_low():
    energy = normal(CHAINS, DRAWS)
    energy[1] = 2.0
    assert diagnose(with_stats(energy=energy)).reasons == ("E-BFMI is below 0.3: chain 1 nan.",)


def test_tree_depth():
    reached = np.zeros((CHAINS, DRAWS), bool)
    reached[:, :40] = True
    assert diagnose(with_stats(reached_max_treedepth=reached)).verdict == "good"
    reached[:, :100] = True
    d = diagnose(with_stats(reached_max_treedepth=reached))
    assert d.max_depth_share == pytest.approx(0.1)
    assert d.verdict == "caution"
    assert d.reasons == ("10.0 % of the transitions reached the tree-depth limit (limit 5.0 %).",)
    assert d.next_steps[0] == "Raise max_treedepth by 2."
    # A sampler that records the depth only: 10 is the limit.
    depth = np.where(reached, 10, 3)
    assert diagnose(with_stats(reached_max_treedepth=None, tree_depth=depth)).max_depth_share == pytest.approx(0.1)


def test_low_acceptance():
    rate = np.full((CHAINS, DRAWS), 0.8)
    rate[2] = 0.4
    d = diagnose(with_stats(acceptance_rate=rate))
    assert d.verdict == "caution"
    assert d.reasons == ("The acceptance rate is below 0.6: chain 2 0.4.",)
    assert d.next_steps == ("Warm up longer: double `tune`.", "Raise target_accept to 0.95.")


def test_what_was_not_recorded_is_not_judged_and_that_is_said():
    d = diagnose(tree_of({"x": normal(CHAINS, DRAWS)}, {"diverging": np.zeros((CHAINS, DRAWS), bool)}))
    assert d.verdict == "good"
    assert d.divergences == 0
    assert d.e_bfmi is d.max_depth_share is d.acceptance is None
    assert d.notes == ("Not judged, because not in `sample_stats`: max depth share, e bfmi, acceptance.",)


# Limits, and input


def test_thresholds_can_be_set():
    diverging = np.zeros((CHAINS, DRAWS), bool)
    diverging[0, :2] = True
    tree = with_stats(diverging=diverging)
    assert diagnose(tree).verdict == "caution"
    assert diagnose(tree, thresholds=Thresholds(divergences=2)).verdict == "good"
    assert diagnose(tree, thresholds=Thresholds(divergence_share_bad=1e-4)).verdict == "bad"
    d = diagnose(with_stats(), thresholds=Thresholds(ess_total=1e4))
    assert d.verdict == "caution"
    assert d.thresholds.ess_needed(4) == 1e4
    assert "Bulk ESS is below 10000" in d.reasons[0]


def test_thresholds_are_checked():
    with pytest.raises(DataError, match="`e_bfmi` must be finite and at least 0; got nan"):
        Thresholds(e_bfmi=np.nan)
    with pytest.raises(DataError, match="`r_hat` must be above 1"):
        Thresholds(r_hat=1.0)


def test_input_is_checked():
    with pytest.raises(DataError, match=r"group 'posterior'; got the groups \['prior'\]"):
        diagnose(xr.DataTree.from_dict({"prior": xr.Dataset()}))
    with pytest.raises(DataError, match="no variables"):
        diagnose(xr.DataTree.from_dict({"posterior": xr.Dataset()}))
    with pytest.raises(DataError, match=r"`x` must have the dims chain and draw; got \('draw',\)"):
        scalars(xr.Dataset({"x": ("draw", np.zeros(5))}))
    twice = xr.Dataset({"x": (("chain", "draw", "k"), normal(2, 5, 2))}, coords={"k": ["a", "a"]})
    with pytest.raises(DataError, match=r"Two parameters are called 'x\[a\]'"):
        scalars(twice)


def test_arviz_is_imported_only_when_needed():
    code = "import sys, bayes_gda.methods.diagnostics; print({'arviz_stats', 'xarray', 'pandas'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
