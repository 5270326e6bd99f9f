"""Better Gaussians than Laplace's for the regressions: expectation propagation, and the variational one for softmax."""
