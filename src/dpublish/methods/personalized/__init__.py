"""Personalized methods: each record brings its own epsilon."""
