"""One framework for all experiments: a study says what varies, what is run and how to read it.

A study has figures, each with methods, budgets, datasets and measures over one axis.  From them
it plans trials, runs or resumes them, averages the results into lines, and writes a table, a
plot and a page.  A new study is one file: a subclass of `Study` that lists its trials, runs one,
and explains itself, and a line in `dpublish.experiments.EXPERIMENTS`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import exp, inf
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from dpublish.core.method import Progress
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.errors import InputError, InvalidParameter, require_count, require_known
from dpublish.experiments import EXPERIMENTS
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.trials import (
    FIGURE,
    REFUSED,
    SECONDS,
    STAMP,
    Cell,
    Cells,
    Key,
    Result,
    Trial,
    means_by,
    run_trials,
)
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.plots.style import plain_number
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.report import section
from dpublish.report.html import NO_PLOT, Page, made_by, render_page
from dpublish.report.section import Listing, Section
from dpublish.storage.files import write_text

EPSILON_AXIS = "privacy budget ε (left: more private)"
NOISE_FREE = "noise-free"
"""The reference of most studies: the same without privacy."""
CANNOT_RUN = "cannot run"
_LONGEST_LABEL = 48  # letters along a vertical axis
BEST = "*"
"""Marks the best of a group in a table."""

OPEN_OPTIONS = ("values", "settings", "data", "schema", "target")
"""What every study takes: the values of its axis, settings by name, a table of one's own."""

Setting = dict[str, int | str]
RunTrial = Callable[[Trial], dict[str, float]]


@dataclass(frozen=True)
class Figure:
    """One figure of a study: what is on its axis, and what is run for it.

    Attributes:
        title: The title of its page.
        across: What is on the axis.
        reading: What the axis means, for readers who are new to it.
        methods: The methods compared.
        epsilons: The budgets; each is a line of its own, unless they are the axis.
        datasets: The datasets; empty for all of the study.
        measures: What is shown of each trial.
        key: Which setting of a trial is on the axis; None for epsilon.
        values: The values of that setting.
        is_log: Whether the axis is logarithmic.
        moves_references: Whether the setting matters without privacy, too.
        fixed: Settings of all its trials by the name of a knob; users may give others.
    """

    title: str
    across: str
    reading: str
    methods: tuple[str, ...] = ()
    epsilons: tuple[str, ...] = ("1",)
    datasets: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    key: str | None = None
    values: tuple[int | str, ...] = ()
    is_log: bool = True
    moves_references: bool = False
    fixed: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def axis(self) -> str:
        """What is on the axis, in a word or two."""
        return self.across.partition(" (")[0]


F = TypeVar("F", bound=Figure)


@dataclass(frozen=True)
class Request(Generic[F]):
    """A figure with the methods, budgets and datasets that are run, and how often.

    Attributes:
        name: The name of the figure.
        figure: The figure.
        repeats: How often each trial is repeated.
        folder: Where public tables are, if anywhere.
        digest: The digest of a user's own table, or nothing.
    """

    name: str
    figure: F
    repeats: int
    folder: Path | None
    digest: str = ""

    def setting(self, dataset: str, **given: int | str) -> Setting:
        """Build the setting of a trial: its figure, its dataset, what is fixed, what varies."""
        own = {"digest": self.digest} if self.digest else {}
        return {FIGURE: self.name, "dataset": dataset, **own, **self.figure.fixed, **given}

    def axis(self) -> list[Setting]:
        """List what the trials along the axis have in their settings."""
        figure = self.figure
        return [{figure.key: value} for value in figure.values] if figure.key else [{}]


class Dataset(Protocol):
    """Something to run trials on, which may need a file of the data folder."""

    def missing_file(self, folder: Path | None) -> str | None:
        """Return the file that is missing, or None if nothing is."""
        ...


@dataclass(frozen=True)
class Plan:
    """What a study is going to do: trials, how to run one, and what users should know."""

    study: "Study[Any]"
    trials: tuple[Trial, ...]
    run_trial: RunTrial
    notes: tuple[str, ...] = ()

    def run(self, path: Path, progress: Progress | None = None) -> list[Result]:
        """Run the trials whose results are not in the file at `path`, and return all results."""
        return run_trials(self.trials, self.run_trial, path, progress)


class Summary(NamedTuple):
    """What a finished experiment leaves: a table, and where results, plot and page are."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    results: Path
    table: Path
    plot: Path | None
    page: Path
    notes: Sequence[str] = ()


class Study(ABC, Generic[F]):
    """A comparison of methods: figures, trials, lines, and the words to read them.

    Attributes:
        name: The name of the experiment in its trials.
        options: What users may choose.
        knobs: What users may set for all trials (`--set name=value`), each in a sentence.
        figures: The figures by name, the usual one first.
        datasets: The datasets by name.
        references: What is run without privacy, and how its lines are labeled.
        headers: The first columns of the table.
        digits: Decimals in the table.
        cap: Lines that are nowhere within so many times the best are in the table only.
        lead: The sentence below the title of the page.
        unit: Whose privacy is protected.
        drawing_caption: What is said below a drawing.
        table_caption: What is said below a table.
        no_plot: What is said if nothing could be drawn.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = (
        "figure",
        "data_folder",
        "datasets",
        "methods",
        "epsilons",
        *OPEN_OPTIONS,
    )
    knobs: ClassVar[Mapping[str, str]] = {}
    figures: Mapping[str, F]
    datasets: Mapping[str, Dataset] = {}
    references: ClassVar[Mapping[str, str]] = {}
    headers: ClassVar[tuple[str, ...]] = ("dataset", "method")
    digits: ClassVar[int] = 4
    cap: ClassVar[float] = inf
    lead: ClassVar[str] = "An experiment on public data with seeded noise."
    unit: ClassVar[str] = "person"
    drawing_caption: ClassVar[str] = (
        "Lower is better. Lines are means, bands one standard deviation."
    )
    table_caption: ClassVar[str] = "Mean ± standard deviation over the repeats."
    no_plot: ClassVar[str] = NO_PLOT
    _digest: str = ""

    # What a study has to write.

    @abstractmethod
    def trials(self, asked: Request[F], **options: Any) -> Iterator[Trial]:
        """List the trials of a figure."""

    @abstractmethod
    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the tables of a data folder."""

    @abstractmethod
    def explanation(self, figure: F) -> list[str]:
        """Explain what was done and measured to readers who have not read the paper."""

    @abstractmethod
    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe each of the methods in a sentence."""

    @abstractmethod
    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe how the trials were run."""

    # What is planned.

    def plan(
        self,
        repeats: int,
        *,
        figure: str | None = None,
        data_folder: str | Path | None = None,
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        epsilons: Sequence[str] | None = None,
        values: Sequence[str | int] | None = None,
        settings: Mapping[str, str | int] | None = None,
        data: str | Path | None = None,
        schema: str | Path | None = None,
        target: str | None = None,
        **options: Any,
    ) -> Plan:
        """List the trials of one figure; datasets that are not in the data folder are left out.

        With `data` and `schema` it is drawn for that table alone, on a copy of the study.
        """
        for option in options:
            require_known(f"option of {self.name}", option, self.options)
        name = next(iter(self.figures)) if figure is None else figure
        require_known("figure", name, self.figures)
        if (data, schema, target) != (None, None, None):
            if datasets is not None:
                raise InvalidParameter("name either datasets or a table of your own, not both")
            return self._with_own_table(_read_own(data, schema, target))(
                repeats,
                figure=figure,
                data_folder=data_folder,
                methods=methods,
                epsilons=epsilons,
                values=values,
                settings=settings,
                **options,
            )
        usual = self.figures[name]
        folder = find_data_folder(data_folder)
        present, notes = self._present_datasets(usual, datasets, folder)
        chosen = replace(
            usual,
            methods=self._choose_methods(usual, methods),
            epsilons=_choose_epsilons(usual.epsilons if epsilons is None else epsilons),
            datasets=present,
            values=_choose_values(usual, values),
            fixed=self._choose_settings(usual, settings or {}),
        )
        asked = Request(name, chosen, repeats, folder, self._digest)
        trials = tuple(self.trials(asked, **options))
        return Plan(self, trials, self.runner(folder), tuple(notes))

    def own_dataset(self, table: OwnTable) -> Dataset:
        """Make a dataset of a user's own table."""
        raise InvalidParameter(f"{self.name} runs on its own datasets only; leave --data out")

    def _with_own_table(self, table: OwnTable) -> Callable[..., Plan]:
        """Return the plan of a copy of this study that has the table as its only dataset."""
        shown = copy(self)
        shown.datasets = {table.name: self.own_dataset(table)}
        shown.figures = {
            name: replace(figure, datasets=(table.name,)) for name, figure in self.figures.items()
        }
        shown._digest = table.digest
        return shown.plan

    def _choose_settings(self, figure: F, given: Mapping[str, str | int]) -> Setting:
        """Put the given settings over those of the figure."""
        for name in given:
            if name not in self.knobs:
                known = "; ".join(f"{one}: {text}" for one, text in self.knobs.items())
                raise InvalidParameter(
                    f"{self.name} has no setting {name!r}" + (f"; it has {known}" if known else "")
                )
        return {**figure.fixed, **{name: _plain(value) for name, value in given.items()}}

    def known_methods(self, figure: F) -> Collection[str]:
        """List the methods that users may name for a figure."""
        return figure.methods

    def usual_methods(self, figure: F) -> Collection[str]:
        """List the methods that are run unless users name others."""
        return figure.methods

    def known_datasets(self, figure: F) -> Collection[str]:
        """List the datasets that users may name for a figure."""
        return figure.datasets or self.datasets

    def missing_file(self, dataset: str, folder: Path | None) -> str | None:
        """Return the file that a dataset lacks, or None if it lacks nothing."""
        return self.datasets[dataset].missing_file(folder)

    def _choose_methods(self, figure: F, asked: Sequence[str] | None) -> tuple[str, ...]:
        names = tuple(self.usual_methods(figure) if asked is None else asked)
        for name in names:
            require_known("method", name, self.known_methods(figure))
        if not names:
            raise InvalidParameter("name at least one method and one epsilon")
        return names

    def _present_datasets(
        self, figure: F, asked: Sequence[str] | None, folder: Path | None
    ) -> tuple[tuple[str, ...], list[str]]:
        """Keep the datasets whose files are there; state what the others need."""
        if not self.datasets:
            return (), []
        present, notes = [], []
        for name in (figure.datasets or self.datasets) if asked is None else asked:
            require_known("dataset", name, self.known_datasets(figure))
            missing = self.missing_file(name, folder)
            if missing is None:
                present.append(name)
            else:
                why = "no data folder was named" if folder is None else f"it is not in {folder}"
                notes.append(f"{name} was left out: it needs {missing}, and {why}")
        if not present:
            reasons = notes or ["name at least one dataset"]
            raise InvalidParameter("; ".join(reasons) + " (--data-folder, or DPUBLISH_DATA)")
        return tuple(present), notes

    # What comes out: lines over an axis.

    def figure_of(self, results: Sequence[Result]) -> F:
        """Return the figure that the results are of."""
        usual = next(iter(self.figures))
        return self.figures[str(results[0].trial.setting.get(FIGURE, usual))]

    def point(self, trial: Trial, figure: F) -> float | None:
        """Return where on the axis a trial is; None if it is the same everywhere."""
        if figure.key is not None:
            value = trial.setting.get(figure.key)
            return None if value is None else float(value)
        return None if trial.method in self.references else float(trial.epsilon)

    def points(self, results: Sequence[Result]) -> list[float]:
        """List the points on the axis."""
        figure = self.figure_of(results)
        found = {self.point(trial, figure) for trial, _ in results}
        return sorted(point for point in found if point is not None)

    def key(self, trial: Trial, figure: F, measure: str) -> Key:
        """Return which line a trial belongs to."""
        has_own_line = figure.key is not None and trial.method not in self.references
        return Key(trial.dataset, measure, trial.method, trial.epsilon if has_own_line else "")

    def summarize(self, results: Sequence[Result]) -> Cells:
        """Average every measure at every point of every line, in the order of the table.

        A reference that the axis does not move has the same value at every point.  A method
        that cannot run has a line without points.
        """
        figure, points = self.figure_of(results), self.points(results)
        found: dict[Key, dict[float, list[float]]] = {}
        for trial, measured in results:
            point = self.point(trial, figure)
            for measure in figure.measures:
                if measure in measured or REFUSED in measured:
                    line = found.setdefault(self.key(trial, figure, measure), {})
                    for one in points if point is None else [point]:
                        if measure in measured:
                            line.setdefault(one, []).append(measured[measure])
        return {
            key: {point: Cell.of(values) for point, values in sorted(found[key].items())}
            for key in self._ordered(found, figure)
        }

    def _ordered(self, keys: Collection[Key], figure: F) -> list[Key]:
        """Sort lines by dataset, measure, variant and method; references come last."""
        if not keys:
            return []
        ranks = [list(dict.fromkeys(column)) for column in zip(*keys, strict=True)]
        datasets, _, methods, epsilons, variants = ranks

        def order(key: Key) -> tuple[int, int, int, bool, int, int]:
            return (
                datasets.index(key.dataset),
                figure.measures.index(key.measure),
                variants.index(key.variant),
                key.method in self.references,
                methods.index(key.method),
                epsilons.index(key.epsilon),
            )

        return sorted(keys, key=order)

    def is_higher_better(self, measure: str) -> bool:
        """Whether larger values of a measure are better."""
        return False

    def best_at(self, cells: Cells, point: float) -> Key | None:
        """Return the best line at a point, leaving references out."""
        here = [k for k, line in cells.items() if point in line and k.method not in self.references]
        if not here:
            return None
        sign = -1 if self.is_higher_better(here[0].measure) else 1
        return min(here, key=lambda key: sign * cells[key][point].mean)

    def ends(self, results: Sequence[Result]) -> list[float]:
        """Return the first and the last point of the axis."""
        points = self.points(results)
        return list(dict.fromkeys((points[0], points[-1])))

    # The table.

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the results out: a row for each line, a column for each point."""
        figure, points, cells = (
            self.figure_of(results),
            self.points(results),
            self.summarize(results),
        )
        refused = {
            (self.key(trial, figure, measure), self.point(trial, figure))
            for trial, measured in results
            for measure in figure.measures
            if REFUSED in measured
        }
        rows = [
            [
                *self.names(key),
                *(
                    CANNOT_RUN if (key, point) in refused else self.cell_text(cells, key, point)
                    for point in points
                ),
            ]
            for key in cells
        ]
        axis = self.axis_name(figure)
        headers = [*self.headers, *(f"{axis} {plain_number(point)}" for point in points)]
        return Listing(headers, rows)

    def axis_name(self, figure: F) -> str:
        """Name the axis in the headers of the table."""
        return (figure.key or "epsilon").replace("_", " ")

    def names(self, key: Key) -> list[str]:
        """Name a line in the first columns of the table."""
        return [key.dataset, key.short_name]

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a cell of the table, empty if the line has no such point."""
        cell = cells[key].get(point)
        return "" if cell is None else cell.text(self.decimals(cell.mean))

    def decimals(self, mean: float) -> int:
        """Return how many decimals a mean is written with."""
        return self.digits

    # The plot.

    def plot(self, results: Sequence[Result], dataset: str | None = None) -> str | None:
        """Draw all panels, or those of one dataset; None if there is nothing to draw with."""
        return small_multiples(self.panels(results, dataset), self.layout(results, dataset))

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Describe how the panels are drawn."""
        figure = self.figure_of(results)
        up = " or ".join(map(self.measure_title, figure.measures))
        return Layout(
            across=figure.across,
            up=up if len(up) <= _LONGEST_LABEL else "",  # titles of panels name measures, too
            ticks=self.points(results),
            is_log=figure.is_log,
            has_one_scale=False,
        )

    def measure_title(self, measure: str) -> str:
        """Name a measure, as on the vertical axis."""
        return measure

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw a panel for each group of lines that are compared."""
        panels = []
        for group in self.groups(self.summarize(results)):
            first = next(iter(group))
            if dataset in (None, first.dataset):
                lines = [self.line(key, group[key]) for key in self.drawn(group)]
                panels.append(Panel(self.panel_title(first, dataset), lines))
        return panels

    def groups(self, cells: Cells) -> list[Cells]:
        """Put lines together that are compared: same data, same measure, same variant."""
        found: dict[tuple[Any, ...], Cells] = {}
        for key, line in cells.items():
            found.setdefault((key.dataset, key.measure, key.variant), {})[key] = line
        return list(found.values())

    def drawn(self, group: Cells) -> list[Key]:
        """Choose the lines that come near the best somewhere: others would flatten them."""
        lowest: dict[float, float] = {}
        for line in group.values():
            for point, cell in line.items():
                lowest[point] = min(cell.mean, lowest.get(point, cell.mean))
        return [
            key
            for key, line in group.items()
            if any(cell.mean <= self.cap * lowest[point] for point, cell in line.items())
        ]

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by one of its lines; `dataset` is given if all panels are of one."""
        title = self.measure_title(key.measure)
        return title if dataset else f"{key.dataset}: {title}"

    def line(self, key: Key, cells: Mapping[float, Cell]) -> Line:
        """Draw a line; references are gray."""
        means = [cell.mean for cell in cells.values()]
        deviations = [cell.deviation for cell in cells.values()]
        return Line(self.label(key), list(cells), means, deviations, self.is_ours(key.method))

    def label(self, key: Key) -> str:
        """Label a line in the legend."""
        return self.references.get(key.method) or key.short_name

    def is_ours(self, method: str) -> bool:
        """Whether a method is drawn in color; what it is compared with is gray."""
        return method not in self.references

    # The page.

    def page(self, results: Sequence[Result], notes: Sequence[str]) -> Page:
        """Explain what was done and found to readers who have not read the paper."""
        figure = self.figure_of(results)
        datasets = dict.fromkeys(trial.dataset for trial, _ in results)
        return Page(
            title=figure.title,
            lead=f"{self.lead} {made_by()}",
            stamps=[STAMP],
            sections=[
                Section(
                    "What this page shows",
                    [*self.explanation(figure), self.epsilon_words(results)],
                    self.reading_points(figure),
                ),
                *_fold_all_but_first(
                    [found for name in datasets for found in self._dataset_sections(results, name)]
                ),
                Section(
                    "The methods",
                    points=self.method_points(list(dict.fromkeys(t.method for t, _ in results))),
                    is_folded=True,
                ),
                Section(
                    "How it was run",
                    [*self.how_it_was_run(results), *notes],
                    listings=self.costs(results),
                    is_folded=True,
                ),
            ],
        )

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain epsilon by the smallest of the page, and then the axis."""
        amounts = [trial.epsilon for trial, _ in results if trial.method not in self.references]
        example = min(amounts, key=float)
        return (
            "ε (epsilon) measures how strong the privacy is; smaller is stronger. At "
            f"ε = {example}, whether any one {self.unit} is in the data or not changes the "
            "probability of whatever is published by a factor of at most "
            f"{exp(float(example)):.3g}. {self.figure_of(results).reading}"
        )

    def reading_points(self, figure: F) -> list[str]:
        """List what panels, lines and measures mean."""
        return []

    def _dataset_sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        own = [result for result in results if result.trial.dataset == dataset]
        return self.sections(own, dataset)

    def sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        """Write the sections of one dataset from its own results."""
        drawn = self.plot(results, dataset)
        said = [self.about(dataset, results), *self.findings(results)]
        return [
            Section(
                self.heading(dataset),
                said if drawn else [*said, self.no_plot],
                figures=[section.Figure(self.drawing_caption, drawn)] if drawn else [],
                listings=[self.dataset_table(results)],
            )
        ]

    def dataset_table(self, results: Sequence[Result]) -> Listing:
        """Lay the results of one dataset out, without its name."""
        whole = self.table(results)
        return Listing(whole.headers[1:], [row[1:] for row in whole.rows], self.table_caption)

    def heading(self, dataset: str) -> str:
        """Write the heading of a dataset's section."""
        return dataset

    @abstractmethod
    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a dataset."""

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the best method at both ends of the axis."""
        figure, cells = self.figure_of(results), self.summarize(results)
        said = []
        for measure in figure.measures:
            own = {key: line for key, line in cells.items() if key.measure == measure}
            for point in self.ends(results):
                best = self.best_at(own, point)
                if best is not None:
                    where = f"At {figure.axis} = {plain_number(point)}"
                    said.append(f"{where} {self.finding(best, point, cells)}.")
        return said

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Write what follows "At ... = ...": the best method and how good it is."""
        mean = cells[best][point].mean
        return f"{best.short_name} has the best {self.measure_title(best.measure)}: {mean:.3f}"

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List the mean time of a release by dataset and method."""
        rows = means_by(results, (SECONDS,), lambda trial: (trial.dataset, trial.method))
        caption = "Mean time to make one release."
        return [Listing(["dataset", "method", "seconds"], rows, caption)] if rows else []


def _fold_all_but_first(sections: Sequence[Section]) -> list[Section]:
    """Close all sections but the first: a page shows one dataset, and names the others."""
    return [*sections[:1], *(replace(each, is_folded=True) for each in sections[1:])]


def _choose_epsilons(epsilons: Sequence[str]) -> tuple[str, ...]:
    for epsilon in epsilons:
        parse_epsilon(epsilon)
    if not epsilons:
        raise InvalidParameter("name at least one method and one epsilon")
    return tuple(epsilons)


def _choose_values(figure: Figure, given: Sequence[str | int] | None) -> tuple[int | str, ...]:
    """Take the given values of the axis, as the type that the usual ones have."""
    if given is None:
        return figure.values
    if figure.key is None:
        raise InvalidParameter("the axis of this figure is ε: choose --epsilons, not --values")
    chosen = tuple(_plain(value) for value in given)
    if not chosen:
        raise InvalidParameter("name at least one value")
    for value in chosen:
        if isinstance(value, str) and all(isinstance(usual, int) for usual in figure.values):
            raise InvalidParameter(f"{value!r} is not an integer: values are {figure.across}")
    return tuple(map(str, chosen)) if isinstance(figure.values[0], str) else chosen


def _plain(value: str | int) -> int | str:
    """Read an integer where there is one."""
    try:
        return int(value)
    except ValueError:
        return value


def _read_own(data: str | Path | None, schema: str | Path | None, target: str | None) -> OwnTable:
    if data is None or schema is None:
        raise InvalidParameter(
            "a table of your own needs --data FILE and --schema FILE "
            "(and --target COLUMN where there is something to predict)"
        )
    return OwnTable.read(data, schema, target)


def study_of(name: str) -> Study[Any]:
    """Load a study of the registry."""
    require_known("experiment", name, EXPERIMENTS)
    study: Study[Any] = import_module(EXPERIMENTS[name].module).STUDY
    return study


def run_experiment(
    name: str,
    *,
    repeats: int | None = None,
    output: Path,
    progress: Progress | None = None,
    **options: Any,
) -> Summary:
    """Run an experiment of the registry into the folder `output`, or finish one begun there.

    `options` are those of the study; unknown ones are refused.  Each `figure` of a study keeps
    results of its own.
    """
    study, title = study_of(name), EXPERIMENTS[name].title
    count = EXPERIMENTS[name].repeats if repeats is None else repeats
    require_count(repeats=count)
    for option in options:
        require_known(f"option of {name}", option, study.options)
    plan = study.plan(count, **options)
    shown = plan.study
    stem = "-".join([name, *([options["figure"]] if "figure" in options else [])])
    try:
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"{stem}.jsonl"
        results = plan.run(path, progress)
        table = shown.table(results)
        text = output / f"{stem}.md"
        write_text(text, _markdown(title, table), replaces=True)
        drawn, plot = shown.plot(results), output / f"{stem}.svg"
        if drawn is not None:
            write_text(plot, drawn, replaces=True)
        page = output / f"{stem}.html"
        write_text(page, render_page(shown.page(results, plan.notes)), replaces=True)
    except OSError as error:
        raise InputError(f"cannot write to {output}: {error.strerror}") from error
    return Summary(
        title=title,
        headers=table.headers,
        rows=table.rows,
        results=path,
        table=text,
        plot=None if drawn is None else plot,
        page=page,
        notes=plan.notes,
    )


def _markdown(title: str, table: Listing) -> str:
    rows = [table.headers, ["---"] * len(table.headers), *table.rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([f"# {title}", "", f"{STAMP}.", "", *lines, ""])
