"""What is to be predicted from what: a class column and its predictors, from the schema alone."""

from dataclasses import dataclass, replace

from dpublish.data.axis import Axis
from dpublish.data.column import Column, NumberColumn
from dpublish.data.features import choose_predictors
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter


@dataclass(frozen=True)
class Task:
    """A class column and the columns from which it is predicted; all of it is public.

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["Female", "Male"])
    >>> income = column("income", "category", values=["low", "high"])
    >>> task = Task.of(Schema((sex, income)), target="income")
    >>> [c.name for c in task.predictors], task.classes.labels
    (['sex'], ('low', 'high'))
    """

    target: Column
    predictors: tuple[Column, ...]

    @classmethod
    def of(cls, schema: Schema, *, target: str, predictors: tuple[str, ...] = ()) -> "Task":
        """Find the columns; every column but the target predicts it, unless some are named."""
        chosen = choose_predictors(schema, target, predictors)
        column = schema[target]
        if isinstance(column, NumberColumn):
            raise InvalidParameter(
                f"the target {target!r} holds {column.holds}; classes need kind category or ordinal"
            )
        if column.size < 2:
            raise InvalidParameter(f"the target {target!r} has one class only")
        return cls(column, tuple(schema[name] for name in chosen))

    @property
    def classes(self) -> Axis:
        """The classes, on the leaves of the target's taxonomy."""
        return self.target.axis()

    def schema_of(self, schema: Schema) -> Schema:
        """Keep of a schema the predictors, in order, and the class column, last."""
        return replace(schema, columns=(*self.predictors, self.target))
