"""What MkDocs calls while it builds the site: generated pages, navigation, formulas, pictures.

mkdocs.yml names this file under `hooks`.  Each part has a module of its own beside it.
"""

import re
from importlib.metadata import version
from typing import Any

import links
import navigation
import rendering
from commands import command_pages
from mkdocs.structure.files import File, Files
from notebooks import notebook_pages
from project import project_pages
from python_api import api_pages

_REMARK = re.compile(r"^<!-- (?:examples|run: .*|not run: .*|picture: .*) -->\n", re.MULTILINE)
_SEARCH = 'data-md-component="search" role="dialog" aria-label="Search"'


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Name the search for those who hear the page; the theme leaves it without a name."""
    return output.replace('data-md-component="search" role="dialog"', _SEARCH, 1)


def on_config(config: Any) -> Any:
    """Say on every page which version it describes."""
    config.copyright = f"dpublish {version('dpublish')}, {config.copyright}"
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made from code, notebooks and files at the top of the project."""
    for source in (command_pages, api_pages, notebook_pages, project_pages):
        for path, content in source():
            files.append(File.generated(config, path, content=content))
    styles = rendering.styles_of_drawings()
    files.append(File.generated(config, "assets/drawings.css", content=styles))
    config.nav = navigation.filled(config.nav, [file.src_uri for file in files])
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Leave out remarks for tools, and turn links to files that are no pages into their names."""
    return links.within_site(_REMARK.sub("", markdown).lstrip("\n"), page.file.src_uri)


def on_page_content(html: str, *, page: Any, config: Any, files: Files) -> str:
    """Write formulas as MathML, let commands be copied, and put drawings into the page."""
    html = rendering.with_commands(rendering.with_formulas(html))
    return rendering.with_pictures(html, page.file, files)
