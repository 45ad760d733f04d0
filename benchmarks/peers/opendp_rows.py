"""Synthetic rows of OpenDP's MST and AIM: run by compare.py in the environment of OpenDP.

Usage: python opendp_rows.py INPUT.npz OUTPUT.npz

The input holds the codes of a table (a row for each column) and the number of cells of each
column, the algorithm, ε and δ; the output holds as many synthetic rows, and what they cost.
With δ = 0 the release is under pure ε, otherwise under the ρ of zero-concentrated privacy that
implies (ε, δ).
"""

import math
import resource
import sys
import time
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import polars as pl


def selection_share(total, choices):
    """Find a share of about a tenth for choices that adds up to no more than it, in floats.

    OpenDP 0.16 gives each choice an equal part, adds the parts up rounding upward, and refuses
    the release where they exceed the whole, as they did by default for 21 columns.
    """
    below = math.nextafter
    for k in range(20_000):
        measured = 0.9 - k * 1e-5
        rest = below(below(total - total * measured, -math.inf), -math.inf)
        part = below(rest / choices, -math.inf)
        added = 0.0
        for _ in range(choices):
            exact = Fraction(added) + Fraction(part)
            added = float(exact)
            if Fraction(added) < exact:
                added = math.nextafter(added, math.inf)
        if added <= rest:
            return measured
    raise SystemExit("no share for choices adds up")


def concentrated(epsilon, delta):
    """Find the largest ρ that implies (ε, δ), by ε = ρ + 2 √(ρ ln(1/δ))."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def draw(table, algorithm, loss):
    """Release a contingency table, and draw as many rows as it was made from."""
    keys = {name: list(range(size)) for name, (_, size) in table.items()}
    rows = pl.LazyFrame({name: codes for name, (codes, _) in table.items()})
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
    )
    made = context.query(**loss).contingency_table(keys=keys, algorithm=algorithm).release()
    n = len(next(iter(table.values()))[0])
    return made.synthesize(rows=n)


def fill(codes, generator):
    """Replace values that are not listed, which OpenDP also draws, by others of the column."""
    known = codes.drop_nulls().to_numpy()
    found = codes.fill_null(0).to_numpy().copy()
    absent = codes.is_null().to_numpy()
    found[absent] = generator.choice(known, absent.sum())
    return found


def main(source, result):
    """Fit one model on codes, and write its rows."""
    dp.enable_features("contrib")
    stored = np.load(source, allow_pickle=False)
    codes, sizes = stored["codes"], stored["sizes"].tolist()
    table = {f"c{j:02}": (codes[j], sizes[j]) for j in range(len(sizes))}
    epsilon, delta = float(stored["epsilon"]), float(stored["delta"])
    loss = {"rho": concentrated(epsilon, delta)} if delta else {"epsilon": epsilon}
    start = time.process_time()
    (amount,) = loss.values()
    half = math.nextafter(math.nextafter(amount - amount / 2, 0), 0)  # the rest is for marginals
    kind = {
        "mst": dp.mbi.MST(measure_split=selection_share(half, len(sizes) - 1)),
        "aim": dp.mbi.AIM(queries=2),
    }[str(stored["algorithm"])]
    drawn = draw(table, kind, loss)
    generator = np.random.Generator(np.random.PCG64())
    np.savez(
        result,
        codes=np.array([fill(drawn[name], generator) for name in table], dtype=np.int64),
        seconds=time.process_time() - start,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
