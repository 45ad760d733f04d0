"""Notebooks run from top to bottom, and their last lines show themselves."""

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def run(cells):
    """Run the code of cells in one namespace; return what the last line of each is worth."""
    names, shown = {"__name__": "__main__"}, []
    for cell in cells:
        tree = ast.parse(cell["source"])
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        value = None if last is None else ast.Expression(last.value)
        shown.append(None if value is None else eval(compile(value, cell["id"], "eval"), names))
    return shown


def shows_itself(value):
    return any(hasattr(value, name) for name in ("_repr_html_", "_repr_png_"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_values(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    shown = run(cells)
    assert sum(map(shows_itself, shown)) >= 7
    assert not capsys.readouterr().err


def test_the_story_has_ten_cells():
    (path,) = NOTEBOOKS
    kinds = [cell["cell_type"] for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert kinds.count("code") == 10
