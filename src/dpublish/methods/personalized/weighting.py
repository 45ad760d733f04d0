"""Weighting: counts in which each person counts by the epsilon that they accept.

A count moves by what one person adds to it.  So a person who accepts ten times the epsilon may
add ten times as much, and one histogram with one noise respects all levels: no one is left out,
grouped or drawn at random.  If levels tell nothing about the values, the weighted counts divided
by the weight of all people are the shares of all people.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Run, setting
from dpublish.core.noisy_size import RESERVED
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, listed_names, parse_columns
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.methods.personalized.method import (
    ASSUMED_PEOPLE,
    PersonalSettings,
    known_sizes,
    personal_receipt,
)
from dpublish.methods.personalized.preferences import MOST_PEOPLE
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.released_parts import NOISY_WEIGHT, Part
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

UNITS = 1 << 16
"""The weight of people who accept the limit or more; others weigh less in proportion."""
NOTE = "each person counted by their own number, up to a limit; levels say nothing about values"


@dataclass(frozen=True, kw_only=True)
class Weighting(PersonalSettings):
    """Publish one histogram in which people weigh what they accept, up to a limit.

    Choose it for counts and histograms when levels tell nothing about the values and it is
    public how many people there are at each level: no grouping, sampling or threshold counts
    better.  Choose `Partitioning` to run any other method inside, such as a model, and
    `Minimum` or `PersonalizedEM` when nothing may be assumed about levels.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): a record loses at most its own level's share, or
        that of the limit if it is less.  Proof: docs/proofs/weighting.md.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        exchangeable: Asserts that levels tell nothing about the other values, nor about who is
            present; needed.
        limit: Level beyond which no one weighs more; without it the one that makes counts best.
        person_variance: Variance of one person's value, q (1 - q) for counts of a share q; the
            limit depends on it.

    Returns:
        A `PersonalizedRelease` with `count(query)`, `rows(n)`, `tables()` and one part.

    Example:
        >>> from dpublish import Weighting, datasets, seeded
        >>> method = Weighting(
        ...     columns=("sex",),
        ...     mode="values-only",
        ...     exchangeable=True,
        ...     preference="region",
        ...     levels=("0.1", "1"),
        ...     rule="North=0.1, *=1",
        ...     derived=True,
        ... )
        >>> release = method.release(
        ...     datasets.table("census", 10_000), budget=method.budget(1), rng=seeded(7)
        ... )
        >>> print(release.count("sex = Female"))
        4,966.8 (95 % model interval 4,925.6 to 5,008)

    Reference:
        This project's own method; `Sampling` does the same at random, which only adds noise.
    """

    name: ClassVar[str] = "weighting"
    proofs: ClassVar[tuple[str, ...]] = ("weighting", "exact")
    publishes: ClassVar[str] = (
        "one noisy histogram that weights each person by the epsilon they accept"
    )
    prefer_when: ClassVar[str] = (
        "you need counts, levels are independent of the values, and the number of people at each "
        "level is public"
    )

    columns: tuple[str, ...] = setting(
        "Columns to count by; age@2 takes the column at level 2 of its taxonomy (0 is the root)."
    )
    exchangeable: bool = setting(
        "Assert that levels tell nothing about the other values, nor about who is present; "
        "without it a weighted count means nothing.",
        default=False,
    )
    limit: Fraction | None = setting(
        "Level beyond which no one weighs more; without it the one that makes counts best.",
        default=None,
    )
    person_variance: Fraction = setting(
        "Variance of one person's value: q (1 - q) for counts of a share q, at most 1/4; the "
        "limit depends on it.",
        default=Fraction(1, 4),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.columns, tuple) or not self.columns:
            raise InvalidParameter("columns must name at least one column")
        if not self.exchangeable:
            raise InvalidParameter(
                "weighting takes people who accept little to be like those who accept much; add "
                "--exchangeable (exchangeable=True in Python) if levels tell nothing about "
                "the other values"
            )
        if self.mode == "levels":
            raise InvalidParameter(
                "weighting must know how many people there are at each level: give --sizes, or use "
                "partitioning, which can measure them"
            )
        if self.limit is not None and self.limit not in self.levels:
            raise InvalidParameter("--limit must be one of the levels")
        if self.person_variance < 0:
            raise InvalidParameter("person_variance must be at least 0")

    def _for_rows(self, rows: int) -> dict[str, Any]:
        """Let people who add up to so many rows to a count vary as much more, in squares."""
        return {"person_variance": self.person_variance * rows**2}

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: its share, or that of the limit if it is less.

        Where it is not public beforehand how many people there are, the limit is not known
        yet, and each level pays its whole share.
        """
        shares = self.preferences.amounts(epsilon)
        if self.limit is None and self.mode != "frame":
            return shares
        most = shares[self._limit(epsilon, self.sizes)]
        return {level: min(share, most) for level, share in shares.items()}

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish the weighted histogram.

        Privacy:
            A record of level b lies in one cell and adds an integer k_b <= a_b / g to it,
            where a_b is what its level pays and g = a_limit / UNITS; noise has the rate g.  So
            adding or removing it changes the exact counts by k_b in all, and no outcome's
            probability by more than a factor of exp(g k_b) <= exp(a_b).  Exchanging its
            values moves two cells by k_b each, and the noise has half the rate then.  Weights
            and limit come from public sizes.  Proof: docs/proofs/weighting.md.
        """
        epsilon = self.epsilon_of(run.budget)
        axes = self._axes(run.schema)
        self._require_rates(epsilon)
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(counts=1)["counts"]
        sizes = known_sizes(run, self) or self.sizes
        most = self.preferences.amounts(epsilon)[self._limit(epsilon, sizes)]
        weights = self._weights(epsilon, most)
        rate = most / UNITS / self.halves
        paying = share.at_most(most, hides=AddRemoveRecord())
        exact = self._count(run, axes, weights)
        noisy = run.add_noise(exact, sensitivity=UNITS * self.halves, budget=paying)
        run.step(1, 1, "histogram")
        schema = self.preferences.without(run.schema)
        histogram = HistogramRelease(
            receipt=Receipt.issue(
                method=self.name,
                settings={"columns": list(self.columns)},
                budget=paying,
                neighbors=AddRemoveRecord(),
                rng=run.rng,
                steps=run.steps,
            ),
            schema=replace(schema, columns=tuple(schema[axis.column] for axis in axes)),
            axes=axes,
            cells=np.arange(noisy.size, dtype=np.int64),
            counts=noisy,
            noise_rate=rate,
            threshold=None,
        )
        return PersonalizedRelease(
            receipt=personal_receipt(run, self),
            schema=schema,
            combine="weighted",
            parts=(self._part(histogram, most, weights, sizes),),
            notes=(NOTE,),
            expected=self._figures(epsilon, sizes),
            total=float(max(sum(sizes), 1)),
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return self.with_levels(listed_names(self.columns, schema), schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the root mean square error of a count, by how many people there are."""
        axes = self._axes(self.prepare(schema))
        Counts(self.prepare(schema), (self._set(axes),))  # refuses too many cells
        self._require_rates(epsilon)
        sizes = self.sizes or self._evenly(n_records)
        figures = self._figures(epsilon, sizes)
        error, people = figures["count_error"], sum(sizes)
        summary = f"a count is off by about {error:,.1f} among {people:,} people"
        return ExpectedError(summary, figures, target="count_error")

    def _require_rates(self, epsilon: Fraction) -> None:
        """Refuse an epsilon for which noise might have too small a rate, whatever the limit."""
        require_rate(min(self.preferences.amounts(epsilon).values()) / UNITS / self.halves)

    def _evenly(self, n_records: int | None) -> tuple[int, ...]:
        count = len(self.levels)
        people = (
            ASSUMED_PEOPLE * count if n_records is None else max(0, min(n_records, MOST_PEOPLE))
        )
        return (people // count,) * count

    def _limit(self, epsilon: Fraction, sizes: Sequence[int]) -> Fraction:
        """Find the level at which noise and unevenness are together least."""
        if self.limit is not None:
            return self.limit
        errors = [self._error(epsilon, sizes, level) for level in self.levels]
        return self.levels[int(np.argmin(errors))]

    def _error(self, epsilon: Fraction, sizes: Sequence[int], limit: Fraction) -> float:
        """Compute the squared error of a share: noise, and that some people weigh more."""
        most = self.preferences.amounts(epsilon)[limit]
        people = np.array(sizes, dtype=np.float64)
        units = np.array(self._weights(epsilon, most), dtype=np.float64)
        whole = _whole(people, units)
        noise = 2 * (UNITS * self.halves / (whole * float(most))) ** 2
        uneven = float(people @ np.square(units)) / whole**2 - 1 / max(float(people.sum()), 1.0)
        return noise + float(self.person_variance) * max(uneven, 0.0)

    def _figures(self, epsilon: Fraction, sizes: Sequence[int]) -> dict[str, float]:
        share = sqrt(self._error(epsilon, sizes, self._limit(epsilon, sizes)))
        return {"groups": 1.0, "count_error": share * max(sum(sizes), 1), "share_error": share}

    def _weights(self, epsilon: Fraction, most: Fraction) -> list[int]:
        """Compute the integer weight of each level, rounded down."""
        shares = self.preferences.amounts(epsilon).values()
        return [int(min(share, most) * UNITS / most) for share in shares]

    def _count(self, run: Run, axes: tuple[Axis, ...], weights: Sequence[int]) -> IntArray:
        kernel = Counts(run.schema, (self._set(axes),))
        by_code = kernel.split(run.sum(kernel))[0]
        of_code = np.array([0, *weights])[self.preferences.level_of_code(run.schema)]
        weighed: IntArray = of_code @ by_code.reshape(len(of_code), -1)
        return weighed

    def _part(
        self,
        histogram: HistogramRelease,
        most: Fraction,
        weights: Sequence[int],
        sizes: Sequence[int],
    ) -> Part:
        """Build the part: its counts stand for as many people as would weigh alike."""
        people, each = np.array(sizes, dtype=np.float64), np.array(weights, dtype=np.float64)
        whole = _whole(people, each)
        alike = max(whole**2 / max(float(people @ np.square(each)), 1.0), 1.0)
        return Part(
            levels=self.levels,
            epsilon=most,
            weight=1.0,
            scale=alike / whole,
            size=alike,
            release=histogram,
            units=UNITS,
        )

    def _set(self, axes: tuple[Axis, ...]) -> tuple[tuple[str, int | None], ...]:
        return ((self.preference, None), *((axis.column, axis.level) for axis in axes))

    def _axes(self, schema: Schema) -> tuple[Axis, ...]:
        chosen = parse_columns(self.columns, schema)
        names = {name for name, _ in chosen}
        if self.preference in names:
            raise InvalidParameter("people are not counted by the column that gives their level")
        taken = RESERVED | {NOISY_WEIGHT}
        if taken & names:
            raise InvalidParameter(f"rename the columns {', '.join(sorted(taken))} first")
        return tuple(schema[name].axis(level) for name, level in chosen)


def _whole(people: FloatArray, units: FloatArray) -> float:
    """Add up the weight of all people: at least that of one person, as it divides others."""
    return max(float(people @ units), float(UNITS))
