"""What the comparison of private models varies: one part for each kind of figure that it makes.

The figures are those of the PrivGene paper (2 to 7): quality against epsilon for logistic
regression and support vector machines, the constant that sets the number of rounds, the
enhanced exponential mechanism against the plain one, k-means, and the time it all takes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from dpublish.core.method import Method
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.errors import require_known
from dpublish.experiments.classification_laboratory import FOLDS
from dpublish.experiments.classification_parts import EPSILONS
from dpublish.experiments.experiment import Trial

NAME = "model-fitting"
NOISE_FREE, COMMONEST = "noise-free", "majority class"
WRONG, CURVE, SECONDS = "misclassification", "auc", "seconds"
ANY = "any"
"""The model of a method that has no such setting: it is compared with all of them."""
MODELS = {"logistic": "logistic regression", "svm": "linear support vector machine"}
METHODS = {
    "model": "Model: our default, chosen from public facts",
    "privgene": "PrivGene: weights bred by private choices",
    "privlocal": "PrivLocal: weights improved step by step by private choices",
    "private-erm": "PrivateERM: noise in the objective, which is then minimized",
    "output-perturbation": "Output perturbation: noise in the best weights",
    "functional": "Functional mechanism: noise in the objective's coefficients",
    "gupt": "GUPT: weights averaged over the fits of blocks of records",
    "privpfc": "PrivPfC: a noisy grid that predicts by itself",
    "majority": "Majority: only tells which class is the most frequent",
}
_PLAIN = "-plain"
VARIANTS = {
    "privgene-plain": "PrivGene as before the enhanced mechanism: 10 parents, plain choices",
}
TITLES = METHODS | VARIANTS
KMEANS = "kmeans"
KMEANS_METHODS = ("pgkm", "gkm", "dplloyd")
_MOST_ROUNDS = 500


@dataclass(frozen=True)
class Part:
    """One kind of figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis.
        reading: What the axis means, for somebody new to it.
        methods: The methods compared.
        epsilons: The budgets; each is a line of its own, unless they are the axis.
        datasets: The datasets.
        measures: What is shown of each trial.
        key: Which setting of a trial is on the axis; None for epsilon.
        values: The values of that setting.
        moves_references: Whether the setting matters without privacy, too.
        folds: How many folds are measured on unless told otherwise.
    """

    title: str
    across: str
    reading: str
    methods: tuple[str, ...]
    epsilons: tuple[str, ...] = EPSILONS
    datasets: tuple[str, ...] = ("simulated", "adult", "bank", "census")
    measures: tuple[str, ...] = (WRONG, CURVE)
    key: str | None = None
    values: tuple[int, ...] = ()
    moves_references: bool = False
    folds: int = FOLDS


_BUDGET = "privacy budget ε (left: more private)"
PARTS = {
    "epsilon": Part(
        title="How good are models that were fitted privately?",
        across=_BUDGET,
        reading="From left to right privacy gets weaker, so there is less noise, and models "
        "usually get better.",
        methods=tuple(METHODS),
    ),
    "rounds": Part(
        title="How many rounds should a private search make?",
        across="records for each round at ε = 1 (1/c)",
        reading="A search of n records makes c n ε rounds. From left to right there are fewer of "
        "them: each gets more of ε and chooses better, but the search does not come as far.",
        methods=("privgene", "privlocal"),
        epsilons=("0.1", "1"),
        datasets=("simulated", "adult", "bank"),
        key="records_per_round",
        values=(200, 400, 800, 1_600, 3_200, 6_400),
    ),
    "choice": Part(
        title="What does the enhanced exponential mechanism bring to PrivGene?",
        across=_BUDGET,
        reading="The enhanced mechanism has noise only for how differently one record can speak "
        "of two candidates of the same round; the plain one for all that a record can say of "
        "any model.",
        methods=("privgene", "privgene-plain", "privlocal"),
    ),
    "cost": Part(
        title="How long does it take to fit a model privately?",
        across="number of rows",
        reading="From left to right there are more rows to learn from.",
        methods=tuple(METHODS),
        epsilons=("1",),
        datasets=("simulated",),
        measures=(SECONDS,),
        key="rows",
        values=(2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
        moves_references=True,
        folds=1,
    ),
}


def method_of(method: str) -> str:
    """Name the method of a method, which may be a variant of it."""
    return method.removesuffix(_PLAIN) if method in VARIANTS else method


def known_methods(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Leave out methods whose method this version lacks, with a note for each."""
    for name in names:
        require_known("method", name, TITLES)
    kept = tuple(name for name in names if method_of(name) in CATALOG)
    absent = [name for name in names if name not in kept]
    return kept, [f"{name} was left out: this version has no such method" for name in absent]


def models_of(method: str, asked: Iterable[str]) -> tuple[str, ...]:
    """List which of the asked models a method fits; `ANY` for one that has no such setting."""
    types = {setting.name: setting.type_name for setting in method_settings(method_of(method))}
    if "model" not in types:
        return (ANY,)
    return tuple(model for model in asked if model in types["model"].split(" | "))


def method_for(trial: Trial, target: str) -> Method[Any]:
    """Build the method of a trial; the size of a benchmark is public, so rounds may follow it."""
    given = trial.setting
    settings: dict[str, Any] = {"target": target}
    if given["model"] != ANY:
        settings["model"] = given["model"]
    if trial.method in VARIANTS:
        settings["choice"] = "plain"
    if "records_per_round" in given:
        records = BENCHMARKS[str(given["dataset"])].records * (FOLDS - 1) // FOLDS
        wanted = ceil(records * Fraction(trial.epsilon) / int(given["records_per_round"]))
        settings["rounds"] = min(max(wanted, 1), _MOST_ROUNDS)
    return make_method(method_of(trial.method), settings)
