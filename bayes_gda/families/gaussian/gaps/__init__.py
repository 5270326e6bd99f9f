"""Gaussian classes on rows with missing values."""
