"""Publish where records lie close together: centers, and shapes."""
