"""What the comparison of synthetic tables varies: one part for each figure that it makes.

The figures are those of the evaluation of DPCopula (H. Li, L. Xiong and X. Jiang, EDBT 2014):
error against epsilon, the ratio of budgets, the number of columns, the size of questions, the
shape of marginals, other methods, and time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpublish.core.registry import CATALOG

NAME = "copula"
EXACT_MARGINALS = "exact-marginals"
"""A reference: true marginals, as if columns were independent.  Not private."""
ALWAYS_ZERO = "always-zero"
"""A reference: every answer is 0.  Whatever is not better than this says nothing."""
REFERENCES = {
    EXACT_MARGINALS: "No privacy: true marginals, as if columns were independent",
    ALWAYS_ZERO: "Nothing published: every answer is 0",
}
RELATIVE, MEDIAN, ABSOLUTE = "relative", "median", "absolute"
BETWEEN_RECORDS, FROM_ROWS = "relative_between_records", "relative_from_rows"
ABSOLUTE_BETWEEN_RECORDS = "absolute_between_records"
SECONDS, ANSWER_SECONDS, REFUSED = "seconds", "answer_seconds", "cannot_run"
QUESTIONS = 1_000
MADE_UP = ("simulated", "simulated-uniform", "simulated-zipf")


@dataclass(frozen=True)
class Method:
    """A method with some of its settings."""

    method: str
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


METHODS: Mapping[str, Method] = {
    "dpcopula": Method("dpcopula"),
    **{
        f"dpcopula-{name}": Method("dpcopula", {"correlation": name})
        for name in ("spearman", "kendall", "mle")
    },
    **{
        name: Method(name)
        for name in (
            "marginals",
            "psd",
            "privelet",
            "p-hp",
            "filter-priority",
            "ug",
            "ag",
            "privbayes",
        )
    },
}
COMPARED = tuple(name for name, method in METHODS.items() if name == method.method)


@dataclass(frozen=True)
class Part:
    """One figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis.
        reading: What the axis means, for somebody new to it.
        epsilons: The budgets.
        methods: The methods compared.
        key: Which setting is on the axis; None for epsilon.
        values: The values of that setting.
        datasets: The tables.
        measure: Which figure is shown.
    """

    title: str
    across: str
    reading: str
    epsilons: tuple[str, ...]
    methods: tuple[str, ...]
    key: str | None = None
    values: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ("simulated",)
    measure: str = RELATIVE


_EPSILON_AXIS = "privacy budget ε (left: more private)"
_EPSILON_READING = (
    "From left to right privacy gets weaker, so there is less noise, and answers come nearer "
    "to the truth."
)
PARTS = {
    "epsilon": Part(
        title="How good are range counts from a synthetic table?",
        across=_EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
        methods=("dpcopula", "marginals", "psd", "privbayes"),
        datasets=("simulated", "adult-numbers"),
    ),
    "ratio": Part(
        title="How should the budget be shared between marginals and correlations?",
        across="budget of the marginals as a multiple of that of the correlations",
        reading="From left to right more of the budget goes to the marginals, and less to what "
        "ties the columns to each other.",
        epsilons=("0.1", "1"),
        methods=("dpcopula",),
        key="ratio",
        values=("0.25", "1", "2", "4", "8", "16", "32"),
        datasets=("simulated", "adult-numbers"),
    ),
    "dimensions": Part(
        title="How many columns can a synthetic table have?",
        across="number of columns",
        reading="From left to right the tables have more columns, each question asks about all "
        "of them, and the budget is shared by more marginals.",
        epsilons=("1",),
        methods=COMPARED,
        key="columns",
        values=("2", "4", "6", "8", "10"),
    ),
    "query-size": Part(
        title="How large must a question be to be answered well?",
        across="part of the domain that a question covers",
        reading="From left to right questions cover more of the domain, so there are more "
        "records in the answer.",
        epsilons=("1",),
        methods=("dpcopula", "marginals", "psd", "privbayes"),
        key="coverage",
        values=("0.0001", "0.001", "0.01", "0.1", "0.5"),
        datasets=("simulated", "adult-numbers"),
    ),
    "marginals": Part(
        title="Do the shapes of marginals matter?",
        across=_EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.1", "1"),
        methods=COMPARED,
        datasets=MADE_UP,
        measure=BETWEEN_RECORDS,
    ),
    "comparators": Part(
        title="Which method answers range counts best?",
        across=_EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.1", "1"),
        methods=COMPARED,
        datasets=("simulated", "adult-numbers"),
    ),
    "correlation": Part(
        title="Which correlation should tie the columns?",
        across=_EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.05", "0.1", "0.5", "1", "2"),
        methods=("dpcopula-spearman", "dpcopula-kendall", "dpcopula-mle", "marginals"),
        datasets=("simulated", "adult-numbers"),
    ),
    "time": Part(
        title="How long does it take?",
        across="number of rows",
        reading="From left to right the tables have more rows; the line of a method whose time "
        "is in proportion to the rows rises by ten where the rows do.",
        epsilons=("1",),
        methods=("dpcopula-spearman", "dpcopula-kendall", "dpcopula-mle", "psd", "privbayes"),
        key="records",
        values=("10000", "100000", "1000000"),
        measure=SECONDS,
    ),
}


def available_methods() -> tuple[str, ...]:
    """List the methods whose method is there."""
    return tuple(name for name, method in METHODS.items() if method.method in CATALOG)
