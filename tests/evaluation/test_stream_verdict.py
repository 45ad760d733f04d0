"""The verdict on a stream: true rows by label, in a folder, by a column, or of the last step."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish import evaluate
from dpublish.core.folder.folder import load
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import ASKING, SCHEMA, THRESHOLD, arguments, make_ledger, rows

LABELS = ("t1", "t2", "t3")
EXACT = PerSnapshot(columns=("zone", "hour"), window=4)


def many(number, people=3_000):
    """As many rides as people, so that noise is small beside them."""
    return pa.table(
        {
            "user": [f"u{person}" for person in range(people)],
            "zone": ["north" if (person + number) % 3 else "south" for person in range(people)],
            "hour": [(person * number) % 4 for person in range(people)],
        }
    )


def publish(folder, method=EXACT, make=many):
    make_ledger(folder)
    with StreamOperator.start(
        folder / "rides.stream", method, SCHEMA, **arguments(folder)
    ) as operator:
        for number, label in enumerate(LABELS, start=1):
            operator.next(make(number), label)
    return folder / "out"


def test_a_stream_of_many_people_is_good_at_every_step(tmp_path):
    out = publish(tmp_path)
    true = {label: many(number) for number, label in enumerate(LABELS, start=1)}
    report = evaluate(out, true)
    (part,) = report.parts
    assert part.name == "stream"
    assert part.score >= 85
    assert [one["time"] for one in report[0].figures["steps"]] == list(LABELS)
    shifted = {label: many(number + 1) for number, label in enumerate(LABELS, start=1)}
    assert evaluate(out, shifted).score < part.score - 10


def test_folder_column_and_mapping_tell_the_same(tmp_path):
    out = publish(tmp_path)
    (tmp_path / "snapshots").mkdir()
    tables = []
    for number, label in enumerate(LABELS, start=1):
        pq.write_table(many(number), tmp_path / "snapshots" / f"{label}.parquet")
        tables.append(many(number).append_column("when", pa.array([label] * 3_000)))
    whole = pa.concat_tables(tables)
    pq.write_table(whole, tmp_path / "whole.parquet")
    by_folder = evaluate(load(out), tmp_path / "snapshots").to_dict()
    assert by_folder == evaluate(out, whole, step="when").to_dict()
    assert by_folder == evaluate(out, tmp_path / "whole.parquet", step="when").to_dict()
    last = evaluate(out, many(3))[0].figures["steps"]
    assert [one["time"] for one in last] == ["t3"]


@pytest.mark.parametrize("method", [ASKING, THRESHOLD])
def test_other_streams_get_a_verdict(tmp_path, method):
    report = evaluate(publish(tmp_path, method, rows), {"t2": rows(2)})
    assert 0 <= report.score <= 100
    assert any("2 steps have no true rows" in note for note in report[0].notes)


def test_rows_of_no_step_are_refused(tmp_path):
    out = publish(tmp_path, make=rows)
    with pytest.raises(InvalidParameter, match="t1, t2, t3"):
        evaluate(out, {"t9": rows(9)})
    with pytest.raises(InvalidParameter, match="'when'"):
        evaluate(out, rows(1), step="when")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidParameter, match="no snapshots"):
        evaluate(out, tmp_path / "empty")
    with pytest.raises(InvalidParameter, match="names of the files"):
        evaluate(out, tmp_path / "empty", step="when")
    with pytest.raises(InvalidParameter, match="no rows"):
        evaluate(out, {})
