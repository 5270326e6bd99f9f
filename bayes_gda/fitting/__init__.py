"""Fitting: a model with its data and prior as a problem, and the choice of the method that solves it."""
