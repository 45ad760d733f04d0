"""A course over the steps of a stream as inline SVG: a column a step, and a line for the limit."""

from collections.abc import Sequence
from html import escape

from dpublish.plots.charts import GRID, INK, PALE

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720.0, 170.0, 70.0, 24.0, 12.0


def course_chart(
    values: Sequence[float],
    *,
    marked: Sequence[bool],
    ends: tuple[str, str],
    limit: float | None = None,
) -> str:
    """Draw a column for every step, the marked ones darker; `ends` name the first and the last.

    >>> course_chart([1.0, 2.0], marked=[True, False], ends=("a", "<b>"), limit=4.0).count("<rect")
    2
    """
    top = max([limit or 0.0, *values]) or 1.0
    room = _WIDTH - _LEFT
    width = room / len(values)

    def height(value: float) -> float:
        return (_HEIGHT - _TOP - _BOTTOM) * value / top

    floor = _HEIGHT - _BOTTOM
    columns = [
        f'<rect x="{_LEFT + place * width:.2f}" y="{floor - height(value):.2f}" '
        f'width="{max(width * 0.9, 0.5):.2f}" height="{height(value):.2f}" '
        f'fill="{INK if is_marked else PALE}"/>'
        for place, (value, is_marked) in enumerate(zip(values, marked, strict=True))
        if value > 0
    ]
    lines = [_line(floor, GRID, "")]
    if limit is not None:
        lines.append(_line(floor - height(limit), "#333333", ' stroke-dasharray="4 3"'))
    words = [
        _text(_LEFT - 6, _TOP + 4, "end", f"{top:,.3g}"),
        _text(_LEFT - 6, floor + 4, "end", "0"),
        _text(_LEFT, _HEIGHT - 6, "start", ends[0]),
        _text(_WIDTH, _HEIGHT - 6, "end", ends[1] if len(values) > 1 else ""),
    ]
    drawn = "".join([*columns, *lines, *words])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" '
        f'role="img">{drawn}</svg>'
    )


def _line(height: float, color: str, style: str) -> str:
    return (
        f'<line x1="{_LEFT:.0f}" x2="{_WIDTH:.0f}" y1="{height:.2f}" y2="{height:.2f}" '
        f'stroke="{color}"{style}/>'
    )


def _text(across: float, down: float, anchor: str, words: str) -> str:
    return (
        f'<text x="{across:.0f}" y="{down:.0f}" text-anchor="{anchor}" font-size="11" '
        f'font-family="sans-serif" fill="#555555">{escape(words)}</text>'
    )
