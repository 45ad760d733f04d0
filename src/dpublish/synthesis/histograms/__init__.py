"""Histograms as methods."""
