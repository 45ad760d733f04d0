"""The pages of the studio, one module for each part of it."""
