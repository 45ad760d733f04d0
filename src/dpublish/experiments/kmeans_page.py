"""The page of the comparison of private k-means: what was done, found and how to read it."""

from collections.abc import Sequence
from math import exp
from statistics import fmean

from dpublish.core.registry import CATALOG
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.experiments.experiment import Result
from dpublish.experiments.kmeans_parts import NOISE_FREE, Part
from dpublish.experiments.kmeans_summary import (
    Cell,
    Cells,
    excesses,
    is_heat_map,
    part_of,
    places_of,
    seconds,
    short_name,
    summarize,
    table,
)
from dpublish.experiments.page import Listing, Page, Section
from dpublish.plots.comparisons import (
    HeatLayout,
    HeatPanel,
    Layout,
    Line,
    Panel,
    heat_maps,
    small_multiples,
)

_NOISE_FREE_LINE = "No privacy: the best of ten runs of k-means"
_NEAR = 3.0
"""Methods that end up within so many times the reference are shown again, closer."""
_NO_PLOT = 'There is no plot: it takes Matplotlib (pip install "dpublish[plots]").'


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw the heat maps, or two panels for one dataset or for each of them."""
    if is_heat_map(results):
        panels = [
            HeatPanel(f"{method}, ε = {epsilon}", values)
            for (method, epsilon), values in excesses(results).items()
        ]
        layout = HeatLayout("clusters (k)", "columns (d)", "NICV above that without privacy")
        return heat_maps(panels, layout)
    cells = summarize(results)
    drawn = []
    for data in dict.fromkeys(key.dataset for key in cells):
        if dataset in (None, data):
            drawn += _panels(
                data, {key: line for key, line in cells.items() if key.dataset == data}
            )
    layout_of_lines = Layout(
        across=part_of(results).across,
        up="NICV (lower is better)",
        ticks=places_of(results),
        is_log=True,
        has_one_scale=False,
        width=4.4,
        height=3.4,
    )
    return small_multiples(drawn, layout_of_lines)


def _panels(dataset: str, cells: Cells) -> list[Panel]:
    """Draw all methods, then those near the reference alone: far ones would flatten them."""
    free = next(line for key, line in cells.items() if key.method == NOISE_FREE)
    near = {
        key: line
        for key, line in cells.items()
        if list(line.values())[-1].mean <= _NEAR * list(free.values())[-1].mean
    }
    panels = [Panel(f"{dataset}: all methods", _lines(cells))]
    if 1 < len(near) < len(cells):
        panels.append(Panel(f"{dataset}: a closer look", _lines(near)))
    return panels


def _lines(cells: Cells) -> list[Line]:
    return [
        _line(
            _NOISE_FREE_LINE if key.method == NOISE_FREE else short_name(key),
            line,
            is_method=key.method != NOISE_FREE,
        )
        for key, line in cells.items()
    ]


def _line(label: str, cells: dict[float, Cell], *, is_method: bool) -> Line:
    means, spreads = zip(*cells.values(), strict=True)
    return Line(label, list(cells), means, spreads, is_method)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the thesis."""
    part = part_of(results)
    if is_heat_map(results):
        found = [_heat_section(results)]
    else:
        datasets = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
        found = [_dataset_section(results, dataset) for dataset in datasets]
    return Page(
        title=part.title,
        lead="An experiment on public data with seeded noise.",
        sections=[
            _explanation(part, results),
            *found,
            _methods_section(results),
            _settings_section(results, notes),
        ],
    )


def _explanation(part: Part, results: Sequence[Result]) -> Section:
    amounts = [trial.epsilon for trial, _ in results if trial.method != NOISE_FREE]
    example = min(amounts, key=float)
    return Section(
        "What this page shows",
        [
            "Each record is a point: its columns are numbers. K-means looks for k centers such "
            "that every point is near one of them; the points that share a nearest center are a "
            "cluster. Here the centers are published without giving away whether any one record "
            "is in the table. How much farther from the points are they for that?",
            "NICV (normalized intra-cluster variance) is the mean squared distance of the points "
            "from the nearest center, with every column scaled to run from -1 to 1. Lower is "
            "better. It is measured on the true points, which is why this page is not private.",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, whether any one record is in the table or not changes the "
            "probability of whatever is published by a factor of at most "
            f"{exp(float(example)):.3g}. {part.reading}",
        ],
    )


def _heat_section(results: Sequence[Result]) -> Section:
    drawn = figure(results)
    tabled = table(results)
    means = {key: fmean(line.values()) for key, line in excesses(results).items()}
    (method, epsilon), best = min(means.items(), key=lambda item: item[1])
    said = [
        "The points of each square are simulated: k heaps of different sizes, shapes and "
        "directions in d columns, 10,000 points in all, and up to 100 points anywhere. The "
        "number is how much larger the NICV is than that of k-means without privacy.",
        f"On average over all squares {method} is nearest, at ε = {epsilon}: {best:.3f} above.",
    ]
    return Section(
        "More clusters, more columns",
        said if drawn else [*said, _NO_PLOT],
        figure=drawn,
        figure_caption="NICV above that without privacy: light is good, dark is bad.",
        listings=[Listing(tabled.headers, tabled.rows, "The same numbers.", text_columns=2)],
    )


def _dataset_section(results: Sequence[Result], dataset: str) -> Section:
    points = POINT_SETS[dataset]
    own = [result for result in results if result.trial.setting["dataset"] == dataset]
    tabled = table(own)
    drawn = figure(results, dataset)
    said = [
        f"{points.source}: {points.records:,} points, {points.title}; {points.clusters} centers "
        "are looked for.",
        *_finding(own),
    ]
    return Section(
        f"{dataset}: how near the centers come",
        said if drawn else [*said, _NO_PLOT],
        figure=drawn,
        figure_caption="Lower is better. Lines are means, bands one standard deviation.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                "NICV: mean ± standard deviation over the repeats.",
            )
        ],
    )


def _finding(results: Sequence[Result]) -> list[str]:
    """Say in words which method was best at both ends of the axis."""
    cells, part = summarize(results), part_of(results)
    places = places_of(results)
    said = []
    for place in dict.fromkeys((places[0], places[-1])):
        here = {key: line[place].mean for key, line in cells.items() if place in line}
        private = {key: mean for key, mean in here.items() if key.method != NOISE_FREE}
        best = min(private, key=lambda key: private[key])
        free = next(mean for key, mean in here.items() if key.method == NOISE_FREE)
        said.append(
            f"At {part.across.partition(' (')[0]} = {place:,g} the nearest centers are those of "
            f"{short_name(best)}: NICV {private[best]:.4f}; without privacy, {free:.4f}."
        )
    return said


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results if trial.method in CATALOG)
    points = [f"{name}: publishes {CATALOG[name].publishes}." for name in used]
    return Section("The methods", points=points)


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    repeats = len({trial.seed for trial, _ in results})
    said = [
        f"Every method is run {repeats} time{'s' if repeats > 1 else ''} with fresh noise at "
        "every place, with its settings as they come. The reference is k-means without privacy "
        "from ten starts among the points, the best of which counts.",
    ]
    caption = "Mean time to make one release."
    listing = Listing(["dataset", "method", "seconds"], list(seconds(results)), caption, 2)
    return Section("How it was run", [*said, *notes], listings=[listing])
