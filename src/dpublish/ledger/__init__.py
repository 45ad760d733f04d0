"""The ledger: what was granted, what is left, and a chain that shows any edit."""
