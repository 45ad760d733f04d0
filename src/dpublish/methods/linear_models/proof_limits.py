"""What the proof of a published minimizer takes for granted, said in the receipt."""

from collections.abc import Sequence

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import Shape
from dpublish.methods.linear_models.convex_solver import MOST_PASSES
from dpublish.methods.linear_models.solver_error import MOST_RECORDS

BEYOND = (
    f"NOT COVERED: by its noisy size the table has more than the {MOST_RECORDS:,} records up to "
    "which rounding errors are bounded"
)


def assumptions(shape: Shape, records: int | None = None) -> Sequence[str]:
    """List what the proof assumes, for the receipt; `records` is a noisy number of them."""
    found = [
        f"the table has at most {MOST_RECORDS:,} (2^24) records",
        "no noise was drawn whose probability is below 10^-50",
        f"the search for the minimum met its tolerance within {MOST_PASSES:,} passes",
    ]
    if shape == "spherical":
        found.append(
            "the machine's square root, logarithm, sine and cosine are within 2 units of the "
            "last place"
        )
    return [BEYOND, *found] if records is not None and records > MOST_RECORDS else found


def require_covered(n_records: int | None) -> None:
    """Refuse a public number of records for which the proof does not hold."""
    if n_records is not None and n_records > MOST_RECORDS:
        raise InvalidParameter(
            f"the proof of this method covers at most {MOST_RECORDS:,} (2^24) records, not "
            f"{n_records:,}; take another method"
        )
