"""What an epsilon means: the same in words, tables, pages and JSON."""

import json
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpublish
from dpublish.errors import InvalidParameter
from dpublish.planning.explain import GROUPS, RELEASES, explain
from dpublish.privacy.meaning import percent_at_most, tell_factor


@given(st.fractions(min_value=Fraction(1, 1000), max_value=20))
def test_repeated_releases_and_groups_cost_as_often_as_there_are(epsilon):
    found = explain(epsilon)
    assert [each.epsilon for each in found.repeated] == [n * epsilon for n in RELEASES]
    assert [each.epsilon for each in found.groups] == [n * epsilon for n in GROUPS]
    for each in (*found.repeated, *found.groups):
        assert float(each.at_most) == pytest.approx(1 / (1 + exp(-each.epsilon)))
    assert found.values.at_most == found.groups[0].at_most  # to exchange is to remove and to add


def test_what_is_told_is_what_is_computed():
    found = explain("1", releases=12)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["epsilon"] == "1"
    assert plain["releases"] == [
        {"number": 12, "epsilon": "12", "at_most": pytest.approx(1 / (1 + exp(-12)))}
    ]
    assert plain["test"]["true_positive_rate_at_most"] == pytest.approx(0.05 * exp(1))
    for text in (str(found), found._repr_html_()):
        for told in ("2.68 %", "23.2 %", "73.2 %", "26.8 %", "13.6 %", "99.99939 %"):
            assert told in text
    assert plain["in_words"] in str(found)
    assert found._repr_html_().count("<table>") == 3


@pytest.mark.parametrize(("epsilon", "is_weak"), [("4.5", False), ("4.6", True), ("10", True)])
def test_an_epsilon_that_rules_out_almost_nothing_is_called_so(epsilon, is_weak):
    assert ("rules out almost nothing" in str(explain(epsilon))) is is_weak


@pytest.mark.parametrize("epsilon", ["0", "-1", "much", "", None])
def test_what_is_no_epsilon_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        dpublish.explain(epsilon)


@pytest.mark.parametrize("releases", [0, [3, 0], 10**7, [1.5]])
def test_numbers_of_releases_are_checked(releases):
    with pytest.raises(InvalidParameter, match="releases"):
        explain("1", releases=releases)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "2", "3", "5", "10"])
def test_the_table_of_the_guide_is_what_is_computed(epsilon):
    found = explain(epsilon)
    cells = [
        epsilon,
        tell_factor(found.epsilon),
        *(percent_at_most(each.at_most) for each in found.beliefs),
        percent_at_most(found.detection),
    ]
    guide = Path(__file__).parents[2] / "docs" / "concepts" / "choosing-epsilon.md"
    assert f"| {' | '.join(cells)} |" in guide.read_text()
