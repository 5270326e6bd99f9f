"""The five models, one readable file each: a function from data and priors to a `pm.Model`."""
