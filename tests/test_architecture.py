"""The architecture as a test: imports point one way, and guarantees are written down."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import dpublish
from dpublish import mechanisms

ORDER = """
    errors types
    accuracy display randomness storage
    privacy
    data mechanisms ledger
    aggregates datasets
    core plots
    report
    methods
    publishing evaluation
    planning
    experiments testing sklearn studio
    auditing
    cli
"""
RANK = {name: rank for rank, row in enumerate(ORDER.split("\n")) for name in row.split()}
"""A package imports from those above it in this list, and from itself."""

BETWEEN_METHODS = {
    "dpcopula": {"histogram", "marginals", "privbayes"},
    "synth": {"histogram", "marginals"},
    "linear_models": {"histogram", "privpfc"},
    "streams": {"histogram", "marginals", "spatial", "privelet", "filter_priority"},
}
"""What a method package may import from others; all may import from `histogram`."""

ROLES = {
    "released": {"Table", "Budget", "RandomSource", "Run"},
    "report": {"Table", "Budget", "RandomSource", "Run"},
    "kernel": {"Budget", "RandomSource", "Run"},
}
"""What a file of a method package may not name, by the first word of its own name."""
ROLE_MODULES = {
    "released": ("dpublish.mechanisms.noise", "dpublish.mechanisms.selection", "dpublish.ledger"),
    "report": ("dpublish.mechanisms", "dpublish.ledger", "dpublish.aggregates"),
    "kernel": ("dpublish.mechanisms", "dpublish.ledger", "dpublish.randomness"),
}

STEPS = ("dpublish.methods.streams.snapshot", "dpublish.methods.streams.stream")
"""A step of a stream has a run of its own, which draws."""

CONVENIENCES = {
    ("dpublish.core.released", "dpublish.core.folder.folder"),  # Release.save
    ("dpublish.data.schema", "dpublish.data.schema_file"),  # Schema.read
}
"""Calls that a class offers although another module does the work: it is imported when called."""

ROOT = Path(dpublish.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
]


def source(module):
    return ROOT.parent.joinpath(*module.split(".")).with_suffix(".py").read_text()


def imports(code):
    """Yield the modules and names of ours that some code imports, wherever in the file."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpublish":
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (n.name for n in node.names if n.name.startswith("dpublish."))


def upward(module, code):
    """List the imports that point up in the order of packages, or between methods."""
    _, here, *inner = module.split(".")
    found = []
    for name in imports(code):
        there = name.split(".")[1]
        if there != here and RANK[there] >= RANK[here]:
            found.append(name)
        elif here == there == "methods" and inner:
            package, other = inner[0], name.split(".")[2]
            if other not in {package, "histogram"} | BETWEEN_METHODS.get(package, set()):
                found.append(name)
    return found


def role_of(module):
    """Return the role that a file of a method package has by its name, if it has one."""
    parts = module.split(".")
    return parts[-1].split("_")[0].removesuffix("s") if parts[1] == "methods" else None


def outside_role(module, code):
    """List the imports that the role of a file forbids."""
    role = role_of(module)
    if role not in ROLES:
        return []
    return [
        name
        for name in imports(code)
        if name.split(".")[-1] in ROLES[role] or name.startswith(ROLE_MODULES[role])
    ]


@cache
def drawing():
    """List the mechanisms that draw: functions that take randomness, and classes that keep it."""
    found = set()
    for listed in pkgutil.walk_packages(mechanisms.__path__, f"{mechanisms.__name__}."):
        for name, item in vars(importlib.import_module(listed.name)).items():
            if getattr(item, "__module__", "") == listed.name:
                members = vars(item).values() if inspect.isclass(item) else [item]
                functions = [getattr(one, "__func__", one) for one in members]
                if any(
                    inspect.isfunction(one) and "rng" in inspect.signature(one).parameters
                    for one in functions
                ):
                    found.add(f"{listed.name}.{name}")
    return found


def cycles(edges):
    """List the groups of modules that import each other, lazily or not."""
    reachable = {}
    for module in edges:
        seen, todo = set(), list(edges[module])
        while todo:
            there = todo.pop()
            if there not in seen:
                seen.add(there)
                todo.extend(edges[there])
        reachable[module] = seen
    return sorted(m for m in edges if m in reachable[m])


def import_graph():
    """Return which module imports which, but for the conveniences that are listed."""
    known = set(MODULES)
    graph = {}
    for module in MODULES:
        names = (n if n in known else n.rpartition(".")[0] for n in imports(source(module)))
        graph[module] = {n for n in names if n in known and (module, n) not in CONVENIENCES}
    return graph


def members_of(module):
    members = vars(importlib.import_module(module)).values()
    classes = [m for m in members if inspect.isclass(m) and m.__module__ == module]
    methods = [m for c in classes for m in vars(c).values()]
    return [m for m in [*members, *methods] if inspect.isfunction(m)]


def test_there_is_something_to_check():
    assert len(MODULES) > 40


def broken(rule, modules=MODULES):
    """List what each module imports against a rule."""
    return {module: found for module in modules if (found := rule(module, source(module)))}


def test_imports_point_one_way():
    assert broken(upward) == {}


def test_a_file_touches_what_its_name_allows():
    assert broken(outside_role) == {}


def test_methods_draw_through_their_run():
    methods = [m for m in MODULES if m.split(".")[1] == "methods" and m not in STEPS]
    assert broken(lambda _, code: drawing() & set(imports(code)), methods) == {}


def test_mechanisms_that_draw_are_found():
    assert {
        "dpublish.mechanisms.noise.add_geometric",
        "dpublish.mechanisms.selection.select",
        "dpublish.mechanisms.sparse_vector.stored.StoredVector",
    } <= drawing()
    assert "dpublish.mechanisms.selection.selection_rate" not in drawing()


def test_no_module_imports_itself_through_others():
    assert cycles(import_graph()) == []


def test_every_method_package_has_files_of_each_role():
    roles = {role_of(module) for module in MODULES}
    assert set(ROLES) <= roles


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("dpublish.privacy.budget", "from dpublish.ledger.ledger import Ledger"),
        ("dpublish.core.run", "def f():\n    import dpublish.methods.histogram"),
        ("dpublish.methods.histogram.histogram", "from dpublish.methods.kmeans import kmeans"),
        ("dpublish.methods.kmeans.kmeans", "from dpublish.publishing.table import publish"),
    ],
)
def test_an_import_that_points_up_is_noticed(module, code):
    assert len(upward(module, code)) == 1


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("dpublish.methods.kmeans.released", "from dpublish.data.table import Table"),
        ("dpublish.methods.kmeans.released_tree", "from dpublish.privacy.budget import Budget"),
        ("dpublish.methods.kmeans.report", "from dpublish.mechanisms.noise import add_geometric"),
        ("dpublish.methods.kmeans.kernels", "from dpublish.mechanisms.selection import select"),
        ("dpublish.methods.kmeans.kernel_losses", "from dpublish.randomness import RandomSource"),
    ],
)
def test_a_file_that_touches_more_is_noticed(module, code):
    assert len(outside_role(module, code)) == 1


def test_a_cycle_is_noticed():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]


def test_whatever_spends_budget_argues_its_privacy():
    for function in (each for module in MODULES for each in members_of(module)):
        parameters = inspect.signature(function).parameters
        if function.__qualname__.endswith("._release"):
            assert "Privacy:" in (function.__doc__ or ""), f"{function.__qualname__} argues nothing"
        if {"budget", "rng"} <= parameters.keys() and function.__qualname__ != "Run.__init__":
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


def test_only_privacy_and_the_ledger_make_budgets():
    others = [m for m in MODULES if m.split(".")[1] not in MINTS]
    assert broken(lambda _, code: list(minted(ast.parse(code))), others) == {}


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
