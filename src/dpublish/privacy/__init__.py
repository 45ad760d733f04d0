"""What is guaranteed, and what is left of it."""
