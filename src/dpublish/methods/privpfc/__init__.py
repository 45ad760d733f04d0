"""PrivPfC: the grid from which classes are predicted best, with noisy counts."""
