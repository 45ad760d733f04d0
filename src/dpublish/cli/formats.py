"""`dpublish formats`: the formats of files as JSON Schemas."""

import json
from pathlib import Path

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import say, say_table


@click.command()
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to a file instead.",
    shell_complete=complete_files,
)
def formats(name: str | None, output: str | None) -> None:
    """Print the JSON Schema of a kind of file; without NAME, list the kinds.

    An editor that knows it completes and checks a schema as you write; a program checks a
    release before it reads it.

    \b
    dpublish formats schema -o dpublish-schema.json
    dpublish formats release
    """  # noqa: D301 - click keeps lines after it
    from dpublish.publishing.formats import FORMATS, json_schema
    from dpublish.storage.files import require_writable, write_text

    if name is None:
        say_table(["format", "of"], [[each, form.about] for each, form in FORMATS.items()])
        return
    text = json.dumps(json_schema(name), indent=2)
    if output is None:
        say(text)
        return
    path = Path(output)
    require_writable(path)
    write_text(path, text + "\n")
    say(f"wrote {output}")
