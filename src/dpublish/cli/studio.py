"""`dpublish studio`: the owner's desk in the browser."""

import webbrowser
from importlib.util import find_spec
from pathlib import Path

import click

from dpublish.cli.group import complete_files, complete_ledgers
from dpublish.cli.output import say
from dpublish.errors import InvalidParameter


@click.command()
@click.option(
    "--ledger",
    default="books.db",
    show_default=True,
    help="The ledger: a file, which the studio can make, or postgresql://HOST/DATABASE.",
    shell_complete=complete_ledgers,
)
@click.option(
    "--folder",
    default="releases",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the releases.",
)
@click.option(
    "--files",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="The folder of tables, schemas and code lists; the studio opens no other file.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME=ADDRESS#TABLE",
    help="A table elsewhere, such as visits=postgresql://HOST/DATABASE#visits.",
)
@click.option("--port", default=0, show_default=True, help="The port; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--tls-certificate",
    type=click.Path(exists=True, path_type=Path),
    help="The server's certificate, for another address than this computer's own.",
    shell_complete=complete_files,
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, path_type=Path),
    help="The key of the certificate.",
    shell_complete=complete_files,
)
@click.option(
    "--public-address", help="The https:// address of a reverse proxy that offers the studio."
)
@click.option("--reader", "readers", default=0, help="Print so many links for readers, too.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
def studio(
    ledger: str,
    folder: Path,
    files: Path,
    sources: tuple[str, ...],
    port: int,
    host: str,
    tls_certificate: Path | None,
    tls_key: Path | None,
    public_address: str | None,
    readers: int,
    no_browser: bool,
) -> None:
    """Open the owner's desk in the browser: datasets, schemas, plans, releases, streams, audit.

    It runs on this computer, and answers only to who has the printed link, which is good once.
    Readers may look, but spend nothing.  Ctrl-C ends it.

    \b
    dpublish studio
    dpublish studio --ledger books.db --folder releases --files tables --no-browser
    """  # noqa: D301 - click keeps lines after it
    missing = [name for name in ("starlette", "uvicorn", "python_multipart") if not find_spec(name)]
    if missing:
        raise InvalidParameter(
            f'the studio needs {", ".join(missing)}: pip install "dpublish[studio]"'
        )
    from dpublish.studio.access import Access
    from dpublish.studio.desk import Desk, read_sources
    from dpublish.studio.serve import Listening, link, serve

    desk = Desk(ledger, folder.absolute(), files.absolute(), read_sources(sources))
    where = Listening(host, port, tls_certificate, tls_key, public_address)

    def tell(origin: str, access: Access) -> None:
        opened = link(access, origin, "owner")
        say("The studio is open to whoever has this link, once:")
        say(f"  {opened}")
        for _ in range(readers):
            say(f"  for a reader: {link(access, origin, 'reader')}")
        say("Ctrl-C ends it.")
        if not no_browser:
            webbrowser.open(opened)

    serve(desk, where, told=tell)
