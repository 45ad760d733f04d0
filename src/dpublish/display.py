"""How values show themselves in notebooks: a short line, a small HTML table, a frame, a chart.

Everything is made from what the value publishes already.  The HTML is plain: no script, no
style sheet, no address; all text is escaped, for names may come from a stranger's file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

from dpublish.errors import InputError, InvalidParameter

_SHOWN = 160  # characters of a line
_ROWS = 20  # rows of a small table
_CELL = 'style="text-align:left;vertical-align:top;padding:2px 12px 2px 0"'


@dataclass(frozen=True)
class Card:
    """What a notebook shows of a value.

    Attributes:
        title: What it is.
        pairs: Names and texts, one row each.
        headers: The headers of a table below, if there is one.
        rows: Its rows; only the first of many are shown.
        warnings: What must not be overlooked.
    """

    title: str
    pairs: Mapping[str, str]
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default=())
    warnings: Sequence[str] = ()

    def html(self) -> str:
        """Write the card as HTML.

        >>> Card("Plan <1>", {"cost": "epsilon 1"}).html().count("&lt;1&gt;")
        1
        """
        parts = [f"<strong>{_text(self.title)}</strong>"]
        parts += [f"<p><strong>{_text(each)}</strong></p>" for each in self.warnings]
        parts.append(_table((), list(self.pairs.items()), is_headed=True))
        if self.headers:
            parts.append(_table(self.headers, self.rows[:_ROWS]))
        if len(self.rows) > _ROWS:
            parts.append(f"<p>and {len(self.rows) - _ROWS:,} more</p>")
        return f"<div>{''.join(parts)}</div>"


class Display:
    """What a value offers in a notebook; it says what its card and its table are."""

    def _card(self) -> Card:
        """Return what a notebook shows."""
        raise NotImplementedError

    def _as_records(self) -> Sequence[Mapping[str, Any]]:
        """Return the value as records, for a frame."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._card().html()

    def to_arrow(self) -> Any:
        """Return the value as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(each) for each in self._as_records()])

    def to_pandas(self) -> Any:
        """Return the value as a pandas DataFrame."""
        return arrow_to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the value as a Polars DataFrame."""
        return arrow_to_polars(self.to_arrow())


def arrow_to_pandas(table: Any) -> Any:
    """Turn an Arrow table into a pandas DataFrame, if pandas is installed."""
    require_package("pandas", "pandas", "a DataFrame of pandas")
    return table.to_pandas()


def arrow_to_polars(table: Any) -> Any:
    """Turn an Arrow table into a Polars DataFrame, if Polars is installed."""
    return require_package("polars", "polars", "a DataFrame of Polars").from_arrow(table)


def require_package(name: str, install: str, what: str) -> Any:
    """Import a package that dpublish does not need itself; say how to install it otherwise."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"{what} needs the package {name}, which is not installed; run: pip install {install}"
        ) from None


def draw(chart: str, *values: Any, **options: Any) -> Any:
    """Draw a chart of `dpublish.plots.shown` by its name, with Matplotlib if it is installed."""
    require_matplotlib()
    return getattr(import_module("dpublish.plots.shown"), chart)(*values, **options)


def require_matplotlib() -> None:
    """Refuse to draw without Matplotlib, and say how to install it."""
    require_package("matplotlib", "matplotlib", "a chart")


def pick(names: Sequence[str], wanted: str | None, what: str) -> str:
    """Choose one of several tables by name; the first one if none is named."""
    if not names:
        raise InvalidParameter(f"this has no {what}")
    if wanted is None:
        return names[0]
    if wanted not in names:
        raise InvalidParameter(f"there is no {what} {wanted!r}; there are: {', '.join(names)}")
    return wanted


def one_line(text: str, most: int = _SHOWN) -> str:
    r"""Write a text on one line that is not too long, without characters that a terminal obeys.

    >>> one_line("two\nlines"), one_line("x" * 9, 5)
    ('two lines', 'xxxx…')
    """
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, is_headed: bool = False
) -> str:
    lines = []
    if headers:
        cells = "".join(f"<th {_CELL}>{_text(each)}</th>" for each in headers)
        lines.append(f"<tr>{cells}</tr>")
    for first, *others in rows:
        tag = "th" if is_headed else "td"
        cells = "".join(f"<td {_CELL}>{_text(each)}</td>" for each in others)
        lines.append(f"<tr><{tag} {_CELL}>{_text(first)}</{tag}>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _text(text: str) -> str:
    return escape(one_line(str(text), 400))
