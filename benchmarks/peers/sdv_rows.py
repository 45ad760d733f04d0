"""Synthetic rows of SDV's Gaussian copula, which is NOT PRIVATE: run by compare.py.

Usage: python sdv_rows.py INPUT.npz OUTPUT.npz
"""

import resource
import sys
import time

import numpy as np
import pandas as pd
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer


def main(source, result):
    """Fit one model on codes, those of numbers as numbers unless asked, and write its rows."""
    given = np.load(source, allow_pickle=False)
    names = [f"c{j:02}" for j in range(len(given["sizes"]))]
    are_numbers = given["is_number"] & (str(given["algorithm"]) != "categories")
    kinds = ["numerical" if is_number else "categorical" for is_number in are_numbers]
    rows = pd.DataFrame(dict(zip(names, given["codes"], strict=True)))
    texts = {name: str for name, kind in zip(names, kinds, strict=True) if kind == "categorical"}
    rows = rows.astype(texts)
    columns = {name: {"sdtype": kind} for name, kind in zip(names, kinds, strict=True)}
    metadata = Metadata.load_from_dict({"tables": {"rows": {"columns": columns}}})
    start = time.process_time()
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit({"rows": rows})
    drawn = synthesizer.sample(num_rows=len(rows))["rows"]
    codes = [
        np.clip(drawn[name].astype(np.int64), 0, size - 1)
        for name, size in zip(names, given["sizes"], strict=True)
    ]
    np.savez(
        result,
        codes=np.array(codes),
        seconds=time.process_time() - start,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
