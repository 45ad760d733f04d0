"""What is promised, and what is left of it."""
