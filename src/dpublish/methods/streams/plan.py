"""What a stream does at its next step, settled before the snapshot is read."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Publish:
    """Publish a fresh histogram and spend `epsilon` on it."""

    epsilon: Fraction


@dataclass(frozen=True)
class Repeat:
    """Give the last estimate again; the snapshot is not read and nothing is spent."""


@dataclass(frozen=True)
class Ask:
    """Publish with `epsilon` if the snapshot is far from the last estimate, else repeat it.

    The distance is the sum over bins of |count - estimate|; it is compared privately with a
    public whole `threshold`.  The comparison is paid for by the stream's sparse vector, or
    costs `price` at this step.
    """

    threshold: int
    epsilon: Fraction
    price: Fraction | None = None


Plan = Publish | Repeat | Ask
