"""Advise which method to take for a goal, what it would give, and the exact command."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

from dpublish.core.catalog import STREAMS
from dpublish.core.method import Method
from dpublish.core.registry import make_method, method_class
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.display import Card, Display, one_line
from dpublish.errors import InvalidParameter, plain_refusals, require_count
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.method import StreamMethod, make_stream_method
from dpublish.planning.advice_rules import (
    CONTRIBUTION,
    N_CLUSTERS,
    Facts,
    Proposal,
    propose,
    refuse_unit_column,
)
from dpublish.planning.goals import Goal
from dpublish.privacy.epsilon import EpsilonLike, format_epsilon, format_short, parse_epsilon
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.publishing.plan import Plan, plan

EPSILONS = tuple(Fraction(each) for each in ("0.05", "0.1", "0.2", "0.5", "1"))
"""What is proposed where no epsilon is given: the first that suffices, or the last."""
DATA, SCHEMA, LEDGER = "data.csv", "schema.toml", "books.db"
_UNMEASURED = {
    "rows": "how far rows are from the truth in pairs of columns",
    "classify": "how many predictions will be wrong",
    "model": "how many predictions will be wrong, or by how much",
    "clusters": "how far records will be from their centers",
    "counts": "how far counts will be off",
}


@dataclass(frozen=True)
class Choice:
    """A method to take, and all that is known of it beforehand.

    Attributes:
        method: The method, with its settings.
        name: Its name.
        settings: Its settings as a command line writes them.
        epsilon: What it would cost.
        why: Why it suits the goal.
        gives: What it would cost and give, from theory where there is theory.
        expected_error: The figures behind it, from theory.
        notes: What to know, or to confirm, before running it.
        schema_path: The schema file, if advice was asked for with one.
    """

    method: Method[Any] | StreamMethod
    name: str
    settings: Mapping[str, str]
    epsilon: Fraction
    why: str
    gives: str
    expected_error: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema_path: str = SCHEMA

    @property
    def is_stream(self) -> bool:
        """Whether the method publishes step by step."""
        return isinstance(self.method, StreamMethod)

    def command(
        self,
        *,
        data: str | PathLike[str] = DATA,
        schema: str | PathLike[str] | None = None,
        ledger: str | PathLike[str] = LEDGER,
        dataset: str = "data",
        output: str | PathLike[str] | None = None,
    ) -> str:
        """Write the exact shell command; of a stream, the one that starts it.

        >>> from dpublish import advise, datasets
        >>> choice = advise(datasets.schema("census"), "classify:income").choices[0]
        >>> print(choice.command(data="my people.csv", schema="people.toml", dataset="people"))
        dpublish release --method privpfc --target income --data 'my people.csv' \
--schema people.toml --epsilon 1 --ledger books.db --dataset people -o privpfc
        """
        folder = fspath(self.name if output is None else output)
        words = ["dpublish", "release"]
        if self.is_stream:
            words = ["dpublish", "stream", "start", f"{folder}.stream"]
        words += ["--method", self.name, *_options(self.settings)]
        words += [] if self.is_stream else ["--data", fspath(data)]
        words += ["--schema", self.schema_path if schema is None else fspath(schema)]
        words += ["--epsilon", format_epsilon(self.epsilon), "--ledger", fspath(ledger)]
        return shlex.join([*words, "--dataset", dataset, "-o", folder])

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.why}", f"gives: {self.gives}"]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True, repr=False)
class Advice(Display):
    """The one or two methods to take for a goal, the recommended one first.

    Attributes:
        goal: What the release is for.
        epsilon: What it would cost.
        epsilon_why: Why this epsilon.
        choices: The methods.
    """

    goal: Goal
    epsilon: Fraction
    epsilon_why: str
    choices: tuple[Choice, ...]

    def __repr__(self) -> str:
        names = " or ".join(choice.name for choice in self.choices)
        return one_line(f"Advice({self.goal}: {names}, epsilon {format_short(self.epsilon)})")

    def _card(self) -> Card:
        cost = f"epsilon {format_short(self.epsilon)}: {self.epsilon_why}"
        rows = [[each.name, each.why, each.gives, each.command()] for each in self.choices]
        headers = ["method", "why", "gives", "command"]
        return Card("Advice", {"goal": str(self.goal), "cost": cost}, headers, rows)

    def _as_records(self) -> list[dict[str, Any]]:
        return [
            {
                "method": each.name,
                "epsilon": float(each.epsilon),
                "why": each.why,
                "gives": each.gives,
                "command": each.command(),
            }
            for each in self.choices
        ]

    def __str__(self) -> str:
        head = [f"goal: {self.goal}", f"epsilon {format_short(self.epsilon)}: {self.epsilon_why}"]
        return "\n\n".join(["\n".join(head), *map(str, self.choices)])


@plain_refusals
def advise(
    schema: Schema | Mapping[str, Any] | str | PathLike[str],
    goal: str | Goal,
    *,
    n_records: int | None = None,
    epsilon: EpsilonLike | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    n_clusters: int = N_CLUSTERS,
    horizon: int | None = None,
    window: int | None = None,
) -> Advice:
    """Advise which method to take for a goal; free, for no data is read and nothing is spent.

    Args:
        schema: What is publicly known of the table, or the file that says it.
        goal: What the release is for: `"rows"`, `"counts:age,sex"`, `"classify:income"` ...
        n_records: Roughly how many records there are, if that is public.
        epsilon: What would be spent; proposed if absent.
        ledger: The ledger, if no more is to be proposed than the dataset has left.
        dataset: Its name in the ledger.
        n_clusters: How many clusters, for the goal clusters.
        horizon: How many steps a stream has, for the goal stream; or
        window: within how many steps people are hidden, if it never ends.

    >>> from dpublish import advise, datasets
    >>> advice = advise(datasets.schema("census"), "counts:age,sex", n_records=20_000)
    >>> advice.choices[0].name, float(advice.epsilon)
    ('histogram', 0.05)
    """
    read = to_schema(schema)
    _require_sizes(n_records, n_clusters, horizon, window)
    aim = Goal.parse(goal)
    refuse_unit_column(read, aim)
    aim.check(read)
    left = _left(ledger, dataset)
    path = fspath(schema) if isinstance(schema, str | PathLike) else SCHEMA

    def advise_at(exact: Fraction) -> "_Advised":
        facts = Facts(read, aim, exact, n_records, n_clusters, horizon, window)
        return _Advised.of(facts, path)

    if epsilon is not None:
        exact = parse_epsilon(epsilon)
        why = "as given" if left is None else f"as given; {format_short(left)} is left"
        return Advice(aim, exact, why, advise_at(exact).choices)
    return _with_epsilon(aim, advise_at, left, n_records)


def _require_sizes(
    n_records: int | None, n_clusters: int, horizon: int | None, window: int | None
) -> None:
    require_count(n_clusters=n_clusters)
    for name, value in {"n_records": n_records, "horizon": horizon, "window": window}.items():
        if value is not None:
            require_count(**{name: value})


def _left(ledger: Ledger | str | PathLike[str] | None, dataset: str | None) -> Fraction | None:
    """Look up what a dataset has left, if a ledger is named."""
    if ledger is None:
        return None
    if dataset is None:
        raise InvalidParameter("name the dataset of the ledger, too: dataset='people'")
    if isinstance(ledger, Ledger):
        return ledger.status(dataset).left
    with Ledger(fspath(ledger)) as opened:
        return opened.status(dataset).left


@dataclass(frozen=True)
class _Advised:
    """What is advised at one epsilon, and whether theory finds it good enough."""

    choices: tuple[Choice, ...]
    target: str | None
    is_useful: bool | None

    @classmethod
    def of(cls, facts: Facts, path: str) -> "_Advised":
        """Plan what the rules propose; refuse what the first of them refuses.

        A second method that cannot be published like this is left out.
        """
        found: list[_Planned] = []
        for proposal in propose(facts):
            try:
                found.append(_plan(facts, proposal))
            except InvalidParameter:
                if not found and not proposal.may_yield:
                    raise
        choices = tuple(_choice(facts, *each, path) for each in found)
        proposal, _, planned = found[0]
        is_useful = None if facts.n_records is None else _is_useful(proposal, planned)
        return cls(choices, _target(proposal), is_useful)


_Planned = tuple[Proposal, "Method[Any] | StreamMethod", Plan]


def _plan(facts: Facts, proposal: Proposal) -> _Planned:
    """Set a proposal up for the schema's unit, and predict its error."""
    proposal = _with_contribution(facts.schema, proposal)
    make = make_stream_method if proposal.name in STREAMS else make_method
    method: Any = make(proposal.name, proposal.settings)
    planned = plan(method, facts.schema, epsilon=facts.epsilon, n_records=facts.n_records)
    return proposal, method, planned


def _with_contribution(schema: Schema, proposal: Proposal) -> Proposal:
    """Bound the records of a unit where the schema names one and the method needs it."""
    if schema.unit is None:
        return proposal
    if proposal.name not in STREAMS and AddRemoveUnit in method_class(proposal.name).hidden:
        return proposal
    note = (
        f"at most {CONTRIBUTION} records of each {schema.unit_who} count (--contribution "
        f"{CONTRIBUTION}), so that all of them are hidden; dpublish plan shows what other numbers "
        "trade"
    )
    if proposal.name not in STREAMS:
        note += ", and auto buys a private one"
    settings = {**proposal.settings, "contribution": str(CONTRIBUTION)}
    return replace(proposal, settings=settings, notes=(*proposal.notes, note))


def _choice(
    facts: Facts, proposal: Proposal, method: "Method[Any] | StreamMethod", planned: Plan, path: str
) -> Choice:
    return Choice(
        method=method,
        name=proposal.name,
        settings=dict(proposal.settings),
        epsilon=facts.epsilon,
        why=proposal.why,
        gives=_gives(facts, proposal, method, planned),
        expected_error=dict(planned.figures),
        notes=proposal.notes,
        schema_path=path,
    )


def _gives(
    facts: Facts, proposal: Proposal, method: "Method[Any] | StreamMethod", planned: Plan
) -> str:
    """Say what a release costs and gives, and where no formula says it."""
    hidden = method.neighbors(facts.schema).brief()
    text = f"epsilon {format_short(facts.epsilon)} hides {hidden}; {planned.summary}"
    if proposal.useful is not None:
        return text
    what = _UNMEASURED.get(facts.goal.task, "how good it will be")
    if proposal.name == "privthr":
        what = "how many records will end up in another cluster"  # it has no centers
    return f"{text}; no formula tells {what}: dpublish rehearse measures it before you spend"


def _target(proposal: Proposal) -> str | None:
    """Say what theory's error should come down to."""
    if proposal.useful is None:
        return None
    name, most = proposal.useful
    return f"{_WORDS[name]} is at most {100 * most:g} %"


_WORDS = {
    "one_cell_95": "the error of a count (95 %), as a part of an average cell,",
    "one_bin_95": "the error of a count (95 %), as a part of an average bin,",
    "range_count_95_per_record": "the error of a range count (95 %), as a part of all records,",
    "worst_relative_error_95": "the relative error of the least precise number (95 %)",
    "omitted_excess_95_per_record": "the records by which an omitted value may be more frequent "
    "(95 %), as a part of all records,",
}


def _is_useful(proposal: Proposal, planned: Plan) -> bool | None:
    """Compare theory's error with what is useful; None if theory does not say."""
    if proposal.useful is None:
        return None
    name, most = proposal.useful
    value = planned.figures.get(name)
    unit = 1.0 if proposal.per is None else planned.figures.get(proposal.per)
    if value is None or not unit:
        return None
    return value / unit <= most


def _with_epsilon(
    goal: Goal, advise_at: "Callable[[Fraction], _Advised]", left: Fraction | None, n: int | None
) -> Advice:
    """Propose an epsilon: the smallest that theory finds useful, or the largest of the list."""
    grid = [each for each in EPSILONS if left is None or each <= left]
    if not grid:
        raise InvalidParameter(
            f"the dataset has epsilon {format_short(left or Fraction(0))} left, less than any "
            f"that would be proposed ({format_short(EPSILONS[0])}); name one (epsilon=, "
            "--epsilon), or raise the cap"
        )
    found: _Advised | None = None
    for exact in grid:
        try:
            found = advise_at(exact)
        except InvalidParameter:
            if exact == grid[-1]:
                raise
            continue
        if found.is_useful:
            why = f"proposed, the smallest at which {found.target}"
            return Advice(goal, exact, why, found.choices)
    exact = grid[-1]
    advised = advise_at(exact) if found is None else found
    return Advice(goal, exact, _why_largest(advised, left, exact, n), advised.choices)


def _why_largest(found: _Advised, left: Fraction | None, exact: Fraction, n: int | None) -> str:
    """Say why the largest epsilon of the list is proposed."""
    rest = "" if left is None or exact == EPSILONS[-1] else f"; {format_short(left)} is left"
    if found.target is None:
        return (
            "proposed as a start, because no formula says what suffices: dpublish rehearse shows "
            f"what less would give{rest}"
        )
    if found.is_useful is None:
        asked = "" if n is not None else "; name the number of records (--rows) for less"
        return f"proposed as a start{asked}{rest}"
    return (
        f"the largest that is proposed; it takes more until {found.target}: take fewer columns or "
        f"coarser levels, or name a larger epsilon{rest}"
    )


def _options(settings: Mapping[str, str]) -> list[str]:
    """Write settings as options."""
    words: list[str] = []
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if value == "true":
            words.append(option)
        elif value.startswith("-"):
            words.append(f"{option}={value}")
        else:
            words += [option, value]
    return words
