"""The page of the comparison of personal methods: what was done, found and how to read it."""

from collections.abc import Sequence
from math import exp

from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.experiments.classification_laboratory import FOLDS
from dpublish.experiments.experiment import Result
from dpublish.experiments.page import Listing, Page, Section
from dpublish.experiments.personalized_crowd import DISTRIBUTIONS
from dpublish.experiments.personalized_parts import (
    CURVE,
    LEVELS,
    MEASURES,
    METHODS,
    NOISE_FREE,
    QUESTIONS,
    REFERENCES,
    Part,
)
from dpublish.experiments.personalized_summary import (
    ANY,
    Cells,
    Key,
    best_place,
    groups_of,
    named_level,
    part_of,
    places_of,
    seconds,
    summarize,
    table,
    times_better,
)
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_NO_PLOT = 'There is no plot: it takes Matplotlib (pip install "dpublish[plots]").'
_CAP = 6.0
"""Lines that are nowhere below so many times the best are told in the table alone."""


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw a panel for each dataset, distribution and measure, or those of one dataset."""
    part = part_of(results)
    panels = [
        Panel(_title(key), _lines(part, group))
        for key, group in groups_of(summarize(results)).items()
        if dataset in (None, key[0])
    ]
    is_scan = part.key == "threshold"
    layout = Layout(
        across=part.across,
        up=" or ".join(MEASURES[measure] for measure in part.measures),
        ticks=(0, 0.25, 0.5, 0.75, 1) if is_scan else places_of(results),
        is_log=part.is_log,
        has_one_scale=False,
        width=4.4,
        height=3.4,
    )
    return small_multiples(panels, layout)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the thesis."""
    part = part_of(results)
    datasets = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
    return Page(
        title=part.title,
        lead="An experiment on public and simulated tables with seeded noise.",
        sections=[
            _explanation(part),
            *(_dataset_section(results, dataset) for dataset in datasets),
            _methods_section(results),
            _settings_section(results, notes),
        ],
    )


def _title(key: tuple[str, str, str, str]) -> str:
    dataset, preferences, measure, inner = key
    told = "" if preferences == ANY else f", {preferences}"
    fitted = f" ({inner})" if inner else ""
    return f"{dataset}{told}: {MEASURES[measure]}{fitted}"


def _lines(part: Part, group: Cells) -> list[Line]:
    """Draw those that come near the best somewhere: far ones would flatten them.

    Of level lines the ends are enough.  Methods that assume nothing are drawn in gray.
    """
    shown = []
    lowest = {
        place: min(line[place].mean for line in group.values() if place in line)
        for line in group.values()
        for place in line
    }
    for key, line in group.items():
        near = any(cell.mean <= _CAP * lowest[place] for place, cell in line.items())
        if near or key.measure == CURVE:
            places = list(line) if part.moves(key.method) else [min(line), max(line)]
            means = [line[place].mean for place in places]
            spreads = [line[place].spread for place in places]
            shown.append(Line(key.method, places, means, spreads, key.method not in REFERENCES))
    return shown


def _explanation(part: Part) -> Section:
    if part.model is None:
        measured = (
            f"{QUESTIONS} random questions are asked, each about one or two columns, and each is "
            "answered by a release of its own, on which everybody's integer is spent. The "
            "relative frequency error is how many people too many or too few are counted, "
            "divided by the number of all people. Lower is better."
        )
    else:
        measured = (
            "A model is fitted to nine tenths of the people and predicts the class of the "
            "others. Of wrong predictions fewer are better; of the area under the curve (how "
            "often the right one of two people is ranked first) more is better."
        )
    return Section(
        "What this page shows",
        [
            "People differ in how much privacy they ask for. ε (epsilon) says how strong it is, "
            "and smaller is stronger: whatever is published is at most e^ε times as likely with "
            f"a person's record as without it, {exp(0.01):.2f} times at ε = 0.01 and "
            f"{exp(1):.2f} times at ε = 1. Each person names the largest ε that she accepts, "
            "and no method on this page spends more on her. How much is gained if "
            "not everybody is treated like the most careful person?",
            measured + " It is measured on the true records, which is why this page is not "
            "private.",
            "What people accept is drawn independently of their records, and how many people "
            "there are at each level is public. All methods but minimum and personalized-em "
            "need that people who are used stand for others; where levels tell something about "
            f"records, they are off by more than is shown here. {part.reading}",
        ],
    )


def _dataset_section(results: Sequence[Result], dataset: str) -> Section:
    own = [result for result in results if result.trial.setting["dataset"] == dataset]
    tabled = table(own)
    drawn = figure(results, dataset)
    said = [f"{BENCHMARKS[dataset].source}.", *_findings(own)]
    return Section(
        f"{dataset}: what is gained",
        said if drawn else [*said, _NO_PLOT],
        figure=drawn,
        figure_caption="Lines are means, bands one standard deviation; lines that are nowhere "
        f"within {_CAP:g} times the best are in the table only.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                "Mean ± standard deviation over the repeats. The best threshold is the best in "
                "hindsight: nobody could have known it.",
                text_columns=3 if part_of(results).key == "threshold" else 2,
            )
        ],
    )


def _findings(results: Sequence[Result]) -> list[str]:
    """Say in words what partitioning gains, beside minimum and the best threshold."""
    said = []
    for group in groups_of(summarize(results)).values():
        for key, line in group.items():
            if key.method == "partitioning":
                place = best_place(line, key.measure)
                said.append(_finding(group, key, place))
    return said


def _finding(group: Cells, key: Key, place: float) -> str:
    told = "" if key.preferences == ANY else f"Preferences {key.preferences}: "
    text = f"{told}{MEASURES[key.measure]} of partitioning {group[key][place].mean:.5f}"
    ratio = times_better(group, key, place)
    text += "" if ratio is None else f", {ratio:.1f} times below minimum"
    scan = group.get(key._replace(method="sampling"))
    if scan is not None:
        best = best_place(scan, key.measure)
        level = named_level(key.preferences, best)
        text += f"; sampling with its best threshold ({level}) {scan[best].mean:.5f}"
    return f"{text}."


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results if trial.method in METHODS)
    points = [f"{name}: {METHODS[name].title}." for name in used]
    if any(trial.method == NOISE_FREE for trial, _ in results):
        points.append(f"{NOISE_FREE}: the model of all records, which is not private.")
    return Section("The methods", points=points)


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    part = part_of(results)
    repeats = len({trial.seed for trial, _ in results})
    drawn = dict.fromkeys(str(trial.setting["preferences"]) for trial, _ in results)
    said = [
        f"Every method is run {repeats} time{'s' if repeats > 1 else ''} at every place, with "
        "fresh noise and fresh preferences, the same for all methods.",
        *(f"{name}: {DISTRIBUTIONS[name].title}." for name in drawn),
    ]
    if part.key != "levels":
        said.append(f"Numbers are rounded down to {LEVELS} levels at equal distances.")
    if part.model is not None:
        said.append(f"Each repeat leaves out another of {FOLDS} folds to measure on.")
    caption = "Mean time to make one release."
    listing = Listing(["dataset", "method", "seconds"], list(seconds(results)), caption, 2)
    return Section("How it was run", [*said, *notes], listings=[listing])
