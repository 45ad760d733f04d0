"""Measure peers and ourselves on the same public tables, and write docs/compare/measured.md.

Each package runs in an environment of its own, which `make peers` installs; one that is not there
is left out, and named.  What was measured is kept in `measured.json` beside this file; a part that
is measured again replaces its own figures only, and the page shows what the file holds.

Peers run one at a time, at low priority, with one thread.  `--tasks`, `--peers`,
`--ways`, `--tables` and `--epsilons` run a part; `--page-only` measures nothing.

Run: .venv/bin/python benchmarks/peers/compare.py [--tasks means] [--epsilons 1]
"""

import argparse
import statistics  # noqa: F401 - benchmarks/accuracy has a script of this name
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import figures
import task_centers
import task_classes
import task_numbers
import task_synthesis
from environments import HERE, PEERS
from figures import Figure
from rich.console import Console

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.errors import UnreadableData

PAGE = HERE.parent.parent / "docs" / "compare" / "measured.md"
Run = Callable[[argparse.Namespace], Iterator[Figure]]
TASKS: dict[str, tuple[Run, ...]] = {
    "histogram": (task_numbers.histogram_figures,),
    "topk": (task_numbers.topk_figures,),
    "means": (task_numbers.means_figures,),
    "centers": (task_centers.own_figures, task_centers.peer_figures),
    "classes": (task_classes.own_figures, task_classes.peer_figures),
    "synthesis": (task_synthesis.own_figures, task_synthesis.peer_figures),
}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure peers and ourselves on public tables")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--epsilons", nargs="+", default=["0.1", "1"])
    parser.add_argument("--runs", type=int, default=20, help="of k-means, counts and means")
    parser.add_argument("--folds", type=int, default=5, help="folds of classification")
    parser.add_argument("--tables", nargs="+", choices=task_synthesis.TABLES, help="of synthesis")
    parser.add_argument("--ways", nargs="*", choices=task_synthesis.WAYS, help="synthesizers")
    parser.add_argument("--releases", type=int, default=1, help="of each peer's synthesizer")
    parser.add_argument("--own-releases", type=int, default=3, help="of our synthesizers")
    parser.add_argument("--minutes", type=float, default=15, help="limit of one run of a peer")
    parser.add_argument("--peers", nargs="+", choices=PEERS, help="only these, and ourselves")
    parser.add_argument("--peers-only", action="store_true", help="do not measure ourselves again")
    parser.add_argument("--page-only", action="store_true", help="write the page, measure nothing")
    return parser.parse_args()


def measure(task: str, options: argparse.Namespace) -> list[Figure]:
    """Run a task, and keep what was measured whenever one of its halves is done."""
    found: list[Figure] = []
    steps = TASKS[task]
    for step in steps[1:] if options.peers_only and len(steps) > 1 else steps:
        for figure in step(options):
            found.append(figure)
            figures.save([*figures.load(), figure])
    return found


def main() -> None:
    options = read_options()
    options.date = datetime.now(UTC).date().isoformat()
    console = Console(width=160)
    begin = time.monotonic()
    found: list[Figure] = []
    try:
        if not options.page_only and find_data_folder(options.data_folder) is None:
            sys.exit("name the folder of public tables with --data-folder or DPUBLISH_DATA")
        for task in [] if options.page_only else options.tasks:
            console.print(f"[bold]{figures.SHEETS[task].title}[/bold]")
            made = measure(task, options)
            print(figures.markdown(task, made), flush=True)
            found += made
    except UnreadableData as error:
        sys.exit(str(error))
    if PAGE.is_file():
        figures.fill_page(PAGE, figures.load())
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes")
    print(figures.result_line(found or figures.load()))


if __name__ == "__main__":
    main()
