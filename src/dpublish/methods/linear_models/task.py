"""What a model is to predict from what, as one or several two-class problems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.method import Method, Run, setting
from dpublish.data.column import Column, NumberColumn
from dpublish.data.features import Features
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known, require_positive
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.privacy.budget import Budget

# What the settings that several methods have say in their help.
PREDICTORS = "Columns to predict it from; all others unless named."
CLASSES_OR_NUMBER = "Column to predict: classes, or a number if the model is linear."
CLASSIFIERS = "Logistic regression, or a linear support vector machine."
SMOOTH_CLASSIFIERS = "Logistic regression, or a support vector machine with a smooth (Huber) loss."
REGRESSIONS = "What to fit: linear regression (of a number) or logistic regression (of classes)."

CLASS_MODELS = ("logistic", "svm")
SIZE_SHARE = Fraction(1, 50)
"""Part of epsilon that pays for the number of records, where a method needs it."""
_SMALLEST = Fraction(1, 1 << 100)


@dataclass(frozen=True, kw_only=True)
class ClassifierMethod(Method[LinearModelRelease]):
    """What methods share that publish a linear classifier of some kind."""

    task: ClassVar[str] = "model fitting"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(PREDICTORS, default=())
    model: Literal["logistic", "svm"] = setting(CLASSIFIERS, default="logistic")

    def model_task(self, schema: Schema) -> "ModelTask":
        """Find what is predicted from what, by the settings and the schema alone."""
        return ModelTask.of(schema, self.target, self.predictors, self.model)


@dataclass(frozen=True)
class ModelTask:
    """A target, the features that predict it, and the kind of model; all public.

    Attributes:
        schema: The predictors, in order, and the target, last.
        features: Features of the predictors.
        target: The column to predict.
        model: "logistic", "svm" or "linear".

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["Female", "Male"])
    >>> work = column("work", "category", values=["none", "part", "full"])
    >>> task = ModelTask.of(Schema((work, sex)), "sex")
    >>> task.features.columns, task.problems
    (('work',), ((1,),))
    >>> ModelTask.of(Schema((work, sex)), "work").problems
    ((0,), (1,), (2,))
    """

    schema: Schema
    features: Features
    target: Column
    model: str

    @classmethod
    def of(
        cls,
        schema: Schema,
        target: str,
        predictors: tuple[str, ...] = (),
        model: str = "logistic",
        *,
        models: Sequence[str] = CLASS_MODELS,
    ) -> "ModelTask":
        """Find the columns and check them; `models` are those that the method can fit."""
        require_known("model", model, models)
        features = Features.of(schema, target, predictors)
        column = schema[target]
        is_number = isinstance(column, NumberColumn)
        if isinstance(column, NumberColumn) and column.holds != "numbers":
            raise InvalidParameter(
                f"the target {target!r} holds {column.holds}; predict a number or a class, such "
                "as a part of the date"
            )
        if model == "linear":
            if not is_number:
                raise InvalidParameter(f"a linear model predicts numbers; {target!r} has classes")
            if column.axis().special:
                raise InvalidParameter(
                    f"the target {target!r} has a cell for missing values, which are no number; "
                    'declare it with missing = "drop"'
                )
        elif is_number:
            raise InvalidParameter(
                f"the target {target!r} holds numbers; classes need kind category or ordinal"
            )
        elif column.size < 2:
            raise InvalidParameter(f"the target {target!r} has one class only")
        kept = replace(schema, columns=(*features.predictors, column))
        return cls(kept, features, column, model)

    @property
    def problems(self) -> tuple[tuple[int, ...], ...]:
        """The codes that count as 1 in each two-class problem.

        Two classes make one problem, the second class against the first; more make one for
        each class, against all others.  A linear model has one problem, without codes.
        """
        if self.model == "linear":
            return ((),)
        return ((1,),) if self.target.size == 2 else tuple((c,) for c in range(self.target.size))

    def split(self, budget: Budget) -> tuple[Budget, ...]:
        """Share a budget out evenly over the problems, named by class.

        Every record is in all of them, so their costs add up.
        """
        if len(self.problems) == 1:
            return (budget,)
        return tuple(
            budget.split(**{f"class {label}": 1 for label in self.target.axis().labels}).values()
        )

    def share(self, epsilon: Fraction) -> Fraction:
        """Return what each problem gets of `epsilon`."""
        return epsilon / len(self.problems)


def count_records(run: Run, task: ModelTask, *, budget: Budget) -> int:
    """Count the records that have all columns of the task, with noise; it may be negative.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count
        of sensitivity 1 with two-sided geometric noise (`noisy_size`).
    """
    kernel = CompleteCounts(task.schema, ((),), task.schema.names)
    return run.noisy_size(int(run.sum(kernel).sum()), budget=budget)


def require_bound(bound: Fraction) -> Fraction:
    """Refuse a bound of the weights that is not positive, or that a float cannot represent."""
    require_positive(bound=bound)
    exact = Fraction(bound)
    if not _SMALLEST <= exact <= 1 / _SMALLEST:
        raise InvalidParameter("bound must lie between 2^-100 and 2^100")
    return exact
