"""Bounds: a column's bounds that no one knows, measured with a small epsilon."""
