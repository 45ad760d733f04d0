"""Exact numbers from a table, each knowing its sensitivity."""
