"""`dpublish methods`: what can be published, and how to choose."""

import click

from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.core.registry import CATALOG, method_settings
from dpublish.core.stream_catalog import STREAMS, stream_settings
from dpublish.errors import require_known

_ALL = {**CATALOG, **STREAMS}


@click.command()
@click.argument("name", required=False)
@click.option("--task", help="Only methods for this task.")
@json_option
def methods(name: str | None, task: str | None, as_json: bool) -> None:
    """List what can be published; with NAME, that method's settings."""
    if name is not None:
        _one(name, as_json)
        return
    if task is not None:
        require_known("task", task, {entry.task for entry in _ALL.values()})
    chosen = {n: e for n, e in _ALL.items() if task in (None, e.task)}
    if as_json:
        say_json(
            [
                {"name": n, "task": e.task, "publishes": e.publishes, "prefer": e.prefer}
                for n, e in chosen.items()
            ]
        )
        return
    say_table(
        ["method", "task", "publishes", "prefer it when"],
        [[n, e.task, e.publishes, e.prefer] for n, e in chosen.items()],
    )


def _one(name: str, as_json: bool) -> None:
    require_known("method", name, _ALL)
    settings = stream_settings(name) if name in STREAMS else method_settings(name)
    entry = _ALL[name]
    if as_json:
        say_json(
            {
                "name": name,
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
    say(f"prefer it when {entry.prefer}")
    say()
    rows = []
    for item in settings:
        default = "required" if item.is_required else f"default {item.default}"
        rows.append([f"--{item.name.replace('_', '-')}", item.type_name, default, item.help])
    say_table(["setting", "takes", "", "what it does"], rows)
