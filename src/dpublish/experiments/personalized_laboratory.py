"""Where the trials of the comparison of personal methods are run, one at a time."""

from functools import lru_cache
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.evaluation.classification import HeldOut
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.experiments.classification_laboratory import FOLDS, Laboratory
from dpublish.experiments.experiment import Trial
from dpublish.experiments.models_laboratory import class_scores
from dpublish.experiments.models_reference import fit_plain_model
from dpublish.experiments.personalized_crowd import PREFERENCE, Crowd, draw_questions
from dpublish.experiments.personalized_parts import (
    ASKED,
    CURVE,
    ERROR,
    LEVELS,
    METHODS,
    NOISE_FREE,
    PARTS,
    QUERY,
    QUESTIONS,
    SECONDS,
    WRONG,
)
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.personalized.preferences import Preferences
from dpublish.methods.personalized.released import PersonalizedAnswer, PersonalizedRelease
from dpublish.randomness import RandomSource, plain_generator
from dpublish.types import FloatArray

_ASKED = Schema((column(ASKED, "category", values=["yes", "no"]),))


class Asked(NamedTuple):
    """People with levels, a table of who satisfies each question, and how many do."""

    crowd: Crowd
    tables: list[Table]
    truths: list[int]


class PersonalLaboratory(Laboratory):
    """Publishes from people with levels of their own, and compares with the truth."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__(folder)
        self._ask = lru_cache(maxsize=1)(self._ask_uncached)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Answer questions, or fit a model; give the errors and the seconds of a release."""
        model = PARTS[str(trial.setting["part"])].model
        return self._count(trial) if model is None else self._fit(trial, model)

    def _count(self, trial: Trial) -> dict[str, float]:
        given = trial.setting
        asked = self._ask(
            str(given["dataset"]),
            str(given["preferences"]),
            int(given.get("levels", LEVELS)),
            int(given.get("rows", 0)),
            trial.seed,
        )
        crowd = asked.crowd
        inner = make_method("histogram", {"columns": (ASKED,)})
        method = METHODS[trial.method].make(crowd, inner, given, fits_model=False)
        rng = trial.rng()
        begin = perf_counter()
        answers = [_answer(method, table, rng) for table in asked.tables]
        seconds = (perf_counter() - begin) / len(answers)
        errors = [abs(a - truth) for a, truth in zip(answers, asked.truths, strict=True)]
        return {ERROR: fmean(errors) / len(crowd.numbers), SECONDS: round(seconds, 3)}

    def _fit(self, trial: Trial, model: str) -> dict[str, float]:
        given = trial.setting
        split = self._split(str(given["dataset"]), trial.seed % FOLDS, 0)
        begin = perf_counter()
        if trial.method == NOISE_FREE:
            plain = fit_plain_model(split.train, split.schema, split.target, model)
            seconds = perf_counter() - begin
            return _scored(plain.scores(split.held_out.rows), split.held_out, seconds)
        crowd = Crowd.draw(str(given["preferences"]), LEVELS, split.train.num_rows, trial.seed)
        inner = make_method(str(given["inner"]), {"target": split.target, "model": model})
        method = METHODS[trial.method].make(crowd, inner, given, fits_model=True)
        table = open_table(crowd.join(split.train), method.prepare(split.schema))
        release = _publish(method, table, trial.rng())
        seconds = perf_counter() - begin
        scores = class_scores(release.model, split.held_out.rows, split.target)
        return _scored(scores, split.held_out, seconds)

    def _ask_uncached(
        self, dataset: str, preferences: str, levels: int, limit: int, seed: int
    ) -> Asked:
        schema, rows, _ = self._load(dataset)
        if limit:
            order = plain_generator(seed).permutation(rows.num_rows)
            rows = rows.take(pa.array(order[:limit]))
        crowd = Crowd.draw(preferences, levels, rows.num_rows, seed)
        grid = Preferences(column=PREFERENCE, levels=crowd.levels)
        tables, truths = [], []
        for satisfied in draw_questions(rows, schema, QUESTIONS, seed):
            listed = crowd.join(pa.table({ASKED: np.where(satisfied, "yes", "no")}))
            tables.append(open_table(listed, grid.schema(_ASKED)))
            truths.append(int(satisfied.sum()))
        return Asked(crowd, tables, truths)


def _answer(method: PersonalSettings, table: Table, rng: RandomSource) -> float:
    release = method.release(table, budget=method.budget(method.levels[-1]), rng=rng)
    return release.value if isinstance(release, PersonalizedAnswer) else release.count(QUERY).value


def _publish(method: PersonalSettings, table: Table, rng: RandomSource) -> PersonalizedRelease:
    release = method.release(table, budget=method.budget(method.levels[-1]), rng=rng)
    if not isinstance(release, PersonalizedRelease):
        raise TypeError(f"{method.name} fits no model")
    return release


def _scored(scores: FloatArray, held_out: HeldOut, seconds: float) -> dict[str, float]:
    predicted = np.asarray(scores.argmax(axis=1), dtype=np.int64)
    return {
        WRONG: misclassification(predicted, held_out.classes),
        CURVE: mean_area_under_curve(scores, held_out.classes),
        SECONDS: round(seconds, 3),
    }
