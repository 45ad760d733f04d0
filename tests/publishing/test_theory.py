"""Which expected errors are of what a release is for, and what a plan offers where none is."""

import shlex
from fractions import Fraction

import pytest

from dpublish.cli.main import COMMANDS
from dpublish.core.catalog import CATALOG
from dpublish.core.registry import make_method
from dpublish.core.settings import written_settings
from dpublish.errors import InvalidParameter
from dpublish.publishing.plan import LACKING, epsilon_for, lacking, plan, rehearse_command
from method_examples import CASES, EXAMPLES, SCHEMA

OF_THE_GOAL = {
    "bounds": "values_beyond_95",
    "dpcopula": "range_count_95",
    "filter-priority": "all_cells_95",
    "marginals": "range_count_95",
    "privelet": "random_range_95",
    "statistics": "worst_relative_error_95",
    "synth": "one_value_95",
    "majority": "choice_shortfall_95",
    "psd": "one_box_95",
    "ug": "one_box_95",
    "ag": "one_box_95",
    "p-hp": "one_box_95",
    "privbayes": "one_cell_95",
    "weighting": "count_error",
    "t-round": "count_error",
    "partitioning": "count_error",
}
NOISE_ONLY = {
    "privpfc": "one_cell_95",
    "diffgen": "one_cell_95",
    "pph": "one_cell_95",
    "diffpid3": "choice_shortfall_95",
    "privgene": "choice_shortfall_95",
    "privlocal": "choice_shortfall_95",
    "private-erm": "pull_of_noise",
    "output-perturbation": "one_weight",
    "private-svm": "one_weight",
    "functional": "matrix_deviation",
    "gupt": "weight_deviation",
    "dplloyd": "coordinate_sum_95",
    "dplloyd-impr": "coordinate_sum_95",
    "eugkm": "cell_count_95",
    "ugkm": "cell_count_95",
    "mkm": "cell_count_95",
    "gkm": "coordinate_deviation",
    "pgkm": "choice_shortfall_95",
    "privthr": "one_cell_95",
    "privthr-em": "one_cell_95",
    "privqt": "one_cell_95",
    "wave-baseline": "one_part_95",
}
SEVERAL = {"histogram", "topk", "dpcopula-hybrid", "personalized-em"}
"""Of the goal, by a figure that depends on the settings."""
SEVERAL_NOISY = {"model", "kmeans", "hybrid"}
BY_INNER = {"minimum", "threshold", "sampling"}
"""Personalized ones, whose error is that of the method within."""


def expected(name, settings):
    method = make_method(name, settings)
    return method.predict_error(SCHEMA, 10_000, Fraction(3) if name in BY_INNER else Fraction(1))


def test_every_method_of_the_index_is_listed():
    listed = {*OF_THE_GOAL, *NOISE_ONLY, *SEVERAL, *SEVERAL_NOISY, *BY_INNER}
    assert listed == CATALOG.keys() == EXAMPLES.keys()


@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value)[:40])
def test_an_expected_error_says_whether_it_is_of_the_goal(name, settings):
    found = expected(name, settings)
    if name in OF_THE_GOAL or name in NOISE_ONLY:
        assert found.target == {**OF_THE_GOAL, **NOISE_ONLY}[name]
    assert found.is_of_goal == (name not in NOISE_ONLY and name not in SEVERAL_NOISY)


@pytest.mark.parametrize("name", sorted(NOISE_ONLY.keys() | SEVERAL_NOISY))
def test_a_wanted_error_of_noise_alone_is_refused_with_the_command_that_measures(name):
    method = make_method(name, EXAMPLES[name][0])
    with pytest.raises(InvalidParameter) as refused:
        epsilon_for(method, SCHEMA, 10_000, 0.1, schema_path="people.toml")
    told = str(refused.value)
    assert "noise on the way" in told
    command = shlex.split(told[told.index("dpublish rehearse") :])
    assert command[1] in COMMANDS
    assert command[command.index("--method") + 1] == name
    assert command[command.index("--schema") + 1] == "people.toml"
    assert "--wanted" in command
    with pytest.raises(InvalidParameter, match="dpublish rehearse"):
        plan(method, SCHEMA, wanted_error=0.1, n_records=10_000)


@pytest.mark.parametrize("name", ["synth", "privbayes", "dpcopula", "dpcopula-hybrid"])
def test_a_part_of_a_record_is_no_error_of_rows(name):
    """Who wants 0.1 of rows means pairs of columns; of counts, that was `each within 0`."""
    method = make_method(name, EXAMPLES[name][0])
    with pytest.raises(InvalidParameter) as refused:
        epsilon_for(method, SCHEMA, 10_000, 0.1, schema_path="people.toml")
    assert shlex.split(str(refused.value))[-2:] == ["--wanted", "tv <= 0.1"]
    assert "less than one" in str(refused.value)
    assert plan(method, SCHEMA, wanted_error=100, n_records=10_000).epsilon > 0


def test_counts_may_be_wanted_exactly():
    method = make_method("histogram", {"columns": "sex"})
    assert plan(method, SCHEMA, wanted_error=0.5).figures["one_cell_95"] == 0


@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value)[:40])
def test_the_written_settings_make_the_same_method(name, settings):
    method = make_method(name, settings)
    assert make_method(name, written_settings(method)) == method


def test_what_is_wanted_is_written_in_the_unit_of_the_goal():
    def wanted(name, **settings):
        words = shlex.split(rehearse_command(make_method(name, settings), SCHEMA, wanted=0.1))
        return words[-1]

    assert wanted("model", target="sex") == "wrong <= 0.1"
    assert wanted("model", target="age") == "rmse <= 0.1"
    assert wanted("kmeans", n_clusters=2) == "distance <= 1.1"


def test_an_inner_method_decides_for_a_personalized_one():
    rule = EXAMPLES["minimum"][0] | {"inner": "privpfc target=town"}
    method = make_method("minimum", rule)
    assert not method.predict_error(SCHEMA, 10_000, Fraction(3)).is_of_goal
    assert lacking(method) == LACKING["classification"]
    assert "--method privpfc --target town" in rehearse_command(method, SCHEMA)
