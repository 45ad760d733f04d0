"""Public data and generators, each with its schema."""
