"""Histograms as recipes."""
