"""Install the built package as a stranger would, and paste the commands of the README.

    python tools/check_package.py dist/dpublish-*.whl [--python PROGRAM ...] [--lowest]

For each Python a fresh environment gets the wheel and what it needs, at the newest versions that
the index has; then the commands and the Python of README.md run in an empty folder, in order.
`--lowest` takes the lowest versions that pyproject.toml accepts instead, with the first Python.
A Python that is not on this machine is named and left out.  The last line says how much space a
plain installation takes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_examples

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
MEGABYTE = 2**20
"""Bytes, as `du -m` counts them."""
LARGEST = 570 * MEGABYTE
"""Bytes that a plain installation may take, with charts, and with what Python compiles."""
_LOWEST = re.compile(r"^([A-Za-z0-9_.\-]+)(?:\[[^\]]*\])?>=([0-9.]+)")
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Refused(Exception):
    """The package is not as it should be: why, in words."""


def version() -> str:
    """Read the version from the one file that states it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found: str = project["version"]
    return found


def lowest(requirements: Sequence[str]) -> list[str]:
    """Pin each requirement to the lowest version that it accepts.

    >>> lowest(["numpy>=2.0", "pyspark>=4.0,<5", "psycopg[binary]>=3.2"])
    ['numpy==2.0', 'pyspark==4.0', 'psycopg==3.2']
    """
    found = [_LOWEST.match(each) for each in requirements]
    if missing := [each for each, match in zip(requirements, found, strict=True) if match is None]:
        raise Refused(f"{', '.join(missing)} states no lowest version")
    return [f"{match[1]}=={match[2]}" for match in found if match is not None]


def script(readme: str) -> str:
    r"""Return the commands of the README, and then its Python, as one program of the shell.

    >>> print(script("```text\n$ dpublish demo\nwrote it\n```\n```python\nimport dpublish\n```\n"))
    dpublish demo
    python - <<'END'
    import dpublish
    END
    """
    shown = [example.command for example in page_examples.examples(readme)]
    programs = [f"python - <<'END'\n{block}END" for block in _PYTHON.findall(readme)]
    if not shown or not programs:
        raise Refused("README.md shows no command, or no Python")
    return "\n".join([*shown, *programs])


def check_contents(wheel: Path) -> None:
    """Compare what the wheel holds with what the source holds."""
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "dpublish").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if missing := sorted(wanted - held):
        raise Refused(f"{wheel.name} lacks {', '.join(missing[:5])}")
    if version() not in wheel.name:
        raise Refused(f"{wheel.name} is not of version {version()}")


def run(command: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> str:
    """Run a command; raise with what it printed if it fails."""
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))[:200]}\n{done.stdout[-3000:]}")
    return done.stdout


def plain_environment(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of this checkout is found."""
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PATH": f"{folder / 'bin'}{os.pathsep}{kept['PATH']}", "HOME": str(folder)}


def stranger(python: str, wheel: Path, pins: Sequence[str], folder: Path) -> int:
    """Install into a fresh environment and paste the README; return the bytes it takes."""
    home = folder / "environment"
    pip_settings = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CACHE_DIR": _cache()}
    run([python, "-m", "venv", home], folder, dict(os.environ))
    bare = _size(home)
    install = [home / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, *pins]
    run(install, folder, dict(os.environ) | pip_settings)
    run([home / "bin" / "python", "-m", "pip", "check"], folder, dict(os.environ) | pip_settings)
    size = _size(home) - bare
    work = folder / "work"
    work.mkdir()
    environment = plain_environment(home)
    said = run(["dpublish", "--version"], work, environment)
    if version() not in said:
        raise Refused(f"dpublish --version says {said.strip()}, not {version()}")
    pasted = script((ROOT / "README.md").read_text("utf-8"))
    run(["bash", "-euo", "pipefail", "-c", pasted], work, environment)
    return size


def _cache() -> str:
    """Return pip's folder of downloads, which a fresh home would not find."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or str(Path.home() / ".cache" / "pip")


def _size(environment: Path) -> int:
    """Add up the files of an environment, but those of pip."""
    return sum(
        path.stat().st_size
        for path in environment.rglob("*")
        if path.is_file() and "pip" not in path.parts
    )


def _trials(asked: argparse.Namespace) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a name, a Python, and pins of each installation that is wanted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for python in asked.python or PYTHONS:
        yield python, python, []
    if asked.lowest:
        first = (asked.python or PYTHONS)[0]
        yield f"{first}, lowest versions", first, lowest(project["dependencies"])


def _works(python: str) -> bool:
    """Say whether a Python is there; a shim of a version that is not installed is none."""
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def main(words: Sequence[str]) -> int:
    """Check a wheel; return 1 if anything is wrong with it."""
    parser = argparse.ArgumentParser(description="Install a wheel as a stranger would.")
    parser.add_argument("--version", action="version", version=version())
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", nargs="*", metavar="PROGRAM")
    parser.add_argument("--lowest", action="store_true")
    asked = parser.parse_args(words)
    sizes, tried = [], 0
    try:
        check_contents(asked.wheel)
        for name, python, pins in _trials(asked):
            if not _works(python):
                print(f"{name}: not on this machine, left out")
                continue
            with tempfile.TemporaryDirectory() as folder:
                sizes.append(stranger(python, asked.wheel.resolve(), pins, Path(folder)))
            tried += 1
            print(f"{name}: installed, {sizes[-1] / MEGABYTE:.0f} MB; the README's commands ran")
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    if not tried:
        print("no Python was tried", file=sys.stderr)
        return 1
    print(f"RESULT tried={tried} largest_megabytes={max(sizes) / MEGABYTE:.0f}")
    if max(sizes) > LARGEST:
        print(f"a plain installation takes more than {LARGEST / MEGABYTE:.0f} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
