"""`dpublish methods`: what can be published, and how to choose."""

from collections.abc import Sequence

import click

from dpublish.cli.group import complete_methods
from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.core.catalog import STREAMS
from dpublish.core.registry import MethodInfo, list_methods, method_settings
from dpublish.core.settings import canonical_name, default_words
from dpublish.errors import require_known
from dpublish.methods.streams.method import stream_settings

_MARK = "*"
_STANDINGS = {
    "default": "the default for {task}",
    "alternative": "an alternative for {task}",
    "baseline": "a baseline of the literature for {task}, to compare with",
}


@click.command()
@click.argument("name", required=False, shell_complete=complete_methods)
@click.option("--task", help="Only methods for this task.")
@json_option
def methods(name: str | None, task: str | None, as_json: bool) -> None:
    """List what can be published; with NAME, that method's settings.

    The default of each task comes first, marked with *; then alternatives that suit some tables
    better, and apart from these the baselines of the literature.  `dpublish advise` chooses.

    \b
    dpublish methods --task clustering
    dpublish methods kmeans
    """  # noqa: D301 - click keeps lines after it
    if name is not None:
        _one(name, as_json)
        return
    known = list_methods()
    if task is not None:
        require_known("task", task, {each.task for each in known})
    chosen = [each for each in known if task in (None, each.task)]
    if as_json:
        say_json(
            [
                {
                    "name": each.name,
                    "task": each.task,
                    "standing": each.standing,
                    "publishes": each.publishes,
                    "prefer": each.prefer_when,
                }
                for each in chosen
            ]
        )
        return
    _list(chosen)


def _list(chosen: Sequence[MethodInfo]) -> None:
    """Print the defaults, the alternatives and, apart, the baselines."""
    titles = {
        "default": f"{_MARK} the default of each task",
        "alternative": "alternatives, which suit some tables better",
        "baseline": "baselines of the literature, to compare with",
    }
    headers = ["", "method", "task", "publishes", "prefer it when"]
    is_first = True
    for standing, title in titles.items():
        found = [each for each in chosen if each.standing == standing]
        if not found:
            continue
        if not is_first:
            say()
        mark = _MARK if standing == "default" else ""
        say_table(headers, [[mark, *each[:4]] for each in found], title=title)
        is_first = False


def _one(name: str, as_json: bool) -> None:
    name = canonical_name(name)
    known = {each.name: each for each in list_methods()}
    require_known("method", name, known)
    settings = stream_settings(name) if name in STREAMS else method_settings(name)
    entry = known[name]
    if as_json:
        say_json(
            {
                "name": name,
                "task": entry.task,
                "standing": entry.standing,
                "publishes": entry.publishes,
                "settings": [
                    {
                        "name": s.name,
                        "help": s.help,
                        "type": s.type_name,
                        "required": s.is_required,
                        "default": None if s.default is None else str(s.default),
                    }
                    for s in settings
                ],
            }
        )
        return
    say(f"{name}: publishes {entry.publishes}")
    say(f"prefer it when {entry.prefer_when}")
    say(_STANDINGS[entry.standing].format(task=entry.task))
    say()
    rows = []
    for item in settings:
        default = "(required)" if item.is_required else default_words(item.default)
        rows.append([f"--{item.name.replace('_', '-')}", item.type_name, default, item.help])
    say_table(["setting", "takes", "default", "what it does"], rows)
