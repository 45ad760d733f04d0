"""Draw the pictures of the concept pages and of the home page, in the style of the reports.

    python tools/draw_concepts.py             write all of them below docs/pictures
    python tools/draw_concepts.py epsilon     write one

Noise is seeded and all tables are simulated, so that a picture is drawn the same again.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.patches import Patch

from dpublish import Answer, Budget, Histogram, Ledger, Synth, datasets, seeded
from dpublish.accuracy.intervals import half_width
from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.errors import BudgetExhausted
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.plots.inline import in_either_scheme
from dpublish.plots.style import (
    COLORS,
    FRAME,
    GRID,
    INK,
    LABEL_SIZE,
    PALE,
    SMALL_SIZE,
    TEXT,
    WHISKER,
    Drawing,
    drawing,
    label_by_counts,
    label_logarithms,
)
from dpublish.privacy.meaning import least_sure, most_sure
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.report.section import section_of

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SECOND = COLORS[1]
CONFIDENCE = 0.95
HOME = ("0.1", "education")
"""Epsilon and the column of the home page's release."""
YEAR = (
    ("counts", "0.5"),
    ("a table, interrupted", "0.25"),
    ("synthetic rows", "0.5"),
    ("a classifier", "1"),
)
"""What is asked of an account with a cap of 1.5, in this order; the last is refused."""


def epsilon() -> str:
    """Draw what a release with and without a person looks like, and what beliefs become."""
    with drawing((8.2, 3.1), panels=2, columns=2) as drawn:
        _two_worlds(drawn.axes[0], Fraction(1, 2))
        _beliefs(drawn.axes[1], [Fraction(3), Fraction(1), Fraction(1, 2), Fraction(1, 10)])
        return drawn.svg(fit=True)


def _two_worlds(axes: Any, rate: Fraction) -> None:
    shown = np.arange(90, 112)
    for count, color, words in ((100, PALE, "without the person"), (101, INK, "with the person")):
        axes.plot(
            shown,
            noise_pmf(rate, shown - count),
            marker="o",
            markersize=3.5,
            color=color,
            label=f"{words}: {count}",
        )
    axes.set(
        title="ε = 0.5: no count is more than 1.65\ntimes as probable with as without",
        xlabel="published count",
        ylabel="probability",
        ylim=(0, 0.3),
    )
    axes.legend(loc="upper left", fontsize=SMALL_SIZE)


def _beliefs(axes: Any, amounts: Sequence[Fraction]) -> None:
    before = [Fraction(each, 100) for each in range(1, 100)]
    at = [float(each) for each in before]
    through = 1.0
    handles = []
    for index, amount in enumerate(amounts):
        most = [float(most_sure(each, amount)) for each in before]
        least = [float(least_sure(each, amount)) for each in before]
        alpha = 0.13 + 0.09 * index
        axes.fill_between(at, least, most, color=INK, alpha=alpha, linewidth=0)
        through *= 1 - alpha  # the bands lie upon each other, and so look darker inside
        handles.append(Patch(color=INK, alpha=1 - through, label=f"ε = {float(amount):g}"))
    axes.legend(handles=handles, fontsize=SMALL_SIZE, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.plot([0, 1], [0, 1], color=WHISKER, linewidth=0.8)
    axes.set(
        title="How far a belief can move:\nis this person in the table?",
        xlabel="thought before",
        ylabel="thought after the release",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}".replace("%", " %"))


def budget() -> str:
    """Draw an account of a ledger over a year: what was granted, and what was refused."""
    with tempfile.TemporaryDirectory() as folder:
        spent, refused = _account(Path(folder) / "books.db")
    with drawing((7.4, 3.1)) as drawn:
        _draw_account(drawn.axes[0], spent, refused)
        return drawn.svg(fit=True)


def _account(path: Path) -> tuple[list[float], list[bool]]:
    """Ask a ledger for all amounts of the year; return what is spent after each."""
    spent, refused = [], []
    with Ledger.create(path) as ledger:
        ledger.add("visits", cap="1.5")
        for purpose, amount in YEAR:
            try:
                ledger.grant(
                    "visits",
                    epsilon=amount,
                    purpose=purpose,
                    hides=AddRemoveRecord(),
                    rng=secure(),
                )
                refused.append(False)
            except BudgetExhausted:
                refused.append(True)
            spent.append(float(ledger.status("visits").spent))
    return spent, refused


def _draw_account(axes: Any, spent: Sequence[float], refused: Sequence[bool]) -> None:
    steps = [0.0, *spent]
    axes.step(range(len(steps) + 1), [*steps, steps[-1]], where="post", color=INK, linewidth=2)
    axes.fill_between(
        range(len(steps) + 1), [*steps, steps[-1]], step="post", color=INK, alpha=0.15, linewidth=0
    )
    axes.axhline(1.5, color=SECOND, linewidth=1.5)
    axes.text(0.05, 1.54, "cap 1.5", color=SECOND, fontsize=LABEL_SIZE)
    for index, ((purpose, amount), no) in enumerate(zip(YEAR, refused, strict=True), 1):
        words = f"{purpose}\nε = {amount}: " + ("refused" if no else "debited")
        axes.text(
            index + 0.05,
            steps[index] + 0.05 - (0.27 if no else 0),
            words,
            fontsize=SMALL_SIZE,
            color=SECOND if no else TEXT,
            va="bottom",
        )
    axes.set(
        title="An account of the ledger",
        ylabel="spent ε",
        xlim=(0, len(steps)),
        ylim=(0, 1.75),
        xticks=range(1, len(steps)),
        xticklabels=["March", "May", "August", "November"],
    )
    axes.grid(axis="y")


def intervals() -> str:
    """Draw three kinds of interval of one release, and noise beside the error of a sample."""
    with drawing((8.6, 3.2), panels=2, columns=2) as drawn:
        _kinds(drawn.axes[0])
        _noise_and_sample(drawn.axes[1])
        return drawn.svg(fit=True)


RICH, YOUNG = pc.field("income") == ">50K", pc.field("age") < 40
OLD_WOMEN_OF_THE_WEST = (
    (pc.field("sex") == "Female") & (pc.field("region") == "West") & (pc.field("age") >= 61)
)
QUERIES = (
    ("income = '>50K'", RICH, "whole values:\nthe noise"),
    ("age < 40", YOUNG, "a bin is cut:\nnoise, and where\nrecords lie in it"),
    (
        "sex = Female and region = West and age >= 61",
        OLD_WOMEN_OF_THE_WEST,
        "by the model, with\nbounds around it",
    ),
)


def _kinds(axes: Any) -> None:
    people = datasets.table("census", 20_000)
    release = Synth().release(people, budget=Budget.seeded("1"), rng=seeded(7))
    rows = datasets.census(20_000)
    for row, (query, condition, _) in enumerate(QUERIES):
        truth = rows.filter(condition).num_rows
        _draw_answer(axes, len(QUERIES) - row, release.count(query), truth)
    axes.set(
        title="Three answers of one release, ε = 1",
        xlabel="count (cross: the truth)",
        yticks=range(1, len(QUERIES) + 1),
        yticklabels=[words for _, _, words in reversed(QUERIES)],
        ylim=(0.5, len(QUERIES) + 0.5),
    )
    axes.tick_params(axis="y", labelsize=SMALL_SIZE, length=0)
    axes.grid(axis="x")
    label_by_counts(axes.xaxis)


def _draw_answer(axes: Any, row: int, answer: Answer, truth: int) -> None:
    if answer.bounds is not None:
        axes.plot(answer.bounds, [row, row], color=PALE, linewidth=6, solid_capstyle="butt")
    color = SECOND if answer.kind == "model" else INK
    axes.plot([answer.low, answer.high], [row, row], color=color, linewidth=2, marker="|")
    axes.plot([answer.value], [row], marker="o", color=color, markersize=4)
    axes.plot([truth], [row], marker="x", color=WHISKER, markersize=6)


def _noise_and_sample(axes: Any) -> None:
    sizes = np.geomspace(10, 100_000, 60)
    axes.plot(sizes, 1.96 * np.sqrt(sizes), color=SECOND, label="sampling: people as a sample")
    for rate, color in ((Fraction(1, 10), INK), (Fraction(1), PALE)):
        width = half_width(rate, np.ones(1), CONFIDENCE)
        axes.plot(
            sizes, np.full(sizes.size, width), color=color, label=f"noise at ε = {float(rate):g}"
        )
    axes.set(
        title="Half-width of a 95 % interval",
        xlabel="people in the group",
        ylabel="± people",
        xscale="log",
        yscale="log",
    )
    axes.grid()
    axes.legend(fontsize=SMALL_SIZE, loc="upper left")
    for axis in (axes.xaxis, axes.yaxis):
        label_logarithms(axis)


def neighbors() -> str:
    """Draw which counts change between neighbors: a record more, and a record exchanged."""
    with drawing((8.2, 2.7), panels=2, columns=2) as drawn:
        titles = (
            "A record more or less:\none count changes, by 1",
            "A record exchanged:\ntwo counts change, by 2 in all",
        )
        for axes, title, changed in zip(drawn.axes, titles, (MORE, EXCHANGED), strict=True):
            _draw_neighbors(axes, title, changed)
        return drawn.svg(fit=True)


WARDS = ("Surgery", "Maternity", "Oncology", "Pediatrics")
COUNTS, MORE, EXCHANGED = (4, 6, 3, 5), (4, 7, 3, 5), (4, 7, 2, 5)
"""Records by ward of a small table, and of two of its neighbors."""


def _draw_neighbors(axes: Any, title: str, changed: Sequence[int]) -> None:
    at = np.arange(len(WARDS))
    axes.vlines(at - 0.2, 0, COUNTS, linewidth=18, color=PALE, label="the table")
    axes.vlines(at + 0.2, 0, changed, linewidth=18, color=INK, label="its neighbor")
    for x, (before, after) in enumerate(zip(COUNTS, changed, strict=True)):
        if before != after:
            words = f"{after - before:+d}".replace("-", "−")
            axes.text(x + 0.2, after + 0.15, words, ha="center", fontsize=LABEL_SIZE, color=SECOND)
    axes.set(title=title, ylabel="records", xlim=(-0.6, 3.6), ylim=(0, 9.5))
    axes.set_xticks(at, WARDS)
    axes.legend(fontsize=SMALL_SIZE, loc="upper right", ncols=2)


def units() -> str:
    """Draw how many visits patients have, and what a bound on them loses and adds."""
    with drawing((8.6, 3.1), panels=2, columns=2) as drawn:
        patients = _visits_by_patient()
        _draw_visits(drawn.axes[0], [each for each, _ in patients])
        _draw_bounds(drawn.axes[1], patients)
        return drawn.svg(fit=True)


BOUNDS = (1, 2, 4, 8, 16, 32)
"""Visits of a patient that are kept."""
UNIT_EPSILON = Fraction(1, 10)
WARD = "Surgery"


def _visits_by_patient() -> list[tuple[int, int]]:
    """Count the visits of each simulated patient, and those to one ward; some name no patient."""
    visits = datasets.hospital(20_000).filter(pc.field("patient_id").is_valid())
    here = visits.append_column("here", pc.cast(pc.equal(visits["ward"], WARD), "int64"))
    by_patient = here.group_by("patient_id").aggregate([("ward", "count"), ("here", "sum")])
    counted = by_patient.select(["ward_count", "here_sum"]).to_pydict()
    return list(zip(counted["ward_count"], counted["here_sum"], strict=True))


def _draw_visits(axes: Any, visits: Sequence[int]) -> None:
    last = 15
    counts = np.bincount(np.minimum(visits, last), minlength=last + 1)[1:]
    axes.vlines(range(1, last + 1), 0, counts, linewidth=11, color=PALE)
    axes.set(
        title=f"{len(visits):,} patients; one has {max(visits)} visits",
        xlabel="visits of a patient",
        ylabel="patients",
        ylim=(0, None),
        xticks=[1, 5, 10, last],
        xticklabels=["1", "5", "10", f"{last} or more"],
    )
    label_by_counts(axes.yaxis)


def _draw_bounds(axes: Any, patients: Sequence[tuple[int, int]]) -> None:
    lost = [expected_loss(patients, most) for most in BOUNDS]
    noise = [half_width(UNIT_EPSILON / most, np.ones(1), CONFIDENCE) for most in BOUNDS]
    axes.plot(BOUNDS, lost, marker="o", color=SECOND, label="visits left out")
    axes.plot(BOUNDS, noise, marker="s", color=INK, label="noise (95 %)")
    total = sum(here for _, here in patients)
    axes.set(
        title=f"Error of the {total:,} visits to {WARD},\nε = {float(UNIT_EPSILON):g}",
        xlabel="--contribution: visits kept of each patient",
        ylabel="± visits",
        xscale="log",
        yscale="log",
    )
    axes.set_xticks(BOUNDS, [str(each) for each in BOUNDS])
    axes.minorticks_off()
    axes.grid()
    axes.legend(fontsize=SMALL_SIZE, loc="lower center", bbox_to_anchor=(0.42, 0.0))
    label_logarithms(axes.yaxis)


def expected_loss(patients: Sequence[tuple[int, int]], most: int) -> float:
    """Compute how many records of a kind are left out if at most so many of each unit stay.

    A unit is (its records, those of the kind), and each of its records is as likely to stay.

    >>> expected_loss([(4, 2), (1, 1)], 2)
    1.0
    """
    return sum(kind * (1 - min(all_, most) / all_) for all_, kind in patients)


def post_processing() -> str:
    """Draw what costs epsilon, the release, and what does not: all that comes after it."""
    with drawing((8.2, 2.9)) as drawn:
        axes = drawn.axes[0]
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        _box(axes, (0.09, 0.45), "the table,\nwith its owner", PALE)
        _box(axes, (0.46, 0.45), "a release\nwith its receipt", PALE)
        _arrow(axes, (0.18, 0.45), (0.37, 0.45))
        axes.text(0.275, 0.52, "noise", fontsize=LABEL_SIZE, color=INK, ha="center")
        axes.text(0.275, 0.33, "ε is debited\nfirst", fontsize=LABEL_SIZE, color=INK, ha="center")
        for index, words in enumerate(AFTERWARD):
            height = 0.8 - 0.175 * index
            _arrow(axes, (0.55, 0.45), (0.74, height))
            axes.text(0.76, height, words, fontsize=LABEL_SIZE, color=TEXT, va="center")
        axes.axvline(0.6, ymin=0.02, ymax=0.9, color=SECOND, linestyle="--", linewidth=1.2)
        axes.text(0.585, 0.96, "costs ε", fontsize=LABEL_SIZE, color=SECOND, ha="right")
        axes.text(0.615, 0.96, "costs nothing", fontsize=LABEL_SIZE, color=SECOND)
        return drawn.svg(fit=True)


AFTERWARD = (
    "counts, as many as you like",
    "synthetic rows",
    "charts, models, clusters",
    "rounding, sums, corrections",
    "next year's ideas",
)


def _box(axes: Any, at: tuple[float, float], words: str, color: str) -> None:
    style = {"boxstyle": "round,pad=0.7", "facecolor": "none", "edgecolor": color, "linewidth": 2}
    axes.text(*at, words, fontsize=9, ha="center", va="center", color=WHISKER, bbox=style)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.5}
    axes.annotate("", end, xytext=start, arrowprops=style, annotation_clip=False)


def synthetic_data() -> str:
    """Draw shares of true and of synthetic rows: of two columns, and of four at once."""
    people = datasets.table("census", 20_000)
    release = Synth().release(people, budget=Budget.seeded("1"), rng=seeded(7))
    true, synthetic = _census_as_listed(), release.rows(100_000, seed=7)
    with drawing((8.2, 3.5), panels=2, columns=2) as drawn:
        for axes, count in zip(drawn.axes, (2, 4), strict=True):
            points = [
                point
                for columns in combinations(CATEGORIES, count)
                for point in shares(true, synthetic, columns)
            ]
            _draw_shares(axes, count, points)
        return drawn.svg(fit=True)


STEP = 0.03
"""Points that lie closer than this power of ten would cover each other, and are drawn once."""
CATEGORIES = ("sex", "education", "region", "work", "income")


def _census_as_listed() -> Any:
    """Return the census with work that the schema does not list under the schema's own word."""
    people, work = datasets.census(20_000), datasets.schema("census")["work"]
    listed = pc.is_in(people["work"], value_set=pa.array(work.categories))
    named = pc.if_else(listed, people["work"], work.other)
    return people.set_column(people.schema.get_field_index("work"), "work", named)


def shares(one: Any, other: Any, columns: Sequence[str]) -> list[tuple[float, float]]:
    """Return the share of every combination of values in two tables.

    >>> import pyarrow as pa
    >>> shares(pa.table({"a": ["x", "y"]}), pa.table({"a": ["x"]}), ["a"])
    [(0.5, 1.0), (0.5, 0.0)]
    """
    counted = []
    for rows in (one, other):
        cells = Counter(zip(*(rows[name].to_pylist() for name in columns), strict=True))
        counted.append({cell: number / rows.num_rows for cell, number in cells.items()})
    first, second = counted
    cells = sorted(first.keys() | second.keys())
    return [(first.get(cell, 0.0), second.get(cell, 0.0)) for cell in cells]


def _draw_shares(axes: Any, count: int, points: Sequence[tuple[float, float]]) -> None:
    least = 1e-4
    exponents = np.log10(np.maximum(np.array(points), least))
    drawn = 10 ** np.unique(np.round(exponents / STEP) * STEP, axis=0)
    axes.plot([least, 1], [least, 1], color=WHISKER, linewidth=0.8)
    axes.plot(drawn[:, 0], drawn[:, 1], ".", color=INK, markersize=4, alpha=0.5)
    axes.set(
        title=f"{('two', 'three', 'four')[count - 2]} columns at once".capitalize(),
        xlabel="share of the true rows",
        ylabel="share of the synthetic rows",
        xscale="log",
        yscale="log",
        xlim=(least * 0.8, 1),
        ylim=(least * 0.8, 1),
    )
    axes.grid()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(
            lambda value, _: f"{'' if value > least else '≤ '}{100 * value:g} %"
        )


def five_minutes() -> str:
    """Draw the figure of the report that the first release of the five minutes writes."""
    figure: str = section_of(_counts("education", "income")).figures[0].svg
    return figure


def _counts(*columns: str) -> HistogramRelease:
    people = datasets.table("census", 20_000)
    return Histogram(columns=columns).release(people, budget=Budget.seeded(HOME[0]), rng=seeded(3))


def home() -> str:
    """Draw a table, what the ledger debits, and what is published of it."""
    name = HOME[1]
    release = _counts(name)
    labels = datasets.schema("census")[name].axis().labels
    answers = [release.count(f"{name} = {label}") for label in labels]
    with drawing((8.6, 3.0), panels=2, columns=2) as drawn:
        _draw_rows(drawn.axes[0], datasets.census(20_000).slice(0, 6))
        _draw_counts(drawn, labels, answers)
        return drawn.svg(fit=True)


def _draw_rows(axes: Any, rows: Any) -> None:
    columns = ("age", "sex", "education", "income")
    axes.set_axis_off()
    axes.set(title="A table that stays where it is", xlim=(0, 1), ylim=(0, 1))
    at = (0.0, 0.11, 0.28, 0.54)
    for x, column in zip(at, columns, strict=True):
        axes.text(x, 0.92, column, fontsize=LABEL_SIZE, weight="bold", color=WHISKER)
    for row, record in enumerate(rows.to_pylist()):
        for x, column in zip(at, columns, strict=True):
            axes.text(x, 0.79 - 0.12 * row, str(record[column]), fontsize=LABEL_SIZE, color=TEXT)
    axes.text(0, 0.06, "... 20,000 people", fontsize=LABEL_SIZE, color=TEXT)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 2}
    axes.annotate("", (0.98, 0.5), xytext=(0.76, 0.5), arrowprops=arrow, annotation_clip=False)
    axes.text(0.87, 0.56, f"ε = {HOME[0]}", fontsize=LABEL_SIZE, color=INK, ha="center")
    axes.text(0.87, 0.35, "debited\nfirst", fontsize=SMALL_SIZE, color=INK, ha="center")


def _draw_counts(drawn: Drawing, labels: Sequence[str], answers: Sequence[Answer]) -> None:
    axes = drawn.axes[1]
    rows = range(len(labels))
    values = [answer.value for answer in answers]
    axes.barh(rows, values, color=PALE, height=0.62)
    sides = [[a.value - a.low for a in answers], [a.high - a.value for a in answers]]
    axes.errorbar(values, rows, xerr=sides, fmt="none", ecolor=WHISKER, capsize=3, elinewidth=1.2)
    for row, answer in zip(rows, answers, strict=True):
        half = (answer.high - answer.low) / 2
        words = f"{answer.value:,.0f} ± {half:,.0f}"
        axes.annotate(
            words,
            (answer.high, row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_SIZE,
            color=TEXT,
        )
    axes.set(
        title="What is published: noisy counts,\n95 % intervals, and a receipt",
        yticks=rows,
        yticklabels=labels,
        xlim=(0, 1.25 * max(values)),
    )
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_color(FRAME)
    axes.grid(axis="x", color=GRID)
    label_by_counts(axes.xaxis)


DRAWN: Mapping[str, tuple[str, Callable[[], str]]] = {
    "epsilon": ("concepts/epsilon.svg", epsilon),
    "budget": ("concepts/budget.svg", budget),
    "intervals": ("concepts/intervals.svg", intervals),
    "neighbors": ("concepts/neighbors.svg", neighbors),
    "units": ("concepts/units.svg", units),
    "post-processing": ("concepts/post-processing.svg", post_processing),
    "synthetic-data": ("concepts/synthetic-data.svg", synthetic_data),
    "five-minutes": ("concepts/five-minutes.svg", five_minutes),
    "home": ("home.svg", home),
}


def main(names: Sequence[str]) -> int:
    """Write the pictures that are named, or all."""
    for name in names or DRAWN:
        path, draw = DRAWN[name]
        target = PICTURES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(in_either_scheme(draw()).rstrip("\n") + "\n", "utf-8")
        print(f"{name}: {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
