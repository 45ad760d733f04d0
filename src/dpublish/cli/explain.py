"""`dpublish explain`: what an epsilon means, before anyone spends it."""

import click

from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.errors import InvalidParameter
from dpublish.planning.explain import RELEASES, Explanation
from dpublish.planning.explain import explain as explain_one
from dpublish.privacy.epsilon import format_rounded


@click.command()
@click.argument("epsilons", nargs=-1, metavar="EPSILON...")
@click.option(
    "--releases",
    type=int,
    multiple=True,
    help="How many releases of this epsilon to add up; may be given several times.",
)
@json_option
def explain(epsilons: tuple[str, ...], releases: tuple[int, ...], as_json: bool) -> None:
    """Explain what an epsilon means: odds, repeated releases, groups.  Reads no data.

    \b
    dpublish explain 0.5
    dpublish explain 0.1 0.5 2 --releases 12
    """  # noqa: D301 - click keeps lines after it
    texts = [text for each in epsilons for text in each.split(",") if text.strip()]
    if not texts:
        raise InvalidParameter("name an epsilon to explain: dpublish explain 0.5")
    found = [explain_one(text, releases=releases or RELEASES) for text in texts]
    if as_json:
        say_json([each.to_dict() for each in found])
        return
    for number, each in enumerate(found):
        if number:
            say()
        _say(each)


def _say(found: Explanation) -> None:
    say(f"epsilon {format_rounded(found.epsilon)}")
    say()
    say(found.sentences())
    for listing in found.listings():
        say()
        say_table(listing.headers, listing.rows, title=listing.title)
    say()
    for note in found.notes():
        say(note)
