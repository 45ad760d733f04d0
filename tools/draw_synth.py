"""Draw how columns of the simulated census depend on each other, by a release of synth.

Run: python tools/draw_synth.py docs/pictures/synth.svg
"""

import sys
from pathlib import Path

from dpublish import Budget, Synth, datasets, seeded
from dpublish.report.section import section_of

table = datasets.table("census", 20_000)
release = Synth().release(table, budget=Budget.seeded("1"), rng=seeded(7))
Path(sys.argv[1]).write_text(section_of(release).figures[0].svg, encoding="utf-8")
