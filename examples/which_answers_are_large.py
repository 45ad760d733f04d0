"""Find out which of many answers are large, and pay only for those that are."""

import numpy as np

import dpublish
from dpublish.mechanisms.sparse_vector.vector import above_threshold

visits = np.array([12, 9, 310, 14, 8, 7, 290, 11, 10, 13, 402, 9])
outcomes = above_threshold(
    visits,
    threshold=150,
    sensitivity=1,
    max_positives=3,
    monotonic=True,
    budget=dpublish.Budget.seeded("1"),
    rng=dpublish.secure(),
)
for day, is_busy in enumerate(outcomes, start=1):
    print(f"day {day:2}: {'busy' if is_busy else 'quiet'}")
print("Twelve queries were compared; the budget paid for the three positive answers.")
