"""A simulated hospital: two years of visits, several of them of one patient.

No patient in it exists.  The table is as hospitals have them: a patient has one visit or fifty,
dates of admission have seasons, costs have a long tail, and some ages, costs and patient numbers
are missing.  `patient_id` is the unit: a release hides all visits of any one patient.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.errors import require_count
from dpublish.randomness import plain_generator
from dpublish.types import BoolArray, FloatArray, IntArray

SCHEMA = """\
# What is publicly known about the table.  Nothing here was taken from its rows.
name = "hospital"
unit = "patient_id"  # all visits of one patient are hidden together

[columns.admitted]
kind = "date"
bounds = ["2023-01-01", "2024-12-31"]
bins = "month"

[columns.stay]  # in days
kind = "integer"
bounds = [0, 29]
bins = 15
branching = 2

[columns.ward]
kind = "category"
values = ["Cardiology", "Emergency", "Geriatrics", "Maternity", "Neurology", "Oncology", \
"Orthopedics", "Pediatrics", "Psychiatry", "Surgery"]

[columns.diagnosis]  # the first three characters of the code, by chapter
kind = "category"
other = "Other"

[columns.diagnosis.taxonomy]
Infectious = ["A09", "A41", "B34", "B99"]
Neoplasms = ["C18", "C34", "C50", "C61"]
Mental = ["F10", "F20", "F32", "F41"]
Nervous = ["G20", "G35", "G40", "G45"]
Circulatory = ["I10", "I21", "I48", "I50"]
Respiratory = ["J06", "J18", "J44", "J45"]
Digestive = ["K35", "K40", "K57", "K80"]
Musculoskeletal = ["M16", "M17", "M51", "M54"]
Pregnancy = ["O42", "O60", "O80", "O82"]
Injuries = ["S06", "S42", "S72", "S82"]

[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 20
branching = 2
missing = "drop"

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.insurance]
kind = "category"
values = ["Public", "Private", "None"]

[columns.cost]  # in dollars
kind = "numeric"
cuts = [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
missing = "drop"

[columns.home_east]  # where the patient lives, in kilometers east of the hospital
kind = "numeric"
bounds = [-40, 40]
bins = 20

[columns.home_north]  # and north of it
kind = "numeric"
bounds = [-40, 40]
bins = 20

[columns.readmitted]  # within 30 days
kind = "category"
values = ["no", "yes"]
"""

FIRST_DAY = np.datetime64("2023-01-01")
DAYS = 731
LEVELS = ("0.5", "1", "2")
"""How much epsilon patients accept, in the column `accepts`; the schema does not name it."""

_WARDS = (
    "Cardiology",
    "Emergency",
    "Geriatrics",
    "Maternity",
    "Neurology",
    "Oncology",
    "Orthopedics",
    "Pediatrics",
    "Psychiatry",
    "Surgery",
)
_MATERNITY = _WARDS.index("Maternity")
# How often people of an age (under 18, 18 to 44, 45 to 69, 70 or older) come to each ward.
_WARDS_BY_AGE = np.array(
    [
        [0.01, 0.28, 0.00, 0.01, 0.03, 0.02, 0.06, 0.50, 0.03, 0.06],
        [0.04, 0.30, 0.00, 0.20, 0.06, 0.04, 0.10, 0.00, 0.11, 0.15],
        [0.19, 0.20, 0.01, 0.00, 0.09, 0.15, 0.14, 0.00, 0.06, 0.16],
        [0.21, 0.17, 0.18, 0.00, 0.09, 0.12, 0.12, 0.00, 0.02, 0.09],
    ]
)
_CODES = (
    ("A09", "A41", "B34", "B99"),
    ("C18", "C34", "C50", "C61"),
    ("F10", "F20", "F32", "F41"),
    ("G20", "G35", "G40", "G45"),
    ("I10", "I21", "I48", "I50"),
    ("J06", "J18", "J44", "J45"),
    ("K35", "K40", "K57", "K80"),
    ("M16", "M17", "M51", "M54"),
    ("O42", "O60", "O80", "O82"),
    ("S06", "S42", "S72", "S82"),
)
_USUAL_CHAPTER = np.array([4, 9, 4, 8, 3, 1, 7, 5, 2, 6])  # of each ward
_WITHIN_CHAPTER = np.array([0.4, 0.3, 0.2, 0.1])
_UNLISTED = "U07"
# By ward: the median stay in days, the median cost of a visit and of a day, in dollars, and the
# log-odds of coming back within 30 days.
_STAYS = np.array([4.0, 0.9, 8.0, 2.5, 4.5, 5.0, 3.5, 2.2, 11.0, 3.2])
_COSTS = np.array([2_600, 450, 900, 1_500, 1_400, 3_800, 3_000, 600, 500, 2_400])
_COSTS_A_DAY = np.array([520, 380, 260, 300, 420, 600, 350, 320, 180, 450])
_RETURNS = np.array([0.5, -0.4, 0.7, -1.8, 0.0, 1.1, -0.9, -0.6, 0.6, -0.5])
# Towns around the hospital: kilometers east and north, how far they extend, how many live there.
_TOWNS = np.array(
    [
        [1.0, 2.0, 3.5, 0.44],
        [-21.0, 13.0, 2.5, 0.20],
        [18.0, -19.0, 3.0, 0.18],
        [22.0, 20.0, 1.5, 0.10],
        [-5.0, -27.0, 12.0, 0.08],  # scattered villages
    ]
)


def hospital(patients: int = 20_000, *, seed: int = 2024) -> pa.Table:
    """Simulate the visits of `patients` patients; the same seed simulates the same visits.

    A patient has 4.5 visits on average.  Besides the columns of the schema there is `accepts`:
    how much epsilon the patient accepts, in all, with a few visits that say otherwise.

    >>> visits = hospital(1_000)
    >>> visits.num_rows
    4815
    >>> visits.select(["ward", "stay"]).slice(0, 2).to_pylist()
    [{'ward': 'Orthopedics', 'stay': 3}, {'ward': 'Psychiatry', 'stay': 67}]
    """
    require_count(patients=patients, at_least=0)
    rng = plain_generator(seed)
    people = _patients(patients, rng)
    visits = _visits(people, rng)
    size = visits.who.size
    differing = rng.random(size) < 0.01  # the form was filled in otherwise once
    accepts = np.where(differing, rng.integers(0, len(LEVELS), size), people.accepts[visits.who])
    names = np.array([f"P{number:06}" for number in people.numbers], dtype=np.str_)
    return pa.table(
        {
            "patient_id": pa.array(names[visits.who], mask=rng.random(size) < 0.004),
            "admitted": FIRST_DAY + visits.day,
            "stay": visits.stay,
            "ward": np.array(_WARDS)[visits.ward],
            "diagnosis": visits.diagnosis,
            "age": pa.array(visits.age, mask=rng.random(size) < 0.03),
            "sex": np.array(("Female", "Male"))[people.sex[visits.who]],
            "insurance": np.array(("Public", "Private", "None"))[people.insurance[visits.who]],
            "cost": pa.array(visits.cost, mask=rng.random(size) < 0.02),
            "home_east": people.home[visits.who, 0],
            "home_north": people.home[visits.who, 1],
            "readmitted": np.where(visits.readmitted, "yes", "no"),
            "accepts": np.array(LEVELS)[accepts],
        }
    )


@dataclass(frozen=True)
class _Patients:
    numbers: IntArray
    age: IntArray
    sex: IntArray
    insurance: IntArray
    home: FloatArray
    usual_ward: IntArray
    accepts: IntArray
    visits: IntArray


def _patients(count: int, rng: np.random.Generator) -> _Patients:
    adult = rng.random(count) < 0.84
    ages = np.where(adult, 18 + 81 * rng.beta(1.5, 1.5, count), 17 * rng.random(count))
    age = ages.astype(np.int64)
    sex = rng.integers(0, 2, count)
    town = rng.choice(len(_TOWNS), size=count, p=_TOWNS[:, 3])
    home = rng.normal(_TOWNS[town, :2], _TOWNS[town, 2:3])
    frailty = rng.gamma(0.75, 1 / 0.75, count) * (0.35 + age / 75)
    return _Patients(
        numbers=rng.permutation(count),
        age=age,
        sex=sex,
        insurance=rng.choice(3, size=count, p=[0.74, 0.2, 0.06]),
        home=np.round(home, 1),
        usual_ward=_ward(age, sex, rng),
        accepts=rng.choice(len(LEVELS), size=count, p=[0.2, 0.5, 0.3]),
        visits=1 + rng.poisson(3.49 * frailty),
    )


@dataclass(frozen=True)
class _Visits:
    who: IntArray
    day: IntArray
    age: IntArray
    ward: IntArray
    diagnosis: NDArray[np.str_]
    stay: IntArray
    cost: FloatArray
    readmitted: BoolArray


def _visits(people: _Patients, rng: np.random.Generator) -> _Visits:
    """Simulate the visits of all patients, in the order of their dates."""
    who = np.repeat(np.arange(people.age.size), people.visits)
    day = np.sort(_days(who.size, rng))
    who = who[rng.permutation(who.size)]
    age = people.age[who] + (day >= 365)  # patients are a year older in the second year
    again = rng.random(who.size) < 0.55
    ward = np.where(again, people.usual_ward[who], _ward(age, people.sex[who], rng))
    chapter = _chapter(ward, rng)
    lengths = rng.lognormal(np.log(_STAYS[ward] * (0.75 + age / 150)), 0.75)
    stay = np.minimum(lengths, 120).astype(np.int64)
    private = np.where(people.insurance[who] == 1, 1.25, 1.0)
    medians = private * (_COSTS[ward] + _COSTS_A_DAY[ward] * stay)
    cost = np.round(rng.lognormal(np.log(medians), 0.55), 2)
    drive = -2.4 + _RETURNS[ward] + 0.022 * (age - 45) + 0.09 * np.minimum(stay, 20)
    drive += 0.9 * (chapter == 1) - 0.4 * (people.insurance[who] == 2)
    readmitted = rng.random(who.size) < 1 / (1 + np.exp(-1.3 * drive))
    diagnosis = _diagnosis(chapter, people.sex[who], rng)
    return _Visits(who, day, age, ward, diagnosis, stay, cost, readmitted)


def _days(count: int, rng: np.random.Generator) -> IntArray:
    """Draw dates of admission: more in winter, fewer on weekends."""
    days = np.arange(DAYS)
    season = 1 + 0.25 * np.cos(2 * np.pi * (days - 15) / 365.25)
    likely = season * np.where(np.is_busday(FIRST_DAY + days), 1.0, 0.55)
    return rng.choice(DAYS, size=count, p=likely / likely.sum())


def _ward(age: IntArray, sex: IntArray, rng: np.random.Generator) -> IntArray:
    likely = _WARDS_BY_AGE[np.digitize(age, [18, 45, 70])]
    likely[:, _MATERNITY] *= sex == 0
    return _draw_each(likely, rng)


def _chapter(ward: IntArray, rng: np.random.Generator) -> IntArray:
    elsewhere = np.array([0, 1, 2, 3, 4, 5, 6, 7, 9])[rng.integers(0, 9, ward.size)]
    return np.where(rng.random(ward.size) < 0.7, _USUAL_CHAPTER[ward], elsewhere)


def _diagnosis(chapter: IntArray, sex: IntArray, rng: np.random.Generator) -> NDArray[np.str_]:
    within = rng.choice(4, size=chapter.size, p=_WITHIN_CHAPTER)
    found = np.array(_CODES)[chapter, within]
    found[(found == "C50") & (sex == 1)] = "C61"
    found[(found == "C61") & (sex == 0)] = "C50"
    found[rng.random(chapter.size) < 0.006] = _UNLISTED  # not in the schema: becomes "Other"
    return found


def _draw_each(weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw an index for every row of weights."""
    sums = np.cumsum(weights, axis=1)
    drawn = rng.random(len(weights)) * sums[:, -1]
    found: IntArray = (drawn[:, None] >= sums).sum(axis=1)
    return found
