"""Privelet: counts as noisy Haar coefficients."""
