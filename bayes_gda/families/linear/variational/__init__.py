"""The Gaussian variational approximation of softmax regression, and how far its probabilities may be off."""
