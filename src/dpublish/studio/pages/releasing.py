"""Review a release, confirm it by the dataset's name, and publish it once."""

from starlette.responses import Response

from dpublish.core.run import Progress
from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.meaning import two_sentences
from dpublish.publishing.plan import plan
from dpublish.studio.desk import KEYS
from dpublish.studio.jobs import Job
from dpublish.studio.remains import Remains, require_notion, spending
from dpublish.studio.spends import DONE, FAILED, Spend, now
from dpublish.studio.visit import Page, Visit
from dpublish.studio.wanted import Wanted


def review(visit: Visit, problem: str = "") -> Response:
    """Show what will be published, what it will cost, and what will be left."""
    wanted = Wanted.of(visit.form or visit.query)
    wanted.require("dataset", "data", "schema", "method", "epsilon")
    schema = wanted.read_schema(visit.desk)
    visit.desk.source(wanted.data)
    planned = plan(wanted.made, schema, epsilon=wanted.exact, n_records=wanted.n_records)
    with visit.desk.open_ledger() as ledger:
        status = ledger.status(wanted.dataset)
    hides, pays = wanted.made.neighbors(schema), spending(wanted.made, wanted.exact)
    require_notion(status, hides)
    content = wanted.content
    output = visit.form.get("output") or visit.desk.free_name(f"{wanted.dataset}-{wanted.method}")
    return visit.show(
        "review.html",
        code=422 if problem else 200,
        wanted=wanted,
        planned=planned,
        remains=Remains.of(status, wanted.made, wanted.exact),
        hides=hides,
        sentences=two_sentences(max(pays.values(), default=wanted.exact), hides, (*pays.items(),)),
        earlier=visit.studio.spends.same(content),
        key=visit.studio.spends.key_for(content),
        output=output,
        command=wanted.command(visit.desk, output),
        keys=visit.desk.list_files(KEYS),
        problem=problem,
    )


def send(visit: Visit) -> Response:
    """Publish once, however often the form is sent."""
    key = visit.given("key")
    if visit.studio.spends.find(key) is not None:
        return visit.go(f"/work/{key}")
    wanted = Wanted.of(visit.form)
    if problem := _problem(visit, wanted):
        return review(visit, problem)
    if not visit.studio.spends.is_open(wanted.content, key):
        raise InvalidParameter("this form is out of date: open the review again; nothing was spent")
    name = visit.given("output")
    path = visit.desk.new_release(name)
    title = f"{wanted.method} of {wanted.dataset}"
    spend = Spend(key, wanted.content, now(), wanted.dataset, title, wanted.epsilon, name)
    if not visit.studio.spends.begin(spend):
        return visit.go(f"/work/{key}")

    def ended(job: Job, state: str) -> None:
        visit.studio.spends.end(key, DONE if state == "done" else FAILED, job.problem)

    visit.studio.jobs.start(
        f"Publishing {title}",
        lambda report: _published(wanted, visit, path.name, report),
        key=key,
        back=f"/datasets/{wanted.dataset}",
        ended=ended,
    )
    return visit.go(f"/work/{key}")


def _published(wanted: Wanted, visit: Visit, name: str, report: Progress) -> dict[str, str]:
    release = wanted.publish(visit.desk, visit.desk.releases / name, report)
    return {"goes_to": f"/releases/{name}", "said": f"published {name}", **release.summary()}


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
        remains = Remains.of(ledger.status(wanted.dataset), wanted.made, wanted.exact)
    if not remains.suffices:
        return (
            f"{wanted.dataset} has epsilon {format_short(remains.left)} left, less than "
            f"{format_short(remains.left - remains.after)}; take a smaller epsilon, or raise the "
            "cap; nothing was spent"
        )
    return ""


PAGES = (
    Page("/release", review, owner_only=True),
    Page("/release", send, "POST"),
)
