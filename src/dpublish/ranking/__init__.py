"""Publish which values are the most frequent."""
