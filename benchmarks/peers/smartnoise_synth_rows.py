"""Synthetic rows of SmartNoise's MST and AIM: run by compare.py in its environment.

Usage: python smartnoise_synth_rows.py INPUT.npz OUTPUT.npz

The categories are learned from the public list of codes, not from the rows, which is what it does
by default.  It takes the number of rows for public.
"""

import resource
import sys
import time

import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer


def learned(size):
    """Make the transformer of a column from its public codes."""
    one = LabelTransformer(nullable=False)
    one.fit(list(range(size)))
    return one


def main(source, result):
    """Fit one model on codes, and write its rows."""
    given = np.load(source, allow_pickle=False)
    sizes = given["sizes"].tolist()
    names = [f"c{j:02}" for j in range(len(sizes))]
    rows = pd.DataFrame(
        {name: codes.tolist() for name, codes in zip(names, given["codes"], strict=True)}
    )
    start = time.process_time()
    synthesizer = Synthesizer.create(
        str(given["algorithm"]), epsilon=float(given["epsilon"]), delta=float(given["delta"])
    )
    synthesizer.fit(rows, transformer=TableTransformer([learned(size) for size in sizes]))
    drawn = synthesizer.sample(len(rows))
    np.savez(
        result,
        codes=np.asarray(drawn, dtype=np.int64).T,
        seconds=time.process_time() - start,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
