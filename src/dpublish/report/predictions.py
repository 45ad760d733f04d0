"""How well a published classifier predicts, as far as its own noisy counts tell."""

from collections.abc import Sequence

from dpublish.accuracy.classifiers import accuracy_bounds, majority_bounds
from dpublish.report.section import Listing
from dpublish.types import IntArray


def accuracy_listing(
    counts: IntArray, predicted: IntArray, rates: Sequence[float], classes: Sequence[str]
) -> Listing | None:
    """List the accuracy of the prediction of each group, and of the most frequent class.

    Args:
        counts: Noisy counts, a row for each group and a column for each class.
        predicted: The class of each group.
        rates: The rate of the noise of each group's counts.
        classes: Names of the classes.
    """
    found = accuracy_bounds(counts, predicted, rates)
    if found is None:
        return None
    most = int(counts.sum(axis=0).argmax())
    always = majority_bounds(counts, rates)
    rows = [["the rules of this release", *(f"{100 * part:.1f} %" for part in found)]]
    if always is not None:
        rows.append([f"always {classes[most]}", *(f"{100 * part:.1f} %" for part in always)])
    return Listing(
        ["what predicts", "right, by the noisy counts", "at least", "at most"],
        rows,
        "How many of the counted records get their own class. The noisy counts flatter rules that "
        "were made from them; the bounds allow for that and hold in 95 of 100 releases. They speak "
        "of this table; records that are not in it may be harder to predict.",
    )


def describe_rules(shown: int, groups: int) -> str:
    """Write the caption of a table of rules."""
    if shown == groups:
        return f"Decision rules, all {groups:,} of them, the one with the most records first."
    return f"Decision rules, the {shown:,} of {groups:,} with the most records."
