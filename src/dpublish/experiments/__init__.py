"""The experiments by name.  Their modules are imported when they are run.

A module offers `trials(repeats, *, ...)`, which lists its trials, `run_trial(trial)`, which
returns figures by name, `table(results)`, and `plot(results, path)`, which returns where the
plot is, or None if there is nothing to draw it with.  One whose trials need more than their
own settings (a folder of data) offers `plan(repeats, *, ...)` instead of the first two, and
one that tells a story offers `page(results, notes)`.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """Where an experiment is, what it shows, and how often each trial is repeated by default."""

    module: str
    title: str
    repeats: int


EXPERIMENTS = {
    "svt-vs-em": Entry(
        module="dpublish.experiments.svt_vs_em",
        title="Which private choice of the c most frequent of 10,000 values misses least (Zipf)",
        repeats=50,
    ),
    "classification": Entry(
        module="dpublish.experiments.classification",
        title="How often are classifiers wrong that learn from private releases",
        repeats=1,
    ),
    "kmeans": Entry(
        module="dpublish.experiments.kmeans",
        title="How far do records lie from centers that were found privately (NICV)",
        repeats=10,
    ),
    "wavecluster": Entry(
        module="dpublish.experiments.wavecluster",
        title="How well do private clusters keep the shapes of the true ones (WaveCluster)",
        repeats=10,
    ),
    "copula": Entry(
        module="dpublish.experiments.copula",
        title="How good are range counts from a synthetic table of many columns (DPCopula)",
        repeats=5,
    ),
    "model-fitting": Entry(
        module="dpublish.experiments.models",
        title="How good are linear models that were fitted privately (PrivGene)",
        repeats=1,
    ),
    "streams": Entry(
        module="dpublish.experiments.streams",
        title="How far are counts from the truth when a changing table is published for long",
        repeats=5,
    ),
    "personalized": Entry(
        module="dpublish.experiments.personalized",
        title="How much do counts and models gain when each person brings her own epsilon",
        repeats=5,
    ),
}
