"""What personalized releases hide, for tests that grant by level."""

from dpublish.privacy.neighbors import PersonalRecord


def personal(levels, mode="levels", column="own", rule=None, cells=None, unit=None):
    """Make the notion of records whose levels are in a column, or of people who have several."""
    return PersonalRecord(column, tuple(map(str, levels)), mode, rule, cells, unit)
