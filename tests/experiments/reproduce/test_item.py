"""Items of documents: what is run, what came out, and the verdict on it."""

import pytest

from dpublish.errors import InvalidParameter
from dpublish.experiments.reproduce.item import Finding, Item, Outcome, Run, Verdict
from dpublish.experiments.study import study_of

WHERE = {"su-thesis": "Table 5.4"}
RUN = Run("svt-vs-em", repeats=2, options={"methods": ("EM", "SVT-S 1:1"), "epsilons": ("0.5",)})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    study = study_of("svt-vs-em")
    plan = study.plan(2, datasets=("zipf",), methods=("EM", "SVT-S 1:1"), epsilons=("0.5",))
    folder = tmp_path_factory.mktemp("item")
    return Outcome(plan.study, plan.run(folder / "results.jsonl"))


def first_is_lower(outcome, better, worse):
    here = [outcome.mean(method=name, measure="ser", point=100) for name in (better, worse)]
    return Finding(f"{here[0]:.3f} against {here[1]:.3f}", here[0] < here[1])


def item(check, **given):
    return Item(WHERE, "who finds most", "EM is best", RUN, check, **given)


def test_the_verdict_follows_the_results(outcome):
    said = item(lambda o: first_is_lower(o, "EM", "SVT-S 1:1")).judge(outcome)
    assert said[0] is Verdict.IN_ORDER
    assert " against " in said[1]
    exact = item(lambda o: first_is_lower(o, "EM", "SVT-S 1:1"), exact=True)
    assert exact.judge(outcome)[0] is Verdict.REPRODUCED
    wrong = item(lambda o: first_is_lower(o, "SVT-S 1:1", "EM"))
    assert wrong.judge(outcome)[0] is Verdict.DIFFERS


def test_items_without_a_run_say_why():
    tested = Item(WHERE, "proof", "private", tested="tests/mechanisms/test_sparse_vector.py")
    assert tested.judge(None)[0] is Verdict.TESTED
    lacking = Item(WHERE, "census", "12 %", because="the extract cannot be passed on")
    assert lacking.judge(None)[0] is Verdict.CANNOT
    with pytest.raises(InvalidParameter, match="say where"):
        Item(WHERE, "census", "12 %")
    with pytest.raises(InvalidParameter, match="needs a check"):
        Item(WHERE, "census", "12 %", RUN)


def test_a_line_is_found_by_its_key_alone(outcome):
    assert set(outcome.means(method="EM", measure="ser")) == set(outcome.points)
    with pytest.raises(InvalidParameter, match="2 lines have method EM"):
        outcome.line(method="EM")
    with pytest.raises(InvalidParameter, match="0 lines have method absent"):
        outcome.mean(method="absent", point=100)


def test_the_command_is_one_that_can_be_typed():
    run = Run(
        "streams",
        "epsilon",
        options={"datasets": ("a", "b"), "settings": {"window": 800}, "methods": ("S 1:1",)},
        full={"repeats": 10},
    )
    assert run.command(is_full=True) == (
        "dpublish experiment streams --figure epsilon --repeats 10 --datasets a,b "
        '--set window=800 --methods "S 1:1"'
    )
    assert run.given(is_full=False)["repeats"] == 1
