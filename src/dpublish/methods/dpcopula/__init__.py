"""DPCopula: marginals joined by a Gaussian copula, and its hybrid for mixed tables."""
