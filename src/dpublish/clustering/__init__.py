"""Publish where records lie close together: centres, and shapes."""
