"""Begin with a table: the guided start of `dpublish init` as pages; reads no row."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from dpublish.data.code_list import CODE_ENDINGS
from dpublish.data.column_answer import FORMS
from dpublish.data.sources import DATABASE_ENDINGS, proposable_columns
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.planning.goals import GOALS
from dpublish.planning.start import Start
from dpublish.planning.start_files import look, save_answers, write_all
from dpublish.planning.start_steps import NONE, WHY_NOT_READ
from dpublish.privacy.epsilon import format_epsilon
from dpublish.studio.begun import REVIEW, STAGES, Begun, start_files
from dpublish.studio.code_files import list_codes
from dpublish.studio.desk import TABLES
from dpublish.studio.looks import Look, start_look
from dpublish.studio.uploads import keep_upload
from dpublish.studio.visit import Page, Visit, address


def begin(visit: Visit, problem: str = "") -> Response:
    """Show the tables that there are, and the form that uploads one."""
    return visit.show(
        "begin.html",
        code=422 if problem else 200,
        tables=visit.desk.list_tables(),
        endings=TABLES,
        asked={name: visit.query.get(name, "") for name in ("data", "dataset", "table")},
        problem=problem,
    )


def upload(visit: Visit) -> Response:
    """Put a table into the folder; one whose columns cannot be told is not kept."""
    path = keep_upload(visit.desk, visit.uploads.get("table"), TABLES)
    if not path.name.endswith(DATABASE_ENDINGS):  # whose tables are named on the next page
        try:
            Start.of(proposable_columns(path))
        except DPublishError:
            path.unlink()
            raise
    return visit.go("/begin/steps", data=path.relative_to(visit.desk.files.resolve()).as_posix())


def steps(visit: Visit) -> Response:
    """Show the next queries, or those of a group that is asked for; at the end, the review."""
    try:
        files = start_files(visit.desk, visit.given("data"), *_named(visit))
        if files.schema.exists() and not files.answers.exists():
            return visit.go("/begin/done", data=visit.given("data"), dataset=files.dataset)
        begun = _begun(visit)
    except DPublishError as error:  # such as a database of several tables
        return begin(visit, str(error))
    stage = visit.query.get("stage", "")
    if not begun.may_open(stage):
        stage = begun.stage
    return _review(visit, begun) if stage == REVIEW else _ask(visit, begun, stage)


def answer(visit: Visit) -> Response:
    """Keep the answers of one page, and go on; what cannot be used is asked again."""
    stage = visit.given("stage")
    if stage not in STAGES:
        raise InvalidParameter("open the page again: it does not say what was asked")
    begun, typed, problems = _begun(visit).read(stage, visit.form)
    save_answers(begun.start, begun.files)
    if problems:
        return _ask(visit, begun, stage, typed=typed, problems=problems)
    return visit.go("/begin/steps", **begun.query)


def peek(visit: Visit) -> Response:
    """Look at some values, for the owner's eyes only; nothing is taken from them."""
    begun = _begun(visit)

    def find() -> Look:
        return Look("glimpses.html", {"data": begun.data, "found": look(begun.start, begun.files)})

    back = address("/begin/steps", **begun.query)
    return start_look(visit, f"Looking at values of {begun.data}", find, back=back)


def write(visit: Visit) -> Response:
    """Write the schema, the dataset in the ledger and the plan."""
    files = start_files(visit.desk, visit.given("data"), *_named(visit))
    if files.answers.exists():  # else a second click, and all is written
        begun = _begun(visit)
        if begun.stage != REVIEW:
            return visit.go("/begin/steps", **begun.query)
        goal, epsilon = str(begun.start.goal), format_epsilon(begun.start.epsilon)
        rows = str(begun.start.n_records or "")
        write_all(begun.start, begun.files, begun.prepare())
        return visit.go("/begin/done", **begun.query, goal=goal, epsilon=epsilon, rows=rows)
    return visit.go("/begin/done", data=visit.given("data"), dataset=files.dataset)


def done(visit: Visit) -> Response:
    """Lead on to the schema, the comparison with the table, and the plan."""
    data = visit.given("data")
    files = start_files(visit.desk, data, *_named(visit))
    schema = files.schema.name
    visit.desk.file(schema)
    return visit.show(
        "begin_done.html",
        data=data,
        dataset=files.dataset,
        schema=schema,
        plan_file=files.plan.name if files.plan.exists() else "",
        goal=visit.query.get("goal", ""),
        epsilon=visit.query.get("epsilon", ""),
        rows=visit.query.get("rows", ""),
    )


def forget(visit: Visit) -> Response:
    """Forget the answers so far, and begin again."""
    begun = _begun(visit)
    begun.files.answers.unlink(missing_ok=True)
    return visit.go("/begin/steps", **begun.query)


def _named(visit: Visit) -> tuple[str, str]:
    told = visit.form or visit.query
    return told.get("dataset", "").strip(), told.get("table", "").strip()


def _begun(visit: Visit) -> Begun:
    return Begun.of(visit.desk, visit.given("data"), *_named(visit))


def _ask(
    visit: Visit,
    begun: Begun,
    stage: str,
    *,
    typed: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
    refused: str = "",
) -> Response:
    task, _, columns = str(begun.start.goal).partition(":")
    return visit.show(
        "begin_steps.html",
        code=422 if problems or refused else 200,
        begun=begun,
        stage=stage,
        stages=STAGES,
        asked=begun.asked(stage, typed or {}, problems or {}),
        refused=refused,
        why=WHY_NOT_READ,
        forms=FORMS,
        none=NONE,
        goals=GOALS,
        task=task,
        goal_columns=columns,
        form=visit.form,
        code_files=list_codes(visit.desk),
        code_endings=CODE_ENDINGS,
    )


def _review(visit: Visit, begun: Begun) -> Response:
    try:
        prepared = begun.prepare()
    except InvalidParameter as refusal:  # the goal cannot be met with these columns
        begun = replace(begun, start=begun.start.without("goal", "steps"))
        return _ask(visit, begun, "goal", refused=str(refusal))
    return visit.show("begin_review.html", begun=begun, prepared=prepared, stages=STAGES)


PAGES = (
    Page("/begin", begin, owner_only=True),
    Page("/begin/upload", upload, "POST"),
    Page("/begin/steps", steps, owner_only=True),
    Page("/begin/steps", answer, "POST"),
    Page("/begin/peek", peek, "POST"),
    Page("/begin/forget", forget, "POST"),
    Page("/begin/write", write, "POST"),
    Page("/begin/done", done, owner_only=True),
)
