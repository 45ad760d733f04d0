"""Exact samplers: integers and fractions only."""
