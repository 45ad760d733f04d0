"""Marginals: noisy counts of each column by itself."""
