"""The tree's section: its rules, and how large its branches are or which class was chosen."""

from html import escape

from dpublish.core.released import Release
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.plots.style import INK, PAGE, PALE
from dpublish.report.predictions import accuracy_listing
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words

_MAX_RULES = 200
_MAX_BOXES = 2_000
_MAX_CLASSES = 40
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
    if release.counts is None:
        return _class_boxes(release)
    if release.shape.size > _MAX_BOXES:
        return []
    caption = (
        "The tree from its root (top) to its leaves; a box is as wide as the noisy number of its "
        f"records, and of the stronger color where {release.classes.labels[-1]} is predicted."
    )
    return [Figure(caption, _draw(release), f"{caption} {_in_words(release)}")]


def _in_words(release: DecisionTreeRelease) -> str:
    """Say how large the tree is, how it begins, and what its leaves predict."""
    labels, leaves = release.classes.labels, list(release.shape.leaves)
    root = release.branches.get(0)
    begins = "it is one leaf" if root is None else f"its root asks for {root.column}"
    chosen = [int(release.predicted[leaf]) for leaf in leaves]
    said = [f"{label}: {chosen.count(code):,}" for code, label in enumerate(labels)]
    return (
        f"The tree has {len(leaves):,} leaves, and {begins}. Leaves that predict each value of "
        f"{release.target}: {each_in_words(said)}"
    )


def _class_boxes(release: DecisionTreeRelease) -> list[Figure]:
    """Show which class was chosen; boxes are equally wide, since there are no counts."""
    labels = release.classes.labels
    if len(labels) > _MAX_CLASSES:
        return []
    chosen = release.predicted[0]
    caption = (
        f"The classes of {release.target}: {labels[chosen]}, in the stronger color, is predicted "
        "for every record. No count is published, so all boxes are equally wide."
    )
    width = _WIDTH / len(labels)
    boxes = [
        _box(label, index == chosen, index * width, (index + 1) * width, 0.0)
        for index, label in enumerate(labels)
    ]
    alt = f"{labels[chosen]} is predicted for {release.target}, of {', '.join(labels)}."
    return [Figure(caption, _svg(boxes, _HEIGHT), alt)]


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
    boxes = [_node(release, node, *spans[node]) for node in range(shape.size)]
    return _svg(boxes, _HEIGHT * (max(shape.depths) + 1))


def _node(release: DecisionTreeRelease, node: int, left: float, right: float) -> str:
    predicted = release.predicted[node]
    branches = release.branches.get(node)
    text = branches.column if branches else release.classes.labels[predicted]
    is_last = predicted == release.classes.size - 1
    return _box(text, is_last, left, right, _HEIGHT * release.shape.depths[node])


def _box(text: str, is_strong: bool, left: float, right: float, top: float) -> str:
    """Draw a box, and its text if there is room for it."""
    box = (
        f'<g><title>{escape(text)}</title><rect x="{left:.1f}" y="{top:.1f}" '
        f'width="{right - left:.1f}" height="{_HEIGHT - 1:.1f}" '
        f'fill="{INK if is_strong else PALE}" stroke="{PAGE}" stroke-width="0.5"/>'
    )
    fits = len(text) * 6.5 < right - left
    ink = f' fill="{PAGE}"' if is_strong else ""
    words = f'<text x="{left + 4:.1f}" y="{top + 21:.1f}"{ink}>{escape(text)}</text>'
    return box + (words if fits else "") + "</g>"


def _svg(boxes: list[str], height: float) -> str:
    """Write a drawing that a page and a file can hold."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'role="img" font-family="sans-serif" font-size="11">{"".join(boxes)}</svg>'
    )
