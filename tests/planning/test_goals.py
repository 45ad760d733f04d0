import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.planning.goals import GOALS, NEEDS_TARGET, Goal

SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))


@pytest.mark.parametrize("task", sorted(GOALS))
def test_a_goal_reads_back_what_it_writes(task):
    text = f"{task}:sex" if task in NEEDS_TARGET else task
    assert str(Goal.parse(text, SCHEMA)) == text
    assert Goal.parse(Goal.parse(text)) == Goal.parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("row", "did you mean 'rows'"),
        ("classify", "classify:income"),
        ("classify:sex,age", "the one column"),
        ("counts:sx", "did you mean 'sex'"),
        ("", "goal"),
    ],
)
def test_a_wrong_goal_is_told_what_to_write(text, told):
    with pytest.raises(InvalidParameter, match=told):
        Goal.parse(text, SCHEMA)


def test_a_blank_may_stand_for_the_colon():
    assert str(Goal.parse("classify sex", SCHEMA)) == "classify:sex"
    assert str(Goal.parse("counts sex , sex")) == "counts:sex,sex"


def test_another_type_is_a_type_error():
    with pytest.raises(TypeError, match="classify:income"):
        Goal.parse(3)
