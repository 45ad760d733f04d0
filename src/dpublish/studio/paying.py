"""What every form that spends asks before it does, and how its work begins once."""

from fractions import Fraction
from typing import Any

from starlette.responses import Response

from dpublish.errors import InvalidParameter
from dpublish.ledger.account import Status
from dpublish.privacy.epsilon import format_short
from dpublish.studio.jobs import Job, Work
from dpublish.studio.spends import DONE, FAILED, Spend, now
from dpublish.studio.visit import Visit


def left_of(status: Status) -> Fraction:
    """Return what may still be spent at every level."""
    return min((each.left for each in status.levels), default=status.left)


def why_not(visit: Visit, dataset: str, content: str, epsilon: Fraction) -> str:
    """Say what is missing in a form before it may spend; empty if nothing is."""
    if visit.form.get("confirm", "").strip() != dataset:
        return f"type the name of the dataset, {dataset}, to confirm; nothing was spent"
    if visit.studio.spends.same(content) and visit.form.get("again") != "yes":
        return (
            "just this was published before; tick the box if you want it once more, at its price; "
            "nothing was spent"
        )
    with visit.desk.open_ledger() as ledger:
        left = left_of(ledger.status(dataset))
    if epsilon > left:
        return (
            f"{dataset} has epsilon {format_short(left)} left, less than "
            f"{format_short(epsilon)}; take a smaller epsilon, or raise the cap; nothing was spent"
        )
    return ""


def pay_once(
    visit: Visit, content: str, work: Work, *, title: str, verb: str, back: str, **told: Any
) -> Response:
    """Begin work that spends, however often its form is sent; lead to its page."""
    spends, key = visit.studio.spends, visit.given("key")
    if not spends.is_open(content, key):
        raise InvalidParameter("this form is out of date: open the review again; nothing was spent")
    if spends.begin(Spend(key=key, content=content, time=now(), title=title, **told)):

        def ended(job: Job, state: str) -> None:
            spends.end(key, DONE if state == "done" else FAILED, job.problem)

        visit.studio.jobs.start(f"{verb} {title}", work, key=key, back=back, ended=ended)
    return visit.go(f"/work/{key}")
