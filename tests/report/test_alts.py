"""Every drawing of a report says in words what a reader would take from it."""

import re

import pytest

from dpublish.auditing.worlds import people
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.privacy.budget import Budget
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.randomness import seeded
from dpublish.report.section import section_of
from method_examples import CASES, SCHEMA
from stream_world import METHOD, arguments, make_ledger, rows
from stream_world import SCHEMA as RIDES

ROWS = 300
LEAST_WORDS = 5
WORD = re.compile(r"[^\W\d_]{2,}")
SAYS_MORE = 2
"""So many words or numbers more than the caption: an alt is no second caption."""


def publish(name, settings):
    method = make_method(name, settings)
    schema = method.prepare(SCHEMA) if hasattr(method, "prepare") else SCHEMA
    budget = method.budget("2") if hasattr(method, "budget") else Budget.seeded("2")
    return method.release(open_table(people(ROWS, 8), schema), budget=budget, rng=seeded(12))


def named(release):
    """List what a drawing may be about: columns, measures, levels, clusters."""
    others = ["level"] if release.receipt.personal else []
    others += ["each cluster"] if hasattr(release, "cluster_sizes") else []
    return (*release.schema.names, *getattr(release, "measures", ()), *others)


def what_is_wrong(figure, names):
    """List what a reader who cannot see a drawing would miss."""
    said = figure.alt.split()
    found = []
    if len(WORD.findall(figure.alt)) < LEAST_WORDS:
        found.append("fewer than five words")
    if not any(name in figure.alt for name in names):
        found.append("names nothing that is drawn")
    if len(set(said) - set(figure.caption.split())) < SAYS_MORE:
        found.append("says no more than the caption")
    if re.search(r"\d\.\d{8,}|\bnan\b|\binf\b|\bNone\b|<", figure.alt):
        found.append("holds what people do not read")
    return found


@pytest.mark.parametrize(
    ("name", "settings"), CASES, ids=[f"{name}-{k}" for k, (name, _) in enumerate(CASES)]
)
def test_every_drawing_of_every_method_is_told_in_words(name, settings):
    release = publish(name, settings)
    figures = section_of(release).figures
    wrong = {
        figure.caption: (figure.alt, what_is_wrong(figure, named(release))) for figure in figures
    }
    assert {caption: each for caption, each in wrong.items() if each[1]} == {}
    assert len({figure.alt for figure in figures}) == len(figures)


@pytest.mark.parametrize("method", [METHOD, PerSnapshot(columns=("zone", "hour"), horizon=4)])
def test_every_drawing_of_a_stream_is_told_in_words(tmp_path, method):
    make_ledger(tmp_path)
    with StreamOperator.start(
        tmp_path / "s.stream", method, RIDES, **arguments(tmp_path)
    ) as operator:
        for number in range(1, 4):
            operator.next(rows(number), f"2024-01-0{number}", allow_new_labels=True)
    figures = section_of(load_stream(tmp_path / "out")).figures
    names = (*RIDES.names, "Budget", "Change", "count of all bins")
    assert len(figures) >= 5
    for figure in figures:
        assert what_is_wrong(figure, names) == [], figure
    assert len({figure.alt for figure in figures}) == len(figures)


def test_the_examples_draw_something():
    drawn = {name for name, settings in CASES[::9] if section_of(publish(name, settings)).figures}
    assert len(drawn) >= 6
