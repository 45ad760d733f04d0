"""How long the studio's pages take to answer, beside the writing of one report in the same run.

    PYTHONPATH=tests .venv/bin/python benchmarks/speed/studio.py

One studio on loopback with a release of each kind; the median of several requests a page.  The
reference is `render_report` of the histogram.  Cost grows with what a page shows: with the
columns of a schema, the grants of a dataset, the releases on a page of the list (50 at most).
"""

import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from dpublish import load
from dpublish.report.page import render_report
from releases_world import make_releases
from studio_world import open_studio

REPEATS = 7
WANTED = "dataset=visits&data=visits.parquet&schema=visits.toml&method=histogram&set-columns=ward"
PAGES = {
    "datasets": "/",
    "dataset": "/datasets/visits",
    "schemas": "/schemas",
    "schema": "/schemas/visits.toml",
    "begin": "/begin",
    "plan": "/plan?dataset=visits&schema=visits.toml&goal=counts:ward&epsilon=0.5",
    "slider": f"/plan/estimate?{WANTED}&epsilon=0.4",
    "review": f"/release?{WANTED}&epsilon=0.5",
    "releases": "/releases",
    "release": "/releases/wards",
    "count": "/releases/wards/ask?q=ward+%3D+north",
    "report": "/releases/wards/report",
    "certificate": "/releases/wards/certificate",
    "streams": "/streams",
    "audit": "/audit",
}


def seconds(call):
    """Call once to warm up, then take the median of a few calls, and the slowest."""
    begun = perf_counter()
    call()
    first = perf_counter() - begun
    times = []
    for _ in range(REPEATS):
        begun = perf_counter()
        call()
        times.append(perf_counter() - begun)
    return first, median(times)


def main():
    folder = Path(tempfile.mkdtemp(prefix="dpublish-studio-"))
    make_releases(folder)
    release = load(folder / "releases" / "wards")
    _, reference = seconds(lambda: render_report(release))
    print(f"{'page':<12}{'first ms':>10}{'then ms':>10}{'of a report':>13}")
    slowest = 0.0
    with open_studio(folder) as world:
        client = world.client()
        for name, path in PAGES.items():
            if client.get(path).status != 200:
                sys.exit(f"{path} does not answer")
            first, then = seconds(lambda path=path: client.get(path))
            slowest = max(slowest, then)
            print(f"{name:<12}{1000 * first:>10.1f}{1000 * then:>10.1f}{then / reference:>13.2f}")
    print(f"reference: one report written in {1000 * reference:.1f} ms")
    print(f"RESULT slowest_ratio={slowest / reference:.3f} slowest_ms={1000 * slowest:.0f}")


if __name__ == "__main__":
    main()
