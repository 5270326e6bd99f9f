"""Weights of models against ArviZ, against a grid, and where the answer is plain."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bayes_gda.errors import DataError
from bayes_gda.evaluation import stacking
from bayes_gda.evaluation.stacking import pseudo_bma_weights, stacking_weights


def mean_log_score(logs, w):
    return np.log(np.exp(logs) @ w).mean()


def three_models(n=300, seed=0):
    """Log densities of a two-part truth under each part and under a broad model."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.7, rng.normal(-2, 1, n), rng.normal(2, 1, n))
    return np.column_stack([stats.norm.logpdf(x, m, s) for m, s in ((-2, 1), (2, 1), (0, 5))])


def test_two_models_against_a_grid():
    logs = three_models()[:, :2]
    grid = np.linspace(0, 1, 20001)
    best = grid[np.argmax([mean_log_score(logs, np.array([w, 1 - w])) for w in grid])]
    np.testing.assert_allclose(stacking_weights(logs), [best, 1 - best], atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_no_weights_do_better(seed):
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(80, 5)) - 1
    w = stacking_weights(logs)
    assert w.sum() == pytest.approx(1)
    assert (w >= 0).all()
    others = rng.dirichlet(np.full(5, 0.5), size=20000)
    scores = np.log(np.exp(logs) @ others.T).mean(axis=0)
    assert scores.max() <= mean_log_score(logs, w) + 1e-6
    # Optimality on the simplex: mean p_m/Σwp is 1 where w_m > 0 and no larger elsewhere.
    g = (np.exp(logs) / (np.exp(logs) @ w)[:, None]).mean(axis=0)
    assert g.max() < 1 + 1e-6
    np.testing.assert_allclose(g[w > 1e-3], 1, atol=1e-5)


def test_where_the_optimiser_stops_short_steps_of_em_go_on(monkeypatch):
    logs = three_models()
    truth = stacking_weights(logs)
    monkeypatch.setattr(stacking, "minimize", lambda f, start, **_: SimpleNamespace(x=start))
    np.testing.assert_allclose(stacking_weights(logs), truth, atol=0.01)
    assert mean_log_score(logs, stacking_weights(logs)) > mean_log_score(logs, truth) - 1e-6


def test_one_model_has_all_the_weight_and_models_that_admit_no_row_share_it():
    np.testing.assert_array_equal(stacking_weights(three_models()[:, :1]), [1.0])
    np.testing.assert_array_equal(stacking_weights(np.full((4, 3), -np.inf)), np.full(3, 1 / 3))


def test_equals_arviz():
    import arviz_base
    import arviz_stats

    rng = np.random.default_rng(5)
    draws = {
        name: rng.normal(c, 0.3, (4, 500, 1)) + three_models()[:, m] for m, (name, c) in enumerate(CENTRES.items())
    }
    loos = {
        name: arviz_stats.loo(
            arviz_base.from_dict({"posterior": {"theta": L[..., 0]}, "log_likelihood": {"y": L}}),
            pointwise=True,
            reff=1.0,
        )
        for name, L in draws.items()
    }
    logs = np.column_stack([loos[name].elpd_i for name in CENTRES])
    for method, ours, tolerance in (
        ("stacking", stacking_weights(logs), 1e-3),
        ("BB-pseudo-BMA", pseudo_bma_weights(logs), 0.02),  # two bootstraps of 1000
    ):
        theirs = arviz_stats.compare(loos, method=method, round_to="none")["weight"]
        np.testing.assert_allclose(ours, theirs[list(CENTRES)].to_numpy(dtype=float), atol=tolerance)


CENTRES = {"left": 0.0, "right": 0.1, "broad": -0.1}


def test_far_out_rows_and_dominated_models():
    logs = three_models() - 1e4  # densities that underflow
    np.testing.assert_allclose(stacking_weights(logs), stacking_weights(logs + 1e4), atol=1e-8)
    worse = np.column_stack([logs[:, 2], logs[:, 2] - 1])
    np.testing.assert_allclose(stacking_weights(worse), [1, 0], atol=1e-6)
    np.testing.assert_allclose(pseudo_bma_weights(worse), [1, 0], atol=1e-12)
    np.testing.assert_array_equal(stacking_weights(logs[:, :1]), [1])


def test_a_model_that_held_a_row_impossible():
    logs = three_models()[:, :2]
    logs[0, 0] = -np.inf  # the second model must be there for this row
    w = stacking_weights(logs)
    assert 0 < w[1] < 1
    np.testing.assert_array_equal(pseudo_bma_weights(logs), [0, 1])
    logs[1, 1] = -np.inf
    assert np.isfinite(stacking_weights(logs)).all()
    assert np.isnan(pseudo_bma_weights(logs)).all()
    logs[1] = -np.inf  # no model admits it: it does not bear on the weights
    np.testing.assert_allclose(stacking_weights(logs), stacking_weights(np.delete(logs, 1, axis=0)), atol=1e-9)


def test_pseudo_bma_of_equal_models_is_even():
    logs = three_models()[:, [2, 2]]
    np.testing.assert_allclose(pseudo_bma_weights(logs), [0.5, 0.5])


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 2)), np.array([[0.0, np.nan]])])
def test_one_line_errors(bad):
    with pytest.raises(DataError, match=r"`pointwise` must be \(n, M\) log densities"):
        stacking_weights(bad)
