"""How fields of released values become plain values of the metadata, and are read back."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon


class Codec(NamedTuple):
    """How a field becomes a plain value of the metadata, and is read back with the schema."""

    write: Callable[[Any], Any]
    read: Callable[[Any, Schema], Any]


def optional(codec: Codec) -> Codec:
    """Return a codec that keeps None as None."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda plain, schema: None if plain is None else codec.read(plain, schema),
    )


PLAIN = Codec(lambda value: value, lambda plain, _: plain)
FLOAT = Codec(float, lambda plain, _: float(plain))
BOOL = Codec(bool, lambda plain, _: bool(plain))
RATE = Codec(format_epsilon, lambda text, _: parse_epsilon(text))
"""A rate of noise: an exact fraction, written as text."""
FIGURES = Codec(dict, lambda plain, _: {str(name): float(x) for name, x in plain.items()})
"""Figures by name."""
AXES = Codec(
    lambda axes: [{"column": axis.column, "level": axis.level} for axis in axes],
    lambda plain, schema: tuple(schema[one["column"]].axis(one["level"]) for one in plain),
)
"""Columns of the schema, each on a level of its taxonomy."""
NOISY_SIZE = Codec(
    lambda size: {"count": size.value, "rate": format_epsilon(size.rate)},
    lambda plain, _: NoisySize(plain["count"], parse_epsilon(plain["rate"])),
)
"""A noisy number of records, with the rate of its noise."""
