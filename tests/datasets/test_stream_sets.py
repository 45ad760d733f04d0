"""Streams to try methods on: people are neither lost nor doubled, and change as guaranteed."""

import inspect
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpublish.datasets.moving_objects
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.moving_objects import (
    EDGES,
    NODES,
    RoadMap,
    grid_roads,
    moving_objects,
    oldenburg,
)
from dpublish.datasets.pool_streams import (
    CENSUS_INCOME,
    PERIODS,
    POOL_SHAPE,
    census_pool_stream,
    pool_stream,
)
from dpublish.datasets.stream_sets import (
    NYC,
    STREAM_SETS,
    TDRIVE,
    nyc_stream,
    raised_tdrive_stream,
    tdrive_stream,
)
from dpublish.datasets.streams import (
    CountStream,
    bursty_stream,
    census_stream,
    drifting_stream,
    snapshots,
    static_stream,
)
from dpublish.errors import InvalidParameter, UnreadableData

MAKERS = (static_stream, drifting_stream, bursty_stream, census_stream)
SMALL = {"people": 400, "steps": 12}


def moved(stream):
    """How many people changed bins at each step after the first."""
    return np.abs(np.diff(stream.counts, axis=0)).sum(axis=1) // 2


@pytest.mark.parametrize("make", MAKERS)
def test_a_simulated_stream_follows_from_its_seed_and_keeps_its_people(make):
    stream = make(**SMALL)
    assert stream.counts.dtype == np.int64
    assert np.array_equal(stream.counts, make(**SMALL).counts)
    assert not np.array_equal(stream.counts, make(**SMALL, seed=1).counts)
    assert (stream.counts >= 0).all()
    assert (stream.counts.sum(axis=1) == 400).all()
    assert (
        stream.counts.shape == (stream.steps, np.prod(stream.shape)) == (12, stream.counts[0].size)
    )


@pytest.mark.parametrize("make", MAKERS)
def test_a_simulated_stream_may_be_empty(make):
    assert not make(people=0, steps=6).counts.any()


def test_a_static_stream_never_changes():
    assert not moved(static_stream(**SMALL)).any()


def test_bursts_move_about_half_of_the_people_and_no_one_moves_between_them():
    stream = bursty_stream(people=10_000, steps=60, bursts=4)
    jumps = moved(stream)[moved(stream) > 0]
    assert len(jumps) == 4
    assert (jumps > 1_000).all()
    assert (jumps <= 5_300).all()  # half of 10,000, and five deviations


@pytest.mark.parametrize("make", [drifting_stream, census_stream])
def test_the_rate_says_how_many_people_change_at_a_step(make):
    assert not moved(make(people=5_000, steps=8, rate=0)).any()
    few = moved(make(people=5_000, steps=30, rate=0.01))
    many = moved(make(people=5_000, steps=30, rate=0.2))
    assert 0 < few.max() <= 100  # 50, and seven deviations
    assert few.mean() < many.mean() <= 1_000 + 100


def test_drift_leads_ever_farther_away():
    counts = drifting_stream(people=20_000, steps=120, rate=0.02).counts
    distance = [int(np.abs(counts[step] - counts[0]).sum()) for step in (5, 30, 119)]
    assert distance == sorted(distance)


def test_a_census_has_as_many_columns_as_asked_for_and_grows_older():
    stream = census_stream(5, people=3_000, steps=10, rate=0.1)
    assert stream.shape == (16, 10, 6, 4, 2)
    ages = stream.counts.reshape(10, 16, -1).sum(axis=2)
    first, last = (row @ np.arange(16) / 3_000 for row in (ages[0], ages[5]))
    assert last > first
    narrow = census_stream(1, people=3_000, steps=10, rate=0.1).counts
    assert np.array_equal(narrow[0], ages[0])


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (static_stream, {"people": -1}),
        (static_stream, {"steps": 0}),
        (drifting_stream, {"rate": 1.5}),
        (bursty_stream, {"steps": 3, "bursts": 3}),
        (census_stream, {"columns": 6}),
    ],
)
def test_a_stream_of_no_sense_is_refused(make, settings):
    with pytest.raises(InvalidParameter):
        make(**settings)


def test_counts_that_do_not_fit_the_bins_are_refused():
    with pytest.raises(InvalidParameter, match="column a bin"):
        CountStream("odd", "static", (2, 3), np.zeros((4, 5), dtype=np.int64))


def test_snapshots_count_to_the_stream_with_one_row_a_person_and_few_moving():
    counts = np.array([[2, 1, 0], [1, 1, 1], [0, 4, 1], [0, 0, 0], [1, 0, 0]])
    stream = CountStream("tiny", "real", (3,), counts)
    tables = list(snapshots(stream))
    for table, row in zip(tables, counts, strict=True):
        assert np.array_equal(np.bincount(table["x1"].to_numpy(), minlength=3), row)
        assert len(set(table["person"].to_pylist())) == table.num_rows
    where = [dict(zip(*table.to_pydict().values(), strict=True)) for table in tables]
    assert sum(where[1][person] != where[0][person] for person in where[0]) == 1
    assert set(where[1]) == set(where[0])
    assert set(where[1]) < set(where[2])  # two came
    assert not set(where[4]) & set(where[2])  # who has left does not come back


def test_snapshots_of_a_simulated_stream_fit_its_schema():
    stream = drifting_stream((3, 4), people=30, steps=4)
    for table, row in zip(snapshots(stream), stream.counts, strict=True):
        assert table.column_names == ["person", *stream.columns]
        bins = np.ravel_multi_index(
            tuple(table[name].to_numpy() for name in stream.columns), stream.shape
        )
        assert np.array_equal(np.bincount(bins, minlength=12), row)
    assert stream.schema.unit == "person"
    assert [column.size for column in stream.schema.columns] == [3, 4]


# Roads


def test_a_simulated_town_hangs_together_and_objects_stay_on_its_roads():
    town = grid_roads(8)
    assert len(town.roads) > len(town.points) - 2
    assert (town.lengths > 0).all()
    stream = moving_objects(town, sides=5, objects=50, steps=20)
    assert (stream.counts.sum(axis=1) == 50).all()
    assert moved(stream).any()
    assert np.array_equal(stream.counts, moving_objects(town, sides=5, objects=50, steps=20).counts)


def road_map(points, roads):
    points, roads = np.array(points, dtype=float), np.array(roads)
    lengths = np.linalg.norm(points[roads[:, 0]] - points[roads[:, 1]], axis=1)
    return RoadMap("simulated", points, roads, lengths)


def test_objects_go_to_and_fro_at_their_speeds():
    road = road_map([[5, 5], [2_405, 5]], [[0, 1]])
    stream = moving_objects(road, sides=100, objects=200, steps=90)
    for step, counts in enumerate(stream.counts):
        gone = np.array([20, 60, 120]) * step % 4_800
        from_one_end = np.where(gone < 2_400, gone, 4_800 - gone)
        possible = {int(5 + x) // 100 for x in (*from_one_end, *(2_400 - from_one_end))}
        seen = set(np.flatnonzero(counts.reshape(100, 100)[:, 0]).tolist())
        assert seen == possible
        assert counts.sum() == 200


def test_objects_take_the_shortest_way(monkeypatch):
    monkeypatch.setattr(dpublish.datasets.moving_objects, "_HUBS", 2)
    street = [[100 + 100 * number, 100] for number in range(20)]
    along = [[number, number + 1] for number in range(19)]
    # From end to end there is also a way past a far crossing, which is no hub with this seed.
    town = road_map([*street, [1_000, 9_900]], [*along, [0, 20], [20, 19]])
    far = moving_objects(town, sides=2, objects=300, steps=600).counts.reshape(600, 2, 2)[:, 0, 1]
    assert 0 < far[0] < 60  # who started there
    assert (np.diff(far) <= 0).all()
    assert far[-1] == 0


def test_a_map_without_roads_is_refused():
    empty = RoadMap("desert", np.zeros((3, 2)), np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    with pytest.raises(InvalidParameter, match="road"):
        moving_objects(empty)


def test_parts_of_a_map_that_are_not_connected_are_left_out(tmp_path):
    nodes = {"node_id": [3, 5, 7, 9, 11], "x": [0.0, 3, 0, 50, 60], "y": [0.0, 4, 8, 50, 50]}
    edges = {"node_a": [3, 5, 5, 9], "node_b": [5, 3, 7, 11]}
    pq.write_table(pa.table(nodes), tmp_path / NODES)
    pq.write_table(pa.table(edges), tmp_path / EDGES)
    road_map = oldenburg(tmp_path)
    assert road_map.points.tolist() == [[0, 0], [3, 4], [0, 8]]
    assert sorted(road_map.lengths.tolist()) == [5, 5]  # the twin of the first road is gone


# People who are exchanged with a pool

TABLE = np.array([700, 0, 50, 250])


def test_people_come_from_the_table_and_keep_its_proportions():
    stream = pool_stream(TABLE, (2, 2), people=500, steps=101, seed=1)
    assert np.array_equal(stream.counts, pool_stream(TABLE, (2, 2), 500, 101, seed=1).counts)
    assert not np.array_equal(stream.counts, pool_stream(TABLE, (2, 2), 500, 101, seed=2).counts)
    assert (stream.counts >= 0).all()
    assert (stream.counts <= TABLE).all()
    assert (stream.counts.sum(axis=1) == 500).all()
    assert stream.counts.mean(axis=0) == pytest.approx(TABLE / 2, abs=15)
    assert moved(stream).any()


def test_as_many_people_are_exchanged_as_the_rate_says_in_ten_periods():
    # Every row is in a bin of its own, so that all who are exchanged are seen.
    every = np.ones(4_000, dtype=np.int64)
    counts = moved(pool_stream(every, (4_000,), people=2_000, steps=1 + 10 * PERIODS))
    periods = counts.reshape(PERIODS, 10)
    assert (periods == periods[:, :1]).all()
    assert len(set(periods[:, 0].tolist())) > PERIODS // 2
    means = [
        moved(pool_stream(every, (4_000,), 2_000, 1 + PERIODS, rate=rate, seed=seed)).mean()
        for rate in (0.5, 1.0)
        for seed in range(20)
    ]
    # Normal around 500 and 1,000, with a deviation of 400 and 200 draws for each.
    assert np.mean(means[:20]) == pytest.approx(520, abs=100)
    assert np.mean(means[20:]) == pytest.approx(1_000, abs=100)
    assert not moved(pool_stream(every, (4_000,), 2_000, 20, rate=0)).any()


def test_a_pool_of_copies_holds_more_people_than_the_table():
    with pytest.raises(InvalidParameter, match="copies"):
        pool_stream(TABLE, (4,), people=1_000, steps=3)
    stream = pool_stream(TABLE, (4,), people=5_000, steps=3, copies=10)
    assert (stream.counts.sum(axis=1) == 5_000).all()
    assert pool_stream(TABLE, (4,), steps=1).counts.sum() == 500  # half of the rows


@pytest.mark.parametrize(
    "settings", [{"people": 0}, {"steps": 0}, {"rate": -0.1}, {"rate": 2.1}, {"copies": 0}]
)
def test_an_exchange_of_no_sense_is_refused(settings):
    with pytest.raises(InvalidParameter):
        pool_stream(TABLE, (4,), **settings)


def test_a_stream_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(InvalidParameter, match="fewer steps"):
        pool_stream(np.ones(10_000, dtype=np.int64), (10_000,), steps=100_000)
    with pytest.raises(InvalidParameter, match="fewer bins"):
        moving_objects(grid_roads(6), sides=1_024, objects=9, steps=1_000)


def test_people_of_census_income_are_put_into_bins_of_six_columns(tmp_path):
    people = {
        "age": [3, 47, 90],
        "sex": ["Male", "Female", "Male"],
        "education": ["Children", "Doctorate degree(PhD EdD)", "12th grade no diploma"],
        "weeks_worked_in_year": [0, 52, 0],
        "marital_stat": ["Never married", "Married-civilian spouse present", "Widowed"],
        "income": ["<=50K", ">50K", "<=50K"],
    }
    pq.write_table(pa.table(people), tmp_path / CENSUS_INCOME)
    # Two of three people at each of many steps: all three are seen.
    stream = census_pool_stream(tmp_path, people=2, steps=40, rate=1)
    assert stream.shape == POOL_SHAPE
    assert np.prod(POOL_SHAPE) == 27_648
    seen = np.flatnonzero(stream.counts.any(axis=0))
    codes = np.stack(np.unravel_index(seen, POOL_SHAPE), axis=1).tolist()
    assert codes == [[3, 1, 0, 0, 0, 0], [47, 0, 11, 1, 1, 2], [90, 1, 4, 0, 0, 1]]
    assert census_pool_stream(tmp_path, people=2, steps=2, columns=3).shape == (96, 2, 12)
    with pytest.raises(InvalidParameter, match="columns"):
        census_pool_stream(tmp_path, people=2, columns=7)


# Public streams


def test_raised_taxis_are_where_taxis_were(tmp_path):
    hours = {"hour": [0, 0, 2], "ix": [0, 4, 4], "iy": [1, 5, 5], "n_taxis": [30, 10, 60]}
    pq.write_table(pa.table(hours), tmp_path / TDRIVE)
    stream = raised_tdrive_stream(tmp_path, people=100_000, steps=3)
    assert (stream.counts.sum(axis=1) == 100_000).all()
    counts = stream.counts.reshape(3, 10, 10)
    assert (counts[:, 0, 1] + counts[:, 4, 5]).tolist() == [100_000] * 3
    # By half the hour and half the week; the second hour has no data.
    expected = [100_000 * share for share in ((0.75 + 0.3) / 2, 0.3, 0.15)]
    assert counts[:, 0, 1].tolist() == pytest.approx(expected, abs=1_000)
    with pytest.raises(InvalidParameter, match="people"):
        raised_tdrive_stream(tmp_path, people=50, steps=3)


def test_a_public_stream_is_read_by_hour_and_zone(tmp_path):
    hours = {"hour": [1, 0, 1], "ix": [2, 0, 9], "iy": [3, 1, 9], "n_taxis": [7, 5, 1]}
    pq.write_table(pa.table(hours), tmp_path / TDRIVE)
    counts = tdrive_stream(tmp_path, steps=2).counts.reshape(2, 10, 10)
    assert (counts[0, 0, 1], counts[1, 2, 3], counts[1, 9, 9], counts.sum()) == (5, 7, 1, 13)
    with pytest.raises(InvalidParameter, match="2 steps"):
        tdrive_stream(tmp_path, steps=3)
    times = np.array(["2019-03-03T23", "2019-03-04T00", "2019-03-04T01"], dtype="datetime64[ms]")
    flows = {
        "mode": ["taxi"] * 6 + ["bike"] * 3,
        "time": np.concatenate([times, times, times]),
        "zone_id": [40] * 3 + [4] * 3 + [4] * 3,
        "inflow": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    }
    pq.write_table(pa.table(flows), tmp_path / NYC)
    assert nyc_stream(tmp_path, "taxi", steps=2).counts.tolist() == [[5, 2], [6, 3]]
    assert nyc_stream(tmp_path, "bike", steps=1).counts.tolist() == [[8]]


def test_a_file_that_is_not_there_or_not_parquet_is_said_to_be(tmp_path):
    with pytest.raises(UnreadableData, match="needs a data folder"):
        STREAM_SETS["tdrive"].stream(None)
    (tmp_path / TDRIVE).write_text("no parquet")
    with pytest.raises(UnreadableData, match="cannot be read"):
        STREAM_SETS["tdrive"].stream(tmp_path)
    assert STREAM_SETS["oldenburg"].missing_file(tmp_path) == NODES


@pytest.mark.parametrize("name", STREAM_SETS)
def test_every_stream_of_the_list_is_what_it_says(name):
    chosen = STREAM_SETS[name]
    folder: Path | None = find_data_folder()
    if chosen.missing_file(folder):
        pytest.skip("its file is not here")
    stream = chosen.stream(folder, {"steps": 24})
    assert (stream.name, stream.kind, stream.steps) == (name, chosen.kind, 24)
    assert stream.counts.any()


@pytest.mark.parametrize("name", STREAM_SETS)
def test_every_knob_of_a_stream_is_a_parameter_of_its_maker(name):
    chosen = STREAM_SETS[name]
    assert set(chosen.knobs) <= set(inspect.signature(chosen.make).parameters)
