"""How columns go together, privately: rank products, agreement of pairs, means of blocks."""
