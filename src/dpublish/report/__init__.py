"""Pages and charts drawn from releases only, never from tables."""
