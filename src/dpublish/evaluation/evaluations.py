"""What can be measured of a release: a list from which the fitting ones are picked.

A further measure is one more entry: a name, a test whether it fits a release and the options
given, and a function that measures.  NOT PRIVATE: all of them look at true rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import (
    DIRECT,
    TITLES,
    HeldOut,
    Score,
    classifies,
    evaluate_release,
    evaluate_true_rows,
    gives_rows,
    require_columns,
)
from dpublish.evaluation.clusters import cluster_finding
from dpublish.evaluation.findings import (
    Finding,
    association_finding,
    marginal_finding,
    query_finding,
)
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, SVM_ROWS
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.methods.kmeans.released import KMeansRelease

STAMP = "NOT PRIVATE: measured on true rows; for the owner's eyes only"


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be measured against what.

    Attributes:
        release: The release.
        against: True rows that it should not have seen.
        train: True rows for the classifiers that it is compared with, or None.
        target: The class column; None if the release's own settings name it.
        classifiers: Which classifiers; None for all.
        seed: Decides which synthetic rows are drawn.
    """

    release: Release
    against: pa.Table
    train: pa.Table | None = None
    target: str | None = None
    classifiers: Sequence[str] | None = None
    seed: int = 0

    @cached_property
    def comparison(self) -> Comparison | None:
        """True rows beside synthetic ones; None of a release that gives no rows."""
        if not gives_rows(self.release) or not getattr(self.release, "gives_rows", True):
            return None
        require_columns(self.against, self.release.schema)
        return Comparison.of(self.release, self.against, self.seed)


class Evaluation(NamedTuple):
    """One thing that can be measured, and whether a request is about it."""

    name: str
    fits: Callable[[Request], bool]
    measure: Callable[[Request], Finding]


def evaluate(request: Request) -> list[Finding]:
    """Measure all that fits the request; refuse one that nothing fits."""
    fitting = [evaluation for evaluation in EVALUATIONS if evaluation.fits(request)]
    if not fitting:
        raise InvalidParameter(
            f"nothing can be measured of a release of kind {request.release.kind!r} with these "
            "options; to measure classification, name the class column with --target"
        )
    return [evaluation.measure(request) for evaluation in fitting]


def target_of(release: Release) -> str | None:
    """Find the class column that a release was made to predict, if it was made for that.

    Of several, the first one.
    """
    settings = release.receipt.settings
    inner = settings.get("inner")
    named = settings.get("target") or (inner.get("target") if isinstance(inner, dict) else None)
    if isinstance(named, list):
        named = named[0]
    return named if isinstance(named, str) and named in release.schema.names else None


def _is_classification(request: Request) -> bool:
    usable = classifies(request.release) or gives_rows(request.release)
    return usable and (request.target or target_of(request.release)) is not None


def _measure_classification(request: Request) -> Finding:
    release = request.release
    target = request.target or target_of(release) or ""
    everything = (DIRECT, *CLASSIFIERS)
    wanted = everything if request.classifiers is None else tuple(request.classifiers)
    held_out = HeldOut.of(request.against, release.schema, target)
    found = evaluate_release(
        release, held_out, target=target, classifiers=wanted, seed=request.seed
    )
    if not found:
        raise InvalidParameter(
            f"a release of kind {release.kind!r} serves none of: {', '.join(wanted)}"
        )
    trained = [score.classifier for score in found]
    # Without rows to train on, only the majority class is compared with: that of these rows.
    found += evaluate_true_rows(
        request.against if request.train is None else request.train,
        held_out,
        schema=release.schema,
        target=target,
        classifiers=trained if request.train is not None else (DIRECT,),
        seed=request.seed,
    )
    return Finding(
        name="classification",
        title=f"Misclassification of {target}: the part of {len(held_out.classes):,} rows "
        "whose class is predicted wrongly",
        headers=["classifier", "from the release", "from true rows"],
        rows=_table(found),
        notes=_notes(found, has_train=request.train is not None),
        figures={
            "target": target,
            "rows": len(held_out.classes),
            "scores": [vars(score) for score in found],
        },
    )


def _table(scores: Sequence[Score]) -> list[list[str]]:
    scored = {(s.classifier, s.basis): f"{s.misclassification:.4f}" for s in scores}
    names = dict.fromkeys(score.classifier for score in scores)
    return [
        [
            TITLES[name],
            scored.get((name, "release"), ""),
            scored.get((name, "true rows"), ""),
        ]
        for name in names
    ]


def _notes(scores: Sequence[Score], *, has_train: bool) -> list[str]:
    notes = []
    if not has_train:
        notes.append("with --train FILE the same classifiers are trained on true rows, to compare")
    if any(score.classifier == "svm" for score in scores):
        notes.append(f"the support vector machine is trained on at most {SVM_ROWS:,} rows")
    return notes


def _of_rows(
    tell: Callable[[Comparison], Finding], at_least: int = 1
) -> tuple[Callable[[Request], bool], Callable[[Request], Finding]]:
    """Measure synthetic rows, of a release that gives some of so many columns at least."""

    def fits(request: Request) -> bool:
        found = request.comparison
        return found is not None and len(found.axes) >= at_least

    def measure(request: Request) -> Finding:
        found = request.comparison
        if found is None:
            raise InvalidParameter("the release gives no rows to measure")
        return tell(found)

    return fits, measure


def _is_clustering(request: Request) -> bool:
    return isinstance(request.release, KMeansRelease)


def _measure_clusters(request: Request) -> Finding:
    if not isinstance(request.release, KMeansRelease):
        raise InvalidParameter("the release has no centers to measure")
    return cluster_finding(request.release, request.against, request.seed)


EVALUATIONS = (
    Evaluation("clusters", _is_clustering, _measure_clusters),
    Evaluation("marginals", *_of_rows(marginal_finding)),
    Evaluation("association", *_of_rows(association_finding, at_least=2)),
    Evaluation("queries", *_of_rows(query_finding)),
    Evaluation("classification", _is_classification, _measure_classification),
)
