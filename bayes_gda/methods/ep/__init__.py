"""Expectation propagation over linear predictors, and what is left beyond its Gaussian; neither knows a model."""
