"""Charts: one drawing system."""
