"""Rows of a file get a column with their predicted class."""

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from dpublish import Budget, Schema, column, open_table, seeded
from dpublish.core.registry import make_method
from dpublish.errors import InvalidParameter
from dpublish.evaluation.predicted import predict_file

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("ill", "category", values=["no", "yes"]),
    )
)
ROWS = pa.table({"age": [10, 80] * 300, "ill": ["no", "yes"] * 300})


@pytest.fixture(scope="module")
def release():
    method = make_method("diffpid3", {"target": "ill"})
    return method.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(20), rng=seeded(1))


def test_the_last_column_is_the_class(release, tmp_path):
    pacsv.write_csv(pa.table({"age": [85, 5], "note": ["a", "b"]}), tmp_path / "rows.csv")
    found = predict_file(release, str(tmp_path / "rows.csv"))
    assert found.column_names == ["age", "note", "predicted_ill"]
    assert found["predicted_ill"].to_pylist() == ["yes", "no"]


def test_a_column_of_that_name_is_not_replaced(release, tmp_path):
    pacsv.write_csv(pa.table({"age": [85], "predicted_ill": ["x"]}), tmp_path / "rows.csv")
    with pytest.raises(InvalidParameter, match="rename it"):
        predict_file(release, str(tmp_path / "rows.csv"))
