"""The page of the comparison of synthetic tables: what was done, found and how to read it."""

from collections.abc import Sequence
from math import exp

from dpublish.core.registry import CATALOG
from dpublish.datasets.number_tables import NUMBER_TABLES
from dpublish.experiments.copula_parts import (
    BETWEEN_RECORDS,
    METHODS,
    QUESTIONS,
    REFERENCES,
    SECONDS,
    Part,
)
from dpublish.experiments.copula_summary import (
    CANNOT_RUN,
    Cells,
    Key,
    details,
    part_of,
    places_of,
    short_name,
    summarize,
    table,
)
from dpublish.experiments.experiment import Result
from dpublish.experiments.page import Listing, Page, Section
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_NO_PLOT = 'There is no plot: it takes Matplotlib (pip install "dpublish[plots]").'
_RANGES = (
    "The two ends of each range are drawn evenly from all values of the column.",
    "The two ends of each range are the values of two records drawn at random, so that "
    "questions go where the records are.",
)
_CAP = 4.0
"""Methods that are nowhere below so many times the best are told in the table alone."""


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw one panel for each dataset, or for one of them."""
    cells, part = summarize(results), part_of(results)
    panels = [
        Panel(data, _lines({key: line for key, line in cells.items() if key.dataset == data}))
        for data in dict.fromkeys(key.dataset for key in cells)
        if dataset in (None, data)
    ]
    layout = Layout(
        across=part.across,
        up="seconds" if part.measure == SECONDS else "mean relative error",
        ticks=places_of(results),
        is_log=part.key != "columns",
        has_one_scale=False,
        width=4.4,
        height=3.4,
    )
    return small_multiples(panels, layout)


def _lines(cells: Cells) -> list[Line]:
    """Draw those that come near the best somewhere: far ones would flatten them."""
    best = min((cell.mean for line in cells.values() for cell in line.values()), default=0.0)
    found = []
    for key, line in cells.items():
        nearest = min((cell.mean for cell in line.values()), default=None)
        if nearest is None or nearest > _CAP * max(best, 0.1):
            continue
        means, spreads = zip(*line.values(), strict=True)
        label = REFERENCES.get(key.method) or short_name(key)
        found.append(Line(label, list(line), means, spreads, key.method not in REFERENCES))
    return found


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    part = part_of(results)
    datasets = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
    return Page(
        title=part.title,
        lead="An experiment on public data with seeded noise.",
        sections=[
            _explanation(part, results),
            *(_dataset_section(results, dataset) for dataset in datasets),
            _methods_section(results),
            _settings_section(results, notes),
        ],
    )


def _explanation(part: Part, results: Sequence[Result]) -> Section:
    amounts = [trial.epsilon for trial, _ in results if trial.method not in REFERENCES]
    example = min(amounts, key=float)
    return Section(
        "What this page shows",
        [
            "A table with many columns is published without giving away whether any one record "
            "is in it. Others then ask how many records lie in certain ranges, for example of "
            "age and income together. How far are the answers from the truth?",
            f"Each method is asked {QUESTIONS:,} such questions, drawn at random, about all "
            f"columns at once. {_RANGES[part.measure == BETWEEN_RECORDS]} The relative error is "
            "that part of the true count by which an answer is off; where the true count is "
            "below 0.05 % of the rows, that number is taken in its place. Lower is better; who "
            "always answers 0 shows what is no better than publishing nothing.",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, whether any one record is in the table or not changes the "
            "probability of whatever is published by a factor of at most "
            f"{exp(float(example)):.3g}. {part.reading}",
        ],
    )


def _dataset_section(results: Sequence[Result], dataset: str) -> Section:
    known = NUMBER_TABLES[dataset]
    own = [result for result in results if result.trial.setting["dataset"] == dataset]
    tabled, drawn = table(own), figure(results, dataset)
    said = [f"{known.title[0].upper()}{known.title[1:]}.", *_finding(own)]
    what = "Seconds" if part_of(results).measure == SECONDS else "Mean relative error"
    return Section(
        dataset,
        said if drawn else [*said, _NO_PLOT],
        figure=drawn,
        figure_caption="Lower is better. Lines are means, bands one standard deviation; methods "
        "that are far behind everywhere are in the table alone.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                f"{what}: mean ± standard deviation over the repeats.",
            )
        ],
    )


def _finding(results: Sequence[Result]) -> list[str]:
    """Say in words which method was best at both ends of the axis."""
    cells, places, part = summarize(results), places_of(results), part_of(results)
    said = []
    for place in dict.fromkeys((places[0], places[-1])):
        here = {
            key: line[place].mean
            for key, line in cells.items()
            if place in line and key.method not in REFERENCES
        }
        if here:
            best: Key = min(here, key=lambda key: here[key])
            what = "fastest" if part.measure == SECONDS else "nearest"
            said.append(
                f"At {part.across.partition(' (')[0]} = {place:,g} {short_name(best)} is "
                f"{what}: {here[best]:.3f}."
            )
    return said


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results if trial.method in METHODS)
    points = []
    for name in used:
        method = METHODS[name]
        given = ", ".join(f"{key} = {value}" for key, value in method.settings.items())
        how = f"{method.method} with {given}; it" if given else name
        points.append(f"{name}: {how} publishes {CATALOG[method.method].publishes}.")
    return Section("The methods", points=points)


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    repeats = len({trial.seed for trial, _ in results})
    said = [
        f"Every method is run {repeats} time{'s' if repeats > 1 else ''} with fresh noise and "
        "fresh questions at every place, with its settings as they come. Answers are the "
        "release's own estimates where it offers them, and counts of its synthetic rows "
        f"otherwise. A method that refuses a table from what is publicly known of it is marked "
        f'"{CANNOT_RUN}".',
    ]
    headers = [
        "dataset",
        "method",
        "ε",
        "relative error",
        "from synthetic rows",
        "ranges between records",
        "seconds",
    ]
    caption = "Means over everything on the axis; seconds are of the processor, for one release."
    return Section(
        "How it was run",
        [*said, *notes],
        listings=[Listing(headers, list(details(results)), caption, 3)],
    )
