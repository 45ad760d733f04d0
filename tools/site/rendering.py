"""Formulas as MathML, and drawings as parts of the page, so that nothing is loaded to show them."""

import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from dpublish.plots.inline import dark_rules, inline

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_UNKNOWN = re.compile(r">(\\[^<]*|&)<")
"""What is left as it was written: a command that the converter does not know, an `&` outside."""
_PRIME = re.compile(r"<msup><mi>([^<]*)</mi><mi>&#x02032;</mi></msup>")
_LOW_PRIME = re.compile(
    r"<msubsup><mi>([^<]*)</mi>((?:<mi>[^<]*</mi>|<mrow>(?:(?!</?mrow>).)*</mrow>))"
    r"<mi>&#x02032;</mi></msubsup>"
)
_MARK = '<mo lspace="0" rspace="0">&#x02032;</mo>'
"""A prime is raised as it is; raised once more, it can hardly be seen."""
_PUNCTUATED = re.compile(r"(<math (?:(?!</math>).)*</math>[.,;:)]+)", re.DOTALL)
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^":]+\.svg)"[^>]*>')
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
        formula = _LOW_PRIME.sub(rf"<msub><mrow><mi>\1</mi>{_MARK}</mrow>\2</msub>", formula)
        formula = _PRIME.sub(rf"<mrow><mi>\1</mi>{_MARK}</mrow>", formula)
        return formula if display == "inline" else f'<div class="formula">{formula}</div>'

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
