"""No page is a dead end: what is refused leads back, and what is likely is chosen beforehand."""

import pytest

from studio_world import open_studio, write_files


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    write_files(folder)
    (folder / "codes.csv").write_text("code\na\n")
    with open_studio(folder) as world:
        yield world


def test_a_refusal_leads_back_to_the_page_before(studio):
    client = studio.client()
    asked = "/schemas/column?schema=visits.toml&column=none"
    page = client.ask("GET", asked, Referer=f"{studio.origin}/schemas?a=1")
    assert page.status == 422
    assert 'href="/schemas?a=1">Go back' in page.text
    for other in ("http://evil.example/x", f"{studio.origin}//evil.example/x", "no address"):
        page = client.ask("GET", asked, Referer=other)
        assert "Go back" not in page.text
        assert "evil" not in page.text


def test_an_unknown_address_is_a_page_with_a_way_on(studio):
    page = studio.client().get("/nowhere")
    assert page.status == 404
    assert "there is no page at this address" in page.text
    assert 'href="/releases"' in page.text


def test_readers_are_told_that_a_page_is_for_owners(studio):
    page = studio.client("reader").get("/begin")
    assert page.status == 403
    assert "this page is for owners" in page.text


def test_the_likely_table_schema_and_dataset_are_chosen(studio):
    client = studio.client()
    page = client.get("/plan").text
    for likely in ("visits", "visits.parquet", "visits.toml"):
        assert f'<option value="{likely}" selected>' in page
    assert " selected" not in client.get("/plan", goal="rows").text.split('id="task"')[0]
    bounds = client.get("/schemas/bounds", schema="visits.toml", column="age").text
    assert '<option value="visits.parquet" selected>' in bounds


def test_a_schema_leads_to_a_plan(studio):
    page = studio.client().get("/schemas/visits.toml").text
    assert "/plan?schema=visits.toml&amp;data=visits.parquet" in page
    planned = studio.client().get("/plan", schema="visits.toml").text
    assert '<option value="visits" selected>' in planned
