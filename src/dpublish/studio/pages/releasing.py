"""Review a release, confirm it by the dataset's name, and publish it once."""

from starlette.responses import Response

from dpublish.core.run import Progress
from dpublish.publishing.plan import plan
from dpublish.studio.paying import Payment, Started, carry_out, review_content
from dpublish.studio.visit import Page, Visit
from dpublish.studio.wanted import Wanted


def review(visit: Visit, problem: str = "") -> Response:
    """Show what will be published, what it will cost, and what will be left."""
    wanted = Wanted.of(visit.form or visit.query)
    wanted.require("dataset", "data", "schema", "method", "epsilon")
    schema = wanted.read_schema(visit.desk)
    visit.desk.source(wanted.data)
    planned = plan(wanted.made, schema, epsilon=wanted.exact, n_records=wanted.n_records)
    output = visit.form.get("output") or visit.desk.free_name(f"{wanted.dataset}-{wanted.method}")
    return visit.show(
        "review.html",
        code=422 if problem else 200,
        wanted=wanted,
        planned=planned,
        output=output,
        command=wanted.command(visit.desk, output),
        problem=problem,
        **review_content(visit, _payment(wanted, visit), wanted.made.neighbors(schema)),
    )


def send(visit: Visit) -> Response:
    """Publish once, however often the form is sent."""
    wanted = Wanted.of(visit.form)

    def prepare() -> Started:
        name = visit.desk.new_release(visit.given("output")).name
        title = f"{wanted.method} of {wanted.dataset}"
        return Started(
            title=title,
            doing=f"Publishing {title}",
            output=name,
            work=lambda report: _published(wanted, visit, name, report),
            back=f"/datasets/{wanted.dataset}",
        )

    return carry_out(
        visit,
        lambda: _payment(wanted, visit),
        review=lambda problem: review(visit, problem),
        prepare=prepare,
    )


def _payment(wanted: Wanted, visit: Visit) -> Payment:
    content = wanted.content(wanted.made, wanted.read_schema(visit.desk))
    return Payment(wanted.dataset, content, wanted.exact, wanted.made)


def _published(wanted: Wanted, visit: Visit, name: str, report: Progress) -> dict[str, str]:
    release = wanted.publish(visit.desk, visit.desk.releases / name, report)
    return {"goes_to": f"/releases/{name}", "said": f"published {name}", **release.summary()}


PAGES = (
    Page("/release", review, owner_only=True),
    Page("/release", send, "POST"),
)
