"""The tree's section: its rules, and how large its branches are."""

from html import escape

from dpublish.core.released import Release
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.plots.style import INK, PAGE, PALE
from dpublish.report.predictions import accuracy_listing
from dpublish.report.section import Figure, Listing, Section

_MAX_RULES = 200
_MAX_BOXES = 2_000
_WIDTH, _HEIGHT = 720.0, 34.0


def section(release: Release, with_charts: bool) -> Section:
    """Show a decision tree."""
    if not isinstance(release, DecisionTreeRelease):
        return Section()
    lines = release.rules().split("\n")
    shown = [_rule(line) for line in lines[:_MAX_RULES]]
    caption = (
        f"Decision rules; what is indented holds together with what stands above it. {len(lines):,}"
    )
    caption += (
        " lines" if len(shown) == len(lines) else f" lines, of which {len(shown):,} are shown"
    )
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=[*_accuracy(release), Listing(["if", "then"], shown, caption + ".")],
        python="print(release.rules())\nrelease.predict(rows)",
    )


def _accuracy(release: DecisionTreeRelease) -> list[Listing]:
    """Bound the accuracy by the noisy counts of the leaves, if there are any."""
    if release.counts is None:
        return []
    leaves = list(release.shape.leaves)
    rates = [float(release.count_rates[release.shape.depths[leaf]]) for leaf in leaves]
    found = accuracy_listing(
        release.counts, release.predicted[leaves], rates, release.classes.labels
    )
    return [] if found is None else [found]


def _rule(line: str) -> list[str]:
    indent = len(line) - len(line.lstrip(" "))
    condition, colon, label = line.strip().rpartition(": ")
    if not colon:
        condition, label = label, ""
    return ["\u2003" * (indent // 2) + condition, label]


def _figures(release: DecisionTreeRelease) -> list[Figure]:
    if release.counts is None or release.shape.size > _MAX_BOXES:
        return []
    caption = (
        "The tree from its root (top) to its leaves; a box is as wide as the noisy number of its "
        f"records, and of the stronger color where {release.classes.labels[-1]} is predicted."
    )
    return [Figure(caption, _draw(release))]


def _draw(release: DecisionTreeRelease) -> str:
    """Draw every node as a box that lies under its parent."""
    shape = release.shape
    weights = [max(float(size), 0.0) for size in release.node_counts.sum(axis=1)]
    spans = [(0.0, _WIDTH)] + [(0.0, 0.0)] * (shape.size - 1)
    for node, branches in release.branches.items():
        left, right = spans[node]
        children = branches.children
        scale = (right - left) / (sum(weights[child] for child in children) or 1.0)
        for child in children:
            width = scale * weights[child]
            spans[child], left = (left, left + width), left + width
    boxes = [_box(release, node, *spans[node]) for node in range(shape.size)]
    height = _HEIGHT * (max(shape.depths) + 1)
    head = f'<svg viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" font-size="11">'
    return head + "".join(boxes) + "</svg>"


def _box(release: DecisionTreeRelease, node: int, left: float, right: float) -> str:
    label = release.classes.labels[release.predicted[node]]
    branches = release.branches.get(node)
    text = branches.column if branches else label
    is_last = release.predicted[node] == release.classes.size - 1
    top = _HEIGHT * release.shape.depths[node]
    box = (
        f'<g><title>{escape(text)}</title><rect x="{left:.1f}" y="{top:.1f}" '
        f'width="{right - left:.1f}" height="{_HEIGHT - 1:.1f}" '
        f'fill="{INK if is_last else PALE}" stroke="{PAGE}" stroke-width="0.5"/>'
    )
    fits = len(text) * 6.5 < right - left
    ink = f' fill="{PAGE}"' if is_last else ""
    words = f'<text x="{left + 4:.1f}" y="{top + 21:.1f}"{ink}>{escape(text)}</text>'
    return box + (words if fits else "") + "</g>"
