"""Classes that are mixtures of Gaussians: components with covariances of their own, one shared, or diagonal ones."""
