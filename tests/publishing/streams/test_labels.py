"""What a stream refuses before it costs anything: labels by mistake, settings that get lost."""

from fractions import Fraction

import pytest

from dpublish.core.catalog import STREAMS
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.dsat import DSAT
from dpublish.methods.streams.dsft import DSFT
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows

UNOPENED = "a file that is never opened"


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    return tmp_path


def start(workspace, method=METHOD, schema=SCHEMA, **changes):
    return StreamOperator.start(
        workspace / "rides.stream", method, schema, **arguments(workspace, **changes)
    )


@pytest.mark.parametrize(
    "label", ["2024-05-02T10", "2024-05", "backup", "2024-05-02 copy", "2024_05_02", "incoming"]
)
def test_a_label_that_looks_unlike_the_last_is_refused_unless_that_is_meant(workspace, label):
    with start(workspace) as operator:
        operator.next(rows(1), "2024-04-30")
        with pytest.raises(InvalidParameter, match="in more than its numbers"):
            operator.next(UNOPENED, label)
        assert operator.next(rows(2), label, allow_new_labels=True).number == 2


@pytest.mark.parametrize(
    ("last", "label"),
    [("2024-05-09", "2024-05-10"), ("t9", "T10"), ("9", "10"), ("day 9 b", "day 11 b")],
)
def test_a_label_whose_numbers_alone_went_up_is_taken(workspace, last, label):
    with start(workspace) as operator:
        operator.next(rows(1), last)
        assert operator.next(rows(2), label).number == 2


def test_a_late_label_stays_refused_even_if_new_ones_are_allowed(workspace):
    with start(workspace) as operator:
        operator.next(rows(1), "t9")
        with pytest.raises(InvalidParameter, match="late"):
            operator.next(UNOPENED, "s10", allow_new_labels=True)


@pytest.mark.parametrize(
    "label",
    [
        "東京駅前広場のタクシー乗り場の記録その1_二千二十四年五月一日の朝の分",
        "a" * 190,
        "größe " * 12,
        "год-2024",
    ],
)
def test_ordinary_names_in_any_script_name_a_step(workspace, label):
    with start(workspace) as operator:
        operator.next(rows(1), label)
    stream = load_stream(workspace / "out")
    assert stream.times == (label.strip(),)
    assert stream.at().shape == (2, 4)


def test_a_label_that_is_too_long_is_told_how_length_is_counted(workspace):
    with start(workspace) as operator, pytest.raises(InvalidParameter) as caught:
        operator.next(UNOPENED, "東" * 70)
    assert "'東東" in str(caught.value)
    assert "takes 215 bytes, at most 200" in str(caught.value)


def test_a_setting_that_could_not_be_read_back_is_refused_before_it_is_paid_for(workspace):
    method = DSFT(columns=("zone",), horizon=9, threshold=Fraction(10**31))
    with pytest.raises(InvalidParameter, match=r"read its settings back.*threshold"):
        start(workspace, method)
    require_untouched(workspace)


def test_a_method_or_a_schema_that_would_come_back_changed_is_refused(workspace, monkeypatch):
    class Own(PerSnapshot):
        pass

    with pytest.raises(InvalidParameter, match="come back changed"):
        start(workspace, Own(columns=("zone",), window=3))
    monkeypatch.setattr(Own, "name", "own")
    with pytest.raises(InvalidParameter, match="no method 'own'"):
        start(workspace, Own(columns=("zone",), window=3))
    other = Schema((column("zone", "category", values=["north"]),), unit="user")
    monkeypatch.setattr("dpublish.data.schema_file.from_dict", lambda _: other)
    with pytest.raises(InvalidParameter, match="come back changed"):
        start(workspace)
    require_untouched(workspace)


def require_untouched(workspace):
    with Ledger(workspace / "books.db") as ledger:
        assert ledger.status("rides").spent == 0
    assert {path.name for path in workspace.iterdir()} == {"books.db"}


@pytest.mark.parametrize("method", STREAMS)
def test_every_method_can_be_read_back_and_taken_up(workspace, method):
    span = {"dsat-w": "window", "bd": "window", "ba": "window"}.get(method, "horizon")
    chosen = make_stream_method(method, {"columns": "zone,hour", span: 6, "static": "grouped"})
    start(workspace, chosen).close()
    with StreamOperator.open(workspace / "rides.stream") as operator:
        assert operator.stream.method == chosen
        assert operator.next(rows(1), "t1").number == 1


@pytest.mark.parametrize("name", ["proportional_gain", "integral_gain", "derivative_gain"])
def test_a_gain_beyond_all_use_is_refused_as_a_wrong_value(name):
    with pytest.raises(InvalidParameter, match=f"{name} must be at most 1,000"):
        make_stream_method(
            "dsat",
            {"columns": "zone", "horizon": 9, "controller": "schedule", name: "9" * 400 + "/1"},
        )
    method = DSAT(columns=("zone",), horizon=9, controller="schedule", **{name: Fraction(1000)})
    assert method.expected_error(SCHEMA, None, Fraction(1)).figures
