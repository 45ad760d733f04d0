"""Run a stream for years: state, steps, delivery, status."""
