"""Plan a release: goal, advised methods, error against epsilon, rehearsal; spends nothing."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from dpublish.core.registry import list_methods
from dpublish.data.schema import all_names
from dpublish.errors import DPublishError
from dpublish.planning.goals import GOALS, NEEDS_TARGET
from dpublish.planning.rehearsal import Rehearsal
from dpublish.planning.rehearse import REPEATS
from dpublish.privacy.epsilon import format_epsilon
from dpublish.publishing.plan import THEORY
from dpublish.studio.asked import Asked
from dpublish.studio.curves import has_knee, rehearsed_curves
from dpublish.studio.desk import SCHEMAS, TABLES
from dpublish.studio.jobs import Job
from dpublish.studio.rehearsals import DEFAULT_TRIED, ORIGINS, Rehearsing, rehearsals
from dpublish.studio.study import Study
from dpublish.studio.visit import Page, Visit, address


def page(visit: Visit, problem: str = "") -> Response:
    """Show what can be planned so far; what cannot is told where it is."""
    study = Study(_asked(visit), visit.desk).complete()
    has_problem = bool(problem or study.problems)
    return visit.show(
        "plan.html",
        code=422 if has_problem and not visit.is_part else 200,
        **_content(study),
        problem=problem,
        schemas=visit.desk.list_files(SCHEMAS),
        columns=() if study.schema is None else all_names(study.schema),
        goals=GOALS,
        needs_target=NEEDS_TARGET,
        methods=list_methods(),
        running=rehearsals(visit.studio.jobs),
        rehearsed=_rehearsed(visit, study),
    )


def estimate(visit: Visit) -> Response:
    """Show what depends on epsilon alone: figures, curve, what is left, what epsilon means."""
    study = Study(_asked(visit), visit.desk).complete()
    answer = visit.show("plan_estimate.html", **_content(study))
    answer.headers["HX-Replace-Url"] = address("/plan", **study.asked.query())
    return answer


def rehearse(visit: Visit) -> Response:
    """Begin a rehearsal on public rows, or show the same one; no private row is read."""
    study = Study(_asked(visit), visit.desk).complete()
    try:
        job = Rehearsing.of(study).start(visit.studio.jobs)
    except DPublishError as error:
        return page(visit, str(error))
    fields = replace(study.stated, rehearsal=job.key).query()
    return visit.go("/plan", anchor="rehearsal", **fields)


def _asked(visit: Visit) -> Asked:
    """Read the page's fields, of an address or of a form."""
    if visit.form:
        return Asked.of(visit.form)
    fields = visit.request.query_params
    return Asked.of(fields, fields.getlist("column"))


def _content(study: Study) -> dict[str, Any]:
    return {"study": study, "asked": study.asked, "theory": THEORY}


def _rehearsed(visit: Visit, study: Study) -> dict[str, Any]:
    """Find what the part of the page about rehearsals shows."""
    found: dict[str, Any] = {
        "refusal": "",
        "measured": "",
        "origins": ORIGINS,
        "tables": visit.desk.list_files(TABLES),
        "releases": visit.desk.list_releases(),
        "tried": DEFAULT_TRIED,
        "repeats": REPEATS,
        "job": None,
        "is_lost": False,
        "result": None,
        "pictures": (),
        "take": (),
    }
    try:
        plan = Rehearsing.of(study)
        found["measured"] = "; ".join(f"{one.name} ({one.title})" for one in plan.measures)
    except DPublishError as error:
        return found | {"refusal": str(error)}
    key = study.asked.rehearsal
    if not plan.is_of(key):
        return found
    job = visit.studio.jobs.get(key)
    return found | {"job": job, "is_lost": job is None} | _result(job, study)


def _result(job: Job | None, study: Study) -> dict[str, Any]:
    if job is None or not isinstance(job.result, Rehearsal):
        return {}
    marked = study.exact if study.planned is not None else None
    found = job.result
    take = {format_epsilon(found.knee): "where more stops paying"} if has_knee(found) else {}
    if found.wanted is not None and found.epsilon is not None:
        take |= {format_epsilon(found.epsilon): f"for {found.wanted}"}
    links = [
        (epsilon, why, replace(study.stated, wanted=replace(study.wanted, epsilon=epsilon)).query())
        for epsilon, why in take.items()
    ]
    return {"result": found, "pictures": rehearsed_curves(found, marked), "take": links}


PAGES: tuple[Page, ...] = (
    Page("/plan", page),
    Page("/plan/estimate", estimate),
    Page("/plan/rehearsals", rehearse, "POST"),
)
