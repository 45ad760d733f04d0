"""Pages of tutorials, written from notebooks with the outputs that they hold."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"


def notebook_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of the page of every notebook."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield f"tutorials/{path.stem}.md", page(json.loads(path.read_text("utf-8")), path.name)


def page(notebook: Mapping[str, Any], name: str) -> str:
    """Write a notebook as a page."""
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    parts.append(f"*This page is the notebook `examples/notebooks/{name}`, which the tests run.*")
    return "\n\n".join(parts) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code":
        yield _fenced(source, "python")
        for output in cell["outputs"]:
            yield f'<div class="output" markdown="0">\n{_output(output)}\n</div>'


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _output(output: Mapping[str, Any]) -> str:
    """Write an output as HTML: a picture, a table, or text."""
    if output["output_type"] == "stream":
        return _plain("".join(output["text"]))
    data = {kind: "".join(value) for kind, value in output["data"].items()}
    if "image/png" in data:
        text = escape(data.get("text/plain", "A chart"), quote=True)
        picture = data["image/png"].strip()
        return f'<img alt="{text}" src="data:image/png;base64,{picture}">'
    if "image/svg+xml" in data:
        return data["image/svg+xml"]
    if "text/html" in data:
        return _without_blank_lines(data["text/html"])
    return _plain(data["text/plain"])


def _plain(text: str) -> str:
    """Write text, with entities for empty lines: they would end a block of HTML in Markdown."""
    lines = [escape(line) or "&#8203;" for line in text.rstrip("\n").split("\n")]
    return "<pre>" + "\n".join(lines) + "</pre>"


def _without_blank_lines(html: str) -> str:
    return "\n".join(line for line in html.splitlines() if line.strip())
