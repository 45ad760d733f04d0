"""Formulas as MathML, and drawings as parts of the page, so that nothing is loaded to show them."""

import posixpath
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from dpublish.plots.inline import dark_rules, inline

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_UNKNOWN = re.compile(r">(\\[^<]*|&)<")
"""What is left as it was written: a command that the converter does not know, an `&` outside."""
_TYPESET = (
    # A prime is raised as it is; raised once more, it can hardly be seen.
    (
        re.compile(
            r"<msubsup><mi>([^<]*)</mi>((?:<mi>[^<]*</mi>|<mrow>(?:(?!</?mrow>).)*</mrow>))"
            r"<mi>(&#x0203[23];)</mi></msubsup>"
        ),
        r'<msub><mrow><mi>\1</mi><mo lspace="0" rspace="0">\3</mo></mrow>\2</msub>',
    ),
    (
        re.compile(r"<msup><mi>([^<]*)</mi><mi>(&#x0203[23];)</mi></msup>"),
        r'<mrow><mi>\1</mi><mo lspace="0" rspace="0">\2</mo></mrow>',
    ),
    # Browsers put wide spaces around slashes and names of functions.
    (re.compile(r"<mo>&#x0002F;</mo>"), '<mo lspace="0" rspace="0">&#x0002F;</mo>'),
    (
        re.compile(r"<mo>(max|min|sup|det)</mo>(?=(?:</m[a-z]+>|<mrow>)*<mo s)"),
        r'<mo lspace="0.167em" rspace="0">\1</mo>',
    ),
    (
        re.compile(r"<mo>(max|min|sup|det)</mo>"),
        r'<mo lspace="0.167em" rspace="0.167em">\1</mo>',
    ),
)
_BELOW = re.compile(
    r"<msub>(<mo[^>]*>(?:max|min|sup)</mo>)"
    r"((?:<mi>[^<]*</mi>|<mtext>[^<]*</mtext>|<mrow>(?:(?!</?mrow>).)*</mrow>))</msub>"
)
"""What a maximum is taken over, which stands below it in a displayed formula."""
_PUNCTUATED = re.compile(r"(<math (?:(?!</math>).)*</math>[.,;:)]+)", re.DOTALL)
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^":]+\.svg)"[^>]*>')
_SHOWN = re.compile(r'<div class="(language-text highlight)">(<pre.*?</pre>)</div>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_STYLE = re.compile(r"<style>@media \(prefers-color-scheme: dark\).*?</style>", re.DOTALL)
_VARIABLE = re.compile(r"var\(--c-[0-9a-f]{6}, (#[0-9a-f]{6})\)")
_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
LARGEST = 150_000
"""Characters of a drawing that is put into its page; larger ones stay files."""


def with_formulas(html: str) -> str:
    r"""Write formulas as MathML, which browsers show without a script.

    >>> with_formulas('<span class="arithmatex">\\(k\\)</span>')  # doctest: +ELLIPSIS
    '<math xmlns="http://www.w3.org/1998/Math/MathML" ...><mrow><mi>k</mi></mrow></math>'
    """

    def write(found: re.Match[str]) -> str:
        display = "inline" if found[2] == "(" else "block"
        latex = unescape(found[3]).strip()
        formula: str = convert(latex, display=display)
        if unknown := _UNKNOWN.search(formula):
            raise ValueError(f"{unknown[1]} is not understood in the formula {latex}")
        for pattern, instead in _TYPESET:
            formula = pattern.sub(instead, formula)
        if display == "block":
            formula = _BELOW.sub(r"<munder>\1\2</munder>", formula)
        return (
            formula if display == "inline" else f'<div class="formula" tabindex="0">{formula}</div>'
        )

    # A line does not begin with the comma after a formula.
    return _PUNCTUATED.sub(r'<span class="unbroken">\1</span>', _FORMULA.sub(write, html))


def with_pictures(html: str, page: Any, files: Any) -> str:
    """Put drawings into the page, where they follow its scheme of colors."""
    number = 0

    def put(found: re.Match[str]) -> str:
        nonlocal number
        alt, address = found.groups()
        source = files.get_file_from_path(_source(page, address, files))
        if source is None or source.abs_src_path is None:
            return found[0]  # MkDocs warns of it, and a warning is an error
        svg = Path(source.abs_src_path).read_text("utf-8")
        if len(svg) > LARGEST:
            return found[0]
        number += 1
        return f'<span class="drawing">{drawing(svg, number, unescape(alt))}</span>'

    return _IMAGE.sub(put, html)


def with_commands(html: str) -> str:
    r"""Let the button of a block with commands copy these, without prompts and outputs.

    >>> block = '<div class="language-text highlight"><pre>$ ls\na file</pre></div>'
    >>> with_commands(block).partition(">")[0]
    '<div class="language-text highlight" data-copy="ls"'
    """

    def mark(found: re.Match[str]) -> str:
        text = unescape(_TAG.sub("", found[2]))
        lines, taken = [], False
        for line in text.splitlines():
            if line.startswith("$ ") or taken:
                lines.append(line.removeprefix("$ "))
                taken = line.endswith("\\")
        if not lines:
            return found[0]
        commands = escape("\n".join(lines), quote=True)
        return f'<div class="{found[1]}" data-copy="{commands}">{found[2]}</div>'

    return _SHOWN.sub(mark, html)


def drawing(svg: str, number: int, alt: str) -> str:
    """Return a drawing as part of a page; one that follows the reader's scheme follows the page.

    >>> drawing('<?xml?><svg><style>@media (prefers-color-scheme: dark) {}</style></svg>', 1, "A")
    '<svg role="img" aria-label="A"></svg>'
    """
    plain = _VARIABLE.sub(r"\1", _STYLE.sub("", _HEAD.sub("", svg)))
    return inline(plain, number, alt)


def styles_of_drawings() -> str:
    """Write the style sheet that gives drawings the colors of a dark page."""
    black = ".drawing svg { fill: #e7ebee; }"  # what has no color of its own
    scheme = '[data-md-color-scheme="slate"]'
    page = "--c-ffffff: var(--md-default-bg-color);"
    return f"{scheme} {{ {dark_rules()} {page} }}\n{scheme} {black}\n"


def _source(page: Any, address: str, files: Any) -> str:
    """Find the source of a picture from its address in the page that was built."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page.dest_uri), address))
