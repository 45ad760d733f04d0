"""The section of a histogram of wavelet coefficients: its marginals."""

import shlex

from dpublish.core.released import Release
from dpublish.data.query.language import quote
from dpublish.methods.privelet.released import PriveletRelease
from dpublish.report.axis_marginals import marginal_figures
from dpublish.report.section import Listing, Section


def section(release: Release, with_charts: bool) -> Section:
    """Show a histogram of wavelet coefficients."""
    if not isinstance(release, PriveletRelease):
        return Section()
    marginals = [release.marginal(axis.column).counts for axis in release.axes]
    rows = [
        [axis.column, f"{axis.size:,}", "yes" if is_haar else "no"]
        for axis, is_haar in zip(release.axes, release.haar, strict=True)
    ]
    query = f"{quote(release.axes[0].column)} = {quote(release.axes[0].labels[0])}"
    return Section(
        figures=marginal_figures(release.axes, marginals, "Estimated counts")
        if with_charts
        else (),
        listings=[Listing(["column", "values", "transformed"], rows)],
        python=f"release.count({query!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(query)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )
