"""From posteriors to predictions: discriminant functions, predictive distributions, decisions."""
