"""The shipped facts: well formed, each name claimed once, and names that tables have."""

from collections import Counter
from datetime import date

import pytest

from dpublish.data.column import require_distinct
from dpublish.data.draft import draft_schema
from dpublish.data.proposals import propose
from dpublish.data.public_facts.column_names import words_of
from dpublish.data.public_facts.facts import find_fact, load_facts
from dpublish.data.schema import column
from dpublish.data.schema_file import parse_schema

FACTS = load_facts()
FOUND = {
    "age": "age",
    "patient_age": "age",
    "AgeAtAdmission": "age",
    "age_years": "age",
    "Âge": "age",
    "alter": "age",
    "edad": "age",
    "age_group": "age-group",
    "sex": "sex",
    "Geschlecht": "sex",
    "sexe": "sex",
    "sex_code": "sex",
    "sex_1": "sex",
    "bloodType": "blood-group",
    "month": "month",
    "dayOfWeek": "weekday",
    "hour_of_day": "hour",
    "body_fat_pct": "percentage",
    "country_of_birth": "country",
    "country code": "country",
    "currency": "currency",
    "state": "us-state",
    "icd_chapter": "icd-chapter",
    "icd10": "medical-code",
    "zip": "area-code",
    "lat": "latitude",
    "heart-rate": "heart-rate",
    "weight_kg": "weight",
    "weight_lbs": "weight-in-pounds",
    "height_m": "height-in-meters",
    "dateOfBirth": "date-of-birth",
    "patient_birthdate": "date-of-birth",
    "admitted": "date",
    "created_at": "timestamp",
    "annual income": "money",
    "total_eur": "money",
    "order_no": "basket-id",
    "is_smoker": "flag",
    "has_email": "flag",
    "email": "direct-identifier",
    "name": "direct-identifier",
    "patientid": "person-id",
    "household_id": "household-id",
    "visit_id": "row-id",
    "uuid": "row-id",
    "clinical_notes": "free-text",
}
UNKNOWN = ("ward", "color", "ward_name", "status", "order_state", "price_index", "", "日本", "%")


@pytest.mark.parametrize(("name", "fact"), FOUND.items())
def test_a_name_finds_its_fact(name, fact):
    assert find_fact(name).name == fact


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_says_nothing_finds_none(name):
    assert find_fact(name) is None


def test_there_are_many_facts_and_each_has_one_name():
    assert len(FACTS) > 60
    assert max(Counter(fact.name for fact in FACTS).values()) == 1


def test_no_two_facts_claim_the_same_name():
    claims = Counter("".join(words_of(n)) for f in FACTS for n in (*f.columns, *f.whole))
    assert [name for name, times in claims.items() if times > 1] == []
    firsts = Counter(word for fact in FACTS for word in fact.first)
    assert set(firsts.values()) == {1}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_fact_finds_itself_by_all_its_names(fact):
    for name in (*fact.columns, *fact.whole):
        assert find_fact(name).name == fact.name
    assert words_of(fact.why)
    assert "\n" not in fact.why


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_fact_is_well_formed(fact):
    if fact.role != "publish":
        assert fact.kind is fact.bounds is None
        assert not fact.lists
        return
    knows = [fact.bounds is not None, bool(fact.lists), bool(fact.ask)]
    assert sum(knows) == 1
    assert fact.kind is not None
    low, high = fact.settled_bounds(date(2026, 1, 1)) or (0, 1)
    assert low < high
    assert len({each.name for each in fact.lists}) == len(fact.lists)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_what_a_fact_proposes_makes_a_column(fact):
    for name in (*fact.columns, *fact.whole)[:1]:
        proposal = propose(name, today=date(2026, 1, 1))
        if proposal.is_complete:
            made = column(name, proposal.kind, **proposal.settings)
            assert 2 <= made.size <= 400


@pytest.mark.parametrize(
    ("fact", "listed"),
    [(fact, listed) for fact in FACTS for listed in fact.lists],
    ids=lambda item: item.name,
)
def test_values_and_codes_are_unique_and_make_a_column(fact, listed):
    require_distinct(tuple(map(str, listed.values)))
    codes = None if listed.codes is None else [*listed.codes]
    made = column("x", fact.kind, values=[*listed.values], codes=codes, other="other")
    assert made.size == len(listed.values) + 1


def test_the_standards_have_as_many_codes_as_they_should():
    lists = {(f.name, each.name): each for f in FACTS for each in f.lists}
    assert len(lists["country", "countries"].values) == 249
    assert len(lists["us-state", "states"].values) == 51
    assert len(lists["icd-chapter", "roman"].values) == 22
    assert len(lists["blood-group", "abo-rh"].values) == 8
    two, three = lists["country", "countries"], lists["country", "alpha3"]
    assert two.values == three.values
    by_name = dict(zip(two.values, zip(two.codes, three.codes, strict=True), strict=True))
    assert by_name["Germany"] == ("DE", "DEU")
    assert by_name["Switzerland"] == ("CH", "CHE")
    assert by_name["United Kingdom"] == ("GB", "GBR")
    assert by_name["South Korea"] == ("KR", "KOR")
    assert {"EUR", "USD", "JPY", "CHF"} <= set(lists["currency", "letters"].values)


def test_a_draft_of_facts_alone_loads(tmp_path):
    names = [each for each in FOUND if propose(each).is_complete]
    schema = parse_schema(draft_schema([(name, None) for name in names]), tmp_path)
    assert schema.names == tuple(names)
    assert len(names) > 20
