"""Which method serves which goal, decided by public facts: schema, size, epsilon and goal.

Every rule rests on a measurement that docs/concepts/choosing-a-method.md shows, and
`benchmarks/accuracy/advice.py` repeats.  No rule reads a row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from dpublish.data.column import CategoryColumn, NumberColumn
from dpublish.data.schema import Schema, all_names
from dpublish.errors import InvalidParameter
from dpublish.planning.goals import Goal, GoalTask
from dpublish.privacy.neighbors import plural

CONTRIBUTION = 4
"""Most records of one unit that the advised command keeps."""
N_CLUSTERS = 5
MOST_CELLS = 100_000
"""Cells of a histogram beyond which counts are advised from a model, whatever the size."""
MOST_NUMBERS = 4
"""Columns of which statistics are advised at once; more would share epsilon too thinly."""
RECORDS_PER_CELL = 5
"""Records times epsilon for each cell from which on a histogram beats a model of it."""
RECORDS_PER_BOX = 11
"""The same for two columns of numbers, where an adaptive grid is the rival."""
SPARSE_BOXES = 0.5
"""Records times epsilon for each cell below which a model beats an adaptive grid, too."""
LONG_COLUMN = 128
"""Values from which on a column alone may be better counted by a model or by runs of values."""
RECORDS_PER_VALUE = 100
"""The same as `RECORDS_PER_CELL`, for one long column."""
FEW_RECORDS = (5, 18)
"""Records times epsilon for each value of all columns between which a copula beats synth."""
_MOST_VALUES = 32  # of a column, as synth counts them
FEW_STEPS = 10
"""Steps of a stream up to which each gets a histogram of its own."""
TOP = 10
_LISTED = 4  # names of columns that a sentence lists


@dataclass(frozen=True)
class Facts:
    """What a rule may look at; all of it is public."""

    schema: Schema
    goal: Goal
    epsilon: Fraction
    n_records: int | None = None
    n_clusters: int = N_CLUSTERS
    horizon: int | None = None
    window: int | None = None

    @property
    def record_epsilon(self) -> Fraction:
        """What is spent on a record: a part of epsilon where several of a unit count."""
        return self.epsilon if self.schema.unit is None else self.epsilon / CONTRIBUTION

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the goal names, or all."""
        return self.goal.columns or all_names(self.schema)

    def cells(self, names: Sequence[str]) -> int:
        """Count the combinations of values of some columns."""
        return prod(self.schema[name].size for name in names)

    def records_per(self, cells: int) -> float | None:
        """Return records times epsilon for each of so many cells, if the size is known."""
        if self.n_records is None:
            return None
        return self.n_records * float(self.record_epsilon) / cells

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers among those of the goal; dates are none."""
        return tuple(name for name in self.columns if is_number(self.schema, name))


@dataclass(frozen=True)
class Proposal:
    """A method, its settings as text, and why.

    Attributes:
        name: Name of the method.
        settings: Its settings, as a command line writes them.
        why: The reason, in words that name the owner's columns.
        useful: Figure of the expected error, and how small it should be; None where no formula
            says how good the release is for this goal.
        per: Figure by which that one is divided first.
        notes: What the owner should know, or confirm, before running it.
        may_yield: Whether the next proposal is taken if this one cannot be published.
    """

    name: str
    settings: Mapping[str, str]
    why: str
    useful: tuple[str, float] | None = None
    per: str | None = None
    notes: tuple[str, ...] = field(default=())
    may_yield: bool = False


def is_number(schema: Schema, name: str) -> bool:
    """Check whether a column holds numbers that can be added up."""
    column = schema[name]
    return isinstance(column, NumberColumn) and column.kind in ("numeric", "integer")


def listed(names: Sequence[str], word: str = "and") -> str:
    """List columns in a sentence.

    >>> listed(["age"]), listed(["age", "sex"]), listed(list("abcdefg"))
    ('age', 'age and sex', 'a, b, c, d and 3 other columns')
    """
    if len(names) > _LISTED + 1:
        return f"{', '.join(names[:_LISTED])} {word} {len(names) - _LISTED} other columns"
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def propose(facts: Facts) -> tuple[Proposal, ...]:
    """Name the methods for a goal, the recommended one first.

    >>> from dpublish import datasets
    >>> schema = datasets.schema("census")
    >>> facts = Facts(schema, Goal.parse("classify:income", schema), Fraction(1), 20_000)
    >>> [each.name for each in propose(facts)]
    ['privpfc', 'model']
    """
    return RULES[facts.goal.task](facts)


def refuse_unit_column(schema: Schema, goal: Goal) -> None:
    """Refuse a goal about the column that tells units apart."""
    if schema.unit is not None and schema.unit in goal.columns:
        raise InvalidParameter(
            f"column {schema.unit!r} tells {plural(schema.unit_noun)} apart, and is nothing to "
            "publish; name other columns in the goal"
        )


# --- Rows and counts -----------------------------------------------------------------------


def _rows(facts: Facts) -> tuple[Proposal, ...]:
    named = _columns_setting(facts)
    names = facts.columns
    if len(names) == 1:
        return (_one_column(facts, names),)
    synth = Proposal(
        "synth",
        named,
        f"you want rows of {listed(names)} for any use: synth counts every column, chooses the "
        "tables of several columns that matter most, and joins them into one model",
    )
    if not _suits_copula(facts):
        return (synth,)
    copula = Proposal(
        "dpcopula-hybrid",
        named,
        f"the records are few for the values of {listed(names)} at this epsilon: dpcopula-hybrid "
        "joins noisy marginals by correlations, which cost less than the tables of synth",
        may_yield=True,
    )
    return copula, synth


def _suits_copula(facts: Facts) -> bool:
    """Check whether records are too few for tables, and numbers stand beside categories."""
    values = sum(min(_MOST_VALUES, facts.schema[name].size) for name in facts.columns)
    each = facts.records_per(values)
    is_mixed = 0 < len(facts.numbers) < len(facts.columns)
    return each is not None and is_mixed and FEW_RECORDS[0] <= each < FEW_RECORDS[1]


def _counts(facts: Facts) -> tuple[Proposal, ...]:
    names = facts.columns
    if not facts.goal.columns and len(names) > 1:
        return _counts_of_each(facts)
    if len(names) == 1:
        return (_one_column(facts, names),)
    cells = facts.cells(names)
    histogram = _histogram(facts, names)
    synth = Proposal(
        "synth",
        {"columns": ",".join(names)},
        f"{listed(names)} make {cells:,} cells, too many to count each of them: synth counts the "
        "columns and the tables of a few of them that matter most, and answers the rest from a "
        "model",
    )
    if _suits_adaptive_grid(facts, names):
        return _adaptive_grid(facts, names), histogram
    return (histogram,) if cells <= _affordable_cells(facts, names) else (synth, histogram)


def _affordable_cells(facts: Facts, names: Sequence[str]) -> float:
    """Return how many cells a histogram may have before a model is more precise."""
    if facts.n_records is None:
        return MOST_CELLS
    is_plane = len(names) == 2 and all(is_number(facts.schema, name) for name in names)
    each = RECORDS_PER_BOX if is_plane else RECORDS_PER_CELL
    return min(MOST_CELLS, facts.n_records * float(facts.record_epsilon) / each)


def _suits_adaptive_grid(facts: Facts, names: Sequence[str]) -> bool:
    """Check whether two numbers make a map with neither many nor few records in a cell."""
    each = facts.records_per(facts.cells(names))
    is_plane = len(names) == 2 and all(is_number(facts.schema, name) for name in names)
    return is_plane and each is not None and SPARSE_BOXES <= each <= RECORDS_PER_BOX


def _adaptive_grid(facts: Facts, names: Sequence[str]) -> Proposal:
    return Proposal(
        "ag",
        {"columns": ",".join(names)},
        f"{listed(names)} are numbers with {facts.cells(names):,} cells, about "
        f"{_few((facts.n_records or 0) / facts.cells(names))} records in each: ag counts boxes "
        "that are finer where records are dense",
        may_yield=True,
    )


def _counts_of_each(facts: Facts) -> tuple[Proposal, ...]:
    """Count each column by itself, where the goal names none."""
    names = facts.columns
    marginals = Proposal(
        "marginals",
        {},
        f"the goal names no columns: marginals counts each of {listed(names)} by itself",
        useful=("range_count_95_per_record", 0.02),
        notes=(
            f"for counts of combinations, name them: counts:{names[0]},{names[1]}; for counts of "
            "any combination, take the goal rows",
        ),
    )
    return (marginals,)


def _one_column(facts: Facts, names: Sequence[str]) -> Proposal:
    """Count one column: value by value, or by a model where it is long and records are few."""
    (name,) = names
    size = facts.schema[name].size
    each = facts.records_per(size)
    if size <= LONG_COLUMN or each is None or each >= RECORDS_PER_VALUE:
        return _histogram(facts, names)
    return Proposal(
        "synth",
        {"columns": name},
        f"{name} has {size:,} values, many for the number of records at this epsilon: synth joins "
        "values too rare to stand out of their noise",
    )


def _few(records: float) -> str:
    """Write a mean number of records, with a decimal only where it matters.

    >>> _few(800.0), _few(192.3), _few(2.36)
    ('800', '192', '2.4')
    """
    return f"{records:,.0f}" if records >= 10 else f"{records:,.1f}"


def _histogram(facts: Facts, names: Sequence[str]) -> Proposal:
    cells = facts.cells(names)
    settings = {"columns": ",".join(names)}
    what = "has" if len(names) == 1 else "make"
    why = f"{listed(names)} {what} {cells:,} {'values' if len(names) == 1 else 'cells'}"
    if facts.n_records is not None:
        why += f", about {_few(facts.n_records / cells)} records in each"
    if len(names) > 1 and cells > _affordable_cells(facts, names):
        settings["threshold"] = "auto"
        why += ": histogram publishes those whose noisy count stands out"
        return Proposal("histogram", settings, why, useful=None)
    why += ": histogram counts every one of them, with a confidence interval"
    return Proposal("histogram", settings, why, useful=("one_cell_95", 0.1), per="records_per_cell")


# --- Numbers -------------------------------------------------------------------------------


def _statistics(facts: Facts) -> tuple[Proposal, ...]:
    named = facts.goal.columns
    groups = [name for name in named if not is_number(facts.schema, name)]
    numbers = list(facts.numbers) or [
        name for name in all_names(facts.schema) if is_number(facts.schema, name)
    ]
    if not numbers:
        raise InvalidParameter(
            "statistics need a column of kind numeric or integer, and the schema has none; take "
            "the goal counts"
        )
    used = numbers if facts.numbers and named else numbers[:MOST_NUMBERS]
    measures = ["count", *(f"{what}({name})" for name in used for what in ("mean", "median"))]
    settings = {"measures": ",".join(measures)}
    if groups:
        settings["by"] = ",".join(groups)
    by = f" by {listed(groups)} ({facts.cells(groups):,} groups)" if groups else ""
    notes: tuple[str, ...] = ()
    if len(used) < len(numbers):
        notes = (
            f"only {listed(used)} are measured, because all measures share epsilon; name others "
            "in the goal: statistics:" + ",".join(numbers[MOST_NUMBERS : MOST_NUMBERS + 2]),
        )
    return (
        Proposal(
            "statistics",
            settings,
            f"means and medians of {listed(used)}{by} come straight from statistics, each with a "
            "confidence interval",
            useful=("worst_relative_error_95", 0.1),
            notes=notes,
        ),
    )


# --- Prediction ----------------------------------------------------------------------------


def _classify(facts: Facts) -> tuple[Proposal, ...]:
    target = facts.columns[0]
    column = facts.schema[target]
    if not isinstance(column, CategoryColumn):
        raise InvalidParameter(
            f"column {target!r} holds {column.holds}, and a classifier predicts classes; "
            + _instead(facts.schema, target)
        )
    _require_predictors(facts.schema, target)
    others = len(all_names(facts.schema)) - 1
    grid = Proposal(
        "privpfc",
        {"target": target},
        f"you want to predict {target} ({column.size} classes) from the other {others} "
        f"column{'s' if others > 1 else ''}: privpfc spends all of epsilon on that one class, "
        "and made the fewest errors of all methods here",
    )
    model = Proposal(
        "model",
        {"target": target},
        f"take model instead if people want to read coefficients: it fits a logistic regression "
        f"of {target} to the same grid, about as accurate",
    )
    return grid, model


def _instead(schema: Schema, target: str) -> str:
    if is_number(schema, target):
        return f"to predict a number, take the goal model:{target}"
    return "declare its parts (weekday, month ...) as columns, and predict one of them"


def _require_predictors(schema: Schema, target: str) -> None:
    if len(all_names(schema)) < 2:
        raise InvalidParameter(
            f"{target!r} is the only column of the schema; add columns to predict it from"
        )


def _model(facts: Facts) -> tuple[Proposal, ...]:
    target = facts.columns[0]
    column = facts.schema[target]
    _require_predictors(facts.schema, target)
    if is_number(facts.schema, target):
        why = f"{target} is a number: model fits a linear regression of it on the other columns"
        return (Proposal("model", {"target": target}, why),)
    if not isinstance(column, CategoryColumn):
        raise InvalidParameter(
            f"column {target!r} holds {column.holds}, which no model predicts; "
            + _instead(facts.schema, target)
        )
    why = (
        f"{target} has {column.size} classes: model fits a logistic regression to a private grid "
        "of the columns that predict it best"
    )
    return (Proposal("model", {"target": target}, why),)


# --- Clusters, rankings, streams -----------------------------------------------------------


def _clusters(facts: Facts) -> tuple[Proposal, ...]:
    for name in facts.goal.columns:
        if not isinstance(facts.schema[name], NumberColumn):
            raise InvalidParameter(
                f"column {name!r} holds no numbers, and clusters need distances; name columns of "
                f"kind numeric or integer{_such(facts.schema)}, or count its values: counts:{name}"
            )
    names = facts.goal.columns or facts.numbers
    if not names:
        raise InvalidParameter(
            "the schema has no column of kind numeric or integer, and clusters need distances; "
            "take the goal counts or rows"
        )
    settings = {"n_clusters": str(facts.n_clusters), "columns": ",".join(names)}
    synopsis = "a noisy grid" if len(names) <= 3 else "a tree of noisy marginals"
    kmeans = Proposal(
        "kmeans",
        settings,
        f"you want groups of records that are alike in {listed(names)}: kmeans finds "
        f"{facts.n_clusters} centers in {synopsis}, which it publishes, too",
        notes=(
            f"{facts.n_clusters} clusters are a first guess: dpublish choose-k tries other numbers "
            "on the release, for free",
        ),
    )
    if len(names) != 2:
        return (kmeans,)
    shapes = Proposal(
        "privthr",
        {"columns": ",".join(names)},
        f"take privthr instead if groups in the plane of {listed(names)} have shapes that no "
        "center describes: rivers, rings, coasts",
    )
    return kmeans, shapes


def _such(schema: Schema) -> str:
    found = [name for name in all_names(schema) if is_number(schema, name)]
    return f" ({listed(found)})" if found else ""


def _top(facts: Facts) -> tuple[Proposal, ...]:
    if len(facts.goal.columns) > 1:
        raise InvalidParameter(
            f"the goal top ranks the values of one column; name one: top:{facts.goal.columns[0]}; "
            f"for combinations, take counts:{','.join(facts.goal.columns)}"
        )
    name = facts.columns[0] if facts.goal.columns else _longest_category(facts)
    size = facts.schema[name].size
    ranking = Proposal(
        "topk",
        {"column": name, "count": str(min(TOP, size)), "with_counts": "true"},
        f"{name} has {size:,} values: topk names the {min(TOP, size)} most frequent, in order, "
        "and pays for no other",
        useful=("omitted_excess_95_per_record", 0.01),
    )
    return (ranking,)


def _longest_category(facts: Facts) -> str:
    """Take the column with the most values, where the goal names none."""
    found = [
        name for name in facts.columns if isinstance(facts.schema[name], CategoryColumn)
    ] or list(facts.columns)
    return max(found, key=lambda name: facts.schema[name].size)


def _stream(facts: Facts) -> tuple[Proposal, ...]:
    if (facts.horizon is None) == (facts.window is None):
        raise InvalidParameter(
            "a stream needs one of two numbers: the steps it will have (horizon=365, --horizon "
            "365), or, if it never ends, the steps within which people are hidden (window=24, "
            "--window 24)"
        )
    if not facts.goal.columns and len(facts.columns) > 1:
        raise InvalidParameter(
            "name the columns that a stream counts by, one or a few: stream:"
            f"{facts.columns[0]}; every step counts all their combinations"
        )
    names = facts.columns
    span = facts.horizon or facts.window or 1
    settings = {"columns": ",".join(names)}
    settings["horizon" if facts.horizon else "window"] = str(span)
    cells = facts.cells(names)
    bins = f"{cells:,} bins of {listed(names)}"
    useful = ("one_bin_95", 0.1)
    notes: tuple[str, ...] = ()
    if facts.schema.unit is None:
        settings["trust_rows"] = "true"
        notes = (
            "the schema names no unit, so --trust-rows vouches that no person has more than one "
            "record in a snapshot; if that is not so, name the unit in the schema and leave it out",
        )
    adaptive = Proposal(
        "dsat" if facts.horizon else "dsat-w",
        settings,
        f"{span:,} steps share epsilon: {'dsat' if facts.horizon else 'dsat-w'} publishes the "
        f"{bins} when they have changed enough, instead of {span:,} times with as much noise",
        useful=useful,
        per="records_per_bin",
        notes=notes,
    )
    each = Proposal(
        "per-snapshot",
        settings,
        f"with {span} steps every one can have fresh counts of the {bins}",
        useful=useful,
        per="records_per_bin",
        notes=notes,
    )
    return (each, adaptive) if span <= FEW_STEPS else (adaptive,)


def _columns_setting(facts: Facts) -> dict[str, str]:
    return {"columns": ",".join(facts.goal.columns)} if facts.goal.columns else {}


RULES: Mapping[GoalTask, Callable[[Facts], tuple[Proposal, ...]]] = {
    "rows": _rows,
    "counts": _counts,
    "statistics": _statistics,
    "classify": _classify,
    "model": _model,
    "clusters": _clusters,
    "top": _top,
    "stream": _stream,
}
"""The rule of each task."""
