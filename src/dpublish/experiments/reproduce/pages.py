"""Pages on research documents: each item's command, what was printed, what came out, a verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpublish.errors import DPublishError
from dpublish.experiments.reproduce.documents import DOCUMENTS, Document, items_of
from dpublish.experiments.reproduce.item import Item, Verdict
from dpublish.experiments.reproduce.rerun import Done, Job
from dpublish.storage.files import write_text

NOT_RUN = "not run"
_PLOTS = "plots"
_ORDER = (*(verdict.value for verdict in Verdict), NOT_RUN)


@dataclass(frozen=True)
class Judged:
    """An item with its verdict, what came out of its run, and the plot of that."""

    item: Item
    verdict: str
    ours: str
    is_full: bool
    plot: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The verdict with its reason."""
        because = self.item.because.rstrip(".")
        if self.verdict == Verdict.DIFFERS.value:
            return _differs(because)
        if self.verdict == Verdict.CANNOT.value:
            return f"cannot be had: {because}"
        if self.verdict == Verdict.TESTED.value:
            return f"tested by `{self.item.tested}`" + (f"; {because}" if because else "")
        return self.verdict


def _differs(because: str) -> str:
    """Write why an item differs: a clause, or a sentence of its own."""
    if not because:
        return "differs; we do not know why"
    return f"differs: {because}" if because[0].isupper() else f"differs because {because}"


def judge(item: Item, done: Mapping[str, Done], *, is_full: bool, data: str | None) -> Judged:
    """Judge an item by what came of its run."""
    if item.run is None:
        verdict, ours = item.judge(None)
        return Judged(item, verdict.value, ours, is_full)
    job = Job(item.run, is_full, data)
    came = done[job.name]
    if came.outcome is None:
        return Judged(item, NOT_RUN, came.refused, is_full)
    try:
        verdict, ours = item.judge(came.outcome)
    except (DPublishError, LookupError) as error:  # a table that the check needs was left out
        reason = "; ".join(came.notes) or f"{type(error).__name__}: {error}"
        return Judged(item, NOT_RUN, reason, is_full)
    return Judged(item, verdict.value, ours, is_full, job.name, came.notes)


def write_pages(
    items: Sequence[Item],
    done: Mapping[str, Done],
    folder: Path,
    *,
    is_full: bool,
    data: str | None = None,
    documents: Sequence[str] = tuple(DOCUMENTS),
) -> dict[str, list[Judged]]:
    """Write a page for each document, an index, and the plots; return the verdicts."""
    plots = folder / _PLOTS
    plots.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, bool] = {}
    verdicts = {}
    for document in documents:
        judged = [
            judge(item, done, is_full=is_full, data=data) for item in items_of(document, items)
        ]
        for one in judged:
            if one.plot is not None and one.plot not in drawn:
                drawn[one.plot] = _draw(done[one.plot], plots / f"{one.plot}.svg")
        text = page(document, judged, {name for name, has_plot in drawn.items() if has_plot})
        write_text(folder / f"{document}.md", text, replaces=True)
        verdicts[document] = judged
    write_text(folder / "index.md", index(verdicts, is_full=is_full), replaces=True)
    return verdicts


def _draw(done: Done, path: Path) -> bool:
    if done.outcome is None:
        return False
    drawn = done.outcome.study.plot(done.outcome.results)
    if drawn is not None:
        write_text(path, drawn, replaces=True)
    return drawn is not None


def page(document: str, judged: Sequence[Judged], drawn: set[str]) -> str:
    """Write the page of a document."""
    what: Document = DOCUMENTS[document]
    lines = [
        f"# {what.title}",
        "",
        f"{what.source}. {what.about}",
        "",
        f"{count_words(judged)}.",
        _HOW_TO_READ,
        "",
        "| Item | What it is about | Verdict |",
        "|---|---|---|",
        *(
            f"| {one.item.numbers[document]} | {_cell(one.item.title)} | {one.verdict} |"
            for one in judged
        ),
        "",
    ]
    shown: dict[str, str] = {}
    for one in judged:
        lines += _section(document, one)
        if one.plot in drawn:
            lines += _plot(one, shown.get(one.plot))
            shown.setdefault(one.plot, one.item.numbers[document])
    return "\n".join(lines)


def _plot(one: Judged, before: str | None) -> list[str]:
    """Show the plot of a run, or name the item above that shows it."""
    if before is not None:
        return [f"The plot is that of {before}.", ""]
    return [f"![{one.item.title}]({_PLOTS}/{one.plot}.svg)", ""]


_HOW_TO_READ = (
    "*Reproduced* means that the figures agree, *reproduced in order* that orders and shapes do, "
    "*tested* that a test of this package proves or refutes a claim. "
    "Noise is seeded and results are measured against true values of public tables."
)


def _section(document: str, one: Judged) -> list[str]:
    item = one.item
    lines = [f"## {item.numbers[document]}: {item.title}", "", f"**Printed.** {item.printed}", ""]
    if item.run is not None:
        if one.verdict != NOT_RUN:
            lines += [f"**Ours.** {one.ours}", ""]
        reason = f": {one.ours}" if one.verdict == NOT_RUN else ""
        lines += [f"**Verdict.** {one.sentence}{reason}.", ""]
        lines += ["```text", item.run.command(is_full=one.is_full)]
        full = item.run.command(is_full=True)
        if not one.is_full and full != item.run.command(is_full=False):
            lines += [f"{full}   # in full"]
        lines += ["```", ""]
    else:
        lines += [f"**Verdict.** {one.sentence}.", ""]
    lines += [line for note in one.notes for line in (f"Note: {note}.", "")]
    return [line.replace("..", ".") if line.endswith("..") else line for line in lines]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def count_words(judged: Sequence[Judged]) -> str:
    """Count verdicts: "12 items: 7 reproduced, 5 differs"."""
    counts = Counter(one.verdict for one in judged)
    parts = [f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict]]
    return f"{len(judged)} items: {', '.join(parts)}"


def index(verdicts: Mapping[str, Sequence[Judged]], *, is_full: bool) -> str:
    """Write the index of the pages."""
    command = "dpublish experiment all --full" if is_full else "make reproduce"
    version = "in full" if is_full else "in its short version, with few repeats"
    lines = [
        "# The research documents again",
        "",
        "dpublish implements the methods of five research documents.",
        "Each page lists every figure, table and testable claim of a document with the command "
        "that runs it again, what was printed, what came out here, and a verdict.",
        f"All of it was run {version}, by `{command}`; each command states its repeats.",
        "",
        "| Document | " + " | ".join(_ORDER) + " |",
        "|---" * (len(_ORDER) + 1) + "|",
    ]
    for name, judged in verdicts.items():
        counts = Counter(one.verdict for one in judged)
        cells = " | ".join(str(counts[verdict]) for verdict in _ORDER)
        lines.append(f"| [{DOCUMENTS[name].title}]({name}.md) | {cells} |")
    lines += [*_what_differs(verdicts), "", *_RERUN, ""]
    return "\n".join(lines)


def _what_differs(verdicts: Mapping[str, Sequence[Judged]]) -> list[str]:
    """List what differs by document; items that differ for the same reason stand together."""
    lines = []
    for name, judged in verdicts.items():
        reasons: dict[str, list[str]] = {}
        for one in judged:
            if one.verdict == Verdict.DIFFERS.value:
                where = f"{one.item.numbers[name]} ({one.item.title})"
                reasons.setdefault(one.sentence, []).append(where)
        if reasons:
            lines += ["", f"## What differs: {DOCUMENTS[name].source}", ""]
            lines += [f"- {'; '.join(items)}: {reason}." for reason, items in reasons.items()]
    return lines


_RERUN = (
    "## Run it again",
    "",
    "```text",
    "make reproduce                                   # the short version, at most 30 minutes",
    "dpublish experiment all --full -o results        # the long one; it can be interrupted",
    "```",
    "",
    "Tables that are not part of the package are looked for in the folder that `DPUBLISH_DATA` "
    "names; items whose tables are absent are marked *not run*.",
)
