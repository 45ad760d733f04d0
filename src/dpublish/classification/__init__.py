"""Publish data, or a decision, for classifying records."""
