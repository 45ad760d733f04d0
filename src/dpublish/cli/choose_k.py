"""`dpublish choose-k`: how many clusters a published grid shows; free."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import click

from dpublish.cli.output import json_option, say, say_json, say_table, show_progress
from dpublish.core.folder.folder import load
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.choose_k import Validity, best_of, draw_validity, judge_clusters
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.publishing.table_file import page_path
from dpublish.storage.files import write_text


@click.command("choose-k")
@click.argument("release")
@click.option("--from", "fewest", type=int, default=2, show_default=True, help="Fewest clusters.")
@click.option("--to", "most", type=int, default=16, show_default=True, help="Most clusters.")
@click.option(
    "--n-init",
    "--starts",
    "n_init",
    type=int,
    default=30,
    show_default=True,
    help="Searches for each.",
)
@click.option("--seed", type=int, help="Search in the same way again; harmless here.")
@click.option(
    "-o",
    "--output",
    help="A new .svg file; if absent RELEASE-choose-k.svg, which is replaced if it is there.",
)
@json_option
def choose_k(
    release: str,
    fewest: int,
    most: int,
    n_init: int,
    seed: int | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Compute how many clusters fit a release's grid best, and draw the validity; free.

    The validity is the mean squared distance from the own center, divided by the least squared
    distance of two centers.  The smallest is best.

    \b
    dpublish choose-k shops/ --from 2 --to 16
    """  # noqa: D301 - click keeps lines after it
    path = page_path(release, output, "choose-k.svg")
    loaded = load(release)
    if not isinstance(loaded, KMeansRelease):
        raise InvalidParameter(f"a release of kind {loaded.kind!r} has no clusters to choose")
    if fewest > most:
        raise InvalidParameter(f"--from ({fewest}) must not be above --to ({most})")
    with show_progress() as progress:
        candidates = range(fewest, most + 1)
        found = judge_clusters(loaded, candidates, n_init=n_init, seed=seed, progress=progress)
    drawn = _draw(found, path, replaces=output is None)
    best = best_of(found)
    if as_json:
        plot = None if drawn is None else str(drawn)
        say_json({"best": best.n_clusters, "validity": list(map(_plain, found)), "plot": plot})
        return
    rows = [
        [
            f"{one.n_clusters}{' *' if one is best else ''}",
            f"{one.within:.5f}",
            f"{one.between:.5f}",
            f"{one.ratio:.4f}",
        ]
        for one in found
    ]
    say_table(["clusters", "within", "between", "validity"], rows)
    say(f"{best.n_clusters} clusters fit best (smallest validity)")
    say("no plot, since Matplotlib is not installed" if drawn is None else f"wrote {drawn}")


def _plain(one: Validity) -> dict[str, Any]:
    """Write a line for programs; what is infinite is null, for JSON has no infinity."""
    return {
        "clusters": one.n_clusters,
        "within": one.within,
        "between": one.between,
        "validity": one.ratio if isfinite(one.ratio) else None,
    }


def _draw(found: Sequence[Validity], path: Path, *, replaces: bool) -> Path | None:
    """Draw the validity over the number of clusters, or do nothing without Matplotlib."""
    picture = draw_validity(found)
    if picture is None:
        return None
    write_text(path, picture, replaces=replaces)
    return path
