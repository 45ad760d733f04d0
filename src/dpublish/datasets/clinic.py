"""A table as a clinic's program exports it: 24 columns of text that no one has described.

No patient in it exists.  It has what such tables have: numbers of patients and of visits, names,
addresses, dates written `31.12.2024`, codes, free text, money, and values that are missing.  Two
public lists belong to it, of wards and of diagnoses.  `dpublish init` is tried on it.
"""

import csv
import io
import tomllib
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.datasets.hospital import SCHEMA, hospital
from dpublish.randomness import plain_generator
from dpublish.storage.files import write_text

_FIRST = ("Ada", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ines", "Jonas")
_LAST = ("Abel", "Brook", "Costa", "Dorn", "Evans", "Fischer", "Garcia", "Holm", "Ito", "Jensen")
_BLOOD = ("O+", "A+", "B+", "O-", "A-", "AB+", "B-", "AB-")
_BLOOD_SHARES = (0.38, 0.34, 0.09, 0.07, 0.06, 0.03, 0.02, 0.01)
_MARITAL = ("Single", "Married", "Divorced", "Widowed")
_COUNTRIES = ("DE", "FR", "PL", "TR", "US")
_COUNTRY_SHARES = (0.8, 0.06, 0.06, 0.06, 0.02)
_NOTES = ("came with a relative", "asked for a second opinion", "allergic to penicillin", "")
Texts = NDArray[np.str_]


def clinic(patients: int = 2_000, *, seed: int = 2024) -> pa.Table:
    """Simulate the visits of some patients, as a clinic's program exports them.

    >>> visits = clinic(100)
    >>> visits.num_columns, visits["admitted"][0].as_py(), visits["charges"][0].as_py()
    (24, '03.01.2023', '3167.75')
    """
    base = hospital(patients, seed=seed)
    base = base.filter(base["patient_id"].is_valid())
    rng = plain_generator(seed + 1)
    size = base.num_rows
    who = np.array([int(text[1:]) for text in base["patient_id"].to_pylist()], dtype=np.int64)
    ages = np.array([45 if age is None else age for age in base["age"].to_pylist()])
    days = base["admitted"].to_numpy().astype("datetime64[D]")
    stays = base["stay"].to_numpy()
    names = [f"{_FIRST[i % 10]} {_LAST[i // 10 % 10]}" for i in who.tolist()]
    own = _of_patients(patients, rng)
    pressure = rng.normal(115 + 0.3 * ages, 14, size)
    columns = {
        "visit_id": [f"V{number:07}" for number in range(size)],
        "patient_id": base["patient_id"].to_pylist(),
        "patient_name": names,
        "email": [f"{name.replace(' ', '.').lower()}@example.org" for name in names],
        "phone": [f"+49 30 {100_000 + number}" for number in who.tolist()],
        "date_of_birth": _dates(days - 365 * ages - who % 365),
        "age": _texts(base["age"]),
        "sex": [text[0] for text in base["sex"].to_pylist()],
        "blood_group": _holes(own["blood"][who], 0.08, rng),
        "marital_status": own["marital"][who],
        "country": own["country"][who],
        "postcode": own["postcode"][who],
        "ward": base["ward"],
        "diagnosis": base["diagnosis"],
        "admitted": _dates(days),
        "discharged": _holes(_dates(days + stays), 0.03, rng),
        "is_emergency": np.where(rng.random(size) < 0.3, "1", "0"),
        "heart_rate": _holes(_rounded(rng.normal(76, 12, size)), 0.05, rng),
        "systolic_bp": _holes(_rounded(pressure), 0.05, rng),
        "bmi": _holes(np.round(rng.normal(26, 4.5, size), 1).astype(np.str_), 0.1, rng),
        "insurance": base["insurance"],
        "satisfaction": _holes(rng.integers(1, 6, size).astype(np.str_), 0.4, rng),
        "charges": _texts(base["cost"]),
        "notes": np.array(_NOTES)[rng.integers(0, len(_NOTES), size)],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def write_clinic(
    folder: str | PathLike[str] = ".", patients: int = 2_000, *, seed: int = 2024
) -> Path:
    """Write `visits.csv` and the public lists `wards.csv` and `diagnoses.csv` to a folder."""
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    visits = clinic(patients, seed=seed)
    rows = zip(*(column.to_pylist() for column in visits.columns), strict=True)
    write_text(home / "visits.csv", _csv(visits.column_names, rows))
    write_text(home / "wards.csv", _csv(["ward"], ([ward] for ward in _wards())))
    write_text(home / "diagnoses.csv", _csv(["code", "chapter"], _diagnoses()))
    return home / "visits.csv"


def _wards() -> list[str]:
    columns = tomllib.loads(SCHEMA)["columns"]
    return [str(ward) for ward in columns["ward"]["values"]]


def _diagnoses() -> list[list[str]]:
    chapters = tomllib.loads(SCHEMA)["columns"]["diagnosis"]["taxonomy"]
    return [[code, chapter] for chapter, codes in chapters.items() for code in codes]


def _csv(header: Sequence[str], rows: Iterable[Iterable[str | None]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def _of_patients(patients: int, rng: np.random.Generator) -> dict[str, Texts]:
    """Draw what a patient keeps from visit to visit."""
    return {
        "blood": np.array(_BLOOD)[rng.choice(len(_BLOOD), patients, p=_BLOOD_SHARES)],
        "marital": np.array(_MARITAL)[rng.integers(0, len(_MARITAL), patients)],
        "country": np.array(_COUNTRIES)[rng.choice(len(_COUNTRIES), patients, p=_COUNTRY_SHARES)],
        "postcode": (10_000 + rng.integers(0, 4_000, patients)).astype(np.str_),
    }


def _dates(days: NDArray[np.datetime64]) -> list[str]:
    return [f"{text[8:]}.{text[5:7]}.{text[:4]}" for text in days.astype(np.str_).tolist()]


def _rounded(numbers: NDArray[np.float64]) -> Texts:
    return np.round(numbers).astype(np.int64).astype(np.str_)


def _texts(column: pa.ChunkedArray) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _holes(values: Sequence[str] | Texts, share: float, rng: np.random.Generator) -> Texts:
    """Leave some values out."""
    return np.where(rng.random(len(values)) < share, "", np.array(values, dtype=np.str_))
