"""What a fit of covariances takes, asked before it is begun."""

from bayes_gda.memory import announce_work, require_memory

# Matrices (d, d) of a class that stand in memory at the peak of a fit: scatter of four parts of the rows and of all,
# prior, posterior and factors (measured: 9, with two classes and with five); and those of an average over models beside
# the posterior that each of these keeps (measured: 90 with 77 models).
MATRICES, BESIDE_MODELS = 9, 13


def check_effort(n: float, d: int, K: int, models: int = 0) -> None:
    """Raise if a fit would take more memory than is free, and say so if it is expected to take more than a minute.

    Parameters
    ----------
    n, d, K
        Rows, features and classes.
    models
        How many models are averaged over; 0 for one alone.
    """
    remedy = "Use fewer features or levels, the naive model, or logistic regression."
    matrices = K * (models + BESIDE_MODELS if models else MATRICES)
    require_memory(8.0 * d**2 * matrices, f"The covariances of {d} features in {K} classes", remedy)
    work = 2.0 * n * d**2 + (6.0 + models) * K * d**3
    announce_work(work, f"A fit of the covariances of {d} features", remedy)
