"""Audits of installed methods: their proof tests, rerun on simulated tables."""
