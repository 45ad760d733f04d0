"""What all stream methods share: settings, the opening of a stream, and what it hides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.catalog import STREAMS
from dpublish.core.method import ExpectedError, Standing, setting, settings_of
from dpublish.core.setting_values import settle_settings
from dpublish.core.settings import Setting, build, list_settings
from dpublish.data.schema import Schema, listed_names
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_vector.calibration import plan as plan_comparisons
from dpublish.methods.streams.policy import Comparisons, Policy
from dpublish.methods.streams.snapshot import Bins
from dpublish.methods.streams.static import StaticHistogram, StaticName, static_histogram
from dpublish.methods.streams.stream import Stream, StreamState
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit, Neighbors, UserInWindow
from dpublish.privacy.receipt import (
    Receipt,
    refuse_other_notion,
    refuse_part,
    refuse_seeded_grant,
)
from dpublish.randomness import RandomSource

SOMEONE = "person"
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class StreamMethod:
    """Settings of every stream method; each adds its own and its policy.

    Not a `Method`: a stream publishes step by step.  `start` opens it, and `Stream.next`
    publishes a step.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        contribution: Most records of one person that a snapshot keeps; noise grows in proportion.
        static: How one histogram is published: `"identity"` adds noise to every bin by itself,
            `"grouped"` merges similar bins first, and the others are methods of their own.
        smoothing: Whether publications are weighed against each other over time, which costs
            nothing; what suits the method unless given.
        trust_rows: Take a schema without a unit; you vouch that no person has more than
            `contribution` rows in a snapshot.
    """

    name: ClassVar[str]
    task: ClassVar[str] = "streams"
    publishes: ClassVar[str] = ""
    """What it publishes, in one line."""
    prefer_when: ClassVar[str] = ""
    """When to choose it, in one line."""
    standing: ClassVar[Standing] = "alternative"
    """Whether it is the default of its task, an alternative, or a baseline of the literature."""
    proofs: ClassVar[tuple[str, ...]] = ()
    """Pages of docs/proofs, without their ending: its own, and those of mechanisms that it uses."""

    if TYPE_CHECKING:  # each method has them as settings or as constants

        @property
        def window(self) -> int | None:
            """Steps within which a person is hidden; None hides people in all steps."""
            ...

        @property
        def horizon(self) -> int | None:
            """Number of steps after which the stream is over; None if it never is."""
            ...

    columns: tuple[str, ...] = setting(
        "Columns to count by; age@2 takes the column at level 2 of its taxonomy (0 is the root)."
    )
    contribution: int = setting(
        "Most records of one person that a snapshot keeps (s); noise grows in proportion.",
        default=1,
    )
    static: StaticName = setting(
        "How one histogram is published: identity adds noise to every bin by itself; grouped "
        "merges similar bins first; the others are methods of their own.",
        default="identity",
    )
    smoothing: bool | None = setting(
        "Weigh publications against each other over time, which costs nothing; what suits the "
        "method unless given.",
        default=None,
    )
    trust_rows: bool = setting(
        "Take a schema without a unit: you vouch that no person has more than `contribution` "
        "records in a snapshot. With a unit the bound is enforced.",
        default=False,
    )

    def __post_init__(self) -> None:
        settle_settings(self)
        _refuse_auto(self.contribution)
        require_count(contribution=self.contribution)
        if not isinstance(self.columns, tuple) or not self.columns:
            raise InvalidParameter("columns must name at least one column")

    @property
    def span(self) -> int:
        """Number of steps that share a budget: all of a horizon, or those of a window."""
        return self.horizon or self.window or 1

    @property
    def smooths(self) -> bool:
        """Whether publications are weighed against each other over time."""
        return bool(self.smoothing)

    def static_histogram(self) -> StaticHistogram:
        """Return the method that publishes one histogram."""
        return static_histogram(self.static)

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Return the terms of the sparse vector; most methods have none."""
        return None

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for a stream of `epsilon`."""
        raise NotImplementedError

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what a publication usually costs, to predict its noise."""
        raise NotImplementedError

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a step reads, besides the unit; public."""
        return listed_names(self.columns, schema)

    def neighbors(self, schema: Schema) -> Neighbors:
        """Return what is hidden: a person in all snapshots, or within any window of them."""
        column = schema.unit or SOMEONE
        if self.window is None:
            return AddRemoveUnit(column, schema.unit_noun)
        return UserInWindow(column, self.window, schema.unit_noun)

    def start(
        self, schema: Schema, *, budget: Budget, rng: RandomSource, steps: Sequence[str] = ()
    ) -> Stream:
        """Open a stream that costs `budget` in all, or in every window.

        `steps` are what each record of every snapshot is taken through before, as its table
        tells (`table.steps`).

        Privacy:
            Reads no rows.  The whole budget is spent here; what the steps spend of it is
            argued at `Stream.next` and kept to by the stream's account.
        """
        refuse_part(budget)
        refuse_seeded_grant(budget, rng)
        refuse_other_notion(budget, self.neighbors(schema))
        self.expected_error(schema, None, budget.epsilon)  # refuses what does not fit
        budget.split(stream=1)["stream"].spend()
        receipt = Receipt.issue(
            method=self.name,
            settings=settings_of(self),
            budget=budget,
            neighbors=self.neighbors(schema),
            rng=rng,
            steps=steps,
        )
        return Stream(self, schema, receipt)

    def resume(self, schema: Schema, state: StreamState, receipt: Receipt) -> Stream:
        """Open a stream where it was left."""
        return Stream(self, schema, receipt, state)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a publication, and refuse all that `start` would."""
        if schema.unit is None and not self.trust_rows:
            raise InvalidParameter(
                "a stream hides people, and this schema does not say whose a record is: name the "
                'column in the schema (unit = "person"), or say --trust-rows (in Python '
                f"trust_rows=True) if no person has more than {self.contribution} "
                f"record{'' if self.contribution == 1 else 's'} in a snapshot"
            )
        bins = Bins.of(schema, self.columns)
        rate = self.publication_epsilon(bins, epsilon) / self.contribution
        if rate <= 0:
            raise InvalidParameter("decision_share leaves nothing for publications; make it less")
        self.static_histogram().check(schema, bins, rate)
        self.policy(bins, epsilon)
        terms = self.comparisons(bins, epsilon)
        if terms is not None:
            plan_comparisons(
                sensitivity=self.contribution,
                max_positives=terms.positives,
                monotonic=False,
                epsilon=terms.epsilon,
            )
        require_rate(rate)
        half_width = float(sum_quantile(rate, 1, 0.95))
        figures = {"bins": float(bins.size), "one_bin_95": half_width}
        if n_records:
            figures["records_per_bin"] = n_records / bins.size
        summary = f"{bins.size:,} bins; each published count within {half_width:,.0f} (95 %)"
        return ExpectedError(summary, figures, target="one_bin_95")


@dataclass(frozen=True, kw_only=True)
class HorizonOrWindow(StreamMethod):
    """A stream method that suits both: finite streams and endless ones."""

    horizon: int | None = setting("Number of steps of the stream.", default=None)
    window: int | None = setting(
        "Hide a person within so many consecutive steps, for ever; give horizon or window.",
        default=None,
    )

    def __post_init__(self) -> None:
        """Refuse a stream that is neither finite nor protected by windows, or both."""
        super().__post_init__()
        if (self.horizon is None) == (self.window is None):
            raise InvalidParameter(
                "give either horizon (the stream ends after so many steps; people are hidden in "
                "all of them) or window (it never ends; people are hidden within so many steps)"
            )
        require_count(steps=self.window if self.horizon is None else self.horizon)


def stream_class(name: str) -> type[StreamMethod]:
    """Import the stream method called `name`."""
    require_known("method", name, STREAMS)
    module, _, attribute = STREAMS[name].location.partition(":")
    found: type[StreamMethod] = getattr(import_module(module), attribute)
    return found


def stream_settings(name: str) -> list[Setting]:
    """List the settings of the stream method called `name`."""
    return list_settings(stream_class(name))


def make_stream_method(name: str, settings: Mapping[str, Any]) -> StreamMethod:
    """Build a stream method from settings, given as values or as text."""
    _refuse_auto(settings.get("contribution"))
    method: StreamMethod = build(stream_class(name), name, settings)
    return method


def _refuse_auto(contribution: object) -> None:
    """Refuse to measure how many rows people have: there is no snapshot yet to measure it in."""
    if contribution == AUTO:
        raise InvalidParameter(
            "a stream keeps the same number of each person's records at every step, so it must be "
            "known before the first snapshot: say --contribution 1, or how many records a person "
            "usually has in one snapshot"
        )
