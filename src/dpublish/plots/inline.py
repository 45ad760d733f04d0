"""Drawings within a page: colors of the reader's scheme, words for those who cannot see them."""

import re
from collections.abc import Mapping
from html import escape

from dpublish.plots.style import (
    FRAME,
    GRAYS,
    GRID,
    INK,
    PAGE,
    PALE,
    PAPER,
    SHADE,
    TEXT,
    TRUE,
    WHISKER,
)

DARK: Mapping[str, str] = {
    INK: "#74b6e3",
    PALE: "#2f6285",
    GRID: "#353e44",
    TEXT: "#b4bec5",
    FRAME: "#87929a",
    PAPER: "#1e2529",
    WHISKER: "#dfe5e9",
    SHADE: "#4a545b",
    TRUE: "#a3adb4",
    GRAYS[1]: "#9aa4ab",
    GRAYS[2]: "#737d84",
    GRAYS[3]: "#dfe5e9",
    "#000000": "#e7ebee",
    PAGE: "#14181b",
}
"""What each color of a chart becomes on a dark page; colors that read well on both are not here."""

_TAG = re.compile(r"<[^>]*>")
_COLOR = re.compile(r'\b(fill|stroke|stop-color)(: ?|=")(#[0-9a-fA-F]{6})\b')
_NAME = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_USED = re.compile(r'(?:href="#|url\(#)([^")]+)')
_GAP = re.compile(r">\s+<")
_UNUSED = "unused"


def inline(svg: str, number: int, label: str) -> str:
    """Make an SVG part of a page: the `number`-th drawing, which `label` names or describes.

    Colors become variables of the style sheet, with the plain color where it has none.  Names
    are used once in a page, and those that nothing refers to go.

    >>> inline('<svg><rect id="a" fill="#1f5f8b"/></svg>', 1, "A bar")
    '<svg role="img" aria-label="A bar"><rect fill="var(--c-1f5f8b, #1f5f8b)"/></svg>'
    """
    used = set(_USED.findall(svg))

    def rename(found: re.Match[str]) -> str:
        if found[2] in used:
            return f"{found[1]}d{number}-{found[2]}"
        return f"{found[1]}{_UNUSED}"

    def change(tag: re.Match[str]) -> str:
        text = _NAME.sub(rename, _COLOR.sub(_variable, tag[0]))
        return text.replace(f' id="{_UNUSED}"', "")

    head, _, rest = _TAG.sub(change, _GAP.sub("><", svg)).partition("<svg")
    opening, close, inside = rest.partition(">")
    opening = re.sub(r'\s(role|aria-label)="[^"]*"', "", opening)
    return f'{head}<svg role="img" aria-label="{escape(label)}"{opening}{close}{inside}'


def dark_rules() -> str:
    """Write the variables of a dark page."""
    return " ".join(f"{_name(light)}: {dark};" for light, dark in DARK.items())


def in_either_scheme(svg: str) -> str:
    """Make an SVG that is shown as a picture follow the reader's scheme of colors.

    >>> in_either_scheme('<svg><rect fill="#000000"/></svg>').partition("<style>")[2][:58]
    '@media (prefers-color-scheme: dark) { svg { fill: #e7ebee;'
    """
    head, tag, rest = inline(svg, 1, "").partition("<svg")
    opening, close, inside = rest.partition(">")
    opening = opening.replace(' role="img" aria-label=""', "")  # the page names the picture
    rules = f"fill: {DARK['#000000']}; {dark_rules()}"  # black is what has no color of its own
    style = f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {rules} }} }}</style>"
    return f"{head}{tag}{opening}{close}{style}{inside}"


def _variable(found: re.Match[str]) -> str:
    color = found[3].lower()
    if color not in _THEMED:
        return found[0]
    return f"{found[1]}{found[2]}var({_name(color)}, {color})"


def _name(color: str) -> str:
    return f"--c-{color[1:].lower()}"


_THEMED = frozenset(color.lower() for color in DARK)
