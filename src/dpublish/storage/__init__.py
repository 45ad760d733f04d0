"""Files: locks, whole writes, SQLite."""
