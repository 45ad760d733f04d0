"""TopK: the most frequent values of a column, or items of baskets."""
