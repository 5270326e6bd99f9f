"""Comparisons of posteriors, predictions and evidence against closed forms and ArviZ."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from scipy.special import ndtr

from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.evaluation.compare import (
    PARAMETER_COLUMNS,
    compare_evidence,
    compare_posteriors,
    compare_predictions,
)
from bayes_gda.families.gaussian.exact import lda_posterior
from bayes_gda.priors import NIW

S = 4000
COORDS = coordinates(class_names=["a", "b"], coefficient_names=["intercept", "x"])


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def weights(w, chains=4, **others):
    return to_datatree({"w": w, **others}, COORDS, chains=chains)


def resampled(distinct, seed):
    """Each of the draws S/distinct times, in random order."""
    g = np.random.default_rng(seed)
    return g.permutation(np.repeat(g.normal(size=(distinct, 2)), S // distinct, axis=0))


def autoregressive(rho, chains, draws, dim, seed):
    x = normal(chains, draws, dim, seed=seed)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x.reshape(-1, dim)


@pytest.fixture(scope="module")
def known():
    """The reference is N(0, 2²) and N(10, 1); the other is shifted by one sd in the first and wider in the second."""
    reference = normal(S, 2) * [2, 1] + [0, 10]
    other = normal(S, 2, seed=1) * [2, 1.5] + [2, 10]
    return compare_posteriors({"laplace": weights(other), "mcmc": weights(reference)})


# Parameters


def test_parameters_of_known_normals(known):
    assert known.reference == "mcmc"
    assert list(known.parameters.columns) == list(PARAMETER_COLUMNS)
    assert known.parameters.index.names == ["method", "parameter"]
    shifted, wider = (known.parameters.loc[("laplace", f"w[{name}]")] for name in ("intercept", "x"))
    assert shifted["mean"] == pytest.approx(2, abs=0.15)
    assert shifted["sd"] == pytest.approx(2, rel=0.05)
    assert shifted["mean_difference_sd"] == pytest.approx(1, abs=0.08)
    assert shifted["wasserstein"] == pytest.approx(1, abs=0.08)
    assert shifted["mean_difference_mcse"] == pytest.approx(1 / np.sqrt(2 / S), rel=0.15)
    assert shifted["total_variation"] == pytest.approx(2 * ndtr(0.5) - 1, abs=0.04)
    assert shifted["accuracy"] == pytest.approx(100 * (1 - shifted["total_variation"]))
    assert wider["sd_ratio"] == pytest.approx(1.5, rel=0.05)
    assert abs(wider["mean_difference_mcse"]) < 4
    x = np.sqrt(2 * np.log(1.5) / (1 - 1 / 1.5**2))
    assert wider["total_variation"] == pytest.approx(2 * (ndtr(x) - ndtr(x / 1.5)), abs=0.04)
    assert abs(wider["skewness"]) < 4 * wider["skewness_error"]


def test_the_reference_is_at_no_distance_from_itself(known):
    own = known.parameters.loc["mcmc"]
    zero = ["mean_difference_sd", "mean_difference_mcse", "total_variation", "total_variation_error", "wasserstein"]
    assert (own[zero] == 0).all(axis=None)
    assert (own[["sd_ratio"]] == 1).all(axis=None)
    assert (own["accuracy"] == 100).all()
    joint = known.joint.loc["mcmc"]
    assert (joint[["kl", "energy_distance", "largest_mean_difference_sd"]] == 0).all()
    assert joint["energy_p_value"] == 1


def test_the_joint_table(known):
    row = known.joint.loc["laplace"]
    # Independent coordinates: ½(1) for the shift, ½(1.5² − 1 − log 1.5²) for the spread
    assert row["kl"] == pytest.approx(0.5 + 0.5 * (1.25 - np.log(2.25)), rel=0.15)
    assert row["kl_noise"] == pytest.approx(0.25 * 2 * 5 * 2 / S, rel=0.2)
    assert row["energy_distance"] > 10 * row["energy_noise"]
    assert row["energy_p_value"] < 0.01
    assert row["parameter"] == "w[intercept]"
    assert row["largest_mean_difference_sd"] == known.parameters.loc[("laplace", "w[intercept]"), "mean_difference_sd"]


def test_the_mcse_is_arvizs_and_judges_autocorrelated_draws_fairly():
    slow, fast = autoregressive(0.9, 4, 1000, 2, seed=2), normal(S, 2, seed=3)
    table = compare_posteriors({"mcmc": weights(slow), "exact": weights(fast)})
    expected = float(array_stats.mcse(slow.reshape(4, 1000, 2)[:, :, 0], method="mean"))
    row = table.parameters.loc[("mcmc", "w[intercept]")]
    assert row["mcse"] == pytest.approx(expected)
    assert row["mcse"] > 2.5 * row["sd"] / np.sqrt(S)
    assert (table.parameters["mean_difference_mcse"].abs() < 4).all()
    assert table.joint.loc["mcmc", "energy_p_value"] > 0.01
    assert table.joint.loc["mcmc", "kl"] < 5 * table.joint.loc["mcmc", "kl_noise"]


def test_equal_posteriors_are_at_no_distance_beyond_chance_whatever_their_draws():
    """Of a slow chain, of independent draws, and of 16 000 of them, which must not look better for their number."""
    excess, level = [], []
    for s in range(10):
        slow = weights(autoregressive(0.7, 4, 1000, 6, seed=s)[:, :2])
        trees = {"mcmc": slow, "laplace": weights(normal(S, 2, seed=80 + s)), "corrected": weights(normal(4 * S, 2))}
        joint = compare_posteriors(trees | {"exact": weights(normal(S, 2, seed=90 + s))}).joint
        assert (joint["kl_excess"] == joint["kl"] - joint["kl_noise"]).all()
        excess.append(joint["kl_excess"].to_numpy())
        level.append(joint["kl_noise"].to_numpy())
    mean, error = np.mean(excess, axis=0), np.std(excess, axis=0) / np.sqrt(10)
    assert (np.abs(mean) <= 3 * error).all()
    slow, even, many, _ = np.mean(level, axis=0)
    assert many == pytest.approx(even, rel=0.15)  # thinned to as many draws
    assert slow > 2 * even


def test_resampled_draws_count_for_what_they_are_worth():
    """400 distinct draws, ten times each, look like 4000 independent ones to an autocorrelation."""
    table = compare_posteriors({"exact": weights(normal(S, 2)), "corrected": weights(resampled(400, seed=4))})
    rows = table.parameters.loc["corrected"]
    np.testing.assert_allclose(rows["mcse"], rows["sd"] / np.sqrt(400), rtol=0.02)
    z = [
        compare_posteriors({"exact": weights(normal(S, 2, seed=50 + s)), "corrected": weights(resampled(400, seed=s))})
        .parameters.loc["corrected", "mean_difference_mcse"]
        .to_numpy()
        for s in range(8)
    ]
    assert 0.5 < np.std(z) < 1.7


def test_equal_posteriors_of_a_conjugate_model():
    """LDA: pi is a simplex and Sigma symmetric, so the joint covariance is singular."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 30)
    moments = Moments.from_arrays(rng.normal(size=(60, 3)) + y[:, None], y, 2)
    posterior = lda_posterior(moments, NIW.default(moments))
    coords = coordinates(class_names=["a", "b"], feature_names=["u", "v", "w"])
    trees = {
        name: to_datatree(posterior.draw(S, random_seed=seed), coords, chains=4)
        for seed, name in enumerate(["exact", "mcmc"])
    }
    table = compare_posteriors(trees)
    assert table.reference == "exact"
    assert len(table.parameters) == 2 * (2 + 6 + 9)
    other = table.parameters.loc["mcmc"]
    assert (other["mean_difference_mcse"].abs() < 4.5).all()
    assert (other["accuracy"] > 95).all()
    assert np.isfinite(table.parameters).all(axis=None)
    # 1 of pi, 6 of mu, 6 of Sigma are free.
    joint = table.joint.loc["mcmc"]
    assert joint["kl_noise"] == pytest.approx(0.25 * 13 * 16 * 2 / S, rel=0.1)
    assert joint["kl"] < 2 * joint["kl_noise"]
    assert joint["energy_p_value"] > 0.01
    pd.testing.assert_series_equal(other.loc["Sigma[u, v]"], other.loc["Sigma[v, u]"], check_names=False)


# Constants


def test_constants_of_all_methods_are_dropped_and_named():
    def softmax(seed):
        w = np.zeros((S, 2, 2))
        w[:, 1] = normal(S, 2, seed=seed)
        return to_datatree({"w": w}, COORDS, chains=4)

    table = compare_posteriors({"mcmc": softmax(0), "laplace": softmax(1)})
    assert table.constant == ("w[a, intercept]", "w[a, x]")
    assert list(table.parameters.loc["mcmc"].index) == ["w[b, intercept]", "w[b, x]"]
    assert np.isfinite(table.joint[["kl", "energy_distance"]]).all(axis=None)
    with pytest.raises(DataError, match="There is nothing to compare"):
        compare_posteriors({"mcmc": weights(np.ones((S, 2))), "laplace": weights(np.ones((S, 2)))})


def test_what_is_constant_in_one_method_only_is_infinitely_far():
    w = normal(S, 2)
    fixed, moved = np.column_stack([w[:, 0], np.zeros(S)]), w + np.array([0, 3])
    table = compare_posteriors({"mcmc": weights(fixed), "laplace": weights(moved)})
    row = table.parameters.loc[("laplace", "w[x]")]
    assert row["mean_difference_sd"] == row["sd_ratio"] == row["wasserstein"] == np.inf
    assert row["total_variation"] > 0.9
    assert table.joint.loc["laplace", "kl"] == np.inf
    assert table.joint.loc["laplace", "parameter"] == "w[x]"
    back = compare_posteriors({"mcmc": weights(moved), "laplace": weights(fixed)})
    assert back.parameters.loc[("laplace", "w[x]"), "sd_ratio"] == 0
    assert back.parameters.loc[("laplace", "w[x]"), "skewness"] == 0
    assert back.joint.loc["laplace", "kl"] == np.inf


# Which reference, which variables


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["laplace", "corrected", "mcmc", "exact"], "exact"),
        (["laplace", "skew-modal", "corrected", "MCMC"], "MCMC"),
        (["Laplace", "skew_modal"], "skew_modal"),
        (["one", "two"], "one"),
        (["one", "laplace"], "laplace"),
    ],
)
def test_the_best_method_is_the_reference(methods, expected):
    P = np.array([[0.3, 0.7]])
    table = compare_predictions(dict.fromkeys(methods, P))
    assert list(table.index) == methods
    trees = {name: weights(normal(40, 2, seed=i)) for i, name in enumerate(methods)}
    assert compare_posteriors(trees).reference == expected
    assert compare_posteriors(trees, reference=methods[0]).reference == methods[0]


def test_variables_that_not_all_have_are_left_out_and_named():
    trees = {"mcmc": weights(normal(S, 2), tau=np.exp(normal(S))), "laplace": weights(normal(S, 2, seed=1))}
    table = compare_posteriors(trees)
    assert table.left_out == ("tau",)
    assert list(table.parameters.loc["laplace"].index) == ["w[intercept]", "w[x]"]
    trees["laplace"] = weights(normal(S, 2, seed=1), tau=np.exp(normal(S, seed=2)))
    table = compare_posteriors(trees, var_names=["tau"])
    assert (table.left_out, list(table.parameters.loc["laplace"].index)) == ((), ["tau"])


def test_to_datatree_holds_the_tables(known):
    tree = known.to_datatree()
    cell = tree["parameters"]["sd_ratio"].sel({"method": "laplace", "parameter": "w[x]"})
    assert float(cell) == known.parameters.loc[("laplace", "w[x]"), "sd_ratio"]
    assert float(tree["joint"]["kl"].sel({"method": "laplace"})) == known.joint.loc["laplace", "kl"]
    assert str(tree["joint"]["parameter"].sel({"method": "laplace"}).item()) == "w[intercept]"
    assert tree.attrs["reference"] == "mcmc"


@pytest.mark.parametrize(
    ("posteriors", "options", "message"),
    [
        ({}, {}, "empty mapping"),
        ({"mcmc": weights(normal(40, 2))}, {"reference": "exact"}, "`reference` must be one of 'mcmc'; got 'exact'"),
        ({"mcmc": weights(normal(40, 2))}, {"var_names": ["mu"]}, r"got \['mu'\]. All have \['w'\]"),
        ({"mcmc": weights(normal(8, 2))}, {}, "'mcmc' has 8 draws of 'w"),
        ({"mcmc": weights(np.full((40, 2), np.nan))}, {}, "'mcmc' has draws that are not finite of 'w"),
        ({"mcmc": weights(normal(40, 2)).children["posterior"]}, {}, "'mcmc' has none"),
        (
            {"mcmc": weights(normal(40, 2)), "laplace": to_datatree({"mu": normal(40, 2, 2)}, {})},
            {},
            "no variable in common",
        ),
        (
            {"mcmc": weights(normal(40, 2)), "laplace": to_datatree({"w": normal(40, 2)}, {"coefficient": ["a", "b"]})},
            {},
            "'w.*' is not in both 'mcmc' and 'laplace'",
        ),
    ],
)
def test_posteriors_that_cannot_be_compared(posteriors, options, message):
    with pytest.raises(DataError, match=message):
        compare_posteriors(posteriors, **options)


# Predictions


def test_predictions():
    best = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
    other = np.array([[0.8, 0.2], [0.4, 0.6], [0.2, 0.8], [0.5, 0.5]])
    row = compare_predictions({"laplace": other, "exact": best}).loc["laplace"]
    assert row["max_change"] == pytest.approx(0.2)
    assert row["mean_change"] == pytest.approx(0.3 / 4)
    assert row["q95_change"] == pytest.approx(np.quantile([0.1, 0.2, 0, 0], 0.95))
    assert row["flips"] == 0.25
    assert row["agreement"] == 0.75
    assert row["mean_kl"] == pytest.approx(np.mean([stats.entropy(p, q) for p, q in zip(best, other, strict=True)]))
    impossible = np.array([[1.0, 0.0]] * 4)
    table = compare_predictions({"mcmc": best, "laplace": impossible})
    assert table.loc["laplace", "mean_kl"] == np.inf
    assert (table.loc["mcmc"] == [0, 0, 0, 0, 1, 0]).all()
    with pytest.raises(DataError, match=r"got \(3, 2\) of 'laplace' and \(4, 2\) of 'mcmc'"):
        compare_predictions({"mcmc": best, "laplace": other[:3]})
    with pytest.raises(DataError, match="must sum to one"):
        compare_predictions({"mcmc": best * 2 / 3})


# Evidence


def test_evidence():
    table = compare_evidence({"laplace": (-11.0, np.nan), "bridge": (-10.06, 0.03), "exact": (-10.0, 0.0)})
    assert list(table.columns) == ["log_evidence", "error", "difference", "z"]
    np.testing.assert_allclose(table["difference"], [-1.0, -0.06, 0.0])
    np.testing.assert_allclose(table["z"], [np.nan, -2.0, 0.0])
    both = compare_evidence({"mcmc": (-10.0, 0.3), "corrected": (-9.0, 0.4)})
    assert both.loc["corrected", "z"] == pytest.approx(2)
    assert both.loc["mcmc", "z"] == 0
    certain = compare_evidence({"exact": (-10.0, 0.0), "other": (-9.0, 0.0)})
    assert certain.loc["other", "z"] == np.inf
    with pytest.raises(DataError, match=r"got \(-1.0, -2.0\) of 'exact'"):
        compare_evidence({"exact": (-1.0, -2.0)})
