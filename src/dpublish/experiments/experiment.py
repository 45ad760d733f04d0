"""An experiment is a value: a name and a list of trials, each known by a hash of its settings.

Results are appended to a file, one line each, as they come.  A run that is interrupted goes on
where it stopped: trials whose hash is in the file are not run again.  Noise is seeded and true
values are looked at, so every line says that it is not private.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dpublish.core.method import Progress
from dpublish.errors import InputError, UnreadableData, require_count, require_known
from dpublish.experiments import EXPERIMENTS
from dpublish.experiments.page import render_page
from dpublish.randomness import SeededSource, seeded
from dpublish.storage.files import write_text

STAMP = "NOT PRIVATE: seeded noise, measured against true values"


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

    def rng(self) -> SeededSource:
        """Make the source of this trial's randomness; no two trials share one."""
        return seeded(int(self.key, 16))


class Result(NamedTuple):
    """What a trial found."""

    trial: Trial
    figures: dict[str, float]


class ResultTable(NamedTuple):
    """Results in the layout in which they are printed."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


class Plan(NamedTuple):
    """What an experiment is going to do: trials, how to run one, and what users should know."""

    trials: tuple[Trial, ...]
    run_trial: Callable[[Trial], dict[str, float]]
    notes: tuple[str, ...] = ()


class Summary(NamedTuple):
    """What a finished experiment leaves: a table, and where the results and the plot are."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    results: Path
    table: Path
    plot: Path | None
    page: Path | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """Trials to run, in the order given."""

    name: str
    trials: tuple[Trial, ...]

    def run(
        self,
        run_trial: Callable[[Trial], dict[str, float]],
        path: Path,
        progress: Progress | None = None,
    ) -> list[Result]:
        """Run the trials whose results are not in the file at `path`, and return all results."""
        stored = read_results(path)
        todo = [trial for trial in self.trials if trial.key not in stored]
        total = len(self.trials)
        with path.open("ab") as file:
            for done, trial in enumerate(todo, start=total - len(todo)):
                if progress is not None:
                    progress(done, total, f"{trial.method}, epsilon {trial.epsilon}")
                figures = run_trial(trial)
                file.write(_line(trial, figures))
                file.flush()
                stored[trial.key] = figures
        if progress is not None:
            progress(total, total, "done")
        return [Result(trial, stored[trial.key]) for trial in self.trials]


def run_experiment(
    name: str,
    *,
    repeats: int | None = None,
    output: Path,
    progress: Progress | None = None,
    **options: Any,
) -> Summary:
    """Run an experiment of the registry into the folder `output`, or finish one begun there.

    `options` are those of the experiment's `trials`; unknown ones are refused.  Each `part`
    of an experiment keeps results of its own.
    """
    require_known("experiment", name, EXPERIMENTS)
    entry = EXPERIMENTS[name]
    module = import_module(entry.module)
    if hasattr(module, "STUDY"):
        run: Any = import_module("dpublish.experiments.study").run_experiment
        found: Summary = run(name, repeats=repeats, output=output, progress=progress, **options)
        return found
    count = entry.repeats if repeats is None else repeats
    require_count(repeats=count)
    plan = _plan(name, module, count, options)
    stem = "-".join([name, *([options["part"]] if "part" in options else [])])
    try:
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"{stem}.jsonl"
        results = Experiment(name, plan.trials).run(plan.run_trial, path, progress)
        table: ResultTable = module.table(results)
        text = output / f"{stem}.md"
        write_text(text, _page(entry.title, table), replaces=True)
        plot = module.plot(results, output / f"{stem}.svg")
        page = _write_page(module, results, plan.notes, output / f"{stem}.html")
    except OSError as error:
        raise InputError(f"cannot write to {output}: {error.strerror}") from error
    return Summary(
        title=entry.title,
        headers=table.headers,
        rows=table.rows,
        results=path,
        table=text,
        plot=plot,
        page=page,
        notes=plan.notes,
    )


def _plan(name: str, module: ModuleType, repeats: int, options: Mapping[str, Any]) -> Plan:
    maker = getattr(module, "plan", None) or module.trials
    for option in options:
        known = list(signature(maker).parameters)[1:]
        require_known(f"option of {name}", option, known)
    made = maker(repeats, **options)
    return made if isinstance(made, Plan) else Plan(tuple(made), module.run_trial)


def _write_page(
    module: ModuleType, results: Sequence[Result], notes: Sequence[str], path: Path
) -> Path | None:
    if not hasattr(module, "page"):
        return None
    write_text(path, render_page(module.page(results, notes), STAMP), replaces=True)
    return path


def read_results(path: Path) -> dict[str, dict[str, float]]:
    """Read stored figures by trial key, and cut off a last line that was only half written.

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


def _line(trial: Trial, figures: dict[str, float]) -> bytes:
    record = {
        "key": trial.key,
        **asdict(trial),
        "figures": figures,
        "version": _package_version(),
        "stamp": STAMP,
    }
    return json.dumps(record, allow_nan=False).encode() + b"\n"


@cache
def _package_version() -> str:
    return version("dpublish")


def _page(title: str, table: ResultTable) -> str:
    rows = [table.headers, ["---"] * len(table.headers), *table.rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([f"# {title}", "", f"{STAMP}.", "", *lines, ""])
