"""Synthetic rows of dpmm's MST and AIM: run by compare.py in the environment of dpmm.

Usage: python dpmm_rows.py INPUT.npz OUTPUT.npz

The input holds the codes of a table (a row for each column) and the number of cells of each
column, the algorithm, ε and δ; the output holds as many synthetic rows, and what they cost.
"""

import resource
import sys
import time

import numpy as np
import pandas as pd
from dpmm.models.base.mbi import FactoredInference
from dpmm.pipelines import AIMPipeline, MSTPipeline

AIM_MEGABYTES = 80  # the limit that AIM has by itself; the pipeline would lift it
AIM_STEPS = 100  # of each fit while choosing, if shortened; the default is 1,000
AIM_LAST_STEPS = 1_000  # of the fit to all that was measured, if the others were shortened


def fit_again(generator):
    """Fit all that AIM has measured once more, with as many steps as it takes by default."""
    engine = FactoredInference(generator.model.domain, iters=AIM_LAST_STEPS, prng=generator.prng)
    generator.model = engine.estimate(generator.measures)


def main(source, result):
    """Fit one model on codes, and write its rows."""
    stored = np.load(source, allow_pickle=False)
    algorithm = str(stored["algorithm"])
    names = [f"c{j:02}" for j in range(len(stored["sizes"]))]
    rows = pd.DataFrame(dict(zip(names, stored["codes"], strict=True)))
    sizes = dict(zip(names, stored["sizes"].tolist(), strict=True))
    start = time.process_time()
    pipeline = (MSTPipeline if algorithm == "mst" else AIMPipeline)(
        epsilon=float(stored["epsilon"]),
        delta=float(stored["delta"]),
        max_model_size=None if algorithm == "mst" else AIM_MEGABYTES,
        n_jobs=1,
        gen_kwargs={"n_iters": AIM_STEPS} if algorithm == "aim-shortened" else None,
        disable_processing=True,  # the codes are bins already
    )
    pipeline.fit(rows, domain=sizes)
    if algorithm == "aim-shortened":
        fit_again(pipeline.gen.generator)
    drawn = pipeline.generate(n_records=len(rows))
    np.savez(
        result,
        codes=drawn[names].to_numpy().T.astype(np.int64),
        seconds=time.process_time() - start,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
