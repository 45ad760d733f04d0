"""What an epsilon means: how sure anyone can become, alone, over many releases and of groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple

from dpublish.errors import InvalidParameter, plain_refusals, require_count
from dpublish.privacy.epsilon import (
    ExactNumber,
    format_epsilon,
    format_rounded,
    parse_epsilon,
)
from dpublish.privacy.meaning import (
    PRIORS,
    least_sure,
    most_detected,
    most_sure,
    percent_at_least,
    percent_at_most,
    tell_factor,
    two_sentences,
)

RELEASES = (2, 4, 12, 52)
"""How many releases of the same epsilon are shown, unless others are asked for."""
GROUPS = (2, 5)
"""People whose records go together: a couple, a family."""
FALSE_POSITIVES = Fraction(1, 20)
"""How often a test is allowed to find a record that is not there."""

_EVEN = Fraction(1, 2)
_ALMOST_SURE = Decimal("0.99")
_MOST = 1_000_000  # releases or people of a row


class Belief(NamedTuple):
    """How likely something is held to be before a release, and can be held to be after it."""

    prior: Fraction
    at_least: Decimal
    at_most: Decimal


class Total(NamedTuple):
    """What `number` releases, or the records of `number` people, add up to.

    `at_most` is how sure anyone can be afterward who began at 50 %.
    """

    number: int
    epsilon: Fraction
    at_most: Decimal


class Listing(NamedTuple):
    """A small table with a sentence above it."""

    title: str
    headers: tuple[str, ...]
    rows: list[list[str]]


@dataclass(frozen=True)
class Explanation:
    """What `epsilon` means for one record, or for one unit where the schema names a unit.

    >>> found = explain("0.5")
    >>> [round(float(each.at_most), 3) for each in found.beliefs]
    [0.016, 0.155, 0.622]
    >>> [(each.number, str(each.epsilon)) for each in found.repeated]
    [(2, '1'), (4, '2'), (12, '6'), (52, '26')]
    """

    epsilon: Fraction
    releases: tuple[int, ...] = RELEASES

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """What anyone can believe afterward who held presence for 1 %, 10 % or 50 % likely."""
        return tuple(
            Belief(prior, least_sure(prior, self.epsilon), most_sure(prior, self.epsilon))
            for prior in PRIORS
        )

    @property
    def repeated(self) -> tuple[Total, ...]:
        """What several releases of this epsilon from the same data add up to."""
        return tuple(map(self._total, self.releases))

    @property
    def groups(self) -> tuple[Total, ...]:
        """How well the records of several people together are hidden."""
        return tuple(map(self._total, GROUPS))

    @property
    def values(self) -> Belief:
        """What anyone can believe of a value of a record that is known to be in the table.

        To exchange one value for another is to remove a record and to add one: twice epsilon.
        """
        twice = 2 * self.epsilon
        return Belief(_EVEN, least_sure(_EVEN, twice), most_sure(_EVEN, twice))

    @property
    def detection(self) -> Decimal:
        """How often the best test with 5 % false positives finds a record that is there."""
        return most_detected(FALSE_POSITIVES, self.epsilon)

    def _total(self, number: int) -> Total:
        epsilon = number * self.epsilon
        return Total(number, epsilon, most_sure(_EVEN, epsilon))

    def sentences(self) -> str:
        """Describe the whole in the two sentences that reports use."""
        return two_sentences(self.epsilon)

    def listings(self) -> Iterator[Listing]:
        """Yield the tables: what is believed, what adds up, what groups cost."""
        yield Listing(
            f"Odds change by a factor of {tell_factor(self.epsilon)} at most "
            f"(e^{format_rounded(self.epsilon)}). Is a given record in the table?",
            ("thought before", "at least", "at most"),
            [
                [
                    percent_at_most(_decimal(prior)),
                    percent_at_least(least),
                    percent_at_most(most),
                ]
                for prior, least, most in self.beliefs
            ],
        )
        yield Listing(
            "Releases from the same data add up.",
            ("releases", "epsilon in all", "50 % becomes at most"),
            _rows(self.repeated),
        )
        yield Listing(
            "Records that go together, such as those of a family, are hidden less well.",
            ("people", "epsilon for all", "50 % becomes at most"),
            _rows(self.groups),
        )

    def notes(self) -> tuple[str, ...]:
        """List the readings that need no table."""
        weak = (
            "At this epsilon the guarantee alone rules out almost nothing: spend less, or say why "
            "not.",
        )
        return (
            f"A test that wrongly finds an absent record in 5 % of cases finds a present one in "
            f"at most {percent_at_most(self.detection)}.",
            "What a record says, where it is known to be in the table, counts twice: 50 % becomes "
            f"at most {percent_at_most(self.values.at_most)}.",
            "Where the schema names a unit, read person (or household, basket) for record.",
            *(weak if most_sure(_EVEN, self.epsilon) >= _ALMOST_SURE else ()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Turn the explanation into plain values: epsilons as exact text, probabilities rounded."""
        return {
            "epsilon": format_epsilon(self.epsilon),
            "odds_factor": tell_factor(self.epsilon),
            "beliefs": [
                {
                    "prior": float(prior),
                    "at_least": float(least),
                    "at_most": float(most),
                }
                for prior, least, most in self.beliefs
            ],
            "releases": _plain(self.repeated),
            "groups": _plain(self.groups),
            "value_of_a_known_record": {
                "prior": 0.5,
                "at_least": float(self.values.at_least),
                "at_most": float(self.values.at_most),
            },
            "test": {
                "false_positive_rate": float(FALSE_POSITIVES),
                "true_positive_rate_at_most": float(self.detection),
            },
            "in_words": self.sentences(),
        }

    def __repr__(self) -> str:
        most = percent_at_most(most_sure(_EVEN, self.epsilon))
        return f"Explanation(epsilon {format_rounded(self.epsilon)}: 50 % becomes at most {most})"

    def __str__(self) -> str:
        parts = [f"epsilon {format_rounded(self.epsilon)}", "", self.sentences()]
        for listing in self.listings():
            parts += ["", listing.title, *_aligned(listing)]
        return "\n".join([*parts, "", *self.notes()])

    def _repr_html_(self) -> str:
        parts = [
            f"<h4>epsilon {escape(format_rounded(self.epsilon))}</h4>",
            f"<p>{escape(self.sentences())}</p>",
        ]
        for listing in self.listings():
            parts.append(f"<p>{escape(listing.title)}</p>")
            parts.append(_html_table(listing))
        parts += [f"<p>{escape(note)}</p>" for note in self.notes()]
        return "\n".join(parts)


@plain_refusals
def explain(epsilon: ExactNumber, *, releases: int | Iterable[int] = RELEASES) -> Explanation:
    """Explain what `epsilon` means for one record; reads no data and spends nothing.

    `releases` says how many releases of this epsilon to add up, one number or several.

    >>> explain("0.5", releases=12)
    Explanation(epsilon 0.5: 50 % becomes at most 62.3 %)
    """
    exact = parse_epsilon(epsilon)
    counts = (releases,) if isinstance(releases, int) else tuple(releases)
    for count in counts:
        require_count(releases=count)
        if count > _MOST:
            raise InvalidParameter(f"releases ({count:,}) must be at most {_MOST:,}")
    return Explanation(exact, counts)


def _rows(totals: Sequence[Total]) -> list[list[str]]:
    return [
        [f"{number:,}", format_rounded(epsilon), percent_at_most(most)]
        for number, epsilon, most in totals
    ]


def _plain(totals: Sequence[Total]) -> list[dict[str, Any]]:
    return [
        {"number": number, "epsilon": format_epsilon(epsilon), "at_most": float(most)}
        for number, epsilon, most in totals
    ]


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _aligned(listing: Listing) -> list[str]:
    """Write a table as lines of text, each column as wide as its longest cell."""
    lines = [list(listing.headers), *listing.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


def _html_table(listing: Listing) -> str:
    def row(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row("td", cells) for cells in listing.rows)
    return f"<table><thead>{row('th', listing.headers)}</thead><tbody>{body}</tbody></table>"
