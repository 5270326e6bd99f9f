"""Many chains of split Hamiltonian Monte Carlo that step together."""
