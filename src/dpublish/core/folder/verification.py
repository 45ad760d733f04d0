"""Check that a release folder is as it was published, and who signed it; needs no ledger."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpublish.core.folder.folder import differences, is_signed, load
from dpublish.core.folder.manifest import Differences
from dpublish.core.folder.signing import BadSignature, PublicKey
from dpublish.errors import DPublishError


@dataclass(frozen=True)
class Verified:
    """What checking a folder has shown.

    Attributes:
        folder: Where it is.
        differences: Files that are not as the manifest lists them.
        is_signed: Whether there is a signature, whosever.
        signature: What came of it, in one word: valid, other key, changed, unreadable, none, or
            not checked (without a key).
        owner: The key that it was checked with, if there is one.
        problem: Why the release does not open, if it does not.
    """

    folder: Path
    differences: Differences
    is_signed: bool
    signature: str
    owner: PublicKey | None = None
    problem: DPublishError | None = None

    @property
    def is_right(self) -> bool:
        """Whether all that was checked is right."""
        return not self.differences and self.problem is None

    def require_right(self) -> None:
        """Refuse a folder that is not as it was published, or not signed as it should be."""
        self.differences.require_none(self.folder)
        if self.problem is not None:
            raise self.problem

    def to_dict(self) -> dict[str, Any]:
        """Turn the result into plain values."""
        is_valid = self.owner is not None and self.signature == "valid"
        return self.differences.to_dict() | {
            "signed": self.is_signed,
            "signature": self.signature,
            "checked_with": self.owner.fingerprint if self.owner and is_valid else None,
            "ok": self.is_right,
        }


def verify_folder(path: str | Path, owner: PublicKey | None = None) -> Verified:
    """Compare every file with the manifest and, with a key, check who signed it."""
    found, problem, signed = differences(path), _problem(path, owner), is_signed(path)
    state = "not checked" if signed else "none"
    if owner is not None:
        state = problem.state if isinstance(problem, BadSignature) else "valid"
    return Verified(Path(path), found, signed, state, owner, problem)


def _problem(path: str | Path, owner: PublicKey | None) -> DPublishError | None:
    """Return why a release cannot be opened with the owner's key, if it cannot."""
    try:
        load(path, key=owner)
    except DPublishError as problem:
        return problem
    return None
