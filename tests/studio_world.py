"""A studio on a loopback port, with a small table, a schema and a ledger, and a client for it."""

import http.client
import re
import threading
import time
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from dpublish.studio.access import Access
from dpublish.studio.app import make_app
from dpublish.studio.desk import Desk
from dpublish.studio.serve import Listening, bind

CANARY = "Zebulon-Canary-7391"
"""A value that stands in the rows alone, so that no page may show it."""
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("ward", "category", values=["north", "south", "west"], other="other"),
        column("ill", "category", values=["no", "yes"]),
    ),
    name="visits",
)


def write_files(folder, cap="5"):
    """Write a table of 900 rows, its schema, and a ledger that lets it spend."""
    ages = [age % 90 for age in range(900)]
    wards = ["north" if n % 3 else "south" for n in range(899)] + [CANARY]
    ill = ["yes" if age > 60 else "no" for age in ages]
    pq.write_table(pa.table({"age": ages, "ward": wards, "ill": ill}), folder / "visits.parquet")
    (folder / "visits.toml").write_text(dumps_toml(SCHEMA))
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("visits", cap=cap)


def until(found, seconds=30):
    """Wait until something is found, and return it."""
    for _ in range(seconds * 50):
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it was not found")


class Answer:
    """What the studio answered."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def goes_to(self):
        return self.headers.get("location")

    def field(self, name):
        """Find the value of a hidden field."""
        found = re.search(f'name="{name}" value="([^"]*)"', self.text)
        assert found, f"no field {name} in {self.text[:2000]}"
        return unescape(found[1])


class Client:
    """A browser as far as requests go: one session, and the origin of the studio's pages."""

    def __init__(self, world, role="owner"):
        self.world = world
        self.cookie = None
        self.seen = []
        if role is not None:
            answer = self.get(f"/enter?token={world.access.make_token(role)}")
            self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def ask(self, method, path, body=None, **headers):
        given = {"Host": self.world.host} | {n.replace("_", "-"): t for n, t in headers.items()}
        if self.cookie is not None:
            given.setdefault("Cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=60)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            found = Answer(
                answer.status, {n.lower(): t for n, t in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()
        self.seen.append((path, found))
        return found

    def get(self, path, **query):
        return self.ask("GET", path + ("?" + urlencode(query) if query else ""))

    def post(self, path, fields=None, **headers):
        """Send a form, with the token of the session unless another one is given."""
        fields = {"csrf": self.csrf} | dict(fields or {})
        headers = {"Origin": self.world.origin} | headers
        headers["Content_Type"] = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(fields), **headers)

    def upload(self, path, field, filename, content, fields=None):
        """Send a form with a file."""
        given = {"csrf": self.csrf} | dict(fields or {})
        parts = [f'name="{name}"\r\n\r\n{text}' for name, text in given.items()]
        parts.append(f'name="{field}"; filename="{filename}"\r\n\r\n')
        head = "".join(f"--end\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
        body = head.encode()[: -len("\r\n")] + content + b"\r\n--end--\r\n"
        kind = "multipart/form-data; boundary=end"
        return self.ask("POST", path, body, Origin=self.world.origin, Content_Type=kind)

    @property
    def csrf(self):
        """The token that all forms of the session carry."""
        name = (self.cookie or "=").partition("=")[2]
        session = self.world.access.session(name)
        return "" if session is None else session.csrf

    def look(self, path):
        """Follow the page of what is learned from rows until it shows it, which it does once."""
        assert path.startswith("/looks/"), path
        return self._follow(path)

    def wait(self, path):
        """Follow a page of work until it has ended."""
        assert path.startswith("/jobs/"), path
        return self._follow(path)

    def _follow(self, path):
        for _ in range(600):
            answer = self.get(path)
            if "data-events" not in answer.text:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"{path} did not end")


class World:
    """A running studio."""

    def __init__(self, folder, server, access, studio, port):
        self.folder, self.server, self.access, self.studio = folder, server, access, studio
        self.port, self.host, self.origin = port, f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"

    def client(self, role="owner"):
        return Client(self, role)

    def spent(self, dataset="visits"):
        with Ledger(self.folder / "books.db") as ledger:
            return ledger.status(dataset).spent


@contextmanager
def open_studio(folder, sources=()):
    """Serve the studio of a folder until the block ends."""
    where = Listening()
    listening = bind(where)
    port = listening.getsockname()[1]
    access = Access(where.origins(port))
    desk = Desk(str(folder / "books.db"), folder / "releases", folder, dict(sources))
    app, studio = make_app(desk, access)
    config = uvicorn.Config(app, access_log=False, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield World(folder, server, access, studio, port)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
        studio.spends.close()
