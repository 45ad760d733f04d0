"""The page of the comparison of private models: what was done, found and how to read it."""

from collections.abc import Sequence
from itertools import product
from math import exp

from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.experiments.classification_laboratory import FOLDS
from dpublish.experiments.classification_summary import Cell
from dpublish.experiments.experiment import Result
from dpublish.experiments.models_parts import (
    ANY,
    COMMONEST,
    CURVE,
    MODELS,
    NOISE_FREE,
    SECONDS,
    TITLES,
    WRONG,
    Part,
)
from dpublish.experiments.models_summary import (
    REFERENCES,
    Cells,
    Key,
    mean_seconds,
    part_of,
    places_of,
    short_name,
    summarize,
    table,
)
from dpublish.experiments.page import Listing, Page, Section
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

_LABELS = {
    NOISE_FREE: "No privacy: the same model fitted to the true rows",
    COMMONEST: "No learning: always the majority class of the true rows",
}
_MEASURES = {
    WRONG: "misclassification (lower is better)",
    CURVE: "area under the curve (higher is better)",
    SECONDS: "seconds for one fit (lower is better)",
}
_FAR = 2
"""Methods that are always wrong more than so many times as often as no learning are not drawn."""
_NO_PLOT = 'There is no plot: it takes Matplotlib (pip install "dpublish[plots]").'


def figure(results: Sequence[Result], dataset: str | None = None) -> str | None:
    """Draw a panel for each measure and model, of one dataset or of all."""
    part, cells = part_of(results), summarize(results)
    layout = Layout(
        across=part.across,
        up="" if len(part.measures) > 1 else _MEASURES[part.measures[0]],
        ticks=places_of(results),
        is_log=True,
        has_one_scale=False,
        width=4.4,
        height=3.2,
    )
    panels = _panels(cells, part, dataset)
    return small_multiples(panels, layout) if panels else None


def _panels(cells: Cells, part: Part, dataset: str | None) -> list[Panel]:
    """Methods without a setting for the model are drawn with each of them."""
    models = [model for model in MODELS if any(key.model == model for key in cells)]
    datasets = dict.fromkeys(key.dataset for key in cells if dataset in (None, key.dataset))
    panels = []
    for data, measure, model in product(datasets, part.measures, models or [ANY]):
        keys = [k for k in cells if k[:2] == (data, measure) and k.model in (model, ANY)]
        lines = [_line(key, cells[key]) for key in keys if not _is_far_off(key, cells)]
        title = f"{_MEASURES[measure].partition(' (')[0]}, {MODELS.get(model, 'all')}"
        panels.append(Panel(title if dataset else f"{data}: {title}", lines))
    return panels


def _is_far_off(key: Key, cells: Cells) -> bool:
    """Tell whether a line would flatten all others: it is useless, and far from them."""
    reference = cells.get(Key(key.dataset, WRONG, ANY, COMMONEST, ""))
    if key.measure != WRONG or reference is None:
        return False
    useless = next(iter(reference.values())).mean
    return min(cell.mean for cell in cells[key].values()) > _FAR * useless


def _line(key: Key, cells: dict[float, Cell]) -> Line:
    means, spreads = zip(*cells.values(), strict=True)
    label = _LABELS.get(key.method) or TITLES[key.method]
    budget = f", ε = {key.epsilon}" if key.epsilon else ""
    return Line(label + budget, list(cells), means, spreads, key.method not in REFERENCES)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the papers."""
    datasets = dict.fromkeys(str(trial.setting["dataset"]) for trial, _ in results)
    return Page(
        title=part_of(results).title,
        lead="An experiment on public data with seeded noise.",
        sections=[
            _explanation(results),
            *(_dataset_section(results, dataset) for dataset in datasets),
            _methods_section(results),
            _settings_section(results, notes),
        ],
    )


def _explanation(results: Sequence[Result]) -> Section:
    amounts = [trial.epsilon for trial, _ in results if trial.method not in REFERENCES]
    example = min(amounts, key=float)
    return Section(
        "What this page shows",
        [
            "A linear model predicts one property of a person (the class) from the others: each "
            "value has a weight, and the sum of the weights decides. Here the weights are found "
            "and published without giving away whether any one person is in the table. Then the "
            "model is tried on people who were not in the table. How good is it?",
            "Misclassification is the part of those people whose class is predicted wrongly: 0.15 "
            "means 15 of 100. The area under the curve (AUC) is how often, of two people of "
            "different classes, the model puts the right one first: 0.5 is a coin, 1 is perfect. "
            "It tells models apart where one class is so rare that always naming the other one "
            "is seldom wrong.",
            "ε (epsilon) says how strong the privacy is, and smaller is stronger. At "
            f"ε = {example}, whether any one person is in the table or not changes the "
            "probability of whatever is published by a factor of at most "
            f"{exp(float(example)):.3g}. {part_of(results).reading}",
        ],
        points=[
            "Each colored line is a method; the band around it is one standard deviation over "
            "all runs. Methods that have no such models are drawn in every panel.",
            "The gray lines are what one gets without learning anything, and the same model "
            "fitted to the true rows, without any privacy. The gap to it is the price of privacy.",
        ],
    )


def _dataset_section(results: Sequence[Result], dataset: str) -> Section:
    benchmark = BENCHMARKS[dataset]
    own = [result for result in results if result.trial.setting["dataset"] == dataset]
    tabled = table(own)
    drawn = figure(results, dataset)
    size = f"{benchmark.records:,} rows"
    if part_of(own).key == "rows":
        size = "as many rows as the axis says"
    said = [f"{benchmark.source}: {size}; the class is {benchmark.target}.", *_finding(own)]
    return Section(
        f"{dataset}: {benchmark.question}",
        said if drawn else [*said, _NO_PLOT],
        figure=drawn,
        figure_caption="Lines are means, bands one standard deviation. Methods that are wrong "
        "more than twice as often as always naming the majority class are in the table only.",
        listings=[
            Listing(
                tabled.headers[1:],
                [row[1:] for row in tabled.rows],
                "Mean ± standard deviation over folds and repeats.",
                text_columns=3,
            )
        ],
    )


def _finding(results: Sequence[Result]) -> list[str]:
    """Say in words which private method was best at both ends of the axis."""
    part, cells, places = part_of(results), summarize(results), places_of(results)
    said = []
    for measure, place in product(part.measures, dict.fromkeys((places[0], places[-1]))):
        here = {
            key: line[place].mean
            for key, line in cells.items()
            if key.measure == measure and key.method not in REFERENCES and place in line
        }
        if here:
            sign = -1 if measure == CURVE else 1
            best = min(here, key=lambda key: sign * here[key])
            model = "" if best.model == ANY else f", {MODELS[best.model]}"
            said.append(
                f"At {part.across.partition(' (')[0]} = {place:,g} {short_name(best)}{model} "
                f"has the best {_MEASURES[measure].partition(' (')[0]}: {here[best]:.3f}."
            )
    return said


def _methods_section(results: Sequence[Result]) -> Section:
    used = dict.fromkeys(trial.method for trial, _ in results)
    return Section("The methods", points=[f"{TITLES[name]}." for name in TITLES if name in used])


def _settings_section(results: Sequence[Result], notes: Sequence[str]) -> Section:
    folds = len({trial.setting["fold"] for trial, _ in results})
    repeats = len({trial.seed for trial, _ in results})
    said = [
        f"Each dataset is cut into {FOLDS} folds that hold equal parts of every class. In turn "
        f"{folds} of them {'is' if folds == 1 else 'are'} measured on, and the model is fitted "
        f"to the other {FOLDS - 1}; each is done {repeats} time{'s' if repeats > 1 else ''} "
        "with fresh noise. Settings are the defaults, but for what the axis says.",
        "Models without privacy have the same features as the private ones: numbers scaled by "
        "their public bounds, and a weight for each value of a category. Support vector machines "
        "are fitted to a hinge loss with a smooth bend.",
    ]
    headers = ["dataset", "model", "method", "seconds"]
    times = Listing(headers, mean_seconds(results), "Mean time of one fit.", text_columns=3)
    is_shown_above = SECONDS in part_of(results).measures
    return Section("How it was run", [*said, *notes], listings=[] if is_shown_above else [times])
