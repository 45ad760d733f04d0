"""The command: a link on standard output, and nothing spent twice when it is killed."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dpublish.cli.main import command
from dpublish.ledger.ledger import Ledger
from dpublish.studio.spends import BEGUN, DONE, Spends
from studio.test_releasing import form, review
from studio_world import Client, until, write_files


@contextmanager
def running(folder):
    """Start the command, and enter by the link that it prints."""
    words = [sys.executable, "-m", "dpublish", "studio", "--no-browser", "--reader", "1"]
    with (folder / "told").open("wb") as told:
        process = subprocess.Popen(words, cwd=folder, stdout=told, stderr=told)
    try:
        text = until(lambda: _links((folder / "told").read_text()))
        links = re.findall(r"http://(127\.0\.0\.1:(\d+))/enter\?token=(\S+)", text)
        host, port, token = links[0]
        world = SimpleNamespace(host=host, port=int(port), origin=f"http://{host}", folder=folder)
        client = FromOutside(world, role=None)
        until(lambda: client.enters(token))
        yield SimpleNamespace(process=process, client=client, links=links)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def _links(text):
    return text if "Ctrl-C" in text else None


class FromOutside(Client):
    """A client of another process: the token of its forms is read from a page."""

    def enters(self, token):
        try:
            answer = self.get(f"/enter?token={token}")
        except OSError:  # it does not listen yet
            return False
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return True

    @property
    def csrf(self):
        return self.get("/").field("csrf")


def spent(folder):
    with Ledger(folder / "books.db") as ledger:
        return ledger.status("visits").spent


def test_killed_in_the_middle_it_spends_at_most_once(tmp_path):
    write_files(tmp_path)
    with running(tmp_path) as first:
        sent = form(review(first.client))
        path = first.client.post("/release", sent).goes_to
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(30)
    so_far = spent(tmp_path)
    assert so_far in (0, 0.5)
    spends = Spends(tmp_path / "releases")
    spend = spends.find(path.rpartition("/")[2])
    spends.close()
    assert spend.state in (BEGUN, DONE)
    with running(tmp_path) as second:
        assert second.client.get(path).status == 200
        again = second.client.post("/release", sent)
        assert again.goes_to == path
        assert "published or begun before" in review(second.client).text
    assert spent(tmp_path) == so_far


def test_interrupted_it_ends_by_itself(tmp_path):
    write_files(tmp_path)
    with running(tmp_path) as studio:
        assert len(studio.links) == 2
        studio.process.send_signal(signal.SIGTERM)
        assert studio.process.wait(30) in (-signal.SIGTERM, 143)
    assert "Traceback" not in (tmp_path / "told").read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "TLS"),
        (["--source", "visits"], "must look like"),
        (["--files", "none"], "does not exist"),
        (["--public-address", "http://x.example"], "https"),
    ],
)
def test_wrong_options_say_what_to_do(tmp_path, options, told):
    done = subprocess.run(
        [sys.executable, "-m", "dpublish", "studio", "--no-browser", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert command.get_command(None, "studio").help
