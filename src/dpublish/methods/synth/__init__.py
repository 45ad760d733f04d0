"""Synth: synthetic rows for any use, from chosen noisy tables on a junction tree."""
