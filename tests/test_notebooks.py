"""Notebooks run from top to bottom in an empty folder, and show what they hold."""

import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "docs" / "tutorials"
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
LEAST_RICH = {"first_release": 7}
LARGEST_PICTURE, LARGEST_TABLE = 60_000, 30_000
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_notebooks = tool("run_notebooks")
check_prose = tool("check_prose")


def read(path):
    return json.loads(path.read_text("utf-8"))


def needs(path):
    return read(path)["metadata"].get("dpublish", {}).get("needs", [])


def outputs(path):
    return [each for cell in run_notebooks.code_cells(read(path)) for each in cell["outputs"]]


def texts(path):
    """Yield identifier and text of the text cells."""
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            yield cell["id"], "".join(cell["source"])


def every(*notebooks):
    chosen = notebooks or NOTEBOOKS
    return pytest.mark.parametrize("path", chosen, ids=[path.stem for path in chosen])


def test_the_tutorials_are_there():
    assert [path.stem for path in NOTEBOOKS] == [
        "classifier",
        "clusters_on_a_map",
        "first_release",
        "hospital_visits",
        "own_epsilon",
        "taxi_stream",
        "team",
    ]
    assert [path.stem for path in NOTEBOOKS if needs(path)] == ["team"]


@every(*(path for path in NOTEBOOKS if not needs(path)))
def test_a_notebook_runs_and_shows_what_it_holds(path, tmp_path, capfd):
    assert run_notebooks.check(path, tmp_path) == []
    assert capfd.readouterr().err == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.xdist_group("spark")
@every(*(path for path in NOTEBOOKS if needs(path)))
def test_a_notebook_of_servers_runs_and_shows_what_it_holds(path):
    """In a process of its own, for a process has one Spark session."""
    lacking = run_notebooks.missing(read(path))
    if lacking is not None:
        if os.environ.get("CI"):
            pytest.fail(lacking)
        pytest.skip(lacking)
    words = [sys.executable, str(ROOT / "tools" / "run_notebooks.py"), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500, check=False)
    assert (done.stdout, done.stderr) == (f"{path.name}: 0 differ\n", "")
    assert done.returncode == 0


@every()
def test_a_notebook_is_kept_as_jupyter_would(path):
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
    cells = run_notebooks.code_cells(notebook)
    assert 8 <= len(cells) <= 16
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


@every()
def test_a_notebook_holds_outputs_worth_looking_at(path):
    cells = run_notebooks.code_cells(read(path))
    assert sum(not cell["outputs"] for cell in cells) <= 1
    kinds = {each["output_type"] for each in outputs(path)}
    assert kinds <= {"stream", "execute_result", "display_data"}
    assert all(each.get("name") in (None, "stdout") for each in outputs(path))
    rich = [
        each for each in outputs(path) if {"text/html", "image/png"} & set(each.get("data", ()))
    ]
    assert len(rich) >= LEAST_RICH.get(path.stem, 6)


@every()
def test_pictures_and_tables_are_small_and_say_what_they_show(path):
    for each in outputs(path):
        data = each.get("data", {})
        assert len("".join(data.get("text/html", ""))) <= LARGEST_TABLE
        if "image/png" in data:
            assert len(base64.b64decode(data["image/png"])) <= LARGEST_PICTURE
            assert re.match(r"A chart: \w+", "".join(data["text/plain"]))


@every()
def test_a_tutorial_says_what_it_gives_how_long_it_takes_and_what_comes_next(path):
    words = [text for _, text in texts(path)]
    assert words[0].startswith("# ")
    assert re.search(r"It takes .*(minutes|hour).* to read and .* to run", words[0])
    assert "## Read next" in words[-1]
    assert len(LINK.findall(words[-1])) >= 2


@every()
def test_links_lead_somewhere_from_the_page_of_the_site(path):
    pages = {each.stem for each in NOTEBOOKS}
    for _, text in texts(path):
        for link in LINK.findall(text):
            is_page = "/" not in link and link.removesuffix(".md") in pages
            assert is_page or (TUTORIALS / link).resolve().is_file(), link


@every()
def test_the_text_is_plain(path):
    import test_vocabulary as vocabulary

    for name, text in texts(path):
        assert not [str(fault) for fault in check_prose.faults(f"{path.stem}, {name}", text)]
        assert not [str(use) for use in vocabulary.uses(f"{path.stem}.md", text)]


# --- Differences are noticed ---------------------------------------------------------------------


CELLS = {
    "words": "print('3 people came')",
    "table": "dpublish.explain(1)",
    "chart": "plt.plot([1, 2]); plt.title('two numbers');",
}


def written(folder, changes=()):
    """Write a notebook with fresh outputs, then change its sources."""
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": name,
            "metadata": {},
            "outputs": [],
            "source": ["import dpublish\nimport matplotlib.pyplot as plt\n", source],
        }
        for name, source in CELLS.items()
    ]
    path = folder / "own.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}), "utf-8")
    run_notebooks.write(path, folder)
    notebook = read(path)
    for cell in notebook["cells"]:
        if cell["id"] in dict(changes):
            cell["source"] = [cell["source"][0], dict(changes)[cell["id"]]]
    path.write_text(json.dumps(notebook), "utf-8")
    return path


@pytest.mark.parametrize(
    "changes", [{}, {"words": "print('17 people came')"}, {"table": "dpublish.explain(2)"}], ids=str
)
def test_fresh_outputs_agree_whatever_their_numbers_are(changes, tmp_path):
    assert run_notebooks.check(written(tmp_path, changes), tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"words": "print('no one came')"}, "cell words\n--- kept\n3 people came"),
        ({"words": "'3 people came'"}, "cell words\n--- kept\n[('stream',)]"),
        ({"words": "pass"}, "cell words\n--- kept\n[('stream',)]\n--- shown\n[]"),
        ({"table": "print(dpublish.explain(1))"}, "cell table\n--- kept\n[('execute_result',"),
        ({"chart": "pass"}, "cell chart\n--- kept\n[('display_data', 'image/png'"),
        ({"chart": "import sys; print('late', file=sys.stderr)"}, "standard error:\nlate"),
    ],
    ids=str,
)
def test_what_a_cell_shows_otherwise_is_noticed(changes, said, tmp_path):
    found = run_notebooks.check(written(tmp_path, changes), tmp_path)
    assert any(each.startswith(said) for each in found), found


def test_a_cell_that_fails_is_no_output(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run_notebooks.check(written(tmp_path, {"words": "1 / 0"}), tmp_path)


def test_a_notebook_that_writes_to_standard_error_is_not_written(tmp_path):
    path = written(tmp_path, {"chart": "import sys; sys.stderr.write('late')"})
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="late"):
        run_notebooks.write(path, tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("is_ci", "code"), [(False, 0), (True, 1)])
def test_a_notebook_without_its_server_is_skipped_but_never_in_ci(is_ci, code, monkeypatch, capsys):
    monkeypatch.delenv("CI", raising=False)
    if is_ci:
        monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(run_notebooks.shutil, "which", lambda name: None)
    monkeypatch.setattr(run_notebooks, "_postgres", lambda: type("", (), {"programs": lambda: 1}))
    (path,) = (each for each in NOTEBOOKS if needs(each))
    assert run_notebooks.main([str(path)]) == code
    assert capsys.readouterr().out == "team.ipynb: skipped: Spark needs Java 17 or newer\n"
