"""Trees: DiffPID3, and the majority class."""
