"""Publish a whole table as synthetic rows for any use, and see how good they are."""

import dpublish
from dpublish import datasets

people = datasets.table("census", 20_000)
release = dpublish.Synth(target=("income",)).release(
    people, budget=dpublish.Budget.seeded("1"), rng=dpublish.secure()
)
for what, words in release.summary().items():
    print(f"{what:>10}: {words}")

# The distance from the truth was measured when the rows were published, and is part of them.
print("mean distance of pairs of columns:", release.mean_distance())

# What an analyst has: as many rows as they like, of all people or of some.
for row in release.rows(3).to_pylist():
    print("synthetic:", row)
for row in release.rows(2, where="sex = Female and age in 61..70").to_pylist():
    print("some only:", row)

# Counts come with an interval, and say what it rests on.
for query in (
    "income = '>50K'",
    "education = Master and income = '>50K'",
    "age >= 61 and hours < 5",
):
    answer = release.count(query)
    print(f"{query}: {answer}")
