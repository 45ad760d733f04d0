"""Publish from visits of which one patient has many; all visits of any patient are hidden."""

import tempfile
from pathlib import Path

import dpublish
from dpublish import datasets

folder = Path(tempfile.mkdtemp())
visits = datasets.table("hospital", 20_000)  # patients; its schema says unit = "patient_id"

# At most so many visits of each patient are kept, and noise hides all of them.
print("visits kept of each patient: noise of a count, share of the visits in Surgery")
counted = datasets.hospital(20_000)["ward"].to_pylist().count("Surgery")
for contribution in (1, 4, 16):
    method = dpublish.Histogram(columns=("ward",), contribution=contribution)
    release = method.release(visits, budget=dpublish.Budget.seeded("1"), rng=dpublish.secure())
    error = release.expected_error()["one_cell_95"]
    kept = release.count("ward = Surgery").value / counted
    print(f"{contribution:>27}: within {error:>3.0f}, about {kept:.0%}")

with dpublish.Ledger.create(folder / "books.db") as ledger:
    ledger.add("hospital", cap="2")
    months = dpublish.publish(
        dpublish.Histogram(columns=("admitted", "ward"), contribution=4),
        visits,
        folder / "by-month",
        ledger=ledger,
        dataset="hospital",
        epsilon="1",
    )
    print(
        "winter in Cardiology:", months.count("admitted in 2024-01..2024-03 and ward = Cardiology")
    )
    print("guarantee:", months.receipt.guarantee())
    print("left:", ledger.status("hospital").left)
