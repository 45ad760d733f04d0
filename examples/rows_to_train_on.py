"""Publish rows to train a classifier on, and see what they are worth."""

import tomllib

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.loans import SCHEMA, loans

schema = from_dict(tomllib.loads(SCHEMA))
table = dpublish.open_table(loans(20_000), schema)

method = dpublish.PrivPfC(target="repaid")
release = method.release(table, budget=dpublish.Budget.seeded("0.5"), rng=dpublish.secure())
for what, words in release.summary().items():
    print(f"{what:>10}: {words}")

# What an analyst has: synthetic rows, and the release's own predictions.
for row in release.rows(3).to_pylist():
    print("synthetic:", row)

unseen = loans(5_000, seed=99)
predicted = release.predict(unseen).to_pylist()
truth = unseen["repaid"].to_pylist()
wrong = sum(a != b for a, b in zip(predicted, truth, strict=True))
most_frequent = max(set(truth), key=truth.count)
print(f"wrong for {wrong / 50:.1f} % of 5,000 people that it has not seen")
print(f"always saying {most_frequent!r}: wrong for {100 - truth.count(most_frequent) / 50:.1f} %")
