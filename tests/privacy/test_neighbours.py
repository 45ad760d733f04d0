import json

import pytest

from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbours import (
    AddRemoveRecord,
    AddRemoveUnit,
    ReplaceRecord,
    UserInWindow,
    from_plain,
    to_plain,
)

ALL = [AddRemoveRecord(), ReplaceRecord(), AddRemoveUnit("person"), UserInWindow("person", 3)]


@pytest.mark.parametrize("notion", ALL, ids=lambda notion: notion.name)
def test_a_notion_survives_a_file(notion):
    assert from_plain(json.loads(json.dumps(to_plain(notion)))) == notion


def test_reading_leaves_the_plain_values_as_they_were():
    plain = to_plain(AddRemoveUnit("person"))
    from_plain(plain)
    assert plain == {"name": "add-remove-unit", "column": "person"}


def test_notions_have_names_and_descriptions_of_their_own():
    assert len({notion.name for notion in ALL}) == len({n.describe() for n in ALL}) == len(ALL)


def test_the_description_says_whose_rows_and_how_long():
    assert UserInWindow("person", 3).describe() == (
        "all rows of any one 'person' within 3 consecutive snapshots were added or removed"
    )


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "3"])
def test_a_window_is_a_whole_number_of_snapshots(window):
    with pytest.raises(InvalidParameter, match="window"):
        UserInWindow("person", window)


@pytest.mark.parametrize("plain", [{}, {"name": "everyone"}])
def test_a_notion_of_a_later_version_is_refused(plain):
    with pytest.raises(InvalidParameter, match="newer dpublish"):
        from_plain(plain)


def test_what_is_hidden_cannot_be_changed_afterwards():
    with pytest.raises(AttributeError):
        ALL[3].window = 30
