"""Addresses hold no secret, and a failure becomes advice that quotes nothing."""

import pytest

from dpublish.errors import InvalidParameter
from dpublish.storage.postgres_address import PostgresAddress, advise, is_postgres
from dpublish.storage.public_address import has_scheme, holds_secret, refuse_secret


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("s3://key:secret@bucket/a", True),
        ("s3://key:sec/ret@bucket/a", True),
        ("s3://:secret@bucket/a", True),
        ("ann:secret@account/db", True),
        ("Server=host;Pwd=secret", True),
        ("grpc://host?PassWord=secret", True),
        ("https://host/a.csv?sig=secret", True),
        ("abfss://box@host/a", False),
        ("hdfs://ann@host:8020/a", False),
        ("hdfs://host:8020/a@b.csv", False),
        ("s3://bucket/a:b@c.csv", False),
        ("s3://bucket/a?endpoint_override=127.0.0.1:99&scheme=http", False),
        ("people.sqlite", False),
        ("/home/ann/people.sqlite", False),
    ],
)
def test_secrets_in_addresses_are_found(address, expected):
    assert holds_secret(address) is expected
    if expected:
        with pytest.raises(InvalidParameter, match="use a file") as refused:
            refuse_secret(address, "use a file")
        assert "ret" not in str(refused.value)


def test_a_path_is_no_address():
    assert [has_scheme(x) for x in ("s3://b/a", "a/b.csv", r"C:\a.csv", "a://b")] == [
        True,
        False,
        False,
        False,
    ]
    assert [is_postgres(x) for x in ("postgres://", "postgresql://h/d", "mysql://h/d")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("uri", "label"),
    [
        ("postgresql://", "postgresql://"),
        ("postgres://ann@db.example/clinic", "postgresql://db.example/clinic"),
        ("postgresql://[::1]:5433/a%20b", "postgresql://[::1]:5433/a b"),
        ("postgresql://h1:1,h2:2/db?target_session_attrs=any", "postgresql://h1:1,h2:2/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///run/postgresql/db"),
        ("postgresql:///?service=clinic&user=ann", "postgresql://?service=clinic"),
    ],
)
def test_a_label_names_host_and_database_only(uri, label, monkeypatch):
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    address = PostgresAddress.parse(uri)
    assert address.label == label
    assert repr(address) == f"PostgresAddress({label})"
    assert address.connection_uri.startswith(uri)
    assert address.connection_uri.endswith("fallback_application_name=dpublish&connect_timeout=30")


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://h/d?password=geheim",
        "postgresql://h/d?pass%77ord=geheim",
        "postgresql://h/d?oauth_client_secret=geheim",
        "postgresql://ann:geheim%40h/d",
    ],
)
def test_a_secret_in_an_address_of_a_source_is_refused(uri):
    with pytest.raises(InvalidParameter) as refused:
        PostgresAddress.parse(uri)
    assert "heim" not in str(refused.value)


def test_a_time_limit_of_the_users_own_is_kept(monkeypatch):
    given = PostgresAddress.parse("postgresql://h/d?connect_timeout=3")
    assert given.connection_uri.count("connect_timeout") == 1
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    assert "connect_timeout" not in PostgresAddress.parse("postgresql://h/d").connection_uri


@pytest.mark.parametrize(
    ("message", "state", "advice"),
    [
        ('FATAL:  password authentication failed for user "ann"', None, "the password"),
        ("fe_sendauth: no password supplied", None, "PGPASSFILE"),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4"', None, "pg_hba.conf"),
        ("FATAL:  sorry, too many clients already", None, "no connection left"),
        ("FATAL:  the database system is starting up", None, "try again later"),
        ("connection timed out", None, "does not answer"),
        ("SSL error: certificate verify failed", None, "sslmode"),
        ("FATAL:  le mot de passe ...", None, "psql"),
        ("whatever", "42501", "grant SELECT"),
        ("whatever", "57P01", "shutting down"),
        ("whatever", "08006", "the connection was lost"),
        ("division by zero: 4711", "22012", "it fails; try it in psql first"),
    ],
)
def test_a_failure_becomes_advice(message, state, advice):
    told = advise(message, state)
    assert advice in told
    assert "4711" not in told
