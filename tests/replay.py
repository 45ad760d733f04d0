"""The replay of methods, as the tests know it; the audit of installed methods is built on it."""

from dpublish.testing.replay import (
    MECHANISMS,
    ROUNDING,
    SAMPLERS,
    Diverged,
    Tape,
    exchange_loss,
    path_loss,
    playing,
    removal_loss,
    watch,
)

__all__ = [
    "MECHANISMS",
    "ROUNDING",
    "SAMPLERS",
    "Diverged",
    "Tape",
    "exchange_loss",
    "path_loss",
    "playing",
    "removal_loss",
    "watch",
]
