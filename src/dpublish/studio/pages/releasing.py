"""Review a release, confirm it by the dataset's name, and publish it once."""

from starlette.responses import Response

from dpublish.core.run import Progress
from dpublish.privacy.meaning import two_sentences
from dpublish.publishing.plan import plan
from dpublish.studio.desk import KEYS
from dpublish.studio.paying import left_of, pay_once, why_not
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
    hides = wanted.made.neighbors(schema)
    content = wanted.content
    output = visit.form.get("output") or visit.desk.free_name(f"{wanted.dataset}-{wanted.method}")
    return visit.show(
        "review.html",
        code=422 if problem else 200,
        wanted=wanted,
        planned=planned,
        account=status,
        after=left_of(status) - wanted.exact,
        hides=hides,
        sentences=two_sentences(wanted.exact, hides),
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
    if problem := why_not(visit, wanted.dataset, wanted.content, wanted.exact):
        return review(visit, problem)
    name = visit.given("output")
    path = visit.desk.new_release(name)
    return pay_once(
        visit,
        wanted.content,
        lambda report: _published(wanted, visit, path.name, report),
        title=f"{wanted.method} of {wanted.dataset}",
        verb="Publishing",
        back=f"/datasets/{wanted.dataset}",
        dataset=wanted.dataset,
        epsilon=wanted.epsilon,
        output=name,
    )


def _published(wanted: Wanted, visit: Visit, name: str, report: Progress) -> dict[str, str]:
    release = wanted.publish(visit.desk, visit.desk.releases / name, report)
    return {"goes_to": f"/releases/{name}", "said": f"published {name}", **release.summary()}


PAGES = (
    Page("/release", review, owner_only=True),
    Page("/release", send, "POST"),
)
