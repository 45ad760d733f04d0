"""Rehearse a release: run the whole method on rows that stand in, and measure what it would give.

Theory says how much noise there is, and seldom how many predictions will be wrong.  A rehearsal
runs the method with seeded noise on public rows and measures the goal itself.
"""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import Any

from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.method import Method, Progress
from dpublish.core.plugins import plugins
from dpublish.core.progress import showing_progress
from dpublish.core.registry import make_method
from dpublish.core.settings import ALIASES, written_settings
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.data.sources import open_table
from dpublish.errors import (
    DPublishError,
    InvalidParameter,
    InvalidType,
    plain_refusals,
    require_count,
    require_known,
)
from dpublish.methods.synth.released import SynthRelease
from dpublish.planning.goals import GOALS, Goal
from dpublish.planning.measures import TV, Figures, Measurer, measurer_class, require_rehearsed
from dpublish.planning.rehearsal import Point, Rehearsal, Repeats, Wanted
from dpublish.planning.stand_in import StandIn, read_stand_in, under_own_names
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import EpsilonLike
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.publishing.table import predict, read_epsilon
from dpublish.randomness import seeded

EPSILONS = tuple(Fraction(each) for each in ("0.05", "0.1", "0.25", "0.5", "1", "2"))
"""What is tried unless others are named."""
REPEATS = 5
_REFINED = 2
"""Epsilons that are tried in addition, next to the one that is wanted."""
_SEEDS = 1_000_003


@plain_refusals
def rehearse(
    method_or_goal: "Method[Any] | Goal | str",
    schema: Schema | Mapping[str, Any] | str | PathLike[str],
    *,
    stand_in: Any,
    epsilons: Sequence[EpsilonLike] | EpsilonLike | None = None,
    n_records: int | None = None,
    repeats: int = REPEATS,
    seed: int = 0,
    wanted: str | Wanted | None = None,
    goal: str | Goal | None = None,
    progress: Progress | bool | None = True,
    **settings: Any,
) -> Rehearsal:
    """Measure what a release would give, before anything is spent; no private row is read.

    The whole method runs with seeded noise on public rows that stand in for the private ones.

    Args:
        method_or_goal: A method, its name (with `settings` as further arguments, or written
            "privpfc target=income"), or a goal such as "classify:income", for which the method
            is chosen by `advise`.
        schema: What is publicly known of the private table, or its file.
        stand_in: The folder of an earlier release of the same data (free, for it is public), a
            public table (a file or a DataFrame; never the private one), shares of values by
            column (a .toml or .json file, or a dict), or "simulated" for even shares.
        epsilons: Which to try; 0.05 to 2 unless named.
        n_records: How many rows to release from, if other than the stand-in has.
        repeats: How many releases are made at each epsilon.
        seed: Decides all that is drawn.
        wanted: What the measure should reach, such as "wrong <= 0.18": the smallest epsilon for
            it is found.
        goal: What the release is for, where its method serves several goals.
        progress: Whether to show progress, on a terminal or in a notebook, after a second of
            work; or a function of (done, total, label).
        settings: Settings of a method that is given by name.

    >>> from dpublish import datasets, rehearse
    >>> people = datasets.census(2_000)
    >>> found = rehearse("majority target=income", datasets.schema("census"), stand_in=people,
    ...                  epsilons=["0.1", "1"], repeats=3)
    >>> [one.name for one in found.measures], found.points[-1].figures["wrong"].median < 0.5
    (['wrong', 'auc'], True)
    """
    known = to_schema(schema)
    aim = None if goal is None else Goal.parse(goal, known)
    method, aim = _find_method(method_or_goal, known, aim, n_records, settings)
    kind = measurer_class(method, known, aim)
    target = None if wanted is None else Wanted.parse(wanted, kind.measures)
    require_count(repeats=repeats)
    tried = _read_epsilons(epsilons)
    for epsilon in tried:
        predict(method, known, n_records, epsilon)  # refuses settings that do not fit
    standing = read_stand_in(stand_in, known, method.reads(known), n_records=n_records, seed=seed)
    with showing_progress(progress) as report:
        stage = Stage.of(method, known, standing, kind, repeats=repeats, seed=seed, progress=report)
        return stage.rehearse(tried, target)


@dataclass(eq=False)
class Stage:
    """A method, rows that stand in, and how its releases are measured.

    Attributes:
        method: The method as it was named.
        runs: The method that runs on the rows.
        rows_of_unit: How many rows of a person the private release would keep.
        measurer: Measures its releases.
        standing: The rows.
    """

    method: Method[Any]
    runs: Method[Any]
    rows_of_unit: int
    measurer: Measurer
    standing: StandIn
    repeats: int
    seed: int
    progress: Progress | None
    done: int = 0
    total: int = 0
    lost: float = 0.0

    @classmethod
    def of(
        cls,
        method: Method[Any],
        schema: Schema,
        standing: StandIn,
        kind: type[Measurer],
        *,
        repeats: int,
        seed: int,
        progress: Progress | None,
    ) -> "Stage":
        """Prepare a method for rows that stand in."""
        runs, described, most = _for_rows(method, schema, standing)
        described = under_own_names(described, standing.rows)
        measurer = kind(runs, described, standing.rows, standing.held_out)
        return cls(method, runs, most, measurer, standing, repeats, seed, progress)

    def rehearse(self, epsilons: Sequence[Fraction], wanted: Wanted | None) -> Rehearsal:
        """Run the method at every epsilon and, if something is wanted, next to the one for it."""
        extra = 0 if wanted is None else _REFINED
        self.total = self.repeats * (len(epsilons) + extra)
        notes = [*self.standing.notes, *self.measurer.notes()]
        self.lost = lost_by(self.standing, self.seed) if TV in self.measurer.measures else 0.0
        if self.lost:
            notes.append(
                f"tv includes {self.lost:.3f} that the earlier release itself missed, by its own "
                "measured distance (added in quadrature)"
            )
        points = [self.try_epsilon(epsilons[0])]
        if wanted is not None and wanted.name not in points[0].figures:
            raise InvalidParameter(
                f"{self.method.name} gives no scores, so {wanted.name} is not measured; ask for "
                + ", ".join(points[0].figures)
            )
        points += [self.try_epsilon(epsilon) for epsilon in epsilons[1:]]
        found = self._gather(points, wanted, notes)
        for _ in range(extra):
            further = found.epsilon
            if further is None or further in [point.epsilon for point in found.points]:
                break
            found = self._gather([*found.points, self.try_epsilon(further)], wanted, notes)
        return found

    def try_epsilon(self, epsilon: Fraction) -> Point:
        """Run the method a few times, and measure each release."""
        runs = [self._run(epsilon, number) for number in range(self.repeats)]
        shared = [name for name in runs[0] if all(name in run for run in runs)]
        return Point(epsilon, {name: Repeats.of([run[name] for run in runs]) for name in shared})

    def _run(self, epsilon: Fraction, number: int) -> Figures:
        """Make one release with seeded noise from the rows that stand in, and measure it."""
        table = open_table(
            self.standing.rows, self.measurer.schema, columns=self.runs.reads(self.measurer.schema)
        )
        drawn = self.seed * _SEEDS + number  # the same at every epsilon, to compare them
        release = self.runs.release(
            table, budget=Budget.seeded(epsilon / self.rows_of_unit), rng=seeded(drawn)
        )
        figures = self.measurer.measure(release, drawn)
        if TV.name in figures:
            figures[TV.name] = (figures[TV.name] ** 2 + self.lost**2) ** 0.5
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total, f"epsilon {float(epsilon):g}")
        return figures

    def _gather(
        self, points: Sequence[Point], wanted: Wanted | None, notes: Sequence[str]
    ) -> Rehearsal:
        measured = [one for one in self.measurer.measures if one.name in points[0].figures]
        return Rehearsal(
            method=describe(self.method),
            stand_in=self.standing.label,
            n_records=self.standing.rows.num_rows,
            repeats=self.repeats,
            measures=tuple(measured),
            points=tuple(sorted(points, key=lambda point: point.epsilon)),
            notes=tuple(notes),
            wanted=wanted,
            stamp=self.standing.stamp,
        )


def lost_by(standing: StandIn, seed: int) -> float:
    """Estimate what an earlier release missed of pairs of columns, and its rows cannot show.

    Such a release states its measured distance from the truth.  The same release from its own
    rows states how much of that is noise; the rest, in quadrature, is dependence that its model
    does not hold.  All of it is public.
    """
    release = standing.release
    if not isinstance(release, SynthRelease):
        return 0.0
    stated = release.mean_distance()
    if stated is None or stated.high - stated.value > stated.value:  # not measured, or too noisy
        return 0.0
    again = _again(release, standing, seed)
    noise = None if again is None else again.mean_distance()
    if noise is None:
        return 0.0
    return float(max(stated.value**2 - noise.value**2, 0.0) ** 0.5)


def _again(release: SynthRelease, standing: StandIn, seed: int) -> SynthRelease | None:
    """Make an earlier release once more, from its own rows, with seeded noise."""
    settings = {
        name: value
        for name, value in release.receipt.settings.items()
        if name not in {"contribution", "contribution_share"}
    }
    most = release.receipt.contribution or 1
    with suppress(DPublishError):  # such as a prior that is no longer there
        method = make_method(release.receipt.method, settings)
        table = open_table(standing.rows, under_own_names(release.schema, standing.rows))
        budget = Budget.seeded(release.receipt.epsilon / most)
        made = method.release(table, budget=budget, rng=seeded(seed))
        return made if isinstance(made, SynthRelease) else None
    return None


def describe(method: Method[Any]) -> str:
    """Write a method with the settings that are not the default ones.

    >>> describe(make_method("kmeans", {"n_clusters": 4, "columns": "age,hours"}))
    'kmeans n_clusters=4 columns=age,hours'
    """
    told = [f"{name}={value}" for name, value in written_settings(method).items()]
    return " ".join([method.name, *told])


def _read_epsilons(given: Sequence[EpsilonLike] | EpsilonLike | None) -> list[Fraction]:
    """Read the epsilons to try, in rising order."""
    if given is None:
        return list(EPSILONS)
    if isinstance(given, str):
        listed: Sequence[EpsilonLike] = [part.strip() for part in given.split(",") if part.strip()]
    elif isinstance(given, Sequence):
        listed = given
    else:
        listed = [given]
    if not listed:
        raise InvalidParameter("name at least one epsilon to try: 0.1,0.5,1")
    return sorted({read_epsilon(one) for one in listed})


def _find_method(
    given: object,
    schema: Schema,
    goal: Goal | None,
    n_records: int | None,
    settings: Mapping[str, Any],
) -> tuple[Method[Any], Goal | None]:
    """Find the method that is meant: given as such, by name, or by a goal."""
    if isinstance(given, Method):
        if settings:
            raise InvalidParameter("settings go with the name of a method; this one has its own")
        return given, goal
    if isinstance(given, str):
        words = _split(given)
        # Two names, model and statistics, are of a method and of a goal: settings tell which.
        if words[0].partition(":")[0] not in GOALS or len(words) > 1 or settings:
            return named_method(words, settings), goal
    if isinstance(given, (str, Goal)):
        aim = Goal.parse(given, schema)
        return _advised(aim, schema, n_records), aim
    raise InvalidType(
        "name a method, such as 'privpfc target=income', or a goal, such as 'classify:income', not "
        f"{type(given).__name__}"
    )


def _split(text: str) -> list[str]:
    with suppress(ValueError):
        if words := shlex.split(text):
            return words
    raise InvalidParameter(
        f"{text!r} names no method; write 'privpfc target=income', or a goal: 'classify:income'"
    )


def _advised(goal: Goal, schema: Schema, n_records: int | None) -> Method[Any]:
    """Take the method that is advised for a goal."""
    from dpublish.planning.advise import advise

    if goal.task == "stream":
        require_rehearsed("a stream", "streams")
    chosen = advise(schema, goal, n_records=n_records).choices[0].method
    if not isinstance(chosen, Method):
        require_rehearsed(chosen.name, "streams")
        raise InvalidParameter(f"{chosen.name} is not rehearsed")
    return chosen


def named_method(words: Sequence[str], settings: Mapping[str, Any]) -> Method[Any]:
    """Build a method from its name and settings."""
    name, *pairs = words
    require_known("method or goal", name, [*GOALS, *CATALOG, *STREAMS, *ALIASES, *plugins()])
    if name in STREAMS:
        require_rehearsed(name, "streams")
    if not all("=" in pair for pair in pairs):
        raise InvalidParameter(f"settings of {name} are written name=value: {name} target=income")
    written = dict(pair.split("=", 1) for pair in pairs)
    return make_method(name, {**written, **settings})


def _for_rows(
    method: Method[Any], schema: Schema, standing: StandIn
) -> tuple[Method[Any], Schema, int]:
    """Find what runs on the rows: without a column of people, the method for single records.

    A release that keeps m records of a person runs on single records with epsilon / m.
    """
    if schema.unit is None or schema.unit in standing.rows.column_names:
        return method, schema, 1
    most = method.contribution
    if isinstance(most, int):
        return method.for_records(), method.record_schema(schema), most
    what = "contribution auto counts" if most == "auto" else f"{method.name} hides"
    if most is None and AddRemoveUnit not in method.hidden:
        raise InvalidParameter(
            f"say how many records of a {schema.unit_noun} count: contribution=4"
        )
    raise InvalidParameter(
        f"{what} records by {schema.unit!r}, and the stand-in has no such column; take a public "
        "table that has it, or a number for contribution"
    )
