"""Run the notebooks of examples/, and compare what they print with the outputs that they hold.

    python tools/run_notebooks.py [NOTEBOOK ...]            say what differs; exit code 1 if it does
    python tools/run_notebooks.py --write [NOTEBOOK ...]    put fresh outputs into the notebooks

A notebook is kept with its outputs, so that hosts and the documentation show them.  Its cells run
from top to bottom in one namespace, in an empty temporary folder, without Jupyter.  An output is
what Jupyter would keep: printed text, the value of a last expression (unless `;` ends it), and
the figures that pyplot has open at the end of a cell.

Noise differs from run to run, so numbers are compared as `#`, as in the examples of pages
(tools/page_examples.py).  Tables and pictures are compared by their kind only.

A notebook whose metadata say `"dpublish": {"needs": ["postgresql", "spark"]}` gets a PostgreSQL
server of its own, whose address is in TEAM_SERVER.  Where programs for it are missing, the
notebook is skipped; with the variable CI set, that is an error.
"""

import ast
import base64
import importlib
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"
DPI = 96
SERVER = "TEAM_SERVER"
"""The variable that names a PostgreSQL server to notebooks that need one."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
Cell = dict[str, Any]
Output = dict[str, Any]


def run(cells: Sequence[Cell], folder: Path) -> tuple[list[list[Output]], str]:
    r"""Run code cells in a folder; return the outputs of each, and what went to standard error.

    >>> cells = [{"id": "one", "source": "print(1)"}, {"id": "two", "source": "x = 2\nx"}]
    >>> outputs, errors = run(cells, Path(tempfile.mkdtemp()))
    >>> [each["output_type"] for output in outputs for each in output]
    ['stream', 'execute_result']
    >>> outputs[1][0]["data"], errors
    ({'text/plain': ['2']}, '')
    """
    mpl.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    errors = io.StringIO()
    with chdir(folder), redirect_stderr(errors):
        found = [_run_cell(cell, names, count) for count, cell in enumerate(cells, 1)]
    return found, errors.getvalue()


def _run_cell(cell: Cell, names: dict[str, Any], count: int) -> list[Output]:
    source = "".join(cell["source"])
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, cell["id"], "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
    outputs = [_stream(printed.getvalue())] if printed.getvalue() else []
    if value is not None and not source.rstrip().endswith(";"):
        outputs.append(
            {
                "data": _shown(value),
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return [*outputs, *_figures()]


def _stream(text: str) -> Output:
    return {"name": "stdout", "output_type": "stream", "text": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _shown(value: Any) -> dict[str, Any]:
    """Return what Jupyter would keep of a value: its picture or its table, and its text."""
    data: dict[str, Any] = {}
    if hasattr(value, "_repr_html_") and (html := value._repr_html_()) is not None:
        data["text/html"] = _lines(html)
    if hasattr(value, "_repr_png_"):
        data["image/png"] = _encoded(value._repr_png_())
    is_figure = hasattr(value, "savefig")
    data["text/plain"] = _lines(described(value) if is_figure else _ADDRESS.sub("", repr(value)))
    return data


def _figures() -> Iterator[Output]:
    """Take the figures that pyplot has open, and close them, as Jupyter does after a cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        buffer = io.BytesIO()
        figure = pyplot.figure(number)
        figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight")
        data = {"image/png": _encoded(buffer.getvalue()), "text/plain": [described(figure)]}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}
    pyplot.close("all")


def described(figure: Any) -> str:
    """Say what a figure draws, for those who cannot see it: its titles, and what is on its axes.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> axes = figure.subplots()
    >>> _ = axes.set(title="Visits by month", xlabel="month", ylabel="visits")
    >>> described(figure)
    'A chart: Visits by month; visits by month'
    """
    parts = [figure.get_suptitle()]
    for axes in figure.axes:
        both = (axes.get_ylabel(), axes.get_xlabel())
        titles = (axes.get_title(where) for where in ("left", "center", "right"))
        parts += [*titles, " by ".join(filter(None, both))]
    return "A chart: " + "; ".join(dict.fromkeys(filter(None, parts)))


def _encoded(picture: bytes) -> str:
    return base64.b64encode(picture).decode("ascii")


def code_cells(notebook: Mapping[str, Any]) -> list[Cell]:
    """List the code cells of a notebook in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def differences(kept: Sequence[Output], fresh: Sequence[Output]) -> str | None:
    r"""Say how the fresh outputs of a cell differ from those that are kept, if they do.

    >>> one, two = [_stream("about 17 people\n")], [_stream("about 21 people\n")]
    >>> differences(one, two) is None
    True
    >>> differences(one, [_stream("no one\n")])
    '--- kept\nabout 17 people\n--- printed\nno one\n'
    """
    if [_kinds(each) for each in kept] != [_kinds(each) for each in fresh]:
        return f"--- kept\n{[*map(_kinds, kept)]}\n--- shown\n{[*map(_kinds, fresh)]}\n"
    for one, other in zip(kept, fresh, strict=True):
        said, printed = _text(one), _text(other)
        if not _page_examples().agrees(said.splitlines() or ["\n"], printed.splitlines() or [""]):
            return f"--- kept\n{said}--- printed\n{printed}"
    return None


def _kinds(output: Output) -> tuple[str, ...]:
    return (output["output_type"], *sorted(output.get("data", ())))


def _text(output: Output) -> str:
    """Return the text of an output; that beside a table or a picture is the same once more."""
    if output["output_type"] == "stream":
        return "".join(output["text"])
    return "".join(output["data"]["text/plain"]) if len(output["data"]) == 1 else ""


def _page_examples() -> Any:
    spec = importlib.util.spec_from_file_location("page_examples", ROOT / "tools/page_examples.py")
    if spec is None or spec.loader is None:
        raise ImportError("tools/page_examples.py is not there")
    module = sys.modules.get("page_examples")
    if module is None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["page_examples"] = module
    return module


def check(path: Path, folder: Path) -> list[str]:
    """Run a notebook in a folder; say what its cells print otherwise than it says."""
    cells = code_cells(json.loads(path.read_text("utf-8")))
    fresh, errors = run(cells, folder)
    found = [f"standard error:\n{errors}"] if errors else []
    for cell, outputs in zip(cells, fresh, strict=True):
        said = differences(cell["outputs"], outputs)
        found += [] if said is None else [f"cell {cell['id']}\n{said}"]
    return found


def write(path: Path, folder: Path) -> None:
    """Run a notebook in a folder, and put fresh outputs into it."""
    notebook = json.loads(path.read_text("utf-8"))
    cells = code_cells(notebook)
    fresh, errors = run(cells, folder)
    if errors:
        raise RuntimeError(f"{path.name} writes to standard error:\n{errors}")
    for count, (cell, outputs) in enumerate(zip(cells, fresh, strict=True), 1):
        cell["execution_count"], cell["outputs"] = count, outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def missing(notebook: Mapping[str, Any]) -> str | None:
    """Say what a notebook needs and this machine lacks, if it lacks anything.

    >>> missing({"metadata": {}}) is None
    True
    """
    needs = notebook["metadata"].get("dpublish", {}).get("needs", [])
    if "postgresql" in needs and _postgres().programs() is None:
        return "PostgreSQL (initdb, pg_ctl) is not installed on this machine"
    if "spark" in needs and shutil.which("java") is None:
        return "Spark needs Java 17 or newer"
    if "spark" in needs and importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "dpublish[spark]"'
    return None


@contextmanager
def serving(notebook: Mapping[str, Any]) -> Iterator[None]:
    """Start the PostgreSQL server that a notebook needs, and stop it afterward."""
    if "postgresql" not in notebook["metadata"].get("dpublish", {}).get("needs", []):
        yield
        return
    with _postgres().running_server() as server:
        os.environ[SERVER] = server.uri()
        try:
            yield
        finally:
            del os.environ[SERVER]


def _postgres() -> Any:
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    return importlib.import_module("postgres_server")


def main(words: list[str]) -> int:
    """Compare notebooks with what they print, or write that into them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    named = [Path(word).resolve() for word in words if word != "--write"]
    failed = False
    for path in named or sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        if (lacking := missing(notebook)) is not None:
            print(f"{path.name}: skipped: {lacking}")
            failed = failed or bool(os.environ.get("CI"))
            continue
        with serving(notebook), tempfile.TemporaryDirectory() as folder:
            if "--write" in words:
                write(path, Path(folder))
                print(f"{path.name}: outputs written")
                continue
            found = check(path, Path(folder))
        print(*found, sep="\n", end="\n" if found else "")
        print(f"{path.name}: {len(found)} differ")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
