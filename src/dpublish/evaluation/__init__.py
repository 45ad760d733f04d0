"""How good a release or a mechanism is: metrics and experiments."""
