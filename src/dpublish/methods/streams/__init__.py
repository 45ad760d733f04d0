"""Streams: a histogram of a changing table at every step."""
