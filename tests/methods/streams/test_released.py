"""A published stream: opened whole, checked when read, answered with bars where they are known."""

import json
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise

import frictionless
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset

from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery
from dpublish.methods.streams.folder import (
    counts_file,
    create_folder,
    describe_stream,
    head_of,
    load_stream,
    put_line,
    write_file,
)
from dpublish.methods.streams.listing import StepRecord, clean_label, natural_key, partition_name
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.methods.streams.snapshot import Bins
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure
from stream_world import SCHEMA, rows

BINS = Bins.of(SCHEMA, ("zone", "hour"))
METHOD = PerSnapshot(columns=("zone", "hour"), window=4, contribution=2)
NOISY = np.array([5, -1, 0, 2, 7, 3, 1, 9])


def record(number=1, **changes):
    given = {
        "number": number,
        "time": f"t{number}",
        "action": "published",
        "epsilon": Fraction(1, 2),
        "noise": 3.5,
        "change": 12.0,
        "spent": Fraction(number, 2),
        "sha256": "0" * 64,
    }
    return StepRecord(**given | changes)


@pytest.fixture
def folder(tmp_path):
    """A stream with a published step, t1, and a repeated one, t2."""
    receipt = METHOD.start(SCHEMA, budget=Budget.seeded(2), rng=secure()).receipt
    axes = [{"column": name, "level": level} for name, level in BINS.columns]
    metadata = {"axes": axes, "horizon": None, "window": 4}
    folder = tmp_path / "out"
    create_folder(folder, head_of(receipt, SCHEMA, metadata))
    add(folder, 1, NOISY + 0.5, NOISY)
    add(folder, 2, NOISY + 0.5, None, action="repeated", epsilon=Fraction(0), spent=Fraction(1, 2))
    return folder


def add(folder, number, estimate, released, **changes):
    content = counts_file(BINS.cells(), estimate, released)
    step = record(number, sha256=sha256(content).hexdigest(), **changes)
    write_file(folder / step.file, content)
    put_line(folder, (folder / "steps.jsonl").stat().st_size, step.to_line())


def test_steps_and_counts_come_back_as_they_were_written(folder):
    stream = load_stream(folder)
    assert stream.times == ("t1", "t2")
    assert stream.shape == (2, 4)
    assert np.array_equal(stream.at("t1"), (NOISY + 0.5).reshape(2, 4))
    assert np.array_equal(stream.at(), stream.at("t2"))
    assert stream.table("t1").column_names == [
        *("zone", "hour", "hour_low", "hour_high", "estimate", "noisy_count"),
    ]
    assert stream.table("t2").column_names == [
        *("zone", "hour", "hour_low", "hour_high", "estimate"),
    ]
    assert stream.steps()["action"].to_pylist() == ["published", "repeated"]
    assert stream.steps()["spent"].to_pylist() == ["0.5", "0.5"]
    assert (stream == load_stream(folder), stream.missing()) == (True, [])


def test_a_published_step_has_the_interval_of_its_noise(folder):
    answer = load_stream(folder).count("zone = north", time="t1")
    assert answer.value == 6  # from the noisy counts, whose noise is known, not the estimates
    # Four bins of two-sided geometric noise of rate epsilon / contribution = 1/4.
    draws = np.random.Generator(np.random.Philox(5)).geometric(1 - np.exp(-0.25), (2, 4, 200_000))
    noise = np.abs((draws[0] - draws[1]).sum(axis=0))
    half_width = answer.high - answer.value
    assert np.mean(noise <= half_width) >= 0.95 > np.mean(noise <= 0.7 * half_width)
    assert np.mean(noise <= half_width) < 0.96
    assert "at most 2 of any one" in answer.counts


def test_a_repeated_step_has_no_interval_and_says_when_it_was_published(folder):
    answer = load_stream(folder).count("zone = north")
    assert (answer.value, answer.low) == (8, None)
    assert "published last at t1" in answer.assumption


def test_boxes_are_counted_at_the_last_step(folder):
    lows, highs = np.array([[0, 1]]), np.array([[1, 3]])
    assert load_stream(folder).count_boxes(("zone", "hour"), lows, highs).tolist() == [0.0]


def test_what_a_stream_does_not_offer_is_refused(folder, tmp_path):
    stream = load_stream(folder)
    with pytest.raises(InvalidParameter, match="did you mean 't1'"):
        stream.at("t1x")
    with pytest.raises(InvalidParameter, match="copy"):
        stream.save(tmp_path / "copy")
    with pytest.raises(InvalidQuery, match="synthetic rows"):
        stream.rows(5)


def test_a_stream_without_steps_can_be_opened(folder):
    (folder / "steps.jsonl").write_bytes(b"")
    stream = load_stream(folder)
    assert (stream.times, stream.steps().num_rows, stream.tables()) == ((), 0, {})
    assert "0, of which 0" in stream.summary()["steps"]
    with pytest.raises(InvalidQuery, match="no step yet"):
        stream.at()


def test_before_anything_is_published_no_error_is_claimed(folder):
    published = load_stream(folder)
    assert published.expected_error() == {"standard_deviation_of_one_bin": 3.5}
    assert "deviation of 3.5" in published.summary()["error"]
    (folder / "steps.jsonl").write_bytes(b"")
    nothing = {"action": "repeated", "epsilon": Fraction(0), "noise": 0.0, "change": 0.0}
    add(folder, 1, NOISY * 0.0, None, **nothing, spent=Fraction(1, 8))
    stream = load_stream(folder)
    assert stream.expected_error() == {}
    assert "deviation" not in stream.summary()["error"]
    assert "nothing was published yet" in stream.summary()["error"]


def test_a_last_line_that_was_cut_does_not_count(folder):
    whole = (folder / "steps.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in (first, first + 1, len(whole) - 1):
        (folder / "steps.jsonl").write_bytes(whole[:cut])
        assert load_stream(folder).times == ("t1",)


@pytest.mark.parametrize("damage", ["changed", "cut", "missing", "link"])
def test_counts_that_are_not_those_of_the_list_are_refused(folder, damage):
    path = folder / "data" / "time=t1" / "counts.parquet"
    content = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(counts_file(BINS.cells(), NOISY * 1.0, NOISY + 1))
    elif damage == "cut":
        path.write_bytes(content[:-1])
    elif damage == "link":
        (folder.parent / "elsewhere").write_bytes(content)
        path.symlink_to(folder.parent / "elsewhere")
    stream = load_stream(folder)
    with pytest.raises(CorruptRelease):
        stream.at("t1")
    assert stream.at("t2").shape == (2, 4)


@pytest.mark.parametrize(
    ("estimate", "released"),
    [(NOISY[:4] + 0.0, NOISY[:4]), (NOISY + np.nan, NOISY), (NOISY + 0.0, None)],
)
def test_counts_that_do_not_fit_their_step_are_refused(folder, estimate, released):
    cells = BINS.cells().slice(0, estimate.size)
    content = counts_file(cells, estimate, released)
    step = record(3, sha256=sha256(content).hexdigest(), spent=Fraction(1))
    write_file(folder / step.file, content)
    put_line(folder, (folder / "steps.jsonl").stat().st_size, step.to_line())
    with pytest.raises(CorruptRelease, match="step 3"):
        load_stream(folder).at("t3")


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 5},
        {"number": "3"},
        {"time": "t2"},
        {"time": "s9"},
        {"time": "a\nb"},
        {"action": "guessed"},
        {"epsilon": "0"},
        {"spent": "3"},
        {"spent": "-1"},
        {"noise": -1.0},
        {"noise": None},
        {"change": "much"},
        {"sha256": "../../etc"},
    ],
)
def test_a_list_that_no_stream_writes_is_refused(folder, changes):
    line = json.dumps(record(3, spent=Fraction(1)).to_dict() | changes) + "\n"
    with (folder / "steps.jsonl").open("a") as listed:
        listed.write(line)
    with pytest.raises(CorruptRelease):
        load_stream(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"format": "1"},
        {"kind": "movie"},
        {"receipt": {}},
        {"metadata": {"axes": [], "horizon": None, "window": 4}},
        {"metadata": {"axes": [{"column": "zone", "level": 1}], "horizon": 3, "window": 4}},
        {"metadata": {"axes": [{"column": "street", "level": 1}], "horizon": 3, "window": None}},
    ],
)
def test_a_head_that_no_stream_writes_is_refused(folder, changes):
    head = json.loads((folder / "stream.json").read_text()) | changes
    (folder / "stream.json").write_text(json.dumps(head))
    with pytest.raises(CorruptRelease):
        load_stream(folder)


def test_other_tools_see_the_steps_as_partitions(folder):
    found = dataset.dataset(folder / "data", partitioning="hive").to_table()
    assert sorted(set(found["time"].to_pylist())) == ["t1", "t2"]
    assert found.num_rows == 16
    (folder / "datapackage.json").write_bytes(describe_stream(load_stream(folder)))
    description = json.loads((folder / "datapackage.json").read_text())
    assert description["resources"][1]["path"] == "data/time=t1/counts.parquet"
    package = frictionless.Package(str(folder / "datapackage.json"))
    assert package.resource_names == ["steps", "counts-1", "counts-2"]
    assert [len(package.get_resource(f"counts-{n}").read_rows()) for n in (1, 2)] == [8, 8]


@pytest.mark.parametrize("label", ["2024-05-01T10:00", "a/b", "..", "50 %", "größe", "a=b&c"])
def test_any_label_makes_one_folder_that_tools_can_read_back(folder, label):
    add(folder, 3, NOISY * 1.0, NOISY, time=f"z{label}", spent=Fraction(1))
    stream = load_stream(folder)
    assert stream.at(f"z{label}").shape == (2, 4)
    assert {path.parent for path in (folder / "data").iterdir()} == {folder / "data"}
    found = dataset.dataset(folder / "data", partitioning="hive").to_table()
    assert f"z{label}" in found["time"].to_pylist()


def test_labels_increase_in_natural_order():
    ordered = ["1", "2", "10", "2024-05-01", "2024-05-01T09", "2024-05-01T10", "a2", "A10", "b"]
    assert all(natural_key(a) < natural_key(b) for a, b in pairwise(ordered))
    assert natural_key("T1") == natural_key("t01")
    assert clean_label("e\u0301") == "\u00e9"
    assert partition_name("..") == "time=.."


def test_no_row_is_in_the_folder(folder):
    users = [name.encode() for name in rows(1)["user"].to_pylist()]
    for path in folder.rglob("*"):
        if path.is_file():
            assert not any(user in path.read_bytes() for user in users)
    assert isinstance(load_stream(folder).table(), pa.Table)
