"""Publish something useful from a sensitive table under differential privacy."""
