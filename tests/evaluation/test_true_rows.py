"""True rows may lack the columns that a rule of the schema fills in."""

import pytest

from dpublish import Formula, Schema, column
from dpublish.data.check import check_table
from dpublish.errors import UnreadableData
from dpublish.evaluation.true_rows import read_rows

COLUMNS = (
    column("age", "integer", bounds=[0, 99]),
    column("retired", "category", values=["yes", "no"]),
    column("free", "category", values=["yes", "no"]),
)
RULES = (
    Formula("retired", "if(age >= 67, 'yes', 'no')"),
    Formula("free", "if(retired = 'yes', 'yes', 'no')"),
)
SCHEMA = Schema(COLUMNS, functions=RULES)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "ages.csv"
    found.write_text("age\n70\n200\n30\n", "utf-8")
    return str(found)


def test_columns_are_filled_in_by_rule_from_values_as_the_schema_reads_them(path):
    rows = read_rows(path, SCHEMA.source_names, schema=SCHEMA)
    assert rows["retired"].to_pylist() == ["yes", "yes", "no"]
    assert rows["free"].to_pylist() == ["yes", "yes", "no"]
    assert rows["age"].to_pylist() == ["70", "200", "30"]


def test_columns_without_a_rule_must_be_there(path):
    with pytest.raises(UnreadableData, match="'retired'"):
        read_rows(path, ("age", "retired"), schema=Schema(COLUMNS))


def test_a_table_that_lacks_such_columns_fits(path):
    found = {one.column: one for one in check_table(SCHEMA, path)}
    assert not any(one.is_serious for one in found.values())
    assert "fill it in" in found["retired"].problem
    lacking = {one.column for one in check_table(Schema(COLUMNS), path) if one.is_serious}
    assert lacking == {"retired", "free"}
