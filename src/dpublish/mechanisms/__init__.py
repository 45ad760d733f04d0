"""Noise and choice, exact, paid for from a budget; knows nothing of tables."""
