"""The report: one self-contained HTML file that says what was published and guaranteed."""

from functools import cache
from importlib.resources import files
from math import exp

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from dpublish.core.method import figure_name
from dpublish.core.released import Release, field_description
from dpublish.plots.charts import can_draw
from dpublish.privacy.epsilon import format_epsilon
from dpublish.report.section import section_of
from dpublish.report.shares import share_rows

_TITLES = {"personal": "Personalized release", "personal-answer": "Personalized answer"}


def render_report(release: Release, *, with_charts: bool = True, folder: str = "") -> str:
    """Write the page of a release, from the release alone.

    `folder` is the path from the page to the release folder; it is empty if the page lies there.
    """
    receipt = release.receipt
    section = section_of(release, with_charts=with_charts and can_draw())
    whole = receipt.epsilon
    variable = {"histogram": "histogram", "top-values": "ranking"}.get(release.kind, "release")
    return _template().render(
        release=release,
        receipt=receipt,
        title=_TITLES.get(release.kind, release.kind.replace("-", " ").capitalize())
        + (f" of {receipt.dataset}" if receipt.dataset else ""),
        epsilon=format_epsilon(whole),
        factor=f"{exp(min(float(whole), 700.0)):.4g}",
        shares=share_rows(receipt),
        settings={
            name: "not set" if value is None else _words(value)
            for name, value in receipt.settings.items()
        },
        summary=release.summary(),
        errors={
            figure_name(name): f"{value:,.4g}" for name, value in release.expected_error().items()
        },
        figures=[(figure.caption, Markup(figure.svg)) for figure in section.figures],
        listings=section.listings,
        tables={
            name: [(field.name, field_description(field)) for field in table.schema]
            for name, table in release.tables().items()
        },
        python=section.python,
        shell=section.shell,
        variable=variable,
        folder=folder,
        prefix=f"{folder}/" if folder else "",
        can_draw=can_draw(),
    )


def _words(value: object) -> str:
    if isinstance(value, dict):  # a method within a method
        given = {name: inner for name, inner in value.items() if inner is not None}
        return "; ".join(f"{name}: {_words(inner)}" for name, inner in given.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(
        files("dpublish.report").joinpath("page.html").read_text("utf-8")
    )
