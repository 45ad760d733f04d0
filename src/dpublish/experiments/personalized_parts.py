"""What the comparison of personal methods varies: one part for each figure that it makes.

The figures follow chapter 5 of "Differentially private data release and analytics": the error
of counts, of logistic regression and of support vector machines, over the threshold that
`threshold` and `sampling` have to be told and partitioning does without.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpublish.core.method import Method
from dpublish.experiments.personalized_crowd import PREFERENCE, RANGES, Crowd
from dpublish.methods.personalized.exponential import PersonalizedEM
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.personalized.minimum import Minimum
from dpublish.methods.personalized.partitioning import Partitioning
from dpublish.methods.personalized.sampling import Sampling
from dpublish.methods.personalized.t_round import TRound
from dpublish.methods.personalized.threshold import Threshold
from dpublish.methods.personalized.weighting import Weighting

NAME = "personalized"
ERROR, WRONG, CURVE, SECONDS = "error", "misclassification", "auc", "seconds"
MEASURES = {
    ERROR: "relative frequency error",
    WRONG: "wrong predictions",
    CURVE: "area under the curve",
}
NOISE_FREE = "noise-free"
OWN = "own"
"""The epsilon of a trial: everybody's own number, all of it."""
QUESTIONS = 20
LEVELS = 20
ASKED = "asked"
QUERY = f"{ASKED} = yes"
INNERS = ("model", "private-erm")
MINIMUM = "minimum"


@dataclass(frozen=True)
class Contender:
    """A personal method with the settings it is run with.

    Attributes:
        method: The method.
        title: What it is, in words.
        settings: Its settings.
        has_threshold: Whether it has to be told a threshold.
        forms_groups: Whether it plans groups, by a formula that differs for models.
        counts_only: Whether it counts by itself, without an inner method.
    """

    method: type[PersonalSettings]
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_threshold: bool = False
    forms_groups: bool = False
    counts_only: bool = False

    def make(
        self, crowd: Crowd, inner: Method[Any], given: Mapping[str, int | str], *, fits_model: bool
    ) -> PersonalSettings:
        """Make the method for a crowd; `given` holds the threshold or number of groups."""
        made: dict[str, Any] = {
            "preference": PREFERENCE,
            "levels": crowd.levels,
            "sizes": crowd.sizes,
            **self.settings,
        }
        if not self.counts_only:
            made["inner"] = inner
        if self.has_threshold:
            made["threshold"] = crowd.levels[int(given["threshold"])]
        if self.forms_groups and fits_model:
            made |= {"noise": Fraction(1), "person_variance": Fraction(0)}
        if self.forms_groups and "groups" in given:
            made["groups"] = int(given["groups"])
        return self.method(**made)


def _grouped(method: type[PersonalSettings], title: str, **settings: Any) -> Contender:
    return Contender(method, title, {"exchangeable": True, **settings}, forms_groups=True)


METHODS: dict[str, Contender] = {
    "minimum": Contender(Minimum, "everybody, with the smallest epsilon that anybody accepts"),
    "threshold": Contender(
        Threshold,
        "those who accept the threshold, with its epsilon; scaled up to all",
        {"exchangeable": True},
        has_threshold=True,
    ),
    "sampling": Contender(
        Sampling,
        "a sample that those below the threshold enter at random, with its epsilon; scaled up",
        {"exchangeable": True},
        has_threshold=True,
    ),
    "sampling-mean": Contender(
        Sampling,
        "sampling, with the mean of the levels for a threshold",
        {"exchangeable": True, "threshold": "mean"},
    ),
    "sampling-max": Contender(
        Sampling,
        "sampling, with the largest level for a threshold",
        {"exchangeable": True, "threshold": "max"},
    ),
    "personalized-em": Contender(
        PersonalizedEM,
        "an answer chosen by how little people's records would have to change for it",
        {"statistic": "count", "query": QUERY},
        counts_only=True,
    ),
    "weighting": Contender(
        Weighting,
        "one histogram in which people count by what they accept; scaled up to all",
        {"columns": (ASKED,), "exchangeable": True},
        counts_only=True,
    ),
    "partitioning": _grouped(
        Partitioning,
        "utility-based: groups weighted by inverse variance; of counts, one group that weighs",
        combine="weighted",
    ),
    "partitioning-draw": _grouped(
        Partitioning,
        "utility-based groups that draw people below what they spend",
        combine="weighted",
        within="draw",
    ),
    "partitioning-least": _grouped(
        Partitioning,
        "utility-based groups that spend the least of their levels",
        combine="weighted",
        within="least",
    ),
    "partitioning-privacy": _grouped(
        Partitioning,
        "privacy-aware groups, weighted by inverse variance",
        combine="weighted",
        objective="privacy",
    ),
    "t-round": _grouped(TRound, "utility-based groups in up to three rounds"),
}
REFERENCES = ("minimum", "personalized-em", NOISE_FREE)
"""Drawn in gray: they do not take people to stand for others."""
COUNTING = tuple(name for name in METHODS if name != "sampling-max")  # sampling ends with it
FITTING = (
    "minimum",
    "threshold",
    "sampling",
    "sampling-mean",
    "partitioning",
    "partitioning-privacy",
    "t-round",
)
_PLAIN = tuple(name for name, method in METHODS.items() if not method.has_threshold)


@dataclass(frozen=True)
class Part:
    """One figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis.
        reading: What the axis means, for somebody new to it.
        key: What is on the axis: threshold, preferences, levels, groups or rows.
        values: What is varied; of thresholds, the places of some levels.
        methods: The methods compared.
        preferences: The distributions of what people accept.
        datasets: The datasets.
        measures: What is shown of each trial.
        model: The model that is fitted; None for counts.
        inners: The methods that fit it.
        is_log: Whether the axis is logarithmic.
    """

    title: str
    across: str
    reading: str
    key: str = "threshold"
    values: tuple[int, ...] = tuple(range(LEVELS))
    methods: tuple[str, ...] = COUNTING
    preferences: tuple[str, ...] = ("uniform-0.1", "uniform-1", "normal")
    datasets: tuple[str, ...] = ("simulated", "adult", "census")
    measures: tuple[str, ...] = (ERROR,)
    model: str | None = None
    inners: tuple[str, ...] = ()
    is_log: bool = False

    def moves(self, method: str) -> bool:
        """Whether what is on the axis changes anything for a method."""
        if self.key == "threshold":
            return method in METHODS and METHODS[method].has_threshold
        return self.key != "groups" or method == "partitioning-privacy"


def _fit(model: str, words: str) -> Part:
    return Part(
        title=f"How good is {words} when each person brings her own ε?",
        across=_THRESHOLD,
        reading=_THRESHOLD_READING,
        values=(1, 3, 7, 11, 15, 19),
        methods=FITTING,
        datasets=("simulated", "adult"),
        measures=(WRONG, CURVE),
        model=model,
        inners=INNERS[:1],
    )


_THRESHOLD = "threshold, as a part of the largest level"
_THRESHOLD_READING = (
    "From left to right the threshold rises: fewer people are used, with less noise. Methods "
    "that need no threshold are level lines."
)
PARTS = {
    "count": Part(
        title="How far are counts from the truth when each person brings her own ε?",
        across=_THRESHOLD,
        reading=_THRESHOLD_READING,
    ),
    "count-range": Part(
        title="What if people differ more in what they accept?",
        across="upper end of the range (lower end: 0.01)",
        reading="From left to right the range of what people accept gets wider.",
        key="preferences",
        values=(),
        methods=_PLAIN,
        preferences=tuple(f"uniform-{high}" for high in RANGES),
        is_log=True,
    ),
    "count-levels": Part(
        title="How many levels should there be?",
        across="number of levels",
        reading="From left to right there are more levels, so that less is lost when people's "
        "numbers are rounded down.",
        key="levels",
        values=(2, 5, 10, 20, 50, 100),
        methods=_PLAIN,
        is_log=True,
    ),
    "count-rows": Part(
        title="What if there are more people?",
        across="number of people",
        reading="From left to right there are more people. Noise then matters less, and that "
        "some stand for others matters more.",
        key="rows",
        values=(1_000, 2_000, 5_000, 10_000, 20_000, 45_000),
        methods=_PLAIN,
        datasets=("adult", "census"),
        is_log=True,
    ),
    "groups": Part(
        title="How many groups should there be?",
        across="most groups (privacy-aware)",
        reading="From left to right privacy-aware partitioning may form more groups: less of "
        "people's numbers is wasted, but each group has fewer people. The other methods are "
        "level lines.",
        key="groups",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 20),
        methods=("minimum", "partitioning", "partitioning-privacy"),
    ),
    "logistic": _fit("logistic", "logistic regression"),
    "svm": _fit("svm", "a support vector machine"),
}
