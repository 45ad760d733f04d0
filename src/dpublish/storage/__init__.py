"""Files: whole writes, locks, and the one layer over SQLite."""
