"""Code lists: values and groups from a CSV file."""

import time

import pyarrow as pa
import pytest

import dpublish
from dpublish.data.code_list import read_codes
from dpublish.data.column import CategoryColumn
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import dumps_toml, from_dict, load_schema, to_dict
from dpublish.errors import InvalidParameter, InvalidSchema

CODES = '''\
code,name,group,chapter
A00,Cholera,A00-A09,Infections
 A01 ,"Typhoid, and ""para""",A00-A09,Infections
C00,Lip,,Tumors
'''


@pytest.fixture
def loaded(tmp_path):
    """Load a schema of one column `code`, beside a file of codes."""

    def load(keys, codes=CODES, encoding="utf-8", name="codes.csv"):
        (tmp_path / name).write_text(codes, encoding=encoding)
        (tmp_path / "schema.toml").write_text(f'[columns.code]\nkind = "category"\n{keys}\n')
        return load_schema(tmp_path / "schema.toml")["code"]

    return load


def test_the_first_column_lists_the_values(loaded):
    assert loaded('values = "codes.csv"').categories == ("A00", "A01", "C00")


def test_another_column_can_be_named(loaded):
    found = loaded('values = { file = "codes.csv", column = "name" }')
    assert found.categories == ("Cholera", 'Typhoid, and "para"', "Lip")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_and_line_ends_of_windows_do_no_harm(loaded, encoding, ends):
    found = loaded('values = "codes.csv"', CODES.replace("\n", ends), encoding)
    assert found.categories == ("A00", "A01", "C00")


def test_tabs_between_fields(loaded):
    found = loaded('values = "codes.tsv"', "code\tname\nx,1\tone\ny\ttwo\n", name="codes.tsv")
    assert found.categories == ("x,1", "y")


def test_other_columns_are_groups_finest_first(loaded):
    found = loaded('taxonomy = "codes.csv"\ntaxonomy_key = "group, chapter"\nother = "else"')
    assert found.taxonomy.render() == (
        "any\n  Infections\n    A00-A09\n      A00\n      A01\n  Tumors\n    C00\n  else"
    )
    short = "code,group\na,G\nb,H\nc,G\n"
    assert loaded('taxonomy = "codes.csv"', short).categories == ("a", "c", "b")
    assert loaded('values = "codes.csv"\ntaxonomy = "codes.csv"', short).height == 2


def test_names_are_published_and_codes_are_read(loaded):
    found = loaded('values = { file = "codes.csv", label = "name" }\ntaxonomy = "codes.csv"')
    assert found.axis().labels == ("Cholera", 'Typhoid, and "para"', "Lip")
    assert found.axis(1).labels == ("Infections", "Tumors")
    rows = pa.array(["A01", " C00", "Cholera", "nothing", None])
    encoded = found.encode(rows)
    assert encoded.codes.tolist()[:3] == [1, 2, 0]
    assert encoded.keep.tolist() == [True, True, True, False, False]


def test_codes_follow_their_names_into_the_order_of_a_taxonomy():
    found = column(
        "code", "category", values=["x", "y"], codes=[1, 2], taxonomy={"H": ["y"], "G": ["x"]}
    )
    assert (found.categories, found.codes) == (("y", "x"), (2, 1))
    assert found.encode(pa.array([1, 2])).codes.tolist() == [1, 0]


def test_a_released_schema_holds_the_values_themselves(loaded, tmp_path):
    found = loaded(
        'values = { file = "codes.csv", label = "name" }\ntaxonomy = "codes.csv"\nother = "else"'
    )
    schema = Schema((found,))
    (tmp_path / "codes.csv").unlink()
    assert from_dict(to_dict(schema)) == schema
    (tmp_path / "copy.toml").write_text(dumps_toml(schema))
    assert load_schema(tmp_path / "copy.toml") == schema


@pytest.mark.parametrize(
    ("codes", "fault"),
    [
        ("code\n", "at least one code"),
        ("", "at least one code"),
        ("code\na\nb\na\n", "'a' is listed twice, as codes 1 and 3"),
        ("code\n1\n1.0\n", "'1.0' is listed twice"),
        ('code\na\n""\n', "code 2 is blank"),
        ("code,name\na,1\n  ,2\n", "code 2 is blank"),
        ("code,name\na\n", "has 1 fields"),
        ("code,code\na,b\n", "two columns are called 'code'"),
        ("code,\na,b\n", "has no name"),
        ('code\n"a\nb\n', "is not CSV"),
        ('code\n"a"b\n', "is not CSV"),
    ],
)
def test_a_list_that_is_not_in_order_is_refused(loaded, codes, fault):
    with pytest.raises(InvalidSchema, match=fault):
        loaded('values = "codes.csv"', codes)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ('values = "none.csv"', "cannot be read"),
        ('values = { file = "codes.csv", column = "cod" }', "did you mean 'code'"),
        ('values = { file = "codes.csv", label = "group" }', "listed twice"),
        ('values = { file = "codes.csv", labels = "name" }', "labels"),
        ('values = { column = "code" }', "values: file is missing; it must be text"),
        ('values = "codes.csv"\ncodes = [1]', "codes"),
        ('taxonomy = "codes.csv"\ntaxonomy_key = "grp"', "did you mean 'group'"),
    ],
)
def test_a_wrong_reference_is_refused(loaded, keys, fault):
    with pytest.raises(InvalidSchema, match=fault):
        loaded(keys)


def test_a_group_in_two_groups_is_refused(loaded):
    with pytest.raises(InvalidSchema, match="'G' is in two groups"):
        loaded('taxonomy = "codes.csv"', "code,group,chapter\na,G,1\nb,G,2\n")
    with pytest.raises(InvalidSchema, match="no column of groups"):
        loaded('taxonomy = "codes.csv"', "code\na\n")


def test_a_file_that_is_not_utf8_is_refused(loaded):
    with pytest.raises(InvalidSchema, match="UTF-8"):
        loaded('values = "codes.csv"', "code\nMünchen\n", encoding="latin-1")


def test_a_release_cannot_name_a_file():
    for keys in ({"values": "codes.csv"}, {"taxonomy": "codes.csv"}):
        with pytest.raises(InvalidSchema, match="not the name of a file"):
            from_dict({"columns": {"code": {"kind": "category", **keys}}})


def test_codes_that_are_names_of_other_values_are_refused():
    with pytest.raises(InvalidSchema, match="another value"):
        column("code", "category", values=["1", "2"], codes=["2", "1"])
    with pytest.raises(InvalidSchema, match="twice"):
        column("code", "category", values=["a", "b"], codes=["1", "1"])
    with pytest.raises(InvalidSchema, match="one for each"):
        column("code", "category", values=["a", "b"], codes=["1"])
    with pytest.raises(InvalidSchema, match="one for each"):
        CategoryColumn(name="code", kind="category", categories=("a", "b"), codes=("1",))


def test_python_reads_the_same_codes(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text(CODES)
    assert dpublish.read_codes(path) == ("A00", "A01", "C00")
    found = column("code", "category", values=read_codes(path, "name"))
    assert found.size == 3
    with pytest.raises(InvalidParameter, match="did you mean"):
        read_codes(path, "names")


def test_a_hundred_thousand_codes_are_read_in_seconds(loaded):
    rows = "".join(f"K{i},G{i // 100},C{i // 10_000}\n" for i in range(100_000))
    start = time.process_time()
    found = loaded(
        'values = "codes.csv"\ntaxonomy = "codes.csv"\nother = "else"',
        "code,group,chapter\n" + rows,
    )
    assert found.size == 100_001
    assert found.encode(pa.array(["K99999", "zz"])).codes.tolist() == [99_999, 100_000]
    assert time.process_time() - start < 10  # about 1.5 when it was written
