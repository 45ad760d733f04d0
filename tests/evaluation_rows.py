"""A release that gives the rows that it was told to give, for tests of evaluations."""

import tomllib
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.schema_file import from_dict
from dpublish.datasets.census import SCHEMA
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

CENSUS = from_dict(tomllib.loads(SCHEMA))


@dataclass(frozen=True, eq=False)
class Rows(Release):
    """Gives the rows that it was told to give."""

    kind: ClassVar[str] = "rows"
    schema: Schema
    given: pa.Table
    receipt: Receipt

    def tables(self):
        return {}

    def metadata(self):
        return {}

    def summary(self):
        return {}

    def expected_error(self):
        return {}

    @classmethod
    def from_parts(cls, **parts):
        raise NotImplementedError

    def rows(self, n=None, *, seed=None):
        return self.given


def rows_release(given, schema=CENSUS, kind=Rows):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="copy", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    return kind(schema=schema, given=given, receipt=receipt)
