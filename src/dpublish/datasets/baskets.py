"""Simulated shopping baskets: a row for each item of a basket."""

import numpy as np
import pyarrow as pa

from dpublish.errors import require_count
from dpublish.randomness import plain_generator


def baskets_schema(items: int = 200) -> str:
    """Return the schema of `baskets` as TOML: one basket is the unit that is protected."""
    names = ", ".join(f'"item-{number:03d}"' for number in range(1, items + 1))
    return (
        'name = "baskets"\nunit = "basket"\n\n'
        f'[columns.item]\nkind = "category"\nvalues = [{names}]\n'
    )


def baskets(count: int = 5_000, items: int = 200, seed: int = 2024) -> pa.Table:
    """Simulate `count` baskets of items whose popularity falls as 1/rank.

    >>> baskets(2).slice(2, 3).to_pydict()
    {'basket': [0, 1, 1], 'item': ['item-001', 'item-018', 'item-021']}
    """
    require_count(count=count, items=items)
    rng = plain_generator(seed)
    sizes = 1 + rng.poisson(3.0, count)
    popularity = 1 / np.arange(1, items + 1)
    chosen = rng.choice(items, size=int(sizes.sum()), p=popularity / popularity.sum())
    names = np.array([f"item-{number:03d}" for number in range(1, items + 1)])
    return pa.table({"basket": np.repeat(np.arange(count), sizes), "item": names[chosen]})
