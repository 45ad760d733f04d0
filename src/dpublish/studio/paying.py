"""Requests that spend, whatever they start: reviewed, confirmed by a name, carried out once."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from starlette.responses import Response

from dpublish.errors import InvalidParameter
from dpublish.ledger.account import Status
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.meaning import two_sentences
from dpublish.privacy.neighbors import Neighbors
from dpublish.studio.desk import KEYS
from dpublish.studio.jobs import Job, Work
from dpublish.studio.spends import DONE, FAILED, Spend, now
from dpublish.studio.visit import Visit
from dpublish.studio.wanted import Wanted

Review = Callable[[Visit, str], Response]
"""Shows the review again, with what is wrong."""


class Started(NamedTuple):
    """What a request starts.

    Attributes:
        title: What it is, in words.
        doing: The same while it runs.
        output: The name of what it makes.
        work: Carries it out.
        back: Where its page leads back to.
    """

    title: str
    doing: str
    output: str
    work: Work
    back: str


def review_content(visit: Visit, wanted: Wanted, hides: Neighbors) -> dict[str, Any]:
    """Collect what every review shows: the account before and after, the guarantee, the key."""
    with visit.desk.open_ledger() as ledger:
        status = ledger.status(wanted.dataset)
    content = wanted.content
    return {
        "wanted": wanted,
        "account": status,
        "after": left_of(status) - wanted.exact,
        "hides": hides,
        "sentences": two_sentences(wanted.exact, hides),
        "earlier": visit.studio.spends.same(content),
        "key": visit.studio.spends.key_for(content),
        "keys": visit.desk.list_files(KEYS),
    }


def carry_out(
    visit: Visit, wanted: Wanted, *, review: Review, prepare: Callable[[], Started]
) -> Response:
    """Start what was reviewed, once, however often its form is sent."""
    key = visit.given("key")
    page = f"/work/{key}"
    if visit.studio.spends.find(key) is not None:
        return visit.go(page)
    if problem := _problem(visit, wanted):
        return review(visit, problem)
    if not visit.studio.spends.is_open(wanted.content, key):
        raise InvalidParameter("this form is out of date: open the review again; nothing was spent")
    start = prepare()
    spend = Spend(
        key, wanted.content, now(), wanted.dataset, start.title, wanted.epsilon, start.output
    )
    if not visit.studio.spends.begin(spend):
        return visit.go(page)

    def ended(job: Job, state: str) -> None:
        visit.studio.spends.end(key, DONE if state == "done" else FAILED, job.problem)

    visit.studio.jobs.start(start.doing, start.work, key=key, back=start.back, ended=ended)
    return visit.go(page)


def left_of(status: Status) -> Fraction:
    """Return what may still be spent at every level."""
    return min((each.left for each in status.levels), default=status.left)


def _problem(visit: Visit, wanted: Wanted) -> str:
    """Say what is missing in the form before it may spend."""
    if visit.form.get("confirm", "").strip() != wanted.dataset:
        return f"type the name of the dataset, {wanted.dataset}, to confirm; nothing was spent"
    if visit.studio.spends.same(wanted.content) and visit.form.get("again") != "yes":
        return (
            "just this was published before; tick the box if you want it once more, at its price; "
            "nothing was spent"
        )
    with visit.desk.open_ledger() as ledger:
        left = left_of(ledger.status(wanted.dataset))
    if wanted.exact > left:
        return (
            f"{wanted.dataset} has epsilon {format_short(left)} left, less than "
            f"{format_short(wanted.exact)}; take a smaller epsilon, or raise the cap; nothing was "
            "spent"
        )
    return ""
