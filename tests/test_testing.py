"""check_method passes good methods and names what is wrong with broken ones."""

import importlib.util
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from dpublish.core import plugins as plugins_module
from dpublish.core.folder.folder import load
from dpublish.core.registry import list_methods, make_method
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import check_method, example_rows, example_schema
from method_examples import EXAMPLES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def example():
    path = ROOT / "examples" / "noisy_mean.py"
    spec = importlib.util.spec_from_file_location("noisy_mean", path)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["noisy_mean"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["noisy_mean"]


@pytest.fixture
def offered(monkeypatch):
    """Offer something by an entry point, as an installed package would."""

    def offer(name, value):
        point = EntryPoint(name, value, plugins_module.GROUP)
        monkeypatch.setattr(plugins_module, "entry_points", lambda group: [point])
        plugins_module.plugins.cache_clear()

    yield offer
    plugins_module.plugins.cache_clear()


def test_the_example_passes(example):
    check_method(example.NoisyMean(column="age"))


@pytest.mark.parametrize("name", ["histogram", "majority", "topk", "marginals"])
def test_methods_of_ours_pass(name):
    settings = {"histogram": {"columns": ("age", "sex")}, "majority": {"target": "sex"}}
    usual = {"topk": {"column": "town", "with_counts": True}, "marginals": {}}
    check_method(make_method(name, (settings | usual)[name]))
    assert name in EXAMPLES


def broken(example, change):
    """The example with another `_release`."""

    @dataclass(frozen=True, kw_only=True)
    class Broken(example.NoisyMean):
        """A method that is wrong on purpose."""

        def _release(self, run):
            """Publish something.

            Privacy:
                None.
            """
            return change(self, run)

    return Broken(column="age")


def publish(example, method, run, kernel, noisy):
    noisy = np.concatenate([[100], noisy]).astype(np.int64)
    return example.MeanRelease(
        receipt=run.receipt(),
        schema=type(run.schema)((run.schema[method.column],)),
        counts=noisy,
        expected=run.expected,
    )


def kernel_of(example, method, run):
    return example.Steps(method.column, *run.schema[method.column].bounds)


def test_too_small_a_sensitivity_is_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        share = run.split(numbers=1)["numbers"]
        noisy = run.add_noise(run.sum(kernel), sensitivity=1, budget=share)
        return publish(example, method, run, kernel, noisy)

    with pytest.raises(AssertionError, match="more than epsilon"):
        check_method(broken(example, change))


def test_what_goes_around_the_mechanisms_is_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        share = run.split(numbers=1)["numbers"]
        noisy = run.add_noise(run.sum(kernel), of=kernel, budget=share)
        noisy += run.sum(kernel)
        return publish(example, method, run, kernel, noisy)

    with pytest.raises(AssertionError, match="goes around the mechanisms"):
        check_method(broken(example, change))


def test_a_plan_from_rows_is_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        shares = list(run.split(small=1, large=2).values())
        exact = run.sum(kernel)
        first, last = shares if exact[0] > 10_000 else reversed(shares)
        run.add_noise(exact, of=kernel, budget=first)
        noisy = run.add_noise(exact, of=kernel, budget=last)
        return publish(example, method, run, kernel, noisy)

    with pytest.raises(AssertionError, match="plan depends on rows"):
        check_method(broken(example, change))


def test_rows_that_are_read_before_the_budget_is_open_are_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        exact = run.sum(kernel)
        share = run.split(numbers=1)["numbers"]
        return publish(example, method, run, kernel, run.add_noise(exact, of=kernel, budget=share))

    with pytest.raises(AssertionError, match="before the budget was opened"):
        check_method(broken(example, change))


def test_a_share_that_is_left_is_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        share = run.split(numbers=1, rest=1)["numbers"]
        noisy = run.add_noise(run.sum(kernel), of=kernel, budget=share)
        return publish(example, method, run, kernel, noisy)

    with pytest.raises(RuntimeError, match="whole budget"):
        check_method(broken(example, change))


def test_columns_that_are_read_without_being_named_are_found(example):
    class Silent(example.NoisyMean):
        """A method that does not name its column."""

        def reads(self, schema):
            return ("sex",)

    class Blank(example.NoisyMean):
        """A method that names nothing."""

        def reads(self, schema):
            return ()

    with pytest.raises(AssertionError, match="and no others, must publish the same"):
        check_method(Silent(column="age"))
    with pytest.raises(AssertionError, match="must name a column"):
        check_method(Blank(column="age"))


def test_no_noise_at_all_is_found(example):
    def change(method, run):
        kernel = kernel_of(example, method, run)
        run.split(numbers=1)["numbers"].spend()
        return publish(example, method, run, kernel, np.asarray(run.sum(kernel)))

    with pytest.raises(AssertionError, match="where is the noise"):
        check_method(broken(example, change))


def test_a_method_of_another_package_is_found_built_listed_and_loaded(example, offered, tmp_path):
    offered("noisy-mean", "noisy_mean:NoisyMean")
    method = make_method("noisy-mean", {"column": "age"})
    assert isinstance(method, example.NoisyMean)
    assert "noisy-mean" in [each.name for each in list_methods("statistics")]
    table = open_table(example_rows(), example_schema())
    release = method.release(table, budget=Budget.seeded(1), rng=seeded(3))
    release.save(tmp_path / "mean")
    assert load(tmp_path / "mean") == release
    check_method(method)


def test_what_is_no_method_of_that_name_is_refused(example, offered):
    offered("noisy-mean", "noisy_mean:MeanRelease")
    with pytest.raises(InvalidParameter, match="no subclass"):
        make_method("noisy-mean", {"column": "age"})
    offered("other-name", "noisy_mean:NoisyMean")
    with pytest.raises(InvalidParameter, match="calls itself"):
        make_method("other-name", {"column": "age"})
