"""What published sparse vector algorithms really cost, beside what they claim.

Figures 5.1 to 5.7 and sections 5.2 to 5.4 of D. Su, PhD thesis, Purdue, 2016.  Nothing is drawn:
all is computed from the probabilities of outcomes on neighboring answers (`svt_losses`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import isinf
from pathlib import Path
from typing import ClassVar

from dpublish.experiments.study import Figure, Request, RunTrial, Study
from dpublish.experiments.svt_losses import (
    VARIANTS,
    absolute_loss,
    alpha_exact,
    alpha_formula,
    gptt_argument,
    loss,
)
from dpublish.experiments.trials import Cell, Cells, Key, Result, Trial
from dpublish.plots.comparisons import Line
from dpublish.report.section import Listing

NAME = "svt-variants"
GENERAL, MONOTONIC = "general", "monotonic"
TRUE, ARGUED, HONEST = "true", "argued", "honest"
LOSS, FORMULA, EXACT = "loss", "formula", "exact"
MEASURES = {
    GENERAL: "true ε, worst pair found",
    MONOTONIC: "true ε, answers that move one way",
    TRUE: "logarithm of the true ratio",
    ARGUED: "its lower bound as argued",
    HONEST: "the bound with an interval that grows",
    LOSS: "true ε",
    FORMULA: "distance from the threshold, by formula",
    EXACT: "distance from the threshold, exact",
}
INFINITE = 1e12
"""Stands for an infinite loss in files of results."""
BETA = 0.05
_HIGHEST = 20
"""Higher losses are in the table only: they would flatten the others."""
OUTSIDE, INSIDE = "noise outside", "noise inside"
ONE_SIDED = ", one-sided"
QUERIES = (1, 4, 16, 64, 256)
FIGURES = {
    "queries": Figure(
        title="What do sparse vector algorithms cost that claim ε?",
        across="queries told to be below",
        reading="From left to right more queries are answered, which should cost nothing.",
        methods=tuple(VARIANTS),
        measures=(GENERAL, MONOTONIC),
        key="negatives",
        values=QUERIES,
        fixed={"positives": 3},
    ),
    "positives": Figure(
        title="What do sparse vector algorithms cost when more may be above?",
        across="queries that may be above (c)",
        reading="From left to right more queries may be above; noise should grow with them.",
        methods=tuple(VARIANTS),
        measures=(GENERAL, MONOTONIC),
        key="positives",
        values=(1, 2, 5, 10, 25, 50),
        fixed={"negatives": 256},
    ),
    "gptt": Figure(
        title="An argument that proves too much (GPTT)",
        across="queries of each kind (t)",
        reading="From left to right the argument is applied to more queries.",
        methods=("GPTT", "Alg. 17"),
        measures=(TRUE, ARGUED, HONEST),
        key="queries",
        values=QUERIES,
    ),
    "absolute": Figure(
        title="Noise inside an absolute value",
        across="threshold",
        reading="From left to right larger errors are allowed.",
        methods=(OUTSIDE, INSIDE, OUTSIDE + ONE_SIDED, INSIDE + ONE_SIDED),
        measures=(LOSS,),
        key="threshold",
        values=(1, 5, 20, 50),
    ),
    "alpha": Figure(
        title="How far from the threshold must answers be to be told right?",
        across="queries (k)",
        reading="From left to right there are more queries among which one is above.",
        methods=("SVT", "EM"),
        epsilons=("0.1",),
        measures=(FORMULA, EXACT),
        key="queries",
        values=(10, 100, 1_000, 10_000),
    ),
}
EXPLANATIONS = {
    "queries": [
        "A sparse vector answers queries whether they are above a threshold. Six published "
        "algorithms claim ε; here is what an attacker learns who sees all answers, on the worst "
        "of many pairs of neighboring tables: the logarithm of the ratio of the two "
        "probabilities. An algorithm that keeps its claim stays at or below ε.",
        "Alg. 17 (the thesis) and 18 (Dwork and Roth 2014) keep it. Alg. 19 (Roth 2011) tells "
        "the value that was compared, and so where the noisy threshold is. Alg. 20 (Lee and "
        "Clifton 2014) has noise for one positive and allows for c. Alg. 21 (Stoddard et al. "
        "2014) has no noise on answers. Alg. 22 (Chen et al. 2015) never stops.",
    ],
    "gptt": [
        "GPTT is Alg. 22 with two budgets. An argument that it is not private takes the ratio of "
        "one round's probabilities at a noisy threshold, k, at its least in an interval, and "
        "concludes that t rounds have a ratio of k^t / 2. But the interval grows with t, and k "
        "shrinks with it. For the private Alg. 17, whose true ratio is below ε / 2 forever, the "
        "same argument ends in a ratio without bound: it proves too much.",
        "Of GPTT itself the conclusion is true: its k stays above e^(ε / 2) in every interval.",
    ],
    "absolute": [
        "An estimate from earlier answers is kept while its error is below a threshold. The "
        "error is an absolute value; noise belongs outside: |error| + noise. Inside, as "
        "|error + noise|, a query that is below tells that the noisy threshold is positive.",
        "With two-sided noise for the general case that costs nothing more, because the proof "
        "moves the noisy threshold upward only. With one-sided noise it has no bound.",
    ],
    "alpha": [
        "One of k queries is above the threshold by a distance, all others below it by as much. "
        "How large must the distance be for the right answer with probability 95 %? The thesis "
        "compares two formulas, of which that for the exponential mechanism (EM) is less than an "
        "eighth of that for SVT. Exact probabilities tell how far the formulas are from what is "
        "needed.",
    ],
}
EXPLANATIONS["positives"] = EXPLANATIONS["queries"]


def run_trial(trial: Trial) -> dict[str, float]:
    """Compute what a trial is about; infinite losses are stored as a large number."""
    setting, epsilon = trial.setting, Fraction(trial.epsilon)
    found: dict[str, float]
    if "threshold" in setting:
        found = {LOSS: _absolute(trial.method, epsilon, int(setting["threshold"]))}
    elif "queries" not in setting:
        positives = int(setting["positives"])
        variant, asked = VARIANTS[trial.method](epsilon, positives), int(setting["negatives"])
        found = {
            name: loss(variant, negatives=asked, positives=positives, is_monotonic=name != GENERAL)
            for name in (GENERAL, MONOTONIC)
        }
    elif trial.method in ("SVT", "EM"):
        queries = int(setting["queries"])
        found = {
            FORMULA: alpha_formula(trial.method, queries, float(epsilon), BETA),
            EXACT: alpha_exact(trial.method, queries, epsilon, BETA),
        }
    else:
        found = gptt_argument(trial.method, epsilon, int(setting["queries"]))._asdict()
    return {name: INFINITE if isinf(value) else float(value) for name, value in found.items()}


def _absolute(method: str, epsilon: Fraction, threshold: int) -> float:
    variant = VARIANTS["dpublish" if method.endswith(ONE_SIDED) else "Alg. 17"](epsilon, 1)
    return absolute_loss(variant, threshold=threshold, is_inside=method.startswith(INSIDE))


class VariantStudy(Study[Figure]):
    """Published sparse vector algorithms, and what they really cost."""

    name = NAME
    figures = FIGURES
    knobs: ClassVar[Mapping[str, str]] = {
        "positives": "how many queries may be above",
        "negatives": "how many queries are told to be below",
    }
    headers: ClassVar[tuple[str, ...]] = ("measure", "method")
    digits = 2
    unit = "record"
    lead = "Exact probabilities; nothing is drawn."
    drawing_caption = f"Lines end where a loss is above {_HIGHEST} times what is claimed."
    table_caption = "Computed, not measured."

    def trials(self, asked: Request[Figure], **_: object) -> Iterator[Trial]:
        """List each computation once: repeating would change nothing."""
        for epsilon in asked.figure.epsilons:
            for method in asked.figure.methods:
                for moved in asked.axis():
                    setting = asked.setting("", **moved)
                    yield Trial(NAME, method, epsilon, 0, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Return what computes a trial."""
        return run_trial

    def names(self, key: Key) -> list[str]:
        """Name a line."""
        return [self.measure_title(key.measure), key.short_name]

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure]

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by its measure."""
        return self.measure_title(key.measure)

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a number; there is no deviation."""
        mean = cells[key][point].mean
        return "infinite" if mean >= INFINITE else f"{mean:,.{self.digits}f}"

    def line(self, key: Key, cells: Mapping[float, Cell]) -> Line:
        """Draw a line as far as it can be compared with the others."""
        most = _HIGHEST if key.measure in (GENERAL, MONOTONIC, LOSS) else INFINITE
        shown = {point: cell for point, cell in cells.items() if cell.mean <= most}
        return super().line(key, shown)

    def is_ours(self, method: str) -> bool:
        """Draw all in color."""
        return True

    def dataset_table(self, results: Sequence[Result]) -> Listing:
        """Lay all results out; there are no datasets."""
        return self.table(results)

    def explanation(self, figure: Figure) -> list[str]:
        """Explain what is computed."""
        name = next(name for name, one in self.figures.items() if one.title == figure.title)
        return EXPLANATIONS[name]

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Say on what."""
        return "Answers are integers that one record moves by at most 1."

    def heading(self, dataset: str) -> str:
        """Write the heading of the only section of results."""
        return "What comes out"

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Say nothing more: no method is the best one here."""
        return []

    def method_points(self, used: Collection[str]) -> list[str]:
        """Say which algorithms these are."""
        ours = {"dpublish": "the sparse vector of this package (one-sided noise, best split)"}
        return [f"{name}: {ours.get(name, 'of the thesis, chapter 5')}." for name in used]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Say that it was not."""
        return [
            "Probabilities are summed over all values of the noisy threshold. The algorithms that "
            "are not private exist here as probabilities only: nothing can draw from them."
        ]


STUDY = VariantStudy()
