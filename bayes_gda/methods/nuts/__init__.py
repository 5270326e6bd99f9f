"""Full MCMC by PyMC's NUTS."""
