"""Requests that spend, whatever they start: reviewed, confirmed by a name, carried out once."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from starlette.responses import Response

from dpublish.core.run import Progress
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.privacy.epsilon import format_epsilon, format_short
from dpublish.privacy.meaning import two_sentences
from dpublish.privacy.neighbors import Neighbors
from dpublish.studio.desk import KEYS
from dpublish.studio.jobs import Job, Work
from dpublish.studio.remains import Remains, require_notion, spending
from dpublish.studio.spends import ASKED_BEFORE, DONE, FAILED, Spend, now
from dpublish.studio.visit import Visit


@dataclass(frozen=True)
class Payment:
    """What a form that spends asks the ledger for.

    Attributes:
        dataset: Who pays.
        content: All that is asked for, as one text; the same request has the same text.
        epsilon: What it costs.
        method: What spends it; a personalized method costs each level something else.
    """

    dataset: str
    content: str
    epsilon: Fraction
    method: Any = None


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


def review_content(visit: Visit, payment: Payment, hides: Neighbors) -> dict[str, Any]:
    """Collect what every review shows: the account before and after, the guarantee, the key."""
    with visit.desk.open_ledger() as ledger:
        status = ledger.status(payment.dataset)
    require_notion(status, hides)
    pays = spending(payment.method, payment.epsilon)
    most = max(pays.values(), default=payment.epsilon)
    return {
        "remains": Remains.of(status, payment.method, payment.epsilon),
        "hides": hides,
        "sentences": two_sentences(most, hides, (*pays.items(),)),
        "earlier": visit.studio.spends.same(payment.content),
        "key": visit.studio.spends.key_for(payment.content),
        "keys": visit.desk.list_files(KEYS),
    }


def carry_out(
    visit: Visit,
    payment: Callable[[], Payment],
    *,
    review: Callable[[str], Response],
    prepare: Callable[[], Started],
) -> Response:
    """Start what was reviewed, once, however often its form is sent.

    `review` shows the review again, with what is wrong; `prepare` makes what is started, and
    refuses what cannot be.
    """
    spends, key = visit.studio.spends, visit.given("key")
    refused = None
    if spends.find(key) is None:
        try:
            refused = _begin(visit, key, payment, review=review, prepare=prepare)
        except DPublishError:
            if spends.find(key) is None:
                raise
    # What a form is refused for may be that it was sent a moment ago, by a double click.
    if refused is not None and spends.find(key) is None:
        return refused
    return visit.go(f"/jobs/{key}")


def _begin(
    visit: Visit,
    key: str,
    payment: Callable[[], Payment],
    *,
    review: Callable[[str], Response],
    prepare: Callable[[], Started],
) -> Response | None:
    """Write a request down and start it; or show the review again, with what is wrong."""
    spends, asked = visit.studio.spends, payment()
    if problem := _problem(visit, asked):
        return review(problem)
    if not spends.is_open(asked.content, key):
        raise InvalidParameter("this form is out of date: open the review again; nothing was spent")
    start = prepare()
    spend = Spend(
        key=key,
        content=asked.content,
        time=now(),
        dataset=asked.dataset,
        title=start.title,
        epsilon=format_epsilon(asked.epsilon),
        output=start.output,
    )
    try:
        if not spends.begin(spend, again=_is_again(visit)):
            return None
    except InvalidParameter as refusal:
        return review(str(refusal))

    def work(report: Progress) -> Any:
        if payment().content != asked.content:  # it may have waited for other work
            raise InvalidParameter(
                "the schema was changed after the review; open the review again; nothing was spent"
            )
        return start.work(report)

    def ended(job: Job, state: str) -> None:
        spends.end(key, DONE if state == "done" else FAILED, job.problem)

    visit.studio.jobs.start(start.doing, work, key=key, back=start.back, ended=ended)
    return None


def _is_again(visit: Visit) -> bool:
    return visit.form.get("again") == "yes"


def _problem(visit: Visit, asked: Payment) -> str:
    """Say what is missing in a form before it may spend; empty if nothing is."""
    if visit.form.get("confirm", "").strip() != asked.dataset:
        return f"type the name of the dataset, {asked.dataset}, to confirm; nothing was spent"
    if visit.studio.spends.same(asked.content) and not _is_again(visit):
        return ASKED_BEFORE
    with visit.desk.open_ledger() as ledger:
        remains = Remains.of(ledger.status(asked.dataset), asked.method, asked.epsilon)
    if not remains.suffices:
        return (
            f"{asked.dataset} has epsilon {format_short(remains.left)} left, less than "
            f"{format_short(remains.left - remains.after)}; take a smaller epsilon, or raise the "
            "cap; nothing was spent"
        )
    return ""
