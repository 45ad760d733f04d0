"""The `dpublish` command."""

from dpublish.cli.main import main

__all__ = ["main"]
