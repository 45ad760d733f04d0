"""How far do records lie from centers that were found privately?

Chapter 4 of D. Su, PhD thesis, Purdue, 2016, on the public tables that can be had and on simulated
clouds of points: the normalized intra-cluster variance (NICV) of every method that publishes k
centers, against epsilon (its figures 4.1, 4.2 and 4.5), as heat maps over k and d (4.3, 4.4),
against the blocks of GkM (4.6), the steps of searches (4.7) and time (4.8); how often each k is
chosen (tables 4.3 to 4.5); methods as published; and the models of errors behind them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.registry import CATALOG, method_settings
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.errors import InvalidParameter
from dpublish.experiments.kmeans_runs import (
    BIAS_MODEL,
    BLOCK_MODEL,
    CHOSEN,
    CLOUDS,
    CUBES,
    GENE,
    GRID,
    GRID_MODEL,
    LLOYD,
    MSE,
    NICV,
    NOISE,
    PUBLISHED,
    ROUND,
    ROUND_MODEL,
    SAG,
    SHARE,
    STARTS,
    TUNING,
    VALIDITY,
    KMeansRunner,
)
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import (
    EPSILON_AXIS,
    NOISE_FREE,
    Dataset,
    Figure,
    Plan,
    Request,
    RunTrial,
    Setting,
    Study,
)
from dpublish.experiments.trials import SECONDS, Cell, Cells, Key, Result, Trial, how_often
from dpublish.plots.comparisons import HeatLayout, HeatPanel, Layout, Line, Panel, heat_maps
from dpublish.report import section
from dpublish.report.section import Listing, Section

NAME = "kmeans"
REFERENCES = {
    NOISE_FREE: f"No privacy: the best of {STARTS} runs of k-means",
    SAG: "GkM without its noise (SAG)",
    NOISE: "GkM's noise on the best centers",
    LLOYD: "Lloyd's k-means, no privacy",
    GENE: "Genetic k-means, no privacy",
    ROUND_MODEL: "Eq. 4.5: a round",
    GRID_MODEL: "Eq. 4.15: noise in a grid",
    BIAS_MODEL: "Eq. 4.16: width of cells, at most",
    BLOCK_MODEL: "Noise of GkM in about N blocks",
}
SLOW = {("adult-num", "mkm"), (CLOUDS, "mkm")}
"""Datasets on which a method takes minutes for one run: it is left out unless it is named."""
HEAT_MAP, THETA, CHOOSE_K, MODELS, SHARES = "heat-map", "theta", "choose-k", "error-model", "shares"
CLOUD_FIGURES = (HEAT_MAP, THETA, SHARES)
"""Figures of simulated points for many k and d."""
LIKELIHOOD = "likelihood"
_NEAR = 3.0
"""Methods that end up within so many times the reference are shown again, closer."""
_MOST_CLUSTERS = {"s1": 16, "adult-num": 6, "gowalla": 6, "gowalla-checkins": 6}
"""The largest k that is looked at by `choose-k`, as in the thesis; else this much above k."""
_MORE = 3
_SIDES = "2,6,10"
_NO_BUDGET = (LLOYD, GENE)
Cloud = tuple[int, int]
"""Numbers of clusters and of dimensions of a cloud."""

_figure = partial(Figure, measures=(NICV,), datasets=tuple(POINT_SETS))
FIGURES = {
    "epsilon": _figure(
        title="How well can clusters be found privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise, and centers "
        "come nearer to the records.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
    ),
    HEAT_MAP: _figure(
        title="How many clusters, in how many dimensions, can be found privately?",
        across="number of clusters and of columns",
        reading="Each square is one simulated table. From left to right there are more clusters "
        "to find, from bottom to top more columns.",
        epsilons=("1",),
        key="clusters",
        values=(2, 4, 6, 8, 10),
        datasets=(CLOUDS,),
    ),
    "blocks": _figure(
        title="Into how many blocks should GkM deal the records?",
        across="number of blocks",
        reading="From left to right there are more blocks. The mean over more blocks has less "
        "noise, but each holds fewer records, so its own centers are worse.",
        epsilons=("0.1", "1"),
        key="blocks",
        values=(3, 10, 30, 100, 300, 1_000, 3_000),
        methods=("gkm", SAG, NOISE),
    ),
    "published": _figure(
        title="What did the papers' own settings cost?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker.",
        epsilons=("0.05", "0.1", "0.5", "1", "2"),
        methods=(
            "dplloyd",
            "dplloyd-uniform",
            "dplloyd-halving",
            "gkm",
            "gkm-loose",
            "pgkm",
            "pgkm-paper",
        ),
    ),
    "rounds": _figure(
        title="How many rounds of k-means does a budget bear?",
        across="rounds of DPLloyd",
        reading="From left to right there are more rounds, so each gets less of the budget.",
        epsilons=("1",),
        key="rounds",
        values=(2, 5, 10, 20, 80, 200),
        methods=("dplloyd", "dplloyd-uniform", "dplloyd-halving", "gkm-loose"),
    ),
    "clusters": _figure(
        title="How many clusters can a genetic search find privately?",
        across="number of clusters (k)",
        reading="From left to right more centers are looked for in the same table.",
        epsilons=("0.1", "1"),
        key="clusters",
        values=(3, 5, 10, 15),
        methods=("pgkm", "pgkm-paper", "gkm", "gkm-loose", "dplloyd"),
        moves_references=True,
    ),
    THETA: _figure(
        title="How fine should a grid be?",
        across="θ",
        reading="Each map is one θ: epsilon times the number of records is divided by it to size "
        "the grid. Each square is one simulated table.",
        epsilons=("1",),
        key="theta",
        values=(2, 5, 10, 20, 50),
        datasets=(TUNING,),
        methods=("eugkm",),
        fixed={"sides": _SIDES},
    ),
    "convergence": _figure(
        title="How fast do a genetic search and k-means find centers without privacy?",
        across="number of steps",
        reading="From left to right the searches have taken more steps; no budget is spent.",
        key="iterations",
        values=(1, 2, 3, 5, 10, 20, 50, 100, 200),
        methods=(LLOYD, GENE),
    ),
    CHOOSE_K: _figure(
        title="How often does a noisy grid show the right number of clusters?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker. Each line is a number of clusters, and "
        "shows in which part of the synopses it had the best validity.",
        epsilons=("0.05", "0.1", "0.3", "0.5", "1", "2"),
        measures=(LIKELIHOOD, VALIDITY),
        methods=("eugkm",),
    ),
    "time": _figure(
        title="How long does a release take?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker; grids get finer.",
        epsilons=("0.1",),
        measures=(SECONDS,),
        methods=("dplloyd", "eugkm"),
    ),
    MODELS: _figure(
        title="Do the models of errors predict how far noise moves a center?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker. Colored lines are measured: the squared "
        "distance of centers after one noisy round over the records, or over the cells of a "
        "noisy grid, from the true means. Gray lines are what the models say.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
        measures=(MSE,),
        datasets=(CUBES, TUNING, "s1"),
        methods=(ROUND, GRID, ROUND_MODEL, GRID_MODEL, BIAS_MODEL, BLOCK_MODEL),
    ),
    SHARES: _figure(
        title="What should a grid get, and what the round after it?",
        across="percent of the budget for the grid",
        reading="From left to right the grid gets more of the budget, the round less.",
        epsilons=("1",),
        key="percent",
        values=(10, 30, 50, 70, 90),
        measures=(MSE,),
        datasets=(TUNING,),
        methods=(SHARE,),
        is_log=False,
        fixed={"sides": _SIDES},
    ),
}
OPEN_FIGURES = ("epsilon", HEAT_MAP, "published", "rounds", "clusters", "time")
"""Figures for which any method can be named."""
_MOVED_BY = {"blocks": "gkm", "rounds": "dplloyd"}
"""Which method an axis moves; the lines of others are flat."""
_KNOBS = {
    "clusters": "the number of clusters to find, instead of the dataset's own",
    "blocks": "the number of blocks of gkm",
    "rounds": "the number of rounds of dplloyd",
    "theta": "what sizes the grids of eugkm, ugkm and hybrid (θ, 10 unless set)",
    "starts": f"searches of a grid for centers ({STARTS} unless set)",
    "most": "the largest number of clusters that choose-k looks at",
    "sides": f"the k and d of the simulated tables of theta and shares ({_SIDES} unless set)",
}


def kmeans_methods() -> tuple[str, ...]:
    """List the methods that have a setting for the number of clusters."""
    return tuple(
        name
        for name, entry in CATALOG.items()
        if entry.task == "clustering"
        and "n_clusters" in (setting.name for setting in method_settings(name))
    )


def known_lines() -> tuple[str, ...]:
    """List the methods, and the methods as published."""
    methods = kmeans_methods()
    return (*methods, *(line for line, (name, _) in PUBLISHED.items() if name in methods))


@dataclass(frozen=True)
class OwnPoints:
    """The numbers of a user's own table."""

    title: str
    source: str
    records: int
    clusters: int
    schema: Schema
    table: pa.Table

    def missing_file(self, folder: Path | None) -> str | None:
        """Return that nothing is missing."""
        return None

    def rows(self, folder: Path | None) -> pa.Table:
        """Return the rows."""
        return self.table


class KMeansStudy(Study[Figure]):
    """Private centers beside the best ones."""

    name = NAME
    figures = FIGURES
    datasets = POINT_SETS
    references = REFERENCES
    knobs: ClassVar[Mapping[str, str]] = _KNOBS
    unit = "record"

    def plan(self, repeats: int, *, methods: Sequence[str] | None = None, **options: Any) -> Plan:
        """List the trials; methods that take minutes are left out unless they are named."""
        planned = super().plan(repeats, methods=methods, **options)
        if methods is not None:
            return planned
        slow = {(t.dataset, t.method) for t in planned.trials} & SLOW
        notes = [
            f"{method} was left out on {dataset}, where it takes minutes; name it to run it"
            for dataset, method in sorted(slow)
        ]
        kept = tuple(t for t in planned.trials if (t.dataset, t.method) not in slow)
        return replace(planned, trials=kept, notes=(*planned.notes, *notes))

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods of the figure, or all lines there are."""
        if figure in map(self.figures.get, OPEN_FIGURES):
            return (*known_lines(), *figure.methods)
        return figure.methods

    def usual_methods(self, figure: Figure) -> Collection[str]:
        """List the methods of the figure, or all methods with their default settings."""
        return figure.methods or kmeans_methods()

    def missing_file(self, dataset: str, folder: Path | None) -> str | None:
        """Return the file that a dataset lacks; simulated points lack none."""
        is_simulated = dataset in (CLOUDS, TUNING, CUBES)
        return None if is_simulated else super().missing_file(dataset, folder)

    def own_dataset(self, table: OwnTable) -> Dataset:
        """Cluster a user's own table by its columns of numbers."""
        box = Box.of(table.schema)
        names = ", ".join(box.names)
        return OwnPoints(
            title=f"by {names}",
            source="A table of the user's own",
            records=table.rows.num_rows,
            clusters=5,
            schema=replace(table.schema, columns=box.columns),
            table=table.rows.select(list(box.names)),
        )

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List dataset by dataset the reference, then all methods once before any of them twice."""
        figure = asked.figure
        for setting in self._settings(asked):
            for moved in self._reference_axis(asked):
                yield Trial(NAME, NOISE_FREE, "none", 0, setting | moved)
            for seed in range(asked.repeats):
                for epsilon in figure.epsilons:
                    for method in figure.methods:
                        for moved in self._axis(asked, method):
                            spent = "none" if method in _NO_BUDGET else epsilon
                            yield Trial(NAME, method, spent, seed, setting | moved)

    def _settings(self, asked: Request[Figure]) -> Iterator[Setting]:
        """List the datasets; of clouds one for each k and d."""
        for dataset in asked.figure.datasets:
            if asked.name in CLOUD_FIGURES:
                if dataset not in (CLOUDS, TUNING):
                    raise InvalidParameter(f"{asked.name} is drawn for simulated points only")
                for dimensions in _sides(asked):
                    for clusters in _sides(asked):
                        given = {"clusters": clusters, "dimensions": dimensions}
                        yield asked.setting(dataset, **given)
            elif dataset in (CUBES, TUNING):
                yield asked.setting(dataset, clusters=4, dimensions=2)
            elif asked.name == CHOOSE_K and "most" not in asked.figure.fixed:
                usual = self.datasets[dataset].clusters + _MORE
                yield asked.setting(dataset, most=_MOST_CLUSTERS.get(dataset, usual))
            else:
                yield asked.setting(dataset)

    def _axis(self, asked: Request[Figure], method: str) -> list[Setting]:
        """List what a method's trials have in their settings along the axis."""
        if asked.name == HEAT_MAP:
            return [{}]
        moved = _MOVED_BY.get(asked.figure.key or "")
        is_moved = moved is None or PUBLISHED.get(method, (method,))[0] in (moved, SAG, NOISE)
        return asked.axis() if is_moved else [{}]

    def _reference_axis(self, asked: Request[Figure]) -> list[Setting]:
        """List the settings of the reference along the axis; some figures have none."""
        if asked.name in (MODELS, SHARES, "time"):
            return []
        return asked.axis() if asked.figure.moves_references else [{}]

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the points of a data folder."""
        return KMeansRunner(folder, self.datasets).run_trial

    def point(self, trial: Trial, figure: Figure) -> float | None:
        """Return where on the axis a trial is; what models say moves with epsilon."""
        if figure.key is None and trial.epsilon != "none":
            return float(trial.epsilon)
        return super().point(trial, figure)

    def key(self, trial: Trial, figure: Figure, measure: str) -> Key:
        """Return which line a trial belongs to; GkM's noise on the best centers has a budget."""
        found = super().key(trial, figure, measure)
        return found._replace(epsilon=trial.epsilon) if trial.method == NOISE else found

    def summarize(self, results: Sequence[Result]) -> Cells:
        """Average at every point of every line; of chosen numbers of clusters, count them."""
        if self.figure_of(results) is self.figures.get(CHOOSE_K):
            return likelihoods(results)
        return super().summarize(results)

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the distances out: a row for each line, or for each row of a heat map."""
        return _heat_table(results) if is_heat_map(results) else super().table(results)

    def names(self, key: Key) -> list[str]:
        """Name a line; one of a chosen number of clusters by its measure, too."""
        shown = f"{key.short_name}: {key.measure}" if key.measure in _CHOICE else key.short_name
        return [key.dataset, shown]

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return _TITLES.get(measure, measure)

    def is_higher_better(self, measure: str) -> bool:
        """Whether larger values of a measure are better."""
        return measure == LIKELIHOOD

    def plot(self, results: Sequence[Result], dataset: str | None = None) -> str | None:
        """Draw the heat maps, or two panels for one dataset or for each of them."""
        if not is_heat_map(results):
            return super().plot(results, dataset)
        panels = [HeatPanel(label, values) for label, values in excesses(results).items()]
        layout = HeatLayout("clusters (k)", "columns (d)", "NICV above that without privacy")
        return heat_maps(panels, layout)

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw distances and errors on a logarithmic scale, as the thesis does."""
        is_log_up = self.figure_of(results).measures in ((NICV,), (MSE,))
        return super().layout(results, dataset)._replace(is_log_up=is_log_up)

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw all methods, then those near the reference alone: far ones would flatten them."""
        if self.figure_of(results).measures != (NICV,):
            return super().panels(results, dataset)
        panels = []
        drawn = {key: line for key, line in self.summarize(results).items() if line}
        for group in self.groups(drawn):
            name = next(iter(group)).dataset
            if dataset not in (None, name):
                continue
            free = next(line for key, line in group.items() if key.method == NOISE_FREE)
            limit = _NEAR * list(free.values())[-1].mean
            near = {k: line for k, line in group.items() if list(line.values())[-1].mean <= limit}
            panels.append(Panel(f"{name}: all methods", self._lines(group)))
            if _CLOSER <= len(near) < len(group):
                panels.append(Panel(f"{name}: a closer look", self._lines(near)))
        return panels

    def _lines(self, cells: Cells) -> list[Line]:
        return [self.line(key, line) for key, line in cells.items()]

    def explanation(self, figure: Figure) -> list[str]:
        """Explain k-means and the measure."""
        return [
            "Each record is a point: its columns are numbers. K-means looks for k centers such "
            "that every point is near one of them; the points that share a nearest center are a "
            "cluster. Here the centers are published without giving away whether any one record "
            "is in the table. How much farther from the points are they for that?",
            "NICV (normalized intra-cluster variance) is the mean squared distance of the points "
            "from the nearest center, with every column scaled to run from -1 to 1. Lower is "
            "better. It is measured on the true points, which is why this page is not private.",
        ]

    def sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        """Show lines over an axis, or heat maps."""
        if not is_heat_map(results):
            return super().sections(results, dataset)
        drawn, listing = self.plot(results), self.table(results)
        means = {label: fmean(line.values()) for label, line in excesses(results).items()}
        label, best = min(means.items(), key=lambda item: item[1])
        said = [
            f"The points of each square are simulated: {_CLOUD_WORDS[dataset]} The number is how "
            "much larger the NICV is than that of k-means without privacy.",
            f"On average over all squares {label} is nearest: {best:.3f} above.",
        ]
        caption = "NICV above that without privacy: light is good, dark is bad."
        return [
            Section(
                "More clusters, more columns",
                said if drawn else [*said, self.no_plot],
                figures=[section.Figure(caption, drawn)] if drawn else [],
                listings=[replace(listing, caption="The same numbers.")],
            )
        ]

    def heading(self, dataset: str) -> str:
        """Write the heading of a dataset's section."""
        return f"{dataset}: how near the centers come"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a set of points."""
        if dataset in _CLOUD_WORDS:
            return f"Simulated points: {_CLOUD_WORDS[dataset]}"
        points: Any = self.datasets[dataset]
        clusters = results[0].trial.setting.get("clusters", points.clusters)
        sought = (
            f"{clusters} centers are looked for."
            if self.figure_of(results).key != "clusters"
            else "more and more centers are looked for."
        )
        return f"{points.source}: {points.records:,} points, {points.title}; {sought}"

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain epsilon, unless nothing is spent."""
        figure = self.figure_of(results)
        return figure.reading if figure.methods == _NO_BUDGET else super().epsilon_words(results)

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the best methods; of shares, what regression says; of clusters, what is right."""
        figure = self.figure_of(results)
        if figure is self.figures.get(SHARES):
            return [regress(results).sentence()]
        if figure is self.figures.get(CHOOSE_K):
            return [_without_privacy(results), *super().findings(results)]
        return super().findings(results)

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Name the nearest centers."""
        if best.measure != NICV:
            return super().finding(best, point, cells)
        free = next(
            line[point].mean
            for key, line in cells.items()
            if key.method == NOISE_FREE and key.dataset == best.dataset
        )
        return (
            f"the nearest centers are those of {best.short_name}: NICV "
            f"{cells[best][point].mean:.4f}; without privacy, {free:.4f}"
        )

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a cell of the table; squared errors are small, and need more decimals."""
        cell = cells[key].get(point)
        if cell is not None and key.measure == MSE:
            return cell.text(7)
        return super().cell_text(cells, key, point)

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe what each method publishes."""
        said = []
        for line in used:
            name, settings = PUBLISHED.get(line, (line, {}))
            if name in CATALOG:
                given = ", ".join(f"{key} = {value}" for key, value in settings.items())
                told = f" ({name} with {given}, as published)" if given else ""
                said.append(f"{line}{told}: publishes {CATALOG[name].publishes}.")
            elif line in self.references:
                said.append(f"{line}: {self.references[line]}; not private.")
        return said

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe repeats and the reference."""
        given = self.figure_of(results).fixed
        shown = f" ({', '.join(f'{name} = {value}' for name, value in given.items())})"
        return [
            f"Every method is run {how_often(results)} with fresh noise at every point, "
            f"with its default settings{shown if given else ''} but for what varies. The "
            f"reference is k-means without privacy from {STARTS} starts among the points, the "
            "best of which counts.",
        ]


_TITLES = {
    NICV: "NICV (lower is better)",
    MSE: "squared error of a center",
    SECONDS: "seconds for a release",
    LIKELIHOOD: "part of the synopses that chose it",
    VALIDITY: "validity where it was chosen",
}
_CHOICE = (LIKELIHOOD, VALIDITY)
_CLOSER = 3  # lines that a closer look needs
_CLOUD_WORDS = {
    CLOUDS: "k clusters of different sizes, shapes and directions in d columns, 10,000 points in "
    "all, and up to 100 points anywhere.",
    TUNING: "k equally large, well separated clusters in d columns, 10,000 points in all.",
    CUBES: "10,000 points that fill the box evenly; its four quarters are the clusters.",
}


def likelihoods(results: Sequence[Result]) -> Cells:
    """Count in which part of the synopses each number of clusters was chosen, and its validity."""
    found: dict[str, dict[float, list[dict[str, float]]]] = {}
    for trial, measured in results:
        if trial.method != NOISE_FREE:
            own = found.setdefault(trial.dataset, {})
            own.setdefault(float(trial.epsilon), []).append(measured)
    cells: Cells = {}
    for dataset, by_epsilon in found.items():
        chosen = sorted({one[CHOSEN] for many in by_epsilon.values() for one in many})
        for measure in _CHOICE:
            for clusters in chosen:
                line = _choices(by_epsilon, clusters, measure)
                cells[Key(dataset, measure, f"k = {clusters:.0f}")] = line
    return cells


def _choices(
    by_epsilon: Mapping[float, Sequence[Mapping[str, float]]], clusters: float, measure: str
) -> dict[float, Cell]:
    line = {}
    for epsilon, many in sorted(by_epsilon.items()):
        own = [one[VALIDITY] for one in many if one[CHOSEN] == clusters]
        if measure == LIKELIHOOD:
            line[epsilon] = Cell(len(own) / len(many), 0.0, len(many))
        elif own:
            line[epsilon] = Cell.of(own)
    return line


def _without_privacy(results: Sequence[Result]) -> str:
    free = next(measured for trial, measured in results if trial.method == NOISE_FREE)
    chosen, validity = free[CHOSEN], free[VALIDITY]
    return f"Without privacy k = {chosen:.0f} fits best, with a validity of {validity:.4f}."


class Weights(NamedTuple):
    """What regression finds of errors after a grid and a round (Eq. 4.20), and mean coordinates."""

    grid_noise: float
    grid_bias: float
    round_noise: float
    mean_coordinate: float
    clouds: int

    def sentence(self) -> str:
        """Write the weights."""
        return (
            f"Over {self.clouds} simulated tables, at the best share of each, the squared error is "
            f"best explained by {self.grid_noise:.3g} of the noise of the grid, "
            f"{self.grid_bias:.2g} of the bound on its bias and {self.round_noise:.3g} of the "
            f"noise of the round (ω); centers lie {self.mean_coordinate:.3f} of the width of a "
            "column from its middle, on average (ρ)."
        )


def regress(results: Sequence[Result]) -> Weights:
    """Explain the least error of each cloud by what models say, by linear regression."""
    shares: dict[Cloud, dict[int, list[dict[str, float]]]] = {}
    for trial, measured in results:
        own = shares.setdefault(_cloud(trial), {})
        own.setdefault(int(trial.setting["percent"]), []).append(measured)
    least = [
        min((_means(many) for many in own.values()), key=lambda one: one[MSE])
        for own in shares.values()
    ]
    models = np.array([[one["variance"], one["bias"], one["round"]] for one in least])
    found, *_ = np.linalg.lstsq(models, np.array([one[MSE] for one in least]), rcond=None)
    rho = fmean(one["rho"] for one in least)
    grid, bias, after = map(float, found)
    return Weights(grid, bias, after, rho, len(least))


def _means(many: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in many) for name in many[0]}


def is_heat_map(results: Sequence[Result]) -> bool:
    """Return whether the results are shown as maps over k and d."""
    return results[0].trial.setting.get("part") in (HEAT_MAP, THETA)


def excesses(results: Sequence[Result]) -> dict[str, dict[Cloud, float]]:
    """Compute how much farther clouds lie from private centers than from the best ones.

    For every method and budget (and θ), the mean over the repeats at each k and d.
    """
    best = {_cloud(r.trial): r.measured[NICV] for r in results if r.trial.method == NOISE_FREE}
    found: dict[str, dict[Cloud, list[float]]] = {}
    for trial, measured in results:
        if trial.method != NOISE_FREE:
            cloud = _cloud(trial)
            line = found.setdefault(_map_label(trial), {})
            line.setdefault(cloud, []).append(measured[NICV] - best[cloud])
    return {
        key: {cloud: fmean(values) for cloud, values in line.items()} for key, line in found.items()
    }


def _map_label(trial: Trial) -> str:
    theta = f", θ = {trial.setting['theta']}" if "theta" in trial.setting else ""
    return f"{trial.method}{theta}, ε = {trial.epsilon}"


def _heat_table(results: Sequence[Result]) -> Listing:
    found = excesses(results)
    across = sorted({cloud[0] for line in found.values() for cloud in line})
    rows = []
    for label, line in found.items():
        for dimensions in sorted({cloud[1] for cloud in line}):
            numbers = [f"{line[clusters, dimensions]:.4f}" for clusters in across]
            rows.append([label, f"d = {dimensions}", *numbers])
    return Listing(["method", "columns", *(f"k = {clusters}" for clusters in across)], rows)


def _sides(asked: Request[Figure]) -> list[int]:
    """List the k, and the d, of simulated tables."""
    if asked.name == HEAT_MAP:
        return [int(value) for value in asked.figure.values]
    text = str(asked.figure.fixed["sides"])
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameter(f"sides are integers such as {_SIDES}, not {text!r}") from None


def _cloud(trial: Trial) -> Cloud:
    return int(trial.setting["clusters"]), int(trial.setting["dimensions"])


STUDY = KMeansStudy()
