"""Run the campaigns: kills, faults, races, hostile folders, row-blindness, fuzzed inputs.

Run: make campaign, or PYTHONPATH=tests .venv/bin/python -m campaign.run --minutes 5 --only kills
"""

import os
import random  # noqa: TID251 - chooses cases, not noise
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import click

from campaign import faults, folders, inputs, kills, races, rows, team
from campaign.world import Campaign, Clock, build_fault_library, fault_library, import_commands
from postgres_server import programs

CAMPAIGNS: dict[str, tuple[Campaign, float]] = {
    "kills-every-operation": (kills.every_operation, 4),
    "kills-random": (kills.random_moments, 3),
    "kills-stream-steps": (kills.stream_operations, 2),
    "kills-stream-starts": (kills.stream_starts, 2),
    "faults-releases": (faults.releases, 5),
    "faults-stream-steps": (faults.stream_steps, 2),
    "races": (races.races, 2),
    "folders-fuzzed": (folders.fuzzed, 5),
    "folders-hostile": (folders.hostile, 2),
    "rows-arrow": (rows.arrow_values, 4),
    "rows-csv": (rows.csv_bodies, 3),
    "inputs": (inputs.inputs, 3),
    "postgres-kills": (team.kills, 2),
    "postgres-restarts": (team.restarts, 2),
}
"""Each campaign, and its share of the time."""
NEED_FAULTS = {name for name in CAMPAIGNS if name.startswith(("kills", "faults"))} - {
    "kills-random"
}
NEED_SERVER = {name for name in CAMPAIGNS if name.startswith("postgres")}
LIBRARY = "DPUBLISH_FAULT_LIBRARY"


@click.command()
@click.option("--minutes", default=18.0, show_default=True, help="Time for all, on two cores.")
@click.option("--only", multiple=True, help="Campaigns whose name starts so.")
@click.option("--seed", default=1, show_default=True, help="Chooses the random cases.")
@click.option("--child", hidden=True, default="", help="Run one campaign here.")
@click.option("--seconds", hidden=True, default=0.0)
def main(minutes: float, only: tuple[str, ...], seed: int, child: str, seconds: float) -> None:
    """Attack ledger, releases and inputs; fail if anything gives way."""
    if child:
        sys.exit(_run_here(child, seed, seconds))
    names = [name for name in CAMPAIGNS if name.startswith(only or ("",))]
    total = sum(CAMPAIGNS[name][1] for name in names)
    with tempfile.TemporaryDirectory(prefix="dpublish-campaign-") as scratch:
        library = build_fault_library(Path(scratch))
        waiting = [(name, 2 * 60 * minutes * CAMPAIGNS[name][1] / total) for name in names]
        outputs = list(_run_two_at_a_time(waiting, seed, library))
    counts = [tuple(map(int, line.split())) for line in outputs]
    passed, failed, skipped = (sum(column) for column in zip(*counts, strict=True))
    click.echo(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


def _run_two_at_a_time(
    waiting: list[tuple[str, float]], seed: int, library: Path | None
) -> Iterator[str]:
    """Run each campaign in a process of its own; yield its last line."""
    environment = dict(os.environ)
    if library is not None:
        environment |= {LIBRARY: str(library), "LD_PRELOAD": str(library)}
    running: list[subprocess.Popen[str]] = []
    while waiting or running:
        while waiting and len(running) < 2:
            name, seconds = waiting.pop(0)
            options = ["--child", name, "--seed", str(seed), "--seconds", str(seconds)]
            words = [sys.executable, "-m", "campaign.run", *options]
            running.append(
                subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
            )
        done = next((process for process in running if process.poll() is not None), None)
        if done is None:
            try:
                running[0].wait(timeout=1)
            except subprocess.TimeoutExpired:
                continue
            continue
        running.remove(done)
        lines = (done.stdout.read() if done.stdout else "").splitlines() or ["0 1 0"]
        click.echo("\n".join(lines[:-1]))
        yield lines[-1] if len(lines[-1].split()) == 3 else "0 1 0"


def _run_here(name: str, seed: int, seconds: float) -> int:
    """Run one campaign and print its failures; the last line counts passed, failed, skipped."""
    campaign, _ = CAMPAIGNS[name]
    if name in NEED_FAULTS and fault_library() is None:
        click.echo(f"{name}: skipped, it needs Linux and a C compiler (cc)\n0 0 1")
        return 0
    if name in NEED_SERVER and programs() is None:
        click.echo(f"{name}: skipped, it needs PostgreSQL (initdb, pg_ctl)\n0 0 1")
        return 0
    import_commands()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix=f"dpublish-{name}-") as scratch:
        chooser = random.Random(seed * 1_000_003 + zlib.crc32(name.encode()))
        for result in campaign(Path(scratch).resolve() / "world", chooser, Clock(seconds)):
            if result.problem:
                failed += 1
                if failed <= 20:
                    click.echo(f"  FAILED {name}: {result.case}: {result.problem}")
            else:
                passed += 1
    click.echo(f"{name}: {passed} passed, {failed} failed\n{passed} {failed} 0")
    return 0


if __name__ == "__main__":
    main()
