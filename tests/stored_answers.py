"""All that a fitted estimator answers, as arrays: asked here and in another process, and compared bit for bit."""

import numpy as np


def answers(model, X):
    """Return predictions, their errors, intervals, decisions, draws and tables."""
    K = len(model.classes_)
    decisions = model.decide(X, 1 - np.eye(K), reject_cost=0.2)
    split, trust = model.uncertainty(X), model.trust_for(X)
    P, error = model.predict_proba(X, return_std_error=True)
    out = {
        "proba": P,
        "error": error,
        "log_proba": model.predict_log_proba(X, class_prior=np.full(K, 1 / K)),
        "interval": model.predict_interval(X),
        "trust": np.column_stack([trust.approximation, trust.monte_carlo, trust.link]),
        "verdict": trust.verdict,
        "labels": model.predict(X).astype(str),
        "total": split.total,
        "epistemic": split.epistemic,
        "optimal": decisions.probability_optimal,
        "evidence": np.array([model.log_evidence_, model.log_evidence_error_]),
        "summary": model.summary().to_numpy(),
    }
    for name, x in model.posterior_["posterior"].data_vars.items():
        out[f"posterior_{name}"] = x.values
    if hasattr(model, "sample") and getattr(model.model_, "generates", hasattr(model.model_, "sample")):
        out["sample"] = model.sample(5)[0]
    return out
