"""Expectation propagation for logistic regression: sites, passes, and how far its probabilities may be off."""
