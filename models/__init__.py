"""The five models, one readable file each: a function from data and priors to a `pm.Model`."""

from bayes_gda.processes.state import warning_rule

# PyMC 6.3 imports from PyTensor's old place, which is nothing that a user could mend. Every file here imports PyMC.
with warning_rule("ignore", "Importing '.*' from 'pytensor", DeprecationWarning):
    import pymc  # noqa: F401
