"""Spatial decompositions: PSD, UG, AG and P-HP publish boxes with noisy counts."""
