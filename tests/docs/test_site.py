"""What the site is made of besides pages: commands, the interface, notebooks, navigation, links."""

import doctest
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import dpublish
from dpublish.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
SITE = TOOLS / "site"
MODULES = ["commands", "docstrings", "links", "navigation", "notebooks", "python_api", "rendering"]
SCRIPTS = sorted(path.stem for path in TOOLS.glob("*.py") if ">>> " in path.read_text("utf-8"))


@pytest.fixture
def site(monkeypatch):
    """Import a module of the site as MkDocs does, by its own name."""
    monkeypatch.syspath_prepend(str(SITE))
    yield importlib.import_module
    for name in [*MODULES, "hooks", "project"]:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_modules_of_the_site_run(site, name):
    pytest.importorskip("mkdocs")
    failed, _ = doctest.testmod(site(name))
    assert failed == 0


def test_every_command_has_a_page_with_its_help(site):
    pages = dict(site("commands").command_pages())
    assert set(pages) == {f"reference/commands/{name}.md" for name in ("index", *COMMANDS)}
    assert "Usage: dpublish release [OPTIONS]" in pages["reference/commands/release.md"]
    assert "## dpublish ledger create" in pages["reference/commands/ledger.md"]
    assert all(f"]({name}.md)" in pages["reference/commands/index.md"] for name in COMMANDS)


def test_every_public_name_is_described_once(site):
    pages = dict(site("python_api").api_pages())
    described = [name for page in pages.values() for name in re.findall(r"^::: (\S+)", page, re.M)]
    assert len(described) == len(set(described))
    names = {name.rpartition(".")[2] for name in described}
    assert set(dpublish.__all__) - {"DPublishError"} <= names
    assert "dpublish.errors" in described
    assert "reference/api/more.md" not in pages, "sort new public names into PARTS of python_api.py"


def test_a_notebook_becomes_a_page_with_its_outputs(site):
    page = site("notebooks").page
    text = {"output_type": "stream", "name": "stdout", "text": ["a < b\n", "\n", "c\n"]}
    table = {"output_type": "execute_result", "data": {"text/html": ["<table>\n", "\n</table>"]}}
    picture = {"output_type": "display_data", "data": {"image/png": "aGVsbG8=\n"}}
    cells = [
        {"cell_type": "markdown", "source": ["# A story\n", "\n", "It begins."]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [text, table, picture]},
    ]
    made = page({"cells": cells}, "story.ipynb")
    assert made.startswith("# A story\n\nIt begins.\n\n```python\nprint(1)\n```\n")
    assert "<pre>a &lt; b\n&#8203;\nc</pre>" in made
    assert "<table>\n</table>" in made
    assert 'src="data:image/png;base64,aGVsbG8="' in made
    assert "examples/notebooks/story.ipynb" in made


def test_every_notebook_has_a_page(site):
    pages = dict(site("notebooks").notebook_pages())
    notebooks = {path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")}
    assert set(pages) == {f"tutorials/{name}.md" for name in notebooks}
    for name in notebooks:
        path = ROOT / "examples" / "notebooks" / f"{name}.ipynb"
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = sum(cell["cell_type"] == "code" for cell in cells)
        assert pages[f"tutorials/{name}.md"].count("```python\n") >= code


@pytest.mark.parametrize(
    ("address", "led"),
    [
        ("../../SECURITY.md", "[x](../project/security.md)"),
        ("../../CHANGELOG.md#020", "[x](../project/changelog.md#020)"),
        ("../../examples/notebooks/team.ipynb", "[x](../tutorials/team.md)"),
        ("../../benchmarks/peers/README.md", "x (`benchmarks/peers/README.md`)"),
        ("../methods/synth.md#costs", "[x](../methods/synth.md#costs)"),
        ("https://example.org/a.md", "[x](https://example.org/a.md)"),
        ("#part", "[x](#part)"),
    ],
)
def test_links_lead_to_what_the_site_shows(site, address, led):
    assert site("links").within_site(f"[x]({address})", "how-to/python.md") == led


def test_formulas_become_mathml_and_bad_ones_do_not_pass_unnoticed(site):
    pytest.importorskip("latex2mathml")
    rendering = site("rendering")
    shown = rendering.with_formulas('<div class="arithmatex">\\[e^{\\varepsilon}\\]</div>')
    assert shown.startswith('<div class="formula" tabindex="0"><math')
    assert "<msup>" in shown
    primed = rendering.with_formulas("<span class=\"arithmatex\">\\(D' + q'_u\\)</span>, as")
    assert primed.count("<mo lspace") == 2
    assert "<msup>" not in primed
    assert primed.endswith("</math>,</span> as")
    for bad, named in (("\\foo{1}", r"\\foo"), ("a &amp; b", "&")):
        with pytest.raises(ValueError, match=f"{named} is not understood"):
            rendering.with_formulas(f'<span class="arithmatex">\\({bad}\\)</span>')


def test_drawings_take_the_colors_of_the_page(site):
    pytest.importorskip("latex2mathml")
    rendering = site("rendering")
    svg = '<?xml version="1.0"?>\n<svg width="3"><rect fill="#1f5f8b"/></svg>'
    drawn = rendering.drawing(svg, 2, "One bar of a chart")
    assert drawn.startswith('<svg role="img" aria-label="One bar of a chart" width="3">')
    assert "var(--c-1f5f8b, #1f5f8b)" in drawn
    assert "--c-1f5f8b:" in rendering.styles_of_drawings()


def test_docstrings_of_settings_show_what_a_caller_sees(site):
    griffe = pytest.importorskip("griffe")
    docstrings = site("docstrings")
    extensions = griffe.load_extensions("dataclasses", docstrings.Docstrings)
    package = griffe.load("dpublish", search_paths=[ROOT / "src"], extensions=extensions)
    synth = package["methods.synth.synth.Synth"]
    defaults = {each.name: str(each.default) for each in synth.parameters}
    assert defaults["target_weight"] == "3"
    assert not [name for name, default in defaults.items() if "setting(" in default]
    assert "Examples:" in synth.docstring.value


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_of_tools_run(name, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    failed, _ = doctest.testmod(importlib.import_module(name))
    sys.modules.pop(name, None)
    assert failed == 0


def test_everything_that_pages_load_lies_in_the_site():
    """The styles name no other host, and the polyfill has its license beside it."""
    for path in (ROOT / "docs" / "assets").rglob("*.css"):
        assert "http" not in path.read_text("utf-8")
    vendor = ROOT / "docs" / "assets" / "vendor"
    assert (vendor / "iframe-worker-LICENSE.txt").is_file()
