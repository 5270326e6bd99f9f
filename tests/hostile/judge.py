"""What may come of hostile input: a valid answer, or one line that says what is wrong. Nothing else."""

import traceback
import warnings
from contextlib import contextmanager

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bayes_gda import load
from bayes_gda.errors import BayesGDAError, InferenceWarning


class Refused(Exception):
    """The input was refused in a lawful way."""


@contextmanager
def lawful():
    """Turn a lawful refusal into `Refused`; let every other error and every warning from below be one of the test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ours in (InferenceWarning, ConvergenceWarning):  # told by us, and meant for the user
            warnings.simplefilter("ignore", ours)
        try:
            yield
        except BayesGDAError as error:
            if len(str(error).splitlines()) != 1:
                raise AssertionError("not one line") from error
            raise Refused(str(error)) from error
        except (ValueError, TypeError) as error:
            if not _of_scikit_learns_checks(error):
                raise
            raise Refused(str(error)) from error


def _of_scikit_learns_checks(error):
    """Whether it was raised by the checks that every scikit-learn estimator makes of its input."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("/sklearn/utils/" in frame.filename for frame in frames)


def check_classifier(estimator, rows, path=None):
    """Hold a fitted estimator to all that it promises of any rows; with a path, also to what a file brings back."""
    K, n = len(estimator.classes_), len(rows)
    p, log_p = estimator.predict_proba(rows), estimator.predict_log_proba(rows)
    assert p.shape == (n, K)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    assert not np.isnan(log_p).any()
    assert (log_p <= 1e-9).all()
    assert np.isin(estimator.predict(rows), estimator.classes_).all()
    interval = estimator.predict_interval(rows)
    assert ((interval >= 0) & (interval <= 1 + 1e-12)).all()
    assert (interval[..., 0] <= interval[..., 1]).all()
    entropy = estimator.uncertainty(rows)
    for part in (entropy.total, entropy.aleatoric, entropy.epistemic):
        assert (part >= -1e-9).all()
        assert (part <= np.log(K) + 1e-9).all()
    decisions = estimator.decide(rows, 1 - np.eye(K), reject_cost=0.3)
    assert np.isfinite(decisions.expected_loss).all()
    for name, variable in estimator.posterior_["posterior"].to_dataset().data_vars.items():
        assert np.isfinite(variable.values).all(), name
    assert estimator.trust_.verdict
    if hasattr(estimator, "sample"):
        X, labels = estimator.sample(3)
        assert np.isfinite(X).all()
        assert np.isin(labels, estimator.classes_).all()
    assert repr(estimator)
    if path is not None:
        estimator.save(path)
        np.testing.assert_array_equal(load(path).predict_proba(rows), p)
