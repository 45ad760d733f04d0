"""Measures of what was lost; they read true values, so their results are not private."""
