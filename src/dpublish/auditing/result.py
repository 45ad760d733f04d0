"""What an audit found: checks with their figures, and what was not checked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpublish.display import Card, Display

NOT_CHECKED = (
    "timing: how long a release takes, and how much memory",
    "floating point in post-processing: what is computed from noisy numbers afterward",
    "the hardware, the interpreter and the libraries on which this ran",
    "the randomness of the operating system: its words are taken for uniform and independent",
    "the proofs themselves: read the pages named here",
    "other settings, epsilons, schemas and rows than the simulated ones of this audit",
    "dependence of draws on each other: how often each outcome is drawn is compared",
    "code that is made to pass: it can tell these tables from others, and act otherwise there",
)
"""What no audit here can tell."""


@dataclass(frozen=True)
class Check:
    """One check of an audit.

    Attributes:
        part: What it belongs to: conformance, replay, account, mechanisms or black box.
        name: Its name within that part.
        says: What holds if it passed.
        passed: Whether it did.
        figures: What was measured, by name.
        twin: The broken twin that the check was tried on, in words; empty if there is none.
        noticed: Whether the check noticed the twin; None if there is none.
        reason: Why it failed.
    """

    part: str
    name: str
    says: str
    passed: bool
    figures: Mapping[str, str] = field(default_factory=dict)
    twin: str = ""
    noticed: bool | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write the check as plain values."""
        return {
            "part": self.part,
            "name": self.name,
            "says": self.says,
            "passed": self.passed,
            "figures": dict(self.figures),
            "twin": self.twin,
            "twin_noticed": self.noticed,
            "reason": self.reason,
        }

    def words(self) -> str:
        """Write the figures, the twin and the reason in one line."""
        parts = [f"{name} {figure}" for name, figure in self.figures.items()]
        if self.noticed is not None:
            parts.append(
                f"a broken twin ({self.twin}) is noticed: {'yes' if self.noticed else 'no'}"
            )
        if self.reason:
            parts.append(f"FAILED: {self.reason}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Audit(Display):
    """What was checked of a method, and what was not.

    Attributes:
        method: The method's name.
        settings: Its settings, as text.
        epsilon: The epsilon of the releases that were audited.
        seed: The seed of what was drawn; None if the operating system's randomness was used.
        runs: How often it was run on each of two neighbors for the black box.
        checks: All checks.
        not_checked: What no check here can tell.
        proofs: Pages of docs/proofs that argue why the method is private.
        version: The version of dpublish that was audited.
        seconds: How long it took.
    """

    method: str
    settings: Mapping[str, str]
    epsilon: str
    seed: int | None
    runs: int
    checks: Sequence[Check]
    not_checked: Sequence[str]
    proofs: Sequence[str]
    version: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if not check.passed]

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.failed:
            return f"{len(self.failed)} of {len(self.checks)} checks FAILED"
        return f"all {len(self.checks)} checks passed; that is evidence, not a proof"

    @property
    def title(self) -> str:
        """What was audited, in one line."""
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"audit of {self.method} ({settings or 'default settings'}), epsilon {self.epsilon}"

    def parts(self) -> Iterator[tuple[str, list[Check]]]:
        """Group the checks by the part that they belong to, in order."""
        for part in dict.fromkeys(check.part for check in self.checks):
            yield part, [check for check in self.checks if check.part == part]

    def to_dict(self) -> dict[str, Any]:
        """Write the audit as plain values."""
        return {
            "method": self.method,
            "settings": dict(self.settings),
            "epsilon": self.epsilon,
            "seed": self.seed,
            "runs": self.runs,
            "passed": self.passed,
            "checks": [check.to_dict() for check in self.checks],
            "not_checked": list(self.not_checked),
            "proofs": list(self.proofs),
            "version": self.version,
            "seconds": round(self.seconds, 1),
        }

    def to_json(self) -> str:
        """Write the audit as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        lines = [self.title]
        for part, checks in self.parts():
            lines += ["", part]
            lines += [line for check in checks for line in _lines(check)]
        lines += ["", "not checked", *(f"  {each}" for each in self.not_checked)]
        pages = ", ".join(f"docs/proofs/{page}.md" for page in self.proofs)
        lines += ["", f"proofs: {pages or 'the method names none'}"]
        lines.append(f"dpublish {self.version}, {_source(self.seed)}, {self.seconds:,.0f} s")
        return "\n".join([*lines, self.verdict])

    def _card(self) -> Card:
        return Card(
            self.title,
            {
                "outcome": self.verdict,
                "randomness": _source(self.seed),
                "not checked": "; ".join(each.partition(":")[0] for each in self.not_checked),
                "proofs": ", ".join(self.proofs) or "the method names none",
            },
            ("", "part", "check", "says", "figures"),
            [
                (mark(each), each.part, each.name, each.says, each.words())
                for each in sorted(self.checks, key=lambda check: check.passed)
            ],
            [f"{each.name}: {each.reason}" for each in self.failed],
        )

    def _as_records(self) -> Sequence[Mapping[str, Any]]:
        return [{**each.to_dict(), "figures": each.words()} for each in self.checks]


def mark(check: Check) -> str:
    """Write the outcome of a check in one word."""
    return "passed" if check.passed else "FAILED"


def _lines(check: Check) -> Iterator[str]:
    yield f"  {mark(check)} {check.name}: {check.says}"
    if words := check.words():
        yield f"         {words}"


def _source(seed: int | None) -> str:
    return "the operating system's randomness" if seed is None else f"seed {seed}"
