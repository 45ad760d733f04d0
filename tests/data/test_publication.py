"""Words for readers: what is no text, or no word of a publication, is refused and named."""

import tomllib

import pytest

from dpublish.data.publication import Publication
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.errors import InvalidSchema

AGE = '[columns.age]\nkind = "integer"\nbounds = [0, 9]\n'
SEX = '[columns.sex]\nkind = "category"\nvalues = ["F", "M"]\n'
DAY = '[columns.day]\nkind = "date"\nbounds = ["2024-01-01", "2024-12-31"]\nbins = "month"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[publication]\ntitel = "x"\n', "publication: there is no key 'titel'; did you mean 't"),
        ("[publication]\ntitle = 3\n", "publication: title must be text, what the publication is"),
        ('[publication]\ntitle = ""\n', "publication: title must be text, .* or left out"),
        ('[publication]\ncontact = "  "\n', "publication: contact must be text, an e-mail address"),
        ('[publication]\nlicense = ["a"]\n', 'license must be text, such as "CC-BY-4.0"'),
        ("[publication]\nsource = {}\n", "source must be text, where the table comes from"),
        ('publication = "x"\n', r"publication must be a table \[publication\] with title"),
    ],
)
def test_a_bad_publication_is_refused_by_its_key(text, message):
    with pytest.raises(InvalidSchema, match=message):
        from_dict(tomllib.loads(text + AGE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (AGE + "description = 3\n", "column 'age': description must be text, what the column"),
        (AGE + 'description = ""\n', "column 'age': description must be text, or left out"),
        (AGE + 'measured_in = ["cm"]\n', "column 'age': measured_in must be text, the unit of"),
        (AGE + 'measured_in = " "\n', "column 'age': measured_in must be text, or left out"),
        (AGE + 'measured = "cm"\n', "column 'age': .*did you mean 'measured_in'"),
        (SEX + 'measured_in = "cm"\n', "column 'sex': measured_in is for numbers, .*category; rem"),
        (DAY + 'measured_in = "days"\n', "column 'day': measured_in is for numbers, .*kind date"),
    ],
)
def test_bad_words_of_a_column_are_refused_by_column_and_key(text, message):
    with pytest.raises(InvalidSchema, match=message):
        from_dict(tomllib.loads(text))


def test_the_same_is_refused_in_python():
    with pytest.raises(InvalidSchema, match="title must be text"):
        Publication(title=3)
    with pytest.raises(InvalidSchema, match="column 'age': description must be text"):
        column("age", "integer", bounds=[0, 9], description=3)
    for given in ({"title": "Visits"}, "Visits"):
        with pytest.raises(InvalidSchema, match="publication must be a Publication, not "):
            Schema((column("sex", "category", values=["F"]),), publication=given)


def test_a_publication_without_words_is_allowed():
    assert from_dict(tomllib.loads("[publication]\n" + AGE)).publication == Publication()
