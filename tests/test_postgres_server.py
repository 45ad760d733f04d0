"""The server that the tests start: it answers, and comes back after a crash."""

import psycopg


def test_the_server_keeps_what_was_committed_when_it_crashes(postgres_server, postgres_database):
    name = postgres_database.rpartition("/")[2]
    postgres_server.execute(
        "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)", database=name
    )
    postgres_server.restart("immediate")
    assert postgres_server.execute("SELECT n FROM kept", database=name) == [(7,)]


def test_each_test_has_a_database_of_its_own(postgres_database):
    with psycopg.connect(postgres_database) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert found.fetchone() == (0,)
