"""Full MCMC by PyMC's NUTS."""

from bayes_gda.processes.state import warning_rule

with warning_rule("ignore", "Importing '.*' from 'pytensor", DeprecationWarning):  # as in `models`
    import pymc  # noqa: F401
