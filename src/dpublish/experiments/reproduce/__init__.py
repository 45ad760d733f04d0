"""The research documents again: every figure, table and claim with its command and a verdict."""
