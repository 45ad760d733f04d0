"""Private rows, and what is publicly known about them."""
