"""The page of the comparison of private WaveClusters: what was done, found and how to read it."""

from collections.abc import Sequence
from itertools import groupby
from math import exp
from statistics import fmean

from dpublish.datasets.shapes import SHAPES
from dpublish.experiments.experiment import Result
from dpublish.experiments.page import Listing, Page, Section
from dpublish.experiments.wavecluster_laboratory import FOLDS, SECONDS
from dpublish.experiments.wavecluster_parts import MEASURES, METHODS, PLAIN, TITLES, Part
from dpublish.experiments.wavecluster_pictures import (
    Picture,
    draw_pictures,
    in_colors_of,
)
from dpublish.experiments.wavecluster_summary import (
    Cell,
    Key,
    part_of,
    place_of,
    places_of,
    short_name,
    stored_labels,
    summarize,
    table,
)
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_PLAIN_LINE = "No privacy: the plain algorithm"


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw a panel for each measure, of one dataset or of all."""
    part, cells = part_of(results), summarize(results)
    chosen = [key for key in cells if dataset in (None, key.dataset)]
    panels = []
    for (data, measure), group in groupby(chosen, lambda key: (key.dataset, key.measure)):
        lines = [_line(key, cells[key]) for key in group]
        title = MEASURES[measure].title
        panels.append(Panel(title if dataset else f"{data}: {title}", lines))
    layout = Layout(
        across=part.across,
        up="mean",
        ticks=places_of(part, results),
        is_log=part.is_log,
        has_one_scale=False,
    )
    return small_multiples(panels, layout)


def _line(key: Key, cells: dict[float, Cell]) -> Line:
    means, spreads = zip(*cells.values(), strict=True)
    label = _PLAIN_LINE if key.method == PLAIN else short_name(key)
    return Line(label, list(cells), means, spreads, key.method != PLAIN)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    part = part_of(results)
    sections = [_explanation(part, results)]
    for dataset in dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results):
        own = [result for result in results if result.trial.setting["dataset"] == dataset]
        sections += [_shapes_section(own, dataset), _figures_section(own, dataset)]
    return Page(
        title=part.title,
        lead="An experiment on public data with seeded noise.",
        sections=[*sections, _methods_section(results), _settings_section(results, notes)],
    )


def _explanation(part: Part, results: Sequence[Result]) -> Section:
    amounts = [trial.epsilon for trial, _ in results if trial.method != PLAIN]
    example = min(amounts, key=float)
    return Section(
        "What this page shows",
        [
            "Points lie in the plane, each of them a person: where do they crowd together? "
            "WaveCluster lays a grid over the plane, counts the points in each cell, smooths the "
            "counts, and keeps the cells that are well filled. Kept cells that touch, also at a "
            "corner, form a cluster, which so may have any shape.",
            "Here this is done without giving away whether any one person is among the points. "
            "How much do the clusters suffer?",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, whether any one person is there or not changes the probability of "
            f"whatever is published by a factor of at most {exp(float(example)):.3g}. "
            f"{part.reading}",
        ],
        points=[f"{measure.title}: {measure.meaning}." for measure in MEASURES.values()],
    )


def _shapes_section(results: Sequence[Result], dataset: str) -> Section:
    shapes = SHAPES[dataset]
    rows = _pictures(results)
    said = [f"{shapes.source}: {shapes.records:,} points, in which people see {shapes.title}."]
    return Section(
        f"{dataset}: the clusters of one run",
        said,
        figure=draw_pictures(rows) if rows else None,
        figure_caption="Cells of a cluster have one color. Each private cluster has the color "
        "of the true cluster that it shares most cells with, as far as there are enough.",
    )


def _pictures(results: Sequence[Result]) -> list[list[Picture]]:
    """Show the first run at the lowest, the middle and the highest place of the axis."""
    part = part_of(results)
    places = places_of(part, results)
    rows = []
    for place in dict.fromkeys((places[0], places[len(places) // 2], places[-1])):
        here = [r for r in results if place_of(r.trial, part) in (place, None)]
        found = {
            (r.trial.method, r.trial.epsilon): stored
            for r in here
            if r.trial.seed == 0 and (stored := stored_labels(r.figures)) is not None
        }
        true = found.pop((PLAIN, "none"), None)
        if true is None:
            continue
        first = f"true, {part.key} {place:g}" if part.key else "true"
        row = [Picture(first, true)]
        row += [
            Picture(f"{method}, ε = {epsilon}", in_colors_of(labels, true))
            for (method, epsilon), labels in found.items()
        ]
        rows.append(row)
    return rows


def _figures_section(results: Sequence[Result], dataset: str) -> Section:
    tabled = table(results)
    drawn = figure(results, dataset)
    said = _finding(results)
    if drawn is None:
        said.append('There is no plot: it takes Matplotlib (pip install "dpublish[plots]").')
    return Section(
        f"{dataset}: how far the clusters are from the true ones",
        said,
        figure=drawn,
        figure_caption="Lines are means, bands one standard deviation.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                "Mean ± standard deviation over the repeats.",
                text_columns=2,
            )
        ],
    )


def _finding(results: Sequence[Result]) -> list[str]:
    """Say in words which method was nearest to the truth at both ends of the axis."""
    part, cells = part_of(results), summarize(results)
    places = places_of(part, results)
    said = []
    for place in dict.fromkeys((places[0], places[-1])):
        here = {key: line[place].mean for key, line in cells.items() if place in line}
        costs = {key: value for key, value in here.items() if key.measure == "dsg"}
        best = min(costs, key=lambda key: costs[key])
        counts = {key.method: round(v) for key, v in here.items() if key.measure == "clusters"}
        said.append(
            f"At {part.across.partition(' (')[0]} = {place:g} the clusters of {short_name(best)} "
            f"are nearest to the true ones: they differ by {100 * costs[best]:.0f} cells for "
            f"every 100 true ones. True clusters: {counts[PLAIN]}; private ones: "
            + ", ".join(f"{count} ({name})" for name, count in counts.items() if name != PLAIN)
            + "."
        )
    return said


def _methods_section(results: Sequence[Result]) -> Section:
    used = {trial.method for trial, _ in results}
    return Section("The methods", points=[f"{TITLES[name]}." for name in TITLES if name in used])


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    repeats = len({trial.seed for trial, _ in results})
    said = [
        f"Each run leaves one point in {FOLDS} aside. True and private clusters are found in the "
        "others; those left aside are what OCM, 2CE and the F-measure are taken on. "
        f"Each is done {repeats} time{'s' if repeats > 1 else ''} with fresh noise.",
        "The wavelet is Haar's, once. Bounds, grid and the part of cells left out are public "
        "settings that were chosen so that the plain algorithm finds what people see.",
        *notes,
    ]
    used = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
    part = part_of(results)
    settings = [
        [
            name,
            "varies" if part.key == "cells" else str(SHAPES[name].cells),
            "varies" if part.key == "percentile" else SHAPES[name].percentile,
        ]
        for name in used
    ]
    cells = summarize(results, others=(SECONDS,))
    times = [
        [key.dataset, short_name(key), f"{fmean(cell.mean for cell in line.values()):.3f}"]
        for key, line in cells.items()
        if key.measure == SECONDS and key.method in METHODS
    ]
    return Section(
        "How it was run",
        said,
        listings=[
            Listing(["dataset", "cells along each side", "part left out (p)"], settings),
            Listing(["dataset", "method", "seconds"], times, "Mean time to make one release.", 2),
        ],
    )
