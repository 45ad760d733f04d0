"""The page of the comparison of streams: what was done, found and how to read it."""

from collections.abc import Sequence
from math import exp
from statistics import fmean

from dpublish.datasets.stream_sets import STREAM_SETS
from dpublish.experiments.experiment import Result
from dpublish.experiments.page import Listing, Page, Section
from dpublish.experiments.streams_parts import (
    ANSWER,
    LEVELS,
    METHODS,
    QUESTIONS,
    REFERENCES,
    Part,
    shown_as,
)
from dpublish.experiments.streams_summary import (
    Cells,
    best_at,
    costs,
    groups_of,
    over_time,
    part_of,
    places_of,
    summarize,
    table,
)
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_NO_PLOT = 'There is no plot: it takes Matplotlib (pip install "dpublish[plots]").'
_CAP = 5.0
"""Methods that are nowhere below so many times the best are told in the table alone."""


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw a panel for each stream and guarantee, or those of one stream."""
    part = part_of(results)
    panels = [
        Panel(f"{stream}: hidden in the {level}", _lines(group))
        for (stream, level), group in groups_of(summarize(results)).items()
        if dataset in (None, stream)
    ]
    layout = Layout(
        across=part.across,
        up="mean absolute error of range counts",
        ticks=places_of(results),
        is_log=part.is_log,
        has_one_scale=False,
        width=4.4,
        height=3.4,
    )
    return small_multiples(panels, layout)


def _lines(group: Cells) -> list[Line]:
    """Draw those that come near the best somewhere: far ones would flatten them."""
    lowest: dict[float, float] = {}
    for line in group.values():
        for place, cell in line.items():
            lowest[place] = min(cell.mean, lowest.get(place, cell.mean))
    found = []
    for key, line in group.items():
        if any(cell.mean <= _CAP * lowest[place] for place, cell in line.items()):
            means, spreads = zip(*line.values(), strict=True)
            found.append(_line(key.method, key.epsilon, list(line), means, spreads))
    return found


def _line(
    method: str,
    epsilon: str,
    places: Sequence[float],
    means: Sequence[float],
    spreads: Sequence[float],
) -> Line:
    name = shown_as(method)
    label = f"{name}, ε = {epsilon}" if epsilon else name
    return Line(label, places, means, spreads, name not in REFERENCES)


def time_figure(results: Sequence[Result], dataset: str) -> str | None:
    """Draw the error over time at the largest budget, a panel for each guarantee."""
    epsilon = max((trial.epsilon for trial, _ in results), key=float)
    lines = {m: means for m, means in over_time(results, dataset, epsilon).items() if means}
    panels = []
    for level in LEVELS:
        own = {m: means for m, means in lines.items() if METHODS[m].level == level}
        if own:
            lowest = min(fmean(means) for means in own.values())
            panels.append(
                Panel(
                    f"{dataset}, ε = {epsilon}: hidden in the {level}",
                    [
                        _line(method, "", _percent(len(means)), means, [0.0] * len(means))
                        for method, means in own.items()
                        if fmean(means) <= _CAP * lowest
                    ],
                )
            )
    layout = Layout(
        across="part of the stream that is over, in %",
        up="mean absolute error of range counts",
        ticks=(0, 25, 50, 75, 100),
        has_one_scale=False,
        width=4.4,
        height=3.4,
    )
    return small_multiples(panels, layout) if panels else None


def _percent(count: int) -> list[float]:
    return [100 * (number + 0.5) / count for number in range(count)]


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    part = part_of(results)
    datasets = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
    found: list[Section] = []
    for dataset in datasets:
        own = [result for result in results if result.trial.setting["dataset"] == dataset]
        found += _dataset_sections(own, dataset)
    return Page(
        title=part.title,
        lead="An experiment on public and simulated streams with seeded noise.",
        sections=[
            _explanation(part, results),
            *found,
            _methods_section(results),
            _settings_section(results, notes),
        ],
    )


def _explanation(part: Part, results: Sequence[Result]) -> Section:
    example = min((trial.epsilon for trial, _ in results), key=float)
    return Section(
        "What this page shows",
        [
            "People are counted in bins (squares of a map, groups of age) again and again: every "
            "hour, or every day. A histogram is published at each step without giving away where "
            "any one person was. A method may publish fresh counts, or repeat the last ones when "
            "little has changed, and so save its budget. How far is what it shows from the truth?",
            f"At each step {QUESTIONS:,} random ranges of bins are counted in what was "
            "published and in the truth. The error is how many people too many or too few are "
            "found, on average over all questions and all steps. Lower is better. It is measured "
            "on the true counts, which is why this page is not private.",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, what one person did changes the probability of whatever is "
            f"published by a factor of at most {exp(float(example)):.3g}. That holds for all she "
            "did in the whole stream, or for all she did within any window of consecutive "
            f"steps, which is a weaker guarantee: the two are compared apart. {part.reading}",
        ],
    )


def _dataset_sections(results: Sequence[Result], dataset: str) -> list[Section]:
    tabled = table(results)
    drawn = figure(results, dataset)
    answer = fmean(figures[ANSWER] for _, figures in results)
    said = [
        f"The stream: {STREAM_SETS[dataset].title}. A range holds {answer:,.0f} people on average.",
        *_findings(results),
    ]
    sections = [
        Section(
            f"{dataset}: how far counts are from the truth",
            said if drawn else [*said, _NO_PLOT],
            figure=drawn,
            figure_caption="Lower is better. Lines are means, bands one standard deviation; "
            f"methods that are nowhere within {_CAP:g} times the best are in the table only.",
            listings=[
                Listing(
                    tabled.headers[1:],
                    [row[1:] for row in tabled.rows],
                    "Mean absolute error: mean ± standard deviation over the repeats. A star "
                    "marks the lowest among methods with the same guarantee.",
                    text_columns=2,
                )
            ],
        )
    ]
    timed = time_figure(results, dataset)
    if timed is not None:
        caption = "Mean over the repeats. Where a line rises, what is shown has got old."
        sections.append(
            Section(f"{dataset}: the error over time", figure=timed, figure_caption=caption)
        )
    return sections


def _findings(results: Sequence[Result]) -> list[str]:
    """Say in words which method was best at both ends of the axis."""
    part, places = part_of(results), places_of(results)
    said = []
    for (_, level), group in groups_of(summarize(results)).items():
        epsilon = max((key.epsilon for key in group), key=lambda text: float(text or 0))
        for place in dict.fromkeys((places[0], places[-1])):
            best = best_at(group, place, epsilon)
            said.append(
                f"Where {LEVELS[level]}, at {part.across.partition(' (')[0]} = {place:,g} the "
                f"lowest error is that of {best}: {group[best][place].mean:,.1f}."
            )
    return said


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results)
    points = [f"{name}: {METHODS[name].title}; {LEVELS[METHODS[name].level]}." for name in used]
    return Section("The methods", points=points)


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    repeats = len({trial.seed for trial, _ in results})
    said = [
        f"Every method is run {repeats} time{'s' if repeats > 1 else ''} with fresh noise and "
        "fresh questions at every place; simulated streams are simulated afresh each time. Unless "
        "the page says otherwise windows have 40 steps, and methods that have to be told how "
        "often to publish do so 10 times in the stream or in a window. Every person counts once "
        "a step.",
    ]
    caption = "Mean number of publications and seconds for the whole stream."
    headers = ["stream", "method", "publications", "seconds"]
    listing = Listing(headers, list(costs(results)), caption, 2)
    return Section("How it was run", [*said, *notes], listings=[listing])
