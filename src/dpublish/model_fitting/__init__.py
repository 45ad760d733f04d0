"""Ways to fit a model privately that serve more than one task."""
