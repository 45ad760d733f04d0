"""A page for each command, written from its `--help`."""

from collections.abc import Iterator

import click

from dpublish.cli.main import COMMANDS, command

WIDTH = 84
"""Columns of help texts on the site."""


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of the page of every command, and of their list."""
    context = click.Context(command, info_name="dpublish", max_content_width=WIDTH)
    yield "reference/commands/index.md", _index(context)
    for name, (_, about) in COMMANDS.items():
        found = command.get_command(context, name)
        if found is None:
            raise LookupError(f"COMMANDS names {name}, which is no command")
        lines = [
            f"# dpublish {name}",
            "",
            about,
            "",
            *_described(found, f"dpublish {name}", context),
        ]
        yield f"reference/commands/{name}.md", "\n".join(lines) + "\n"


def _index(context: click.Context) -> str:
    lines = ["# All commands", "", "Every command with its options, as `--help` prints them.", ""]
    lines += ["| Command | What it does |", "|---|---|"]
    for name, (_, about) in COMMANDS.items():
        lines.append(f"| [`dpublish {name}`]({name}.md) | {about} |")
    lines += ["", *_text(command.get_help(context))]
    return "\n".join(lines) + "\n"


def _described(found: click.Command, words: str, parent: click.Context) -> Iterator[str]:
    """Yield the help of a command, and of those below it."""
    context = click.Context(found, info_name=words, max_content_width=WIDTH, terminal_width=WIDTH)
    yield from _text(found.get_help(context))
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            if below is not None and not below.hidden:
                yield from ("", f"## {words} {name}", "")
                yield from _described(below, f"{words} {name}", context)


def _text(words: str) -> list[str]:
    return ["```text", *(line.rstrip() for line in words.splitlines()), "```"]
