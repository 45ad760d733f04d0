"""A look at values, for the owner alone."""

import pyarrow as pa

from dpublish.data.peek import peek


def test_a_few_values_are_shown_with_their_range():
    rows = pa.table({"age": [3, 40, None, 7], "town": ["a", "b", "a", "x" * 40]})
    found = peek(rows, ["age", "town"])
    assert found["age"].describe() == "3, 40, 7; numbers from 3 to 40; some are missing"
    assert found["town"].values == ["a", "b", "x" * 21 + "..."]
    assert not found["town"].has_missing


def test_only_the_first_few_are_shown():
    found = peek(pa.table({"age": list(range(100))}), ["age"])
    assert found["age"].values == ["0", "1", "2", "3", "4"]
    assert (found["age"].low, found["age"].high) == (0, 99)


def test_a_table_without_rows_has_nothing_to_show(tmp_path):
    (tmp_path / "a.csv").write_text("age\n")
    assert peek(tmp_path / "a.csv", ["age"])["age"].describe() == "no value"
