"""A small query language, and how releases answer it."""
