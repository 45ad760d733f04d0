"""Publish data that looks like the data."""
