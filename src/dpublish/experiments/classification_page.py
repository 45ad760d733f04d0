"""The page of the comparison of classifiers: what was done, found and how to read it."""

from collections.abc import Sequence
from itertools import groupby
from math import exp
from statistics import fmean

from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.evaluation.classification import MAJORITY
from dpublish.evaluation.classification import TITLES as CLASSIFIER_TITLES
from dpublish.evaluation.sklearn_adapter import SVM_ROWS
from dpublish.experiments.classification_laboratory import FOLDS, SECONDS
from dpublish.experiments.classification_parts import METHODS, NOISE_FREE, TITLES, Part
from dpublish.experiments.classification_summary import (
    Cell,
    Cells,
    Key,
    ordered,
    part_of,
    places_of,
    short_name,
    summarize,
    table,
)
from dpublish.experiments.experiment import Result
from dpublish.experiments.page import Listing, Page, Section
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_MAJORITY_LINE = "No learning: always the majority class of the true rows"
_NOISE_FREE_LINE = "No privacy: the same classifier trained on the true rows"


def figure(
    results: Sequence[Result], dataset: str | None = None, *, has_one_scale: bool = True
) -> str | None:
    """Draw a panel for each classifier, of one dataset or of all."""
    part, cells = part_of(results), summarize(results)
    chosen = [key for key, _ in ordered(cells) if dataset in (None, key.dataset)]
    panels = []
    for (data, classifier), group in groupby(chosen, lambda key: (key.dataset, key.classifier)):
        keys = [key for key in group if key.method != NOISE_FREE]
        if classifier == SECONDS or not keys:
            continue
        title = CLASSIFIER_TITLES[classifier].partition(" (")[0]
        lines = [_line(_label(key), cells[key], is_method=True) for key in keys]
        lines += _references(cells, data, classifier)
        panels.append(Panel(title if dataset else f"{data}: {title}", lines))
    layout = Layout(
        across=part.across,
        up="misclassification",
        ticks=places_of(part, results),
        is_log=part.is_log,
        has_one_scale=has_one_scale,
    )
    return small_multiples(panels, layout) if panels else None


def _references(cells: Cells, dataset: str, classifier: str) -> list[Line]:
    """Draw what no method should be worse than, and what none can be expected to beat."""
    free = {key.classifier: cells[key] for key in cells if key[::2] == (dataset, NOISE_FREE)}
    lines = [_line(_MAJORITY_LINE, free[MAJORITY])] if MAJORITY in free else []
    others = [name for name in free if name != MAJORITY]
    if classifier in free:
        lines.append(_line(_NOISE_FREE_LINE, free[classifier]))
    elif others:  # a release's own classifier has no twin without privacy; any other will do
        title = CLASSIFIER_TITLES[others[0]].partition(" (")[0]
        lines.append(_line(f"No privacy: {title} trained on the true rows", free[others[0]]))
    return lines


def _line(label: str, cells: dict[float, Cell], *, is_method: bool = False) -> Line:
    means, spreads = zip(*cells.values(), strict=True)
    return Line(label, list(cells), means, spreads, is_method)


def _label(key: Key) -> str:
    return f"{TITLES[key.method]}, ε = {key.epsilon}" if key.epsilon else TITLES[key.method]


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
    amounts = [trial.epsilon for trial, _ in results if trial.method != NOISE_FREE]
    example = min(amounts, key=float)
    return Section(
        "What this page shows",
        [
            "A table of people is published in a form that keeps each of them private. Somebody "
            "learns from what was published how to predict one property of a person (the class) "
            "from the others, and tries it on people who were not in the table. How often is the "
            "answer wrong?",
            "Misclassification is the part of those people whose class is predicted wrongly: 0.15 "
            "means 15 of 100. Lower is better.",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, whether any one person is in the table or not changes the "
            "probability of whatever is published by a factor of at most "
            f"{exp(float(example)):.3g}. {part.reading}",
        ],
        points=[
            "Each panel is one way to predict: by the release itself (where it can), or by an "
            "ordinary classifier trained on synthetic rows drawn from the release.",
            "Each colored line is a method of publishing; the band around it is one standard "
            "deviation over all runs.",
            "The upper gray line is what one gets without learning anything, by always naming the "
            "majority class. A method that is not below it is worth nothing.",
            "The lower gray line is the same classifier trained on the true rows, without "
            "any privacy. The gap to it is the price of privacy.",
        ],
    )


def _dataset_section(results: Sequence[Result], dataset: str) -> Section:
    benchmark = BENCHMARKS[dataset]
    own = [result for result in results if result.trial.setting["dataset"] == dataset]
    tabled = table(own)
    drawn = figure(results, dataset)
    size = f"{benchmark.records:,} rows"
    if part_of(own).key == "rows":
        size = "as many rows to learn from as the axis says, and the same ones to measure on"
    said = [f"{benchmark.source}: {size}; the class is {benchmark.target}.", *_finding(own)]
    if drawn is None:
        said.append(
            'There is no plot: it takes Matplotlib (pip install "dpublish[plots]"), and a '
            "classifier that one of the methods can serve."
        )
    return Section(
        f"{dataset}: {benchmark.question}",
        said,
        figure=drawn,
        figure_caption="Lower is better. Lines are means, bands one standard deviation.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                "Misclassification: mean ± standard deviation over folds and repeats.",
                text_columns=2,
            )
        ],
    )


def _finding(results: Sequence[Result]) -> list[str]:
    """Say in words which private method was best at both ends of the axis."""
    part, cells = part_of(results), summarize(results)
    methods = {
        key: line
        for key, line in cells.items()
        if key.method in METHODS and key.classifier != SECONDS
    }
    said = []
    for place in dict.fromkeys((places_of(part, results)[0], places_of(part, results)[-1])):
        here = {key: line[place].mean for key, line in methods.items() if place in line}
        if not here:
            continue
        best = min(here, key=lambda key: here[key])
        said.append(
            f"At {part.across.partition(' (')[0]} = {place:,g} the fewest errors are made with "
            f"{short_name(best)}, by {CLASSIFIER_TITLES[best.classifier]}: "
            f"{100 * here[best]:.1f} of 100 are predicted wrongly"
            f"{_compared(cells, best.dataset, place)}."
        )
    return said


def _compared(cells: Cells, dataset: str, place: float) -> str:
    known = {
        key.classifier: line[place].mean
        for key, line in cells.items()
        if key.method == NOISE_FREE and key.dataset == dataset and place in line
    }
    always = known.pop(MAJORITY, None)
    said = "" if always is None else f"; always naming the majority class, {100 * always:.1f}"
    return said + (f"; without privacy, {100 * min(known.values()):.1f} at best" if known else "")


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results)
    points = [TITLES[name] for name in TITLES if name in used]
    return Section("The methods", points=[f"{point}." for point in points])


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    settings = [trial.setting for trial, _ in results]
    folds = len({setting["fold"] for setting in settings})
    repeats = len({trial.seed for trial, _ in results})
    classifiers = str(settings[0]["classifiers"]).split(",")
    said = [
        f"Each dataset is cut into {FOLDS} folds that hold equal parts of every class. In turn "
        f"{folds} of them {'is' if folds == 1 else 'are'} measured on, and the release is made "
        f"from the other {FOLDS - 1}; each is done {repeats} time{'s' if repeats > 1 else ''} "
        "with fresh noise. Rows that are measured on are never released from.",
        "Classifiers: " + "; ".join(CLASSIFIER_TITLES[name] for name in classifiers) + ".",
    ]
    if "svm" in classifiers:
        said.append(f"The support vector machine is trained on at most {SVM_ROWS:,} rows, drawn.")
    cells = summarize(results)
    times = [
        [key.dataset, short_name(key), f"{fmean(cell.mean for cell in line.values()):.2f}"]
        for key, line in ordered(cells)
        if key.classifier == SECONDS
    ]
    headers = ["dataset", "method", "seconds"]
    caption = "Mean time to make one release."
    return Section(
        "How it was run", [*said, *notes], listings=[Listing(headers, times, caption, 2)]
    )
