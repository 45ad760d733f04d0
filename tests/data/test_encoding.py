"""Encoding: each value by itself, the same on every path, and never an error."""

import datetime
import re
from decimal import Decimal
from math import floor, inf, isnan, nan
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.data.encoding import to_texts
from dpublish.data.schema import column
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter, UnreadableData

NUMBERS = {
    "equal bins": {"kind": "numeric", "bounds": [-1.5, 9.25], "bins": 7},
    "one bin": {"kind": "numeric", "bounds": [0, 1], "bins": 1},
    "cuts": {"kind": "numeric", "cuts": [-3, 0, 0.1, 2.5, 1e6]},
    "closed right": {"kind": "numeric", "taxonomy": ["(0, 5]", "(5, 7.5]", "(7.5, 100]"]},
    "merged bins": {"kind": "numeric", "bounds": [0, 100], "bins": 9, "branching": 3},
    "whole": {"kind": "integer", "bounds": [-3, 90]},
    "whole bins": {"kind": "integer", "bounds": [-3, 90], "bins": 7},
    "whole cuts": {"kind": "integer", "cuts": [0, 18, 65, 120]},
    "whole closed right": {"kind": "integer", "taxonomy": ["(14.0, 20.0]", "(20.0, 25.0]"]},
    "far apart": {"kind": "integer", "bounds": [-(2**52), 2**52], "bins": 1000},
}
CATEGORIES = {
    "texts": {"kind": "category", "values": ["a", "b", "c d"]},
    "with other": {"kind": "category", "values": ["a", "b", "1"], "other": "rest"},
    "other is listed": {"kind": "category", "values": ["a", "b"], "other": "b"},
    "integers": {"kind": "ordinal", "values": [3, 1, 2]},
    "truth": {"kind": "category", "values": [False, True]},
    "tree": {"kind": "category", "taxonomy": {"B": ["b", "c d"], "a": {}}, "other": "rest"},
}
RULES = ["refuse", "drop", "category"]
near_edges = st.integers(-20, 20).map(lambda x: x / 4) | st.sampled_from([17.5, 65.0, 90.0, 9.25])
floats = st.floats() | near_edges
whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-10, 130)
numerals = floats.map(str) | whole.map(str) | st.sampled_from(["1e400", "+5", ".5", "5.", " 5\t"])
words = st.text(max_size=8) | st.sampled_from(
    ["a", " b", "c d", "rest", "1.0", "TRUE", "(missing)"]
)
rows = st.one_of(
    st.lists(st.none() | floats, max_size=12).map(lambda x: pa.array(x, pa.float64())),
    st.lists(st.none() | whole, max_size=12).map(lambda x: pa.array(x, pa.int64())),
    st.lists(st.none() | st.booleans(), max_size=12).map(lambda x: pa.array(x, pa.bool_())),
    st.lists(st.none() | numerals | words, max_size=12).map(lambda x: pa.array(x, pa.string())),
)


def number(value):
    """Read one value by hand; NaN if it has no number."""
    if isinstance(value, str):
        text = value.strip(" \t\n\r\v\f")
        plain = text.isascii() and "_" not in text
        try:
            value = float(text) if plain else nan
        except ValueError:
            value = nan
    return nan if value is None else float(value)


def leaf_of_number(value, settings, low, high):
    """Find the leaf of a number by comparing, without any array."""
    value = min(max(value, low), high)
    if settings["kind"] == "integer":
        value = floor(value)
    if "cuts" in settings:
        return sum(value >= cut for cut in settings["cuts"][1:-1])
    if "taxonomy" in settings:
        tops = [float(text.strip("(]").split(",")[1]) for text in settings["taxonomy"]]
        return sum(value > top for top in tops[:-1])
    if settings["kind"] == "integer":
        count = int(high - low) + 1
        return (int(value) - int(low)) * settings.get("bins", count) // count
    bins = settings["bins"]
    return sum(value >= low + (high - low) * cell / bins for cell in range(1, bins))


def text_of(value):
    if isinstance(value, str):
        text = re.sub(r"\A([+-]?[0-9]+)\.0*\Z", r"\1", value.strip())
        return text.lower() if text.lower() in ("true", "false") else text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and isnan(value):
        return ""
    return str(int(value)) if value == value // 1 and abs(value) < inf else str(value)


def expect(result, codes):
    """Compare with a list of codes, in which None is a record left out."""
    keep = [True] * len(codes) if result.keep is None else list(result.keep)
    assert keep == [code is not None for code in codes]
    kept = [int(code) for code, stays in zip(result.codes, keep, strict=True) if stays]
    assert kept == [code for code in codes if code is not None]


@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("missing", RULES)
@pytest.mark.parametrize("name", NUMBERS)
@given(array=rows)
def test_numbers_go_where_a_loop_by_hand_puts_them(name, missing, array):
    declared = column("x", missing=missing, **NUMBERS[name])
    gone = declared.size - 1 if missing == "category" else None
    numbers = [number(value) for value in array.to_pylist()]
    codes = [
        gone if isnan(x) else leaf_of_number(x, NUMBERS[name], *declared.bounds) for x in numbers
    ]
    expect(declared.encode(array), codes)


@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("missing", RULES)
@pytest.mark.parametrize("name", CATEGORIES)
@given(array=rows)
def test_categories_go_where_a_dictionary_puts_them(name, missing, array):
    declared = column("x", missing=missing, **CATEGORIES[name])
    labels = declared.axis().labels[: declared.size - (missing == "category")]
    known = {text_of(label): code for code, label in enumerate(labels)}
    gone = declared.size - 1 if missing == "category" else None
    unknown = gone if declared.other is None else known[declared.other]
    texts = ["" if value is None else text_of(value) for value in array.to_pylist()]
    expect(declared.encode(array), [known.get(text, unknown) if text else gone for text in texts])


@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("settings_of", [*NUMBERS.values(), *CATEGORIES.values()])
@given(array=rows)
def test_a_value_is_encoded_alike_whatever_stands_next_to_it(settings_of, array):
    declared = column("x", **settings_of)
    together = declared.encode(array)
    keep = np.ones(len(array), dtype=bool) if together.keep is None else together.keep
    for index in range(len(array)):
        alone = declared.encode(array.slice(index, 1))
        assert alone.codes[0] == together.codes[index]
        assert (alone.keep is None or alone.keep[0]) == keep[index]


@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("settings_of", [*NUMBERS.values(), *CATEGORIES.values()])
@given(array=rows)
def test_how_arrow_stores_a_column_does_not_matter(settings_of, array):
    declared = column("x", missing="category", **settings_of)
    codes = list(declared.encode(array).codes)
    half = len(array) // 2
    stored = [
        array.dictionary_encode(),
        pa.chunked_array([array[:half], array[half:]], type=array.type),
        pc.run_end_encode(array),
    ]
    if pa.types.is_string(array.type):
        stored += [array.cast(pa.large_string()), array.cast(pa.string_view())]
    for other in stored:
        assert list(declared.encode(other).codes) == codes


@pytest.mark.parametrize("settings_of", [*NUMBERS.values(), *CATEGORIES.values()])
@pytest.mark.parametrize(
    "array",
    [
        pa.nulls(3),
        pa.array([1, 2, None], pa.uint64()),
        pa.array([1.5, nan, None], pa.float16()),
        pa.array([1.5, inf, -inf], pa.float32()),
        pa.array([Decimal("1.50"), None, Decimal("99999999.99")]),
        pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"\xc3\x28"]).buffers()),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 127, None], pa.int8()), [str(x) for x in range(128)]
        ),
        pa.array([], pa.string()),
    ],
    ids=lambda array: str(array.type),
)
def test_odd_types_and_broken_text_yield_codes_too(settings_of, array):
    declared = column("x", missing="category", **settings_of)
    codes, keep = declared.encode(array)
    assert keep is None
    assert len(codes) == len(array)
    assert all(code < declared.size for code in codes)


def test_dates_match_their_text_even_if_no_calendar_holds_them():
    declared = column("day", "category", values=["2020-02-29"], other="rest")
    days = pa.array([datetime.date(2020, 2, 29), datetime.date(2020, 3, 1)])
    assert list(declared.encode(days).codes) == [0, 1]
    assert list(declared.encode(pa.array([2**31 - 1], pa.int32()).cast(pa.date32())).codes) == [1]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.binary()])
def test_a_type_without_usable_values_is_refused_even_for_no_rows(kind):
    for declared in (column("x", "numeric", bounds=[0, 1]), column("x", "category", values=["a"])):
        with pytest.raises(UnreadableData, match="column 'x' has the type"):
            declared.encode(pa.array([], kind))


def test_a_number_on_an_edge_lies_in_the_bin_that_the_edge_starts():
    for low, high, bins in ((1, 99, 16), (0, 1, 10), (-0.7, 0.7, 7), (0, 1e-3, 997)):
        declared = column("hours", "numeric", bounds=[low, high], bins=bins)
        edges = declared.axis().edges
        assert list(declared.encode(pa.array(edges)).codes) == [*range(bins), bins - 1]
        below = np.nextafter(edges[1:-1], -inf)
        assert list(declared.encode(pa.array(below)).codes) == [*range(bins - 1)]
    multiplied = [floor((1 + 6.125 * cell - 1) * (16 / 98)) for cell in range(16)]
    assert multiplied != [*range(16)]  # a product alone misses edges


def test_the_greatest_value_is_in_the_last_bin():
    tenth = column("x", "numeric", bounds=[0, 1], bins=10)
    assert list(tenth.encode(pa.array([0.0, 1.0, inf, -inf])).codes) == [0, 9, 9, 0]


@given(st.lists(st.none() | floats, min_size=1, max_size=12))
def test_values_are_clipped_and_missing_ones_left_out_whatever_the_rule(numbers):
    for missing in RULES:
        declared = column("x", "numeric", bounds=[-1, 2], missing=missing)
        values, keep = declared.values(pa.array(numbers, pa.float64()))
        gone = [x is None or isnan(x) for x in numbers]
        assert list(gone) == ([False] * len(numbers) if keep is None else list(~keep))
        expected = [min(max(x, -1), 2) for x in numbers if x is not None and not isnan(x)]
        assert [x for x, g in zip(values, gone, strict=True) if not g] == expected


def test_integer_columns_round_down_before_they_clip():
    age = column("age", "integer", bounds=[0, 9])
    values, _ = age.values(pa.array(["3.99", "-0.5", "12", "9.5"]))
    assert list(values) == [3, 0, 9, 9]


def test_the_word_missing_is_a_value_like_any_other():
    words = pa.array(["(missing)", None])
    declared = column("x", "category", values=["a"], other="rest", missing="category")
    assert declared.axis().labels == ("a", "rest", "(missing)")
    assert list(declared.encode(words).codes) == [1, 2]


def test_categories_have_no_values_to_add_up():
    with pytest.raises(InvalidParameter, match="numeric or integer is needed"):
        column("x", "category", values=["a"]).values(pa.array(["a"]))


@pytest.mark.parametrize(("size", "width"), [(256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_codes_are_as_narrow_as_the_domain_allows(size, width):
    declared = column("x", "integer", bounds=[1, size])
    codes, _ = declared.encode(pa.array([size]))
    assert codes.dtype.itemsize == width
    assert codes[0] == size - 1


@pytest.mark.parametrize("text", ["{}x", "1.{}x", ".{}x", "1e{}x", "{}.{}x", "-{}e"])
def test_a_long_text_that_is_almost_a_number_takes_no_time(text):
    long = text.replace("{}", "1" * 200_000)
    hours = column("hours", "numeric", bounds=[0, 1], missing="category")
    start = perf_counter()
    codes = hours.encode(pa.array([long])).codes
    assert codes.tolist() == [hours.size - 1]
    assert perf_counter() - start < 1  # tens of seconds, if every prefix is tried


def test_texts_are_canonical_whether_they_look_odd_or_not():
    """Plain words are not looked at one by one; that must make no difference."""
    texts = ["a", " a", "3", "3.0", "-3.00", "TRUE", "false", "truer", "", " ", None, "é", "a b"]
    texts += ["x-y_1", "007", "1.5", "+4.", "\u00a0b", "a\n"]
    expected = [canonical_text(text) or None if text is not None else None for text in texts]
    for array in (pa.array(texts), pa.array(texts).dictionary_encode(), pa.chunked_array([texts])):
        assert to_texts(array, "x").to_pylist() == expected
    broken = pa.array([b"a\xff", b"ok"]).cast(pa.large_binary()).view(pa.large_string())
    assert to_texts(broken, "x").to_pylist() == ["a\ufffd", "ok"]
    numbers = [None, 3, -(2**63), 2**63 - 1]
    assert to_texts(pa.array(numbers), "x").to_pylist() == [
        None if n is None else str(n) for n in numbers
    ]
    assert to_texts(pa.array([3.0, 1.5, None, float("nan")]), "x").to_pylist() == [
        "3", "1.5", None, None,
    ]  # fmt: skip
    assert to_texts(pa.array([True, None, False]), "x").to_pylist() == ["true", None, "false"]
    assert len(to_texts(pa.array([], pa.string()), "x")) == 0
