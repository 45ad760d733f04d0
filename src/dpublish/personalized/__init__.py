"""Publish a table in which each record brings its own epsilon."""
