"""Write the hashes of all files of every pinned version into the requirements files.

    python tools/pin_hashes.py requirements.txt requirements-dev.txt

Hashes come from the index that pip is configured to use, for all platforms and Python versions.
pip then refuses any file that differs from the one that was there when the pin was made.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

_HASH = re.compile(r"#sha256=([0-9a-f]{64})$")


class Pin(NamedTuple):
    """One pinned requirement with the hashes that pip accepts."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name in its canonical spelling."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> Version:
        """The one version that is accepted."""
        (only,) = self.requirement.specifier
        return Version(only.version)


def read_pins(text: str) -> Iterator[Pin]:
    """Read the pins of a requirements file."""
    for line in text.replace("\\\n", " ").splitlines():
        wanted, *hashes = line.partition("#")[0].split("--hash=sha256:")
        if wanted.strip():
            yield Pin(Requirement(wanted.strip()), tuple(each.strip() for each in hashes))


def write_pins(text: str, pins: Iterable[Pin]) -> str:
    """Write the pins in pip's plain form, below the comments that the file begins with."""
    lines = [line for line in text.splitlines() if line.startswith("#")]
    for pin in pins:
        parts = [str(pin.requirement), *(f"    --hash=sha256:{each}" for each in pin.hashes)]
        lines.append(" \\\n".join(parts))
    return "\n".join(lines) + "\n"


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if (tag, name) == ("a", "href")]


def hashes_listed(page: str, version: Version) -> tuple[str, ...]:
    """Find the hashes of all files of a version on an index page."""
    links = _Links()
    links.feed(page)
    found = set()
    for link in links.found:
        file, digest = link.partition("#")[0].rpartition("/")[2], _HASH.search(link)
        if digest is not None and _version_of(file) == version:
            found.add(digest[1])
    return tuple(sorted(found))


def _version_of(file: str) -> Version | None:
    try:
        if file.endswith(".whl"):
            return parse_wheel_filename(file)[1]
        return parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def index_address() -> str:
    """Find the index that pip is configured to use, or pip's own default."""
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    configured = dict(re.findall(r"^(\S+)\.index.url='([^']+)'$", settings, re.MULTILINE))
    for source in (":env:", "install", "global"):
        if source in configured:
            return str(configured[source]).rstrip("/")
    from pip._internal.models.index import PyPI  # so that no address is written down here

    return str(PyPI.simple_url)


def find_hashes(pin: Pin, index: str) -> Pin:
    """Ask the index for the hashes of a pin."""
    asked = Request(f"{index}/{pin.name}/", headers={"Accept": "text/html"})
    with urlopen(asked, timeout=60) as answer:
        found = hashes_listed(answer.read().decode("utf-8"), pin.version)
    if not found:
        sys.exit(f"the index lists no file of {pin.requirement}; is the version right?")
    return Pin(pin.requirement, found)


def main(files: list[str]) -> None:
    """Write the hashes into the files that are named."""
    index = index_address()
    for name in files:
        path = Path(name)
        text = path.read_text("utf-8")
        try:
            pins = [find_hashes(pin, index) for pin in read_pins(text)]
        except URLError as error:
            sys.exit(f"the index cannot be reached ({error.reason}); {name} stays as it was")
        path.write_text(write_pins(text, pins), "utf-8")
        print(f"{name}: {len(pins)} pins, {sum(len(pin.hashes) for pin in pins)} hashes")


if __name__ == "__main__":
    main(sys.argv[1:])
