"""The runner tells a mutant that tests notice from one that they do not, or that does not run."""

import pytest

from mutants.mutant import Edit, Mutant, NotApplicable, apply_edit, mutated_files, read_mutants
from mutants.runner import Run, Runner, judge_run

SOURCE = '''\
"""A module that says half(value) and LIMIT in its docstring."""

LIMIT = 4


def half(value):
    """Give half(value)."""
    # half of it
    return divide(
        value,  # what is divided
        2,
    )


class Noise:
    scale = 1.0

    def draw(self):
        if self.scale:
            return self.scale
        return 0.0
'''

TEST = """\
from time import sleep

from toy.numbers import LIMIT, triple


def test_triple():
    assert triple(2) == 6


def test_that_ends():
    while triple(1) != 3:
        sleep(1)


def test_nothing():
    assert LIMIT
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "src/toy").mkdir(parents=True)
    (tmp_path / "src/toy/__init__.py").write_text("")
    (tmp_path / "src/toy/numbers.py").write_text(
        "LIMIT = 4\n\n\ndef triple(value):\n    return 3 * value\n"
    )
    (tmp_path / "test_toy.py").write_text(TEST)
    return tmp_path


def toy(title, new, test="test_toy.py::test_triple", old="return 3 * value"):
    return Mutant("toy", title, (Edit("toy.numbers.triple", old, new),), (test,))


def test_each_end_of_a_mutant_is_told_apart(project):
    mutants = [
        toy("noticed", "return 2 * value"),
        toy("unnoticed", "return 2 * value", test="test_toy.py::test_nothing"),
        toy("misspelled", "return 3 * valeu"),
        toy("of another time", "return 2 * value", old="return 5 * value"),
    ]
    found = {outcome.mutant.title: outcome for outcome in Runner(project).run(mutants)}
    assert {title: outcome.verdict for title, outcome in found.items()} == {
        "noticed": "killed",
        "unnoticed": "SURVIVED",
        "misspelled": "BROKEN",
        "of another time": "NOT APPLICABLE",
    }
    assert found["noticed"].detail.startswith("test_toy.py::test_triple - ")
    assert "valeu" in found["misspelled"].detail


def test_a_mutant_that_hangs_is_stopped_and_not_killed(project):
    endless = toy("endless", "return 2 * value", test="test_toy.py::test_that_ends")
    [outcome] = Runner(project, time_limit=2).run([endless])
    assert outcome.verdict == "TIMED OUT"


def test_the_work_tree_stays_as_it_is_and_must_pass_its_tests(project):
    before = (project / "src/toy/numbers.py").read_text()
    mutants = [toy("noticed", "return 2 * value")]
    runner = Runner(project)
    assert runner.check_unchanged(mutants).code == 0
    list(runner.run(mutants))
    assert (project / "src/toy/numbers.py").read_text() == before
    (project / "src/toy/numbers.py").write_text(before.replace("3", "4"))
    assert runner.check_unchanged(mutants).code == 1


@pytest.mark.parametrize("output", ["ERROR test_toy.py - ImportError: no module", "no tests ran"])
def test_an_error_of_collection_is_no_kill(output):
    assert judge_run(Run(2, output))[0] == "BROKEN"
    assert judge_run(Run(5, output))[0] == "BROKEN"


@pytest.mark.parametrize(
    ("attributes", "old", "new", "changed"),
    [
        (("half",), "divide(value, 2)", "divide(value, 3)", "    return divide(value, 3)\n"),
        (("LIMIT",), "4", "5", "LIMIT = 5\n"),
        (("Noise", "scale"), "1.0", "0.5", "    scale = 0.5\n"),
        (("Noise", "draw"), "return self.scale", "pass\nreturn 1", "pass\n            return 1\n"),
    ],
)
def test_code_is_found_by_its_tokens_inside_the_object(attributes, old, new, changed):
    assert changed in apply_edit(SOURCE, attributes, Edit("toy", old, new))


@pytest.mark.parametrize(
    ("attributes", "old", "reason"),
    [
        (("Noise", "draw"), "self.scale", "2 times"),
        (("half",), "LIMIT", "0 times"),
        (("third",), "value", "no third"),
        (("half",), "divide(", "open bracket"),
    ],
)
def test_what_is_missing_or_ambiguous_does_not_apply(attributes, old, reason):
    with pytest.raises(NotApplicable, match=reason):
        apply_edit(SOURCE, attributes, Edit("toy", old, "new"))


@pytest.mark.parametrize("new", ["return 3*value  # thrice", "return 3 *"])
def test_new_code_must_be_python_and_new(project, new):
    with pytest.raises(NotApplicable):
        mutated_files(toy("no mutant", new), project / "src")


def test_a_row_with_an_unknown_key_is_refused(tmp_path):
    row = '[[mutant]]\ntitle = "t"\nname = "n"\nold = "1"\nnew = "2"\ntests = []\ntset = []\n'
    (tmp_path / "toy.toml").write_text(row)
    with pytest.raises(ValueError, match="tset"):
        read_mutants(tmp_path)
