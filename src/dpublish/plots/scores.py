"""Bars from 0 to 100, written as SVG by hand: they need no Matplotlib."""

from collections.abc import Sequence
from html import escape

from dpublish.plots.style import COLORS, GRID, TEXT, shortened

_WIDTH, _LINE, _LEFT, _RIGHT = 640, 26, 120, 40
_LETTERS = 16
_BAR_COLORS = {"good": COLORS[2], "rough": COLORS[4], "poor": COLORS[1]}


def draw_scores(bars: Sequence[tuple[str, float, str]], marks: Sequence[float] = ()) -> str:
    """Draw a bar for each name, score and grade (good, rough, poor), and lines at `marks`."""
    span = _WIDTH - _LEFT - _RIGHT
    height = _LINE * len(bars) + 18
    lines = [
        f'<line x1="{_LEFT + span * mark / 100:.1f}" x2="{_LEFT + span * mark / 100:.1f}" '
        f'y1="0" y2="{height - 16}" stroke="{GRID}"/>'
        f'<text x="{_LEFT + span * mark / 100:.1f}" y="{height - 3}" text-anchor="middle" '
        f'fill="{TEXT}" font-size="10">{mark:.0f}</text>'
        for mark in (0, *marks, 100)
    ]
    drawn = [
        _bar(number * _LINE, shortened(name, _LETTERS), score, _BAR_COLORS[grade], span)
        for number, (name, score, grade) in enumerate(bars)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" role="img" font-family="sans-serif" font-size="12">'
        f"{''.join(lines)}{''.join(drawn)}</svg>"
    )


def _bar(top: int, name: str, score: float, color: str, span: int) -> str:
    length = max(span * score / 100, 1.0)
    return (
        f'<text x="{_LEFT - 8}" y="{top + 16}" text-anchor="end" fill="{TEXT}">{escape(name)}'
        f'</text><rect x="{_LEFT}" y="{top + 5}" width="{length:.1f}" height="15" rx="2" '
        f'fill="{color}"/><text x="{_LEFT + length + 6:.1f}" y="{top + 16}" fill="{TEXT}">'
        f"{score:.0f}</text>"
    )
