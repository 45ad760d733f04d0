"""Histogram: noisy counts of every cell, with and without a class column."""
