"""The architecture as a test: imports point downwards, and guarantees are written down."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dpublish

LAYERS = """
    cli web
    publishing
    report
    evaluation
    methods
    classification clustering streams personalized ranking
    model_fitting synthesis
    release
    aggregates datasets
    data mechanisms
    privacy
    randomness
    errors
"""
RANK = {name: -rank for rank, row in enumerate(LAYERS.split("\n")) for name in row.split()}
ROOT = Path(dpublish.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
]


def source(module):
    return ROOT.parent.joinpath(*module.split(".")).with_suffix(".py").read_text()


def imported(module):
    """The layers that a module imports from, wherever in the file."""
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpublish":
            yield from {f"{node.module}.{name.name}".split(".")[1] for name in node.names}
        elif isinstance(node, ast.Import):
            yield from {n.name.split(".")[1] for n in node.names if n.name.startswith("dpublish.")}


def members_of(module):
    members = vars(importlib.import_module(module)).values()
    classes = [m for m in members if inspect.isclass(m) and m.__module__ == module]
    methods = [m for c in classes for m in vars(c).values()]
    return [m for m in [*members, *methods] if inspect.isfunction(m)]


def test_there_is_something_to_check():
    assert len(MODULES) > 40


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module):
    here = module.split(".")[1]
    for there in imported(module):
        assert there == here or RANK[there] < RANK[here], f"{here} must not import {there}"


@pytest.mark.parametrize("module", MODULES)
def test_whatever_spends_budget_argues_its_privacy(module):
    for function in members_of(module):
        parameters = inspect.signature(function).parameters
        if {"budget", "rng"} <= parameters.keys():
            assert "Privacy:" in (function.__doc__ or ""), f"{function.__qualname__} argues nothing"
            for name in ("budget", "rng"):
                assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
                assert parameters[name].default is inspect.Parameter.empty or (
                    function.__name__ == "issue"
                )


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("dpublish.mechanisms.")])
def test_noise_is_made_of_integers_and_the_given_source_only(module):
    text = source(module)
    for forbidden in ("np.random", "import random\n", "secrets", "os.urandom", "default_rng"):
        assert forbidden not in text, f"{module} uses {forbidden}"


def test_asking_for_help_is_quick_because_nothing_heavy_is_loaded():
    probe = (
        "import sys\n"
        "from dpublish.cli.main import command\n"
        "command.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'duckdb', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_can_be_imported():
    for name in dpublish.__all__:
        assert getattr(dpublish, name) is not None
        assert name in dir(dpublish)
    assert sorted(dpublish.__all__) == dpublish.__all__
    with pytest.raises(AttributeError):
        _ = dpublish.nonsense


def test_the_project_names_no_machine_and_no_address():
    root = ROOT.parent.parent
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed or ["pyproject.toml"]:
        if name.endswith((".py", ".md", ".toml", ".txt", "Makefile", "run")) and name != "LICENSE":
            text = (root / name).read_text()
            for word in ("/work" + "/", "/root" + "/", "index-" + "url", "pypi" + ".org"):
                assert word not in text, f"{name} names {word}"


MINTS = ("privacy", "ledger")
"""The packages that may make a budget out of nothing but a number."""


def minted(tree):
    """Yield the calls by which a module makes a budget: the constructor, `granted`, `_make`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).split(".")
            if called[-1] == "Budget" or (
                called[-1] in ("granted", "_make") and "Budget" in called[:-1]
            ):
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.split(".")[1] not in MINTS], ids=lambda m: m[9:]
)
def test_only_privacy_and_the_ledger_make_budgets(module):
    assert list(minted(ast.parse(source(module)))) == []


@pytest.mark.parametrize(
    "code",
    [
        "Budget(1)",
        "share = Budget(epsilon, share.purpose, grant=share.grant)",
        "dpublish.Budget(1)",
        "Budget.granted(1, grant=grant)",
        "budget.Budget._make(epsilon, 'ages')",
    ],
)
def test_a_budget_made_elsewhere_is_noticed(code):
    assert len(list(minted(ast.parse(code)))) == 1
    assert list(minted(ast.parse("Budget.seeded(1).split(a=1)"))) == []
