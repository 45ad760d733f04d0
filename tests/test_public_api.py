"""The public API: what `import dpublish` offers, with which signatures, and nothing else.

`python tests/test_public_api.py` writes the snapshot anew, when a change of it is meant.
"""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

import dpublish
from dpublish.core.method import Method
from dpublish.core.registry import list_methods

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = Path(__file__).parent / "golden" / "public_api.txt"
METHODS = {
    value.name: value
    for value in (getattr(dpublish, name) for name in dpublish.__all__)
    if inspect.isclass(value) and hasattr(value, "name") and hasattr(value, "expected_error")
    if value is not Method
}
SECTIONS = ("Guarantee:", "Parameters:", "Returns:", "Example:", "Reference:")
HEADINGS = ("## Publishes", "## Guarantees", "## Prefer it when", "## Costs", "## Peers")


def described() -> str:
    """List every public name with its signature, and what classes that are no methods offer."""
    lines = []
    for name in dpublish.__all__:
        value = getattr(dpublish, name)
        lines.append(f"{name}{_signature(value)}")
        if inspect.isclass(value) and value not in METHODS.values():
            lines += [
                f"    .{member}{_signature(inspect.getattr_static(value, member))}"
                for member in sorted(dir(value))
                if not member.startswith("_") and not hasattr(BaseException, member)
            ]
    return "\n".join(lines) + "\n"


def _signature(value: object) -> str:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if isinstance(value, property) or not callable(value) or isinstance(value, Enum):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    return f"({', '.join(_parameter(each) for each in parameters)})"


def _parameter(one: inspect.Parameter) -> str:
    """Write a parameter as it is passed: `name=` by keyword only, `=...` if it has a default."""
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    by_name = "=" if one.kind is one.KEYWORD_ONLY else ""
    return f"{star}{one.name}{by_name if one.default is one.empty else '=...'}"


def test_the_public_api_is_the_one_in_the_snapshot():
    assert described() == SNAPSHOT.read_text(encoding="utf-8")


def test_nothing_else_leaks_out_of_the_package():
    probe = "import dpublish; print(*dir(dpublish))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.split() == dpublish.__all__


def test_types_are_declared_for_every_public_name():
    tree = ast.parse((ROOT / "src/dpublish/__init__.pyi").read_text(encoding="utf-8"))
    declared = {
        (alias.asname, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert declared == set(dpublish._HOME.items())


def test_every_method_is_public():
    assert set(METHODS) == {each.name for each in list_methods() if not _is_foreign(each.name)}
    assert len(METHODS) >= 51


def _is_foreign(name: str) -> bool:
    from dpublish.core.plugins import plugins

    return name in plugins()


def test_the_index_of_methods_states_what_their_classes_do():
    path = ROOT / "tools" / "method_index.py"
    spec = importlib.util.spec_from_file_location("method_index", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = tool.FILE.read_text(encoding="utf-8")
    assert tool.index() == written, "run: .venv/bin/python tools/method_index.py"


@pytest.mark.parametrize("name", sorted(METHODS))
def test_help_of_a_method_is_a_manual_page(name):
    text = inspect.getdoc(METHODS[name]) or ""
    positions = [text.find(f"\n{section}\n") for section in SECTIONS]
    assert -1 not in positions, f"{METHODS[name].__name__} lacks a section of {SECTIONS}"
    assert positions == sorted(positions)
    assert len(text[: positions[0]].split()) > 25, "say what it publishes and when to choose it"
    example = text[positions[3] : positions[4]]
    assert ">>> " in example
    assert "release(" in example or ".start(" in example or ".next" in example
    described = "".join([*parameter_sections(METHODS[name]), *parameter_sections(Method)])
    for setting in inspect.signature(METHODS[name]).parameters:
        alone_or_listed = rf"\n    (\w+, )*{setting}(, \w+)*: "
        assert re.search(alone_or_listed, described), f"the parameter {setting} is not described"


def parameter_sections(kind, seen=()):
    """Yield the parameters of a class, and those of the classes to which they refer."""
    text = inspect.getdoc(kind) or ""
    start = text.find("\nParameters:\n")
    section = re.split(r"\n(?=\w)", text[start + 1 :])[0] if start >= 0 else ""
    yield section
    relatives = {each.__name__: each for each in (*METHODS.values(), *kind.__mro__)}
    for name in re.findall(r"`(?:help\()?(\w+)", section):
        if name in relatives and name not in seen:
            yield from parameter_sections(relatives[name], (*seen, name))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_has_a_page_in_the_documentation(name):
    page = (ROOT / f"docs/methods/{name}.md").read_text(encoding="utf-8")
    assert page.removeprefix("<!-- examples -->\n").startswith(f"# {name}\n")
    positions = [page.find(f"\n{heading}\n") for heading in HEADINGS]
    assert -1 not in positions
    assert f"--method {name}" in page, "show a command"
    assert f"`{name}`" in (ROOT / "docs/methods/index.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    SNAPSHOT.write_text(described(), encoding="utf-8")
