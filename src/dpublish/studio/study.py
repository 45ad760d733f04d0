"""What a plan's page knows: each part, or why it is not known; all of it from public facts.

No row is read here and nothing is spent: a table is a name in the address, and is not opened.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from dpublish.core.catalog import STREAMS
from dpublish.core.method import figure_name
from dpublish.core.registry import MethodInfo, list_methods, method_settings
from dpublish.core.settings import Setting, canonical_name
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.ledger.account import Status
from dpublish.methods.personalized.expected_counts import LEAST_SIZE, ExpectedCount, Population
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.streams.method import stream_settings
from dpublish.planning.advise import Advice, Choice, advise
from dpublish.planning.explain import Explanation, explain
from dpublish.planning.goals import Goal
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.meaning import two_sentences
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.publishing.plan import Plan, Trade, find_trades, lacking, plan
from dpublish.publishing.requests import read_any_method
from dpublish.studio.asked import Asked
from dpublish.studio.curves import Picture, error_curve
from dpublish.studio.desk import Desk
from dpublish.studio.remains import Remains, require_notion, spending
from dpublish.studio.wanted import Wanted

T = TypeVar("T")

STEPS = tuple(
    Fraction(each)
    for each in (
        *("0.01", "0.015", "0.02", "0.03", "0.04", "0.05", "0.07", "0.1", "0.15", "0.2", "0.25"),
        *("0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.25", "1.5", "2", "2.5", "3"),
        *("4", "5", "7", "10"),
    )
)
"""Where the slider stops, and where the curve is computed."""
GOAL, SETTINGS, ESTIMATE = "goal", "settings", "estimate"
"""Parts of the page, which state what is wrong with them."""
_KEPT = 64  # curves, which depend on public facts alone


@dataclass
class Study:
    """A plan in the making.

    Attributes:
        asked: The fields of the page.
        desk: Where schemas and the ledger are.
        problems: What is wrong, by the part of the page.
    """

    asked: Asked
    desk: Desk
    problems: dict[str, list[str]] = field(default_factory=dict)

    def attempt(self, part: str, find: Callable[[], T]) -> T | None:
        """Find something, or note why that is not possible."""
        try:
            return find()
        except DPublishError as error:
            told = self.problems.setdefault(part, [])
            if str(error) not in told:
                told.append(str(error))
            return None

    def told(self, part: str) -> Sequence[str]:
        """List what is wrong with a part of the page."""
        return self.problems.get(part, ())

    def complete(self) -> "Study":
        """Find all there is to find, so that all problems are known."""
        _ = self.status, self.planned, self.remains, self.trades, self.compared
        return self

    # --- What was chosen --------------------------------------------------------------------

    @cached_property
    def datasets(self) -> Sequence[str]:
        """The datasets of the ledger."""
        if not self.desk.has_ledger:
            return ()
        return self.attempt(GOAL, self._datasets) or ()

    def _datasets(self) -> Sequence[str]:
        with self.desk.open_ledger() as ledger:
            return ledger.datasets()

    @cached_property
    def status(self) -> Status | None:
        """How the dataset stands."""
        name = self.asked.wanted.dataset
        return self.attempt(GOAL, lambda: self._status(name)) if name else None

    def _status(self, name: str) -> Status:
        with self.desk.open_ledger() as ledger:
            return ledger.status(name)

    @cached_property
    def schema(self) -> Schema | None:
        """What is publicly known of the table."""
        name = self.asked.wanted.schema
        return self.attempt(GOAL, lambda: load_schema(self.desk.schema(name))) if name else None

    @cached_property
    def n_records(self) -> int | None:
        """The public number of records."""
        return self.attempt(GOAL, self._n_records)

    def _n_records(self) -> int | None:
        found = self.asked.wanted.n_records
        if found == 0:
            raise InvalidParameter("write the public number of rows from 1 on, or leave it empty")
        return found

    @cached_property
    def epsilon(self) -> Fraction | None:
        """What would be spent, if that was said."""
        wanted = self.asked.wanted
        return self.attempt(GOAL, lambda: wanted.exact) if wanted.epsilon else None

    @cached_property
    def goal(self) -> Goal | None:
        """What the release is for."""
        text = self.asked.goal
        return self.attempt(GOAL, lambda: Goal.parse(text, self.schema)) if text else None

    @cached_property
    def advice(self) -> Advice | None:
        """Which methods to take for the goal."""
        _ = self.status, self.goal, self.n_records, self.epsilon
        goal, schema = self.goal, self.schema
        if goal is None or schema is None or self.told(GOAL):
            return None
        return self.attempt(GOAL, lambda: self._advise(goal, schema))

    def _advise(self, goal: Goal, schema: Schema) -> Advice:
        known = self.status
        return advise(
            schema,
            goal,
            n_records=self.n_records,
            epsilon=self.epsilon,
            ledger=None if known is None else self.desk.ledger,
            dataset=None if known is None else known.dataset,
            **self.asked.sizes(),
        )

    # --- The method -------------------------------------------------------------------------

    @cached_property
    def wanted(self) -> Wanted:
        """What would be published: as asked for, else as it is advised."""
        found = self.asked.wanted
        if not found.epsilon and self.advice is not None:
            found = replace(found, epsilon=format_epsilon(self.advice.epsilon))
        if not found.method and self.advice is not None:
            first = self.advice.choices[0]
            found = replace(found, method=first.name, settings=dict(first.settings))
        return replace(found, method=canonical_name(found.method))

    @cached_property
    def stated(self) -> Asked:
        """What stands in the address of the page once nothing is left open."""
        return replace(self.asked, wanted=self.wanted)

    @cached_property
    def settings(self) -> Sequence[Setting]:
        """The settings of the method."""
        name = self.wanted.method
        listed = stream_settings if name in STREAMS else method_settings
        return (self.attempt(SETTINGS, lambda: listed(name)) or ()) if name else ()

    @cached_property
    def lacks(self) -> Sequence[str]:
        """The settings that the method needs, and that are not given yet."""
        given = self.wanted.settings
        return [each.name for each in self.settings if each.is_required and each.name not in given]

    @cached_property
    def method(self) -> Any:
        """The method, set; None if that is not possible."""
        if not self.settings or self.lacks:
            return None
        wanted = self.wanted
        return self.attempt(SETTINGS, lambda: read_any_method(wanted.method, wanted.settings))

    @cached_property
    def is_personal(self) -> bool:
        """Whether levels of people pay different amounts."""
        return isinstance(self.method, PersonalSettings)

    @cached_property
    def described(self) -> Schema | None:
        """The schema as the method takes it: a personalized one adds the column of levels."""
        method, schema = self.method, self.schema
        if schema is not None and isinstance(method, PersonalSettings):
            return self.attempt(SETTINGS, lambda: method.prepare(schema))
        return schema

    @property
    def chosen(self) -> MethodInfo | None:
        """What is said of the method in general."""
        return next((each for each in list_methods() if each.name == self.wanted.method), None)

    def is_chosen(self, choice: Choice) -> bool:
        """Whether an advised method is the one that is planned."""
        wanted = self.wanted
        return (choice.name, dict(choice.settings)) == (wanted.method, dict(wanted.settings))

    def lacking(self, choice: Choice) -> str | None:
        """Say what no formula predicts of an advised method."""
        return lacking(choice.method)

    def take(self, choice: Choice) -> dict[str, str]:
        """Write the address of the plan with an advised method."""
        epsilon = format_epsilon(choice.epsilon)
        own = replace(self.wanted, method=choice.name, settings=choice.settings, epsilon=epsilon)
        return replace(self.asked, wanted=own, rehearsal="").query()

    def command(self, choice: Choice) -> str:
        """Write the command that publishes by an advised method."""
        wanted, written = self.wanted, {"ledger": self.desk.shown_ledger}
        if wanted.dataset:
            written["dataset"] = wanted.dataset
        if wanted.data in self.desk.sources:
            written["data"] = self.desk.sources[wanted.data].location
        elif wanted.data:
            written["data"] = str(self.desk.files / wanted.data)
        return choice.command(schema=str(self.desk.files / wanted.schema), **written)

    # --- Levels -----------------------------------------------------------------------------

    @property
    def has_levels(self) -> bool:
        """Whether each person of the dataset has a level of their own."""
        return self.status is not None and bool(self.status.levels)

    def personalized(self) -> list[tuple[MethodInfo, dict[str, str]]]:
        """List the methods that respect levels, with the address of a plan by each."""
        return [(each, self._take_personal(each.name)) for each in list_methods("personalized")]

    def _take_personal(self, name: str) -> dict[str, str]:
        known = {each.name for each in method_settings(name)}
        offered = self._personal_settings()
        own = {key: text for key, text in offered.items() if key in known}
        return replace(
            self.asked, wanted=replace(self.wanted, method=name, settings=own), rehearsal=""
        ).query()

    def _personal_settings(self) -> dict[str, str]:
        """Fill in what the ledger and the advice tell of a personalized method."""
        found: dict[str, str] = {}
        if self.status is not None:
            found["levels"] = ",".join(format_epsilon(each.level) for each in self.status.levels)
            if isinstance(self.status.hides, PersonalRecord):
                found["preference"] = self.status.hides.column
        choice = None if self.advice is None else self.advice.choices[0]
        if choice is not None and not choice.is_stream:
            pairs = [f"{key}={text}" for key, text in choice.settings.items()]
            found |= dict(choice.settings) | {"inner": shlex.join([choice.name, *pairs])}
        if self.is_personal:
            found |= self.wanted.settings
        return found

    @cached_property
    def compared(self) -> Sequence[ExpectedCount]:
        """All personalized methods side by side, where it is public how many people a level has."""
        method = self.method
        if not isinstance(method, PersonalSettings) or not method.sizes or self.planned is None:
            return ()
        least = getattr(method, "least_size", LEAST_SIZE)
        people = Population.of(method.levels, method.sizes, self.exact)
        return self.attempt(ESTIMATE, lambda: people.compare(least)) or ()

    # --- What it would give and cost --------------------------------------------------------

    @cached_property
    def planned(self) -> Plan | None:
        """The expected error, and what is hidden."""
        method, schema = self.method, self.described
        if method is None or schema is None or not self.wanted.epsilon or self.told(GOAL):
            return None
        return self.attempt(
            ESTIMATE,
            lambda: plan(method, schema, epsilon=self.wanted.epsilon, n_records=self.n_records),
        )

    @cached_property
    def exact(self) -> Fraction:
        """What would be spent."""
        return self.wanted.exact

    @property
    def figure(self) -> str:
        """The name of the figure that the curve shows."""
        return "" if self.planned is None else figure_name(self.planned.target)

    @cached_property
    def curve(self) -> Picture | None:
        """The expected error against epsilon."""
        planned, method, schema = self.planned, self.method, self.described
        if planned is None or method is None or schema is None or not planned.target:
            return None
        return error_curve(
            _errors(method, schema, self.n_records),
            figure=self.figure,
            marked=(self.exact, planned.figures[planned.target]),
            left=None if self.status is None else self.status.left,
        )

    @property
    def points(self) -> Sequence[tuple[Fraction, float]]:
        """The curve as a table."""
        if self.curve is None or self.method is None or self.described is None:
            return ()
        return _errors(self.method, self.described, self.n_records)

    @property
    def unpredicted(self) -> str | None:
        """Say what no formula predicts."""
        return None if self.method is None else lacking(self.method)

    @cached_property
    def trades(self) -> Sequence[Trade]:
        """What several bounds on the records of a person would trade."""
        method, schema = self.method, self.schema
        if method is None or schema is None or not self.wanted.epsilon or self.told(GOAL):
            return ()
        exact, rows = self.exact, self.n_records
        return (
            self.attempt(ESTIMATE, lambda: find_trades(method, schema, exact, n_records=rows)) or ()
        )

    @property
    def trade_figure(self) -> str:
        """The name of the figure that bounds trade."""
        return next((figure_name(each.figure) for each in self.trades if each.figure), "")

    @property
    def costs(self) -> Fraction:
        """The most that anyone pays; of a personalized method less than epsilon, it may be."""
        return max(self._pays().values(), default=self.exact)

    @cached_property
    def explained(self) -> Explanation:
        """What the epsilon means."""
        return explain(self.costs, releases=12)

    @cached_property
    def sentences(self) -> str:
        """What the epsilon means for whatever is hidden, in two sentences."""
        method, schema = self.method, self.described
        if method is None or schema is None:
            return self.explained.sentences()
        return two_sentences(self.costs, method.neighbors(schema), tuple(self._pays().items()))

    def _pays(self) -> Mapping[Fraction, Fraction]:
        return spending(self.method, self.exact)

    @cached_property
    def remains(self) -> Remains | None:
        """What will be left, and for how many more releases of this size."""
        status = self.status
        if status is None or self.planned is None:
            return None
        return self.attempt(ESTIMATE, lambda: self._remains(status))

    def _remains(self, status: Status) -> Remains:
        require_notion(status, self.method.neighbors(self.described))
        return Remains.of(status, self.method, self.exact)

    # --- Going on ---------------------------------------------------------------------------

    @property
    def is_stream(self) -> bool:
        """Whether the method publishes step by step."""
        return self.wanted.is_stream

    @cached_property
    def tables(self) -> Sequence[str]:
        """The tables that may be named; their names are all that is looked at."""
        return self.desk.list_tables()

    @property
    def missing(self) -> Sequence[str]:
        """What has to be chosen before a release can be reviewed."""
        found = [] if self.status is not None else ["the dataset"]
        if not self.is_stream and self.wanted.data not in self.tables:
            found.append("the table")
        return found

    @property
    def obstacle(self) -> str:
        """Say why a release like this cannot be reviewed; nothing if it can."""
        if self.told(ESTIMATE):
            return "It cannot be published like this; what is wrong stands above."
        if self.missing:
            return f"To review it, choose {' and '.join(self.missing)} above."
        if self.has_levels and not self.is_personal:
            return (
                "Each person of this dataset has a level of their own, so it is published from by "
                "a personalized method: choose one below."
            )
        if self.remains is not None and not self.remains.suffices:
            return "There is not enough left for it: take a smaller ε, or raise the cap."
        return ""

    def steps(self) -> list[str]:
        """List where the slider stops, the present epsilon among them."""
        own = [self.exact] if self.wanted.epsilon else []
        return [format_epsilon(each) for each in sorted({*STEPS, *own})]


@lru_cache(maxsize=_KEPT)
def _errors(
    method: Any, schema: Schema, n_records: int | None
) -> tuple[tuple[Fraction, float], ...]:
    """Predict the main figure along the slider; kept, for a slider asks for it again and again."""
    largest = method.levels[-1] if isinstance(method, PersonalSettings) else STEPS[-1]
    try:
        known = plan(method, schema, epsilon=largest, n_records=n_records)
    except DPublishError:  # it takes more than the slider offers
        return ()
    return () if known.errors_at is None else tuple(zip(STEPS, known.errors_at(STEPS), strict=True))
