"""What every method and every released value share."""
