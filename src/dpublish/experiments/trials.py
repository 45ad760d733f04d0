"""Trials, their results, and means over them.

A trial is known by a hash of its settings; results are kept in a file as they come.

A run that is interrupted goes on where it stopped: trials whose hash is in the file are not run
again.  Noise is seeded and true values are looked at, so every line says that it is not private.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import NamedTuple

from dpublish.core.method import Progress
from dpublish.errors import UnreadableData
from dpublish.randomness import SeededSource, seeded

STAMP = "NOT PRIVATE: seeded noise, measured against true values"
FIGURE = "part"
"""The setting that names a trial's figure; keys, and so all seeded results, depend on it."""
SECONDS = "seconds"
REFUSED = "cannot_run"
"""What is stored of a trial whose method refuses the table."""


@dataclass(frozen=True)
class Trial:
    """One run of one method: what to run, in which setting, with how much budget and which seed.

    >>> trial = Trial("demo", method="best", epsilon="0.5", seed=3, setting={"count": 25})
    >>> trial.key
    'c2ca68ce57694137'
    """

    experiment: str
    method: str
    epsilon: str
    seed: int
    setting: Mapping[str, int | str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Hash of all the settings."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def dataset(self) -> str:
        """Name of the dataset, if the experiment has several."""
        return str(self.setting.get("dataset", ""))

    def rng(self) -> SeededSource:
        """Build the source of this trial's randomness; no two trials share one."""
        return seeded(int(self.key, 16))


class Result(NamedTuple):
    """What was measured in a trial."""

    trial: Trial
    measured: dict[str, float]


def run_trials(
    trials: Sequence[Trial],
    run_trial: Callable[[Trial], dict[str, float]],
    path: Path,
    progress: Progress | None = None,
) -> list[Result]:
    """Run the trials whose results are not in the file at `path`, and return all results."""
    stored = read_results(path)
    todo = [trial for trial in trials if trial.key not in stored]
    total = len(trials)
    with path.open("ab") as file:
        for done, trial in enumerate(todo, start=total - len(todo)):
            if progress is not None:
                progress(done, total, f"{trial.method}, epsilon {trial.epsilon}")
            begin = process_time()
            measured = run_trial(trial)
            file.write(_line(trial, measured, process_time() - begin))
            file.flush()
            stored[trial.key] = measured
    if progress is not None:
        progress(total, total, "done")
    return [Result(trial, stored[trial.key]) for trial in trials]


def read_results(path: Path) -> dict[str, dict[str, float]]:
    """Read what was measured by trial key, and cut off a last line that was only half written.

    Results of another version of the package are left in the file but not used.
    """
    if not path.exists():
        return {}
    *lines, torn = path.read_bytes().split(b"\n")
    if torn:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - len(torn))
    stored = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if record["version"] == _package_version():
                stored[record["key"]] = record["figures"]
        except (ValueError, KeyError, TypeError):
            raise UnreadableData(f"line {number} of {path} is not a result") from None
    return stored


def read_seconds(path: Path) -> list[float]:
    """Read how much processor time each stored trial took, its measuring included."""
    if not path.exists():
        return []
    records = (json.loads(line) for line in path.read_bytes().split(b"\n")[:-1])
    current = (record for record in records if record.get("version") == _package_version())
    return [record["processor_seconds"] for record in current if "processor_seconds" in record]


def _line(trial: Trial, measured: dict[str, float], seconds: float) -> bytes:
    record = {
        "key": trial.key,
        **asdict(trial),
        "figures": measured,
        "processor_seconds": round(seconds, 4),
        "version": _package_version(),
        "stamp": STAMP,
    }
    return json.dumps(record, allow_nan=False).encode() + b"\n"


@cache
def _package_version() -> str:
    return version("dpublish")


class Key(NamedTuple):
    """A line: on which data, what is measured, by which method and budget (if not the axis).

    `variant` holds what else sets lines apart: a model, or the preferences of people.
    """

    dataset: str
    measure: str
    method: str
    epsilon: str = ""
    variant: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        """The method, with its budget if that is not the axis."""
        return f"{self.method}, ε = {self.epsilon}" if self.epsilon else self.method


class Cell(NamedTuple):
    """Mean and standard deviation of a measure, and over how many values."""

    mean: float
    deviation: float
    repeats: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Cell":
        """Summarize the values at one point."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / sqrt(self.repeats)

    def text(self, digits: int) -> str:
        """Write mean ± standard deviation."""
        return f"{self.mean:,.{digits}f} ±{self.deviation:,.{digits}f}"


Cells = dict[Key, dict[float, Cell]]


def means_by(
    results: Sequence[Result],
    measures: Sequence[str],
    group: Callable[[Trial], tuple[str, ...]],
) -> list[list[str]]:
    """Average measures over the trials of each group; trials that have no time are left out."""
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for trial, measured in results:
        if SECONDS in measured:
            found.setdefault(group(trial), []).append(measured)
    return [
        [*names, *(_mean_text(several, measure) for measure in measures)]
        for names, several in found.items()
    ]


def _mean_text(several: Iterable[Mapping[str, float]], measure: str) -> str:
    values = [measured[measure] for measured in several if measure in measured]
    return f"{fmean(values):.3f}" if values else ""


def how_often(results: Sequence[Result]) -> str:
    """Write how often each trial was repeated.

    >>> how_often([Result(Trial("demo", "best", "1", seed), {}) for seed in range(2)])
    '2 times'
    """
    count = len({trial.seed for trial, _ in results})
    return f"{count} time{'s' if count > 1 else ''}"
