"""From data and priors to posteriors: exact, Laplace, MCMC, and whether to trust them."""
