"""How much one record can change what is asked of the exact coefficients.

A record adds 1 to one cell.  That raises some coefficients (where the cell weighs more than 0)
and lowers others, and leaves all the rest as they are.  How many is counted from the filters
in use, for every cell of the grid.  Proofs: docs/proofs/wavecluster.md.
"""

from fractions import Fraction

from dpublish.methods.wavecluster.wavecluster import WaveTransform


def touched(transform: WaveTransform) -> frozenset[tuple[int, int]]:
    """List how many coefficients a record may raise and lower at once, over all cells.

    >>> sorted(touched(WaveTransform((8, 8)))), max(touched(WaveTransform((8, 8), "db2")))
    ([(1, 0)], (4, 0))
    """
    found = {(1, 0)}
    for one in transform.filters:
        found = {(up * p + down * q, up * q + down * p) for up, down in found for p, q in one.signs}
    return frozenset(found)


def positive_sensitivity(transform: WaveTransform) -> int:
    """Bound how far one record moves the number of positive coefficients (Δ_Z).

    What it raises may become positive, what it lowers may cease to be; never both ways at
    once for one coefficient.  The number of the others changes by as much.

    >>> [positive_sensitivity(WaveTransform((16, 16), name)) for name in ("haar", "db2", "db4")]
    [1, 4, 10]
    """
    return max(max(up, down) for up, down in touched(transform))


def rank_sensitivity(transform: WaveTransform, percentile: Fraction) -> Fraction:
    """Bound how far one record moves the quality of a threshold (Δ_q).

    The quality of x is minus the distance between the number of positive coefficients that
    reach x and 1 - p times the number of all positive ones.  A coefficient v counts there as
    [v >= x] - (1 - p) [v > 0].  As v grows this is 0, then p - 1, then p: a rise changes it by
    p - 1 at least and 1 at most, a fall by the opposite.

    >>> rank_sensitivity(WaveTransform((8, 8)), Fraction(1, 10))
    Fraction(1, 1)
    """
    rest = 1 - percentile
    return max(max(up + rest * down, rest * up + down) for up, down in touched(transform))
