"""Wrong inputs of a user: each answer says what is wrong and what to do, without our internals.

A case is a name, what is called, the error, and the words that the answer must have.  Cases of
the shell can be added to a table of their own: the checks of a message are `is_helpful`.
"""

import pandas as pd
import pytest

import dpublish
from dpublish import datasets
from dpublish.errors import DPublishError, InputError, InvalidParameter, InvalidType

ROWS = datasets.census(50)
SCHEMA = datasets.schema("census")
FRAME = pd.DataFrame({"age": [1], "sex": ["Female"]})


def release(**change):
    asked = {"columns": ["sex"], "schema": SCHEMA, "epsilon": 0.5}
    asked |= {"ledger": "books.db", "dataset": "people", "method": "histogram", "data": ROWS}
    asked |= change
    return dpublish.release(asked.pop("method"), asked.pop("data"), **asked)


WRONG = {
    "epsilon None": (lambda: release(epsilon=None), InvalidType, "epsilon must be a number"),
    "epsilon True": (lambda: release(epsilon=True), InvalidType, "epsilon must be a number"),
    "epsilon list": (lambda: release(epsilon=[1]), InvalidType, "epsilon must be a number"),
    "epsilon nan": (lambda: release(epsilon=float("nan")), InvalidParameter, "a finite number"),
    "epsilon negative": (lambda: release(epsilon=-1.0), InvalidParameter, "greater than 0"),
    "epsilon word": (lambda: release(epsilon="half"), InvalidParameter, "write for example 0.5"),
    "columns number": (lambda: release(columns=3), InvalidType, 'such as ["age", "sex"]'),
    "columns numbers": (lambda: release(columns=[1, 2]), InvalidType, 'such as ["age", "sex"]'),
    "columns table": (lambda: release(columns=FRAME), InvalidType, 'such as ["age", "sex"]'),
    "columns unknown": (lambda: release(columns="sexx"), InvalidParameter, "did you mean 'sex'"),
    "setting unknown": (lambda: release(colums="sex"), InvalidParameter, "did you mean 'columns'"),
    "method misspelt": (lambda: release(method="histgram"), InvalidParameter, "'histogram'"),
    "method number": (lambda: release(method=7), InvalidType, "list_methods()"),
    "method stream": (lambda: release(method="dsat"), InvalidParameter, "StreamOperator.start"),
    "schema number": (lambda: release(schema=5), InvalidType, "the path of a schema file"),
    "schema None": (lambda: release(schema=None), InvalidType, "the path of a schema file"),
    "schema frame": (lambda: release(schema=FRAME), InvalidType, "the path of a schema file"),
    "schema missing": (lambda: release(schema="no.toml"), InputError, "dpublish schema draft"),
    "ledger None": (lambda: release(ledger=None), InvalidType, "dpublish.Ledger.create"),
    "ledger missing": (lambda: release(ledger="no.db"), InputError, "dpublish.Ledger.create"),
    "dataset number": (lambda: release(dataset=5), InvalidType, "dataset must be the name"),
    "dataset misspelt": (lambda: release(dataset="peple"), InvalidParameter, "'people'"),
    "data number": (lambda: release(data=5), InputError, "give a path"),
    "data missing": (lambda: release(data="no.csv"), InputError, "there is no file no.csv"),
    "output number": (lambda: release(output=5), InvalidType, "output must be the folder"),
    "load frame": (lambda: dpublish.load(FRAME), InvalidType, "the path of its folder"),
    "load_schema dict": (lambda: dpublish.load_schema({}), InvalidType, "read from its path"),
    "clusters text": (lambda: dpublish.KMeans(n_clusters="x"), InvalidType, "an integer"),
    "plan nothing": (
        lambda: dpublish.plan("histogram", SCHEMA, columns="sex"),
        InvalidParameter,
        "epsilon=0.5",
    ),
}


@pytest.fixture
def books(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dpublish.Ledger.create("books.db") as ledger:
        ledger.add("people", cap=2)


def is_helpful(message):
    """Return whether a message is one printable line without names of other packages' types."""
    hidden = ("pyarrow.", "duckdb.", "sqlite3.", "numpy.", "msgspec", "Traceback", "object has no")
    return message.isprintable() and not any(word in message for word in hidden)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_input_is_answered(books, case):
    call, error, told = WRONG[case]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, DPublishError)
    assert told in str(caught.value)
    assert is_helpful(str(caught.value))
    with dpublish.Ledger("books.db") as ledger:
        assert ledger.status("people").spent == 0


def test_there_are_enough_cases():
    assert len(WRONG) >= 22
