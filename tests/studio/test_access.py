"""Whoever has no link sees nothing; whoever has one cannot be made to spend by another page."""

import pytest

from dpublish.errors import InvalidParameter
from dpublish.studio.access import Access
from dpublish.studio.app import PAGES
from dpublish.studio.serve import Listening

EVERYWHERE = [
    *sorted({page.path.replace("{", "").replace("}", "") for page in PAGES}),
    "/static/studio.css",
    "/none",
]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_without_a_link_everything_is_a_plain_403(world, path):
    stranger = world.client(role=None)
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = stranger.ask(method, path, Origin=world.origin)
        assert (answer.status, answer.text) == (403, "forbidden")


def test_a_link_is_good_once(world):
    stranger = world.client(role=None)
    token = world.access.make_token("owner")
    assert stranger.get(f"/enter?token={token}").status == 303
    assert stranger.get(f"/enter?token={token}").status == 403
    assert stranger.get("/enter?token=guessed").status == 403


def test_the_cookie_stays_with_the_browser_and_the_studio(world):
    stranger = world.client(role=None)
    cookie = stranger.get(f"/enter?token={world.access.make_token('owner')}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:1", "Origin": "http://evil.example:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "", "Sec_Fetch_Site": "cross-site"},
    ],
)
def test_a_form_of_another_page_changes_nothing(world, headers):
    client = world.client()
    answer = client.post("/datasets", {"dataset": "more", "cap": "9"}, **headers)
    assert answer.status == 403
    assert "more" not in client.get("/").text


def test_a_form_without_the_token_of_its_session_changes_nothing(world):
    one, other = world.client(), world.client()
    for csrf in ("", "made-up", other.csrf):
        answer = one.post("/datasets", {"dataset": "more", "cap": "9", "csrf": csrf})
        assert "out of date" in answer.text
    assert "more" not in one.get("/").text
    assert one.post("/datasets", {"dataset": "more", "cap": "9"}).status == 303


def test_readers_look_and_change_nothing(world):
    reader = world.client("reader")
    assert reader.get("/").status == 200
    assert reader.get("/datasets/visits").status == 200
    for page in PAGES:
        path = (
            page.path.replace("{name:path}", "visits")
            .replace("{name}", "visits")
            .replace("{key}", "none")
        )
        if page.method == "POST":
            assert reader.post(path, {"cap": "9", "reason": "more"}).status == 403
        elif page.owner_only:
            assert reader.get(path).status == 403


@pytest.mark.parametrize("path", ["/", "/datasets/visits", "/static/studio.js", "/none"])
def test_every_answer_keeps_a_page_safe(world, path):
    headers = world.client().get(path).headers
    assert "'unsafe" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    # A browser that may send no referrer sends forms with the origin null, which is refused.
    assert headers["referrer-policy"] == "same-origin"


def test_what_is_too_large_is_refused(world):
    client = world.client()
    answer = client.ask("POST", "/datasets", "x", Origin=world.origin, Content_Length=str(2**40))
    assert answer.status == 413


def test_other_addresses_than_this_computers_need_tls(tmp_path):
    with pytest.raises(InvalidParameter, match="TLS"):
        Listening("0.0.0.0")
    with pytest.raises(InvalidParameter, match="both"):
        Listening(certificate=tmp_path / "a")
    with pytest.raises(InvalidParameter, match="https"):
        Listening("0.0.0.0", public="http://studio.example.org")
    proxied = Listening("0.0.0.0", public="https://studio.example.org/")
    access = Access(proxied.origins(80))
    assert (access.hosts, access.is_secure) == ({"studio.example.org"}, True)
