"""The model's section: how good it is, what depends on what, which tables were counted."""

import shlex

import numpy as np

from dpublish.accuracy.rounding import format_number
from dpublish.core.released import Release
from dpublish.data.query.language import quote
from dpublish.methods.synth.released import SynthRelease
from dpublish.plots.charts import MERGED, Panel, dependence_map, small_bar_charts
from dpublish.plots.networks import MOST_NODES, network
from dpublish.report.axis_marginals import tell_rest
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words, most_in_words, pairs_in_words
from dpublish.types import FloatArray

_MAX_MARGINALS = 48
_MAX_MAPPED = 80
_MAX_TABLES = 60
_MAX_PAIRS = 10
_MAX_COLUMNS = 12
_SAMPLE_ROWS = 5


def section(release: Release, with_charts: bool) -> Section:
    """Show a model of a table."""
    if not isinstance(release, SynthRelease):
        return Section()
    dependence = _dependence(release)
    query = _condition(release)
    tables = (_quality(release), _strongest(release, dependence), _tables(release), _rows(release))
    return Section(
        figures=_figures(release, dependence) if with_charts else (),
        listings=[listing for listing in tables if listing.rows],
        python=f"release.rows(1000).to_pandas()\nprint(release.count({query!r}))\n"
        "print(release.mean_distance())",
        shell="dpublish rows RELEASE -n 1000 -o rows.csv\n"
        f"dpublish rows RELEASE -n 1000 --where {shlex.quote(query)} -o some.csv\n"
        f"dpublish count RELEASE {shlex.quote(query)}",
    )


def _condition(release: SynthRelease) -> str:
    """Write a condition that some rows satisfy: the most frequent value of the first column."""
    axis = release.schema[release.names[0]].axis()
    if axis.edges is not None:
        middle = axis.edges[(len(axis.edges) - 1) // 2]
        return f"{quote(axis.column)} >= {quote(axis.write(middle))}"
    most = int(np.argmax(release.known.values[0][: axis.ordinary_leaves]))
    return f"{quote(axis.column)} = {quote(axis.labels[most])}"


def _quality(release: SynthRelease) -> Listing:
    rows = []
    for what, distance in (
        ("mean of all pairs of columns", release.mean_distance()),
        ("the pair that is furthest off", release.worst_distance()),
    ):
        if distance is not None:
            interval = f"{distance.low:.3f} to {distance.high:.3f}"
            rows.append([what, f"{distance.value:.3f}", interval])
    return Listing(
        headers=["distance from the truth", "measured", "95 % confidence interval"],
        rows=rows,
        caption="Total variation distance between the true frequencies of pairs of columns and "
        "those that rows are drawn with: 0 is equal, 1 has nothing in common. It was measured on "
        "the true records, with noise, and a share of epsilon paid for it.",
        is_folded=True,
    )


def _dependence(release: SynthRelease) -> FloatArray:
    """Compute Cramer's V of all pairs of columns by the model; public."""
    number = len(release.names)
    found = np.eye(number)
    for (one, other), table in release.model.pairs.items():
        found[one, other] = found[other, one] = _cramers_v(table)
    return found


def _cramers_v(table: FloatArray) -> float:
    """Compute Cramer's V of a joint distribution: 0 if independent, 1 if one follows.

    Probabilities of 1e-258 occur where a fitted value is all but impossible: what is expected of
    them together is no longer a number above 0, and adds nothing.

    >>> _cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), _cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    >>> _cramers_v(np.outer([1.0, 1e-258], [1.0, 1e-258]))
    0.0
    """
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(kept.shape) - 1
    if least < 1:
        return 0.0
    expected = np.multiply.outer(kept.sum(axis=1), kept.sum(axis=0))
    terms = np.divide((kept - expected) ** 2, expected, out=np.zeros_like(kept), where=expected > 0)
    return float(np.sqrt(min(terms.sum() / least, 1.0)))


def _strongest(release: SynthRelease, dependence: FloatArray) -> Listing:
    first, second = np.triu_indices(len(release.names), 1)
    found = dependence[first, second]
    order = np.argsort(-found, kind="stable")[:_MAX_PAIRS]
    counted = [{*table.columns} for table in release.counted]
    rows = []
    for k in order:
        pair = (int(first[k]), int(second[k]))
        is_counted = any({*pair} <= one for one in counted)
        source = "counted together" if is_counted else "through other columns"
        rows.append([*(release.names[i] for i in pair), f"{found[k]:.2f}", source])
    return Listing(
        headers=["column", "column", "Cramer's V", "how it is known"],
        rows=rows if release.counted else [],
        caption=f"The {len(rows)} strongest dependences of {found.size:,} in the rows.",
    )


def _tables(release: SynthRelease) -> Listing:
    rows = []
    for table in release.counted[:_MAX_TABLES]:
        names = [
            f"{release.names[i]} ({release.classes[i].sizes[level]})"
            for i, level in zip(table.columns, table.levels, strict=True)
        ]
        noise = np.sqrt(2) / float(table.rate)
        rows.append([" x ".join(names), f"{table.counts.size:,}", f"{noise:,.0f}"])
    more = len(release.counted) - len(rows)
    rest = f" {more:,} more are not shown." if more else ""
    return Listing(
        headers=["columns (classes)", "cells", "standard deviation of the noise"],
        rows=rows,
        caption=f"The tables that were counted, in the order in which they were chosen.{rest}",
    )


def _rows(release: SynthRelease) -> Listing:
    names = release.schema.names[:_MAX_COLUMNS]
    drawn = release.rows(_SAMPLE_ROWS, seed=0).select(names)
    return Listing(
        headers=names,
        rows=[[_text(row[name]) for name in names] for row in drawn.to_pylist()],
        caption="Rows drawn from the release: synthetic, not copied from records.",
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return format_number(value, 6) if isinstance(value, float) else str(value)


def _figures(release: SynthRelease, dependence: FloatArray) -> list[Figure]:
    figures = []
    if release.counted:
        shown = release.names[:_MAX_MAPPED]
        size = len(shown)
        drawing = dependence_map(shown, dependence[:size, :size], measure="Cramer's V")
        caption = (
            "How much columns depend on each other in the rows: Cramer's V, 0 (no color) if "
            "independent, 1 if one follows from the other."
        )
        alt = f"{caption} {pairs_in_words(shown, dependence[:size, :size])}"
        figures += tell_rest([Figure(caption, drawing, alt)], len(release.names) - size)
    panels = []
    for name in release.names[:_MAX_MARGINALS]:
        marginal = release.marginal(name)
        counts = np.maximum(marginal.counts, 0).astype(np.float64)
        width = format_number(marginal.half_width, 3)
        title = f"{name} (±{width})"
        panels.append(Panel(title, marginal.labels, counts, marginal.half_width))
    caption = (
        f"Noisy counts of every column; {MERGED}. Bands are the 95 % confidence intervals of "
        "each value's count; the number beside a name is their half-width."
    )
    said = [f"{panel.title}: {most_in_words(panel.labels, panel.counts)}" for panel in panels]
    alt = f"Noisy counts of every column. {each_in_words(said)}"
    counted = [Figure(caption, small_bar_charts(panels), alt)]
    counted = tell_rest(counted, len(release.names) - len(panels))
    return [*figures, *counted, *_tree(release)]


def _tree(release: SynthRelease) -> list[Figure]:
    """Draw the junction tree: which columns the model joins directly."""
    tree = release.tree
    if len(tree.cliques) > MOST_NODES or not any(tree.separators):
        return []
    names = [", ".join(release.names[i] for i in clique) for clique in tree.cliques]
    joined = {
        name: [names[above]] if shared else []
        for name, above, shared in zip(names, tree.parents, tree.separators, strict=True)
    }
    caption = (
        "The junction tree of the model: columns in one box were modeled together, and boxes that "
        "share columns are joined."
    )
    return [Figure(caption, network(joined, is_directed=False), f"{caption} {'; '.join(names)}.")]
