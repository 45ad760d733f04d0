"""Top-k: the most frequent values of a column, in order."""
