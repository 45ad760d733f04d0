"""What is to be predicted from what: a class column and its predictors, from the schema alone."""

from dataclasses import dataclass, replace

from dpublish.data.axis import Axis
from dpublish.data.column import Column, NumberColumn
from dpublish.data.features import choose_predictors
from dpublish.data.schema import Schema, all_names, listed_names, refuse_unit
from dpublish.errors import InvalidParameter


def task_names(schema: Schema, target: str, predictors: tuple[str, ...]) -> tuple[str, ...]:
    """Name the columns that a prediction takes: all, unless the predictors are named."""
    return listed_names((target, *predictors), schema) if predictors else all_names(schema)


def class_column(schema: Schema, target: str) -> Column:
    """Find the column of the classes; refuse one that has none to choose from."""
    refuse_unit(schema)
    column = schema[target]
    if isinstance(column, NumberColumn):
        raise InvalidParameter(
            f"the target {target!r} holds {column.holds}; classes need kind category or ordinal; "
            "the method model predicts numbers"
        )
    if column.size < 2:
        raise InvalidParameter(f"the target {target!r} has one class only")
    return column


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
        return cls(class_column(schema, target), tuple(schema[name] for name in chosen))

    @property
    def classes(self) -> Axis:
        """The classes, on the leaves of the target's taxonomy."""
        return self.target.axis()

    def schema_of(self, schema: Schema) -> Schema:
        """Keep of a schema the predictors, in order, and the class column, last."""
        return replace(schema, columns=(*self.predictors, self.target))
