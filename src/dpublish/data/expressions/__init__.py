"""A small language for what is computed from one record: conditions and derived columns."""
