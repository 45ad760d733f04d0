"""Threshold: people below it lose nothing, the others its share."""

from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.core import run as noisy
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.released import OF_LEVELS
from dpublish.methods.personalized.threshold import NOT_SCALED, SCALED, Threshold
from dpublish.randomness import seeded
from transcript import privacy_loss

LEVELS = (Fraction(1, 10), Fraction(1, 2), Fraction(2))
SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))
INNER = Histogram(columns=("sex",))
OWN = [0.1, 0.5, 2.0, 3.0]


def threshold(at=LEVELS[1], **settings):
    return Threshold(preference="own", levels=LEVELS, inner=INNER, threshold=at, **settings)


def open_own(method, own):
    source = pa.table({"own": pa.array(own, pa.float64()), "sex": ["F"] * len(own)})
    return open_table(source, method.prepare(SCHEMA))


@pytest.mark.parametrize("at", LEVELS)
def test_levels_below_lose_nothing_and_the_others_the_share_of_the_threshold(at, monkeypatch):
    method = threshold(at)
    epsilon = Fraction(1)

    def release_of(own):
        return method.release(open_own(method, own), budget=method.budget(epsilon), rng=seeded(4))

    for level, amount in method.spending(epsilon).items():
        added = [*OWN, float(level)]
        loss = privacy_loss(release_of, OWN, added, [noisy], monkeypatch)
        assert amount == (at / 2 if level >= at else 0)
        assert loss == pytest.approx(float(amount), rel=1e-9)


def test_using_all_people_with_the_threshold_is_caught(monkeypatch):
    """The twin that keeps the people below: they lose more than their share."""
    method = threshold(LEVELS[2])
    everyone = threshold(LEVELS[0])

    def release_of(own):
        monkeypatch.setattr(
            type(method.preferences),
            "group",
            lambda self, table, levels: original(everyone.preferences, table, LEVELS),
        )
        return method.release(
            open_own(method, own), budget=method.budget(Fraction(2)), rng=seeded(4)
        )

    original = type(method.preferences).group
    loss = privacy_loss(release_of, OWN, [*OWN, 0.1], [noisy], monkeypatch)
    assert loss > 10 * float(LEVELS[0])


@pytest.mark.parametrize("settings", [{"sizes": (1000, 500, 500)}, {"mode": "values-only"}])
def test_counts_are_scaled_up_only_on_the_owners_word(settings):
    own = [0.1] * 1000 + [0.5] * 500 + [2.0] * 500
    for word, counted, note in ((False, 1000, NOT_SCALED), (True, 2000, SCALED)):
        method = threshold(exchangeable=word, **settings)
        release = method.release(
            open_own(method, own), budget=method.budget(Fraction(2)), rng=seeded(5)
        )
        assert release.count("sex = F").value == pytest.approx(counted, abs=100)
        assert note in release.notes
        assert (OF_LEVELS in (release.count("sex = F").assumption or "")) is not word
        assert release.parts[0].size == 1000


def test_what_cannot_be_scaled_up_is_refused():
    with pytest.raises(InvalidParameter, match="must be public"):
        threshold(exchangeable=True)
    with pytest.raises(InvalidParameter, match="no one is eligible"):
        threshold(LEVELS[2], exchangeable=True, sizes=(5, 5, 0))
    with pytest.raises(InvalidParameter, match="one of the levels"):
        threshold(Fraction(1))


def test_the_forecast_knows_how_many_people_are_used():
    method = threshold(sizes=(100, 50, 50))
    figures = method.expected_error(SCHEMA, 1000, Fraction(2)).figures
    assert figures["records_per_cell"] == 250
