"""What can be measured of a release: a list from which the fitting ones are picked.

A further measure is one more entry: a name, a test whether it fits a release and the options
given, and a function that measures.  NOT PRIVATE: all of them look at true rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.errors import InvalidParameter, require_known
from dpublish.evaluation.classification import (
    DIRECT,
    TITLES,
    Basis,
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
    share_finding,
)
from dpublish.evaluation.numbers import answer_finding, bounds_finding, statistics_finding
from dpublish.evaluation.prediction import (
    class_parts,
    number_finding,
    predicts_numbers,
    ridge_score,
)
from dpublish.evaluation.report import EvaluationReport
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, SVM_ROWS, has_sklearn
from dpublish.evaluation.stream_steps import stream_finding
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.evaluation.top_values import top_finding
from dpublish.evaluation.wave_clusters import wave_finding
from dpublish.methods.bounds.released import BoundsRelease
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.personalized.released import PersonalizedAnswer
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.methods.streams.released import StreamRelease
from dpublish.methods.topk.released import TopKRelease
from dpublish.methods.wavecluster.released import WaveClusterRelease


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be measured against what.

    Attributes:
        release: The release.
        against: True rows; to measure classifiers, ones that it has not seen.
        steps: True rows by step, of a stream.
        train: True rows for the classifiers that it is compared with, or None.
        target: The class column; None if the release's own settings name it.
        classifiers: Which classifiers; None for all.
        seed: Decides which synthetic rows are drawn.
    """

    release: Release
    against: pa.Table
    steps: Mapping[str, pa.Table] | None = None
    train: pa.Table | None = None
    target: str | None = None
    classifiers: Sequence[str] | None = None
    seed: int = 0

    @cached_property
    def comparison(self) -> Comparison | None:
        """True rows beside synthetic ones; None of a release that gives no rows."""
        if not gives_rows(self.release):
            return None
        require_columns(self.against, self.release.schema)
        return Comparison.of(self.release, self.against, self.seed)


class Evaluation(NamedTuple):
    """One thing that can be measured, and whether a request is about it."""

    name: str
    fits: Callable[[Request], bool]
    measure: Callable[[Request], Finding]


def evaluate(request: Request) -> EvaluationReport:
    """Measure all that fits the request; refuse one that nothing fits."""
    fitting = [evaluation for evaluation in EVALUATIONS if evaluation.fits(request)]
    if not fitting:
        raise InvalidParameter(
            f"nothing can be measured of a release of kind {request.release.kind!r} with these "
            "options; to measure classification, name the class column with --target"
        )
    return EvaluationReport(tuple(evaluation.measure(request) for evaluation in fitting))


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
    release = request.release
    if predicts_numbers(release) or (request.target or target_of(release)) is None:
        return False
    trains = gives_rows(release) and (request.classifiers is not None or has_sklearn())
    return classifies(release) or trains


def _is_regression(request: Request) -> bool:
    return predicts_numbers(request.release)


def _measure_regression(request: Request) -> Finding:
    target = request.target or target_of(request.release) or ""
    require_known("column", target, request.release.schema.names)
    return number_finding(request.release, request.against, target, request.seed)


def _measure_classification(request: Request) -> Finding:
    release = request.release
    target = request.target or target_of(release) or ""
    everything = (DIRECT, *CLASSIFIERS) if has_sklearn() else (DIRECT,)
    wanted = everything if request.classifiers is None else tuple(request.classifiers)
    held_out = HeldOut.of(request.against, release.schema, target)
    found = evaluate_release(
        release, held_out, target=target, classifiers=wanted, seed=request.seed, limited=True
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
        limited=True,
    )
    found.append(ridge_score(held_out, release, target, request.seed))
    return Finding(
        name="classification",
        title=f"Misclassification of {target}: the part of {len(held_out.classes):,} rows "
        "whose class is predicted wrongly",
        headers=["classifier", "from the release", "AUC", "from true rows", "AUC of true rows"],
        rows=_table(found),
        notes=_notes(found, has_train=request.train is not None),
        figures={
            "target": target,
            "rows": len(held_out.classes),
            "scores": [vars(score) for score in found],
        },
        parts=class_parts(found, target),
    )


def _table(scores: Sequence[Score]) -> list[list[str]]:
    scored = {(s.classifier, s.basis): s for s in scores}
    names = dict.fromkeys(score.classifier for score in scores)
    bases: tuple[Basis, ...] = ("release", "true rows")
    return [
        [TITLES[name], *(text for basis in bases for text in _figures(scored.get((name, basis))))]
        for name in names
    ]


def _figures(score: Score | None) -> tuple[str, str]:
    if score is None:
        return "", ""
    return f"{score.misclassification:.4f}", "" if score.auc is None else f"{score.auc:.4f}"


def _notes(scores: Sequence[Score], *, has_train: bool) -> list[str]:
    notes = [
        "AUC is the probability that of two rows of different classes the right one scores higher; "
        "of several classes, the mean over each against the rest",
        "ridge regression is trained on one half of the rows and measured on the other",
    ]
    if not has_train:
        notes.append("with --train FILE the same classifiers are trained on true rows, to compare")
    if any(score.classifier == "svm" for score in scores):
        notes.append(
            f"the support vector machine is trained and measured on at most {SVM_ROWS:,} rows"
        )
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


def _of_kind(
    kind: type[Release], tell: Callable[[Any, pa.Table, int], Finding]
) -> tuple[Callable[[Request], bool], Callable[[Request], Finding]]:
    """Measure releases of one kind."""

    def fits(request: Request) -> bool:
        return isinstance(request.release, kind)

    def measure(request: Request) -> Finding:
        return tell(request.release, request.against, request.seed)

    return fits, measure


def _is_stream(request: Request) -> bool:
    return isinstance(request.release, StreamRelease)


def _measure_stream(request: Request) -> Finding:
    if not isinstance(request.release, StreamRelease):
        raise InvalidParameter("the release is no stream")
    last = request.release.times[-1:]
    steps = dict.fromkeys(last, request.against) if request.steps is None else request.steps
    return stream_finding(request.release, steps, request.seed)


EVALUATIONS = (
    Evaluation("clusters", *_of_kind(KMeansRelease, cluster_finding)),
    Evaluation("wave-clusters", *_of_kind(WaveClusterRelease, wave_finding)),
    Evaluation("top-k", *_of_kind(TopKRelease, top_finding)),
    Evaluation("statistics", *_of_kind(StatisticsRelease, statistics_finding)),
    Evaluation("bounds", *_of_kind(BoundsRelease, bounds_finding)),
    Evaluation("answer", *_of_kind(PersonalizedAnswer, answer_finding)),
    Evaluation("stream", _is_stream, _measure_stream),
    Evaluation("marginals", *_of_rows(marginal_finding)),
    Evaluation("association", *_of_rows(association_finding, at_least=2)),
    Evaluation("queries", *_of_rows(query_finding)),
    Evaluation("shares", *_of_rows(share_finding)),
    Evaluation("regression", _is_regression, _measure_regression),
    Evaluation("classification", _is_classification, _measure_classification),
)
