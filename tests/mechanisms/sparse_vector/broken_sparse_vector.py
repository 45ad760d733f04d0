"""Published sparse vector algorithms that are not private, and the audit that tells.

Algs. 19 to 22 of D. Su, PhD thesis, Purdue, 2016 (Figure 5.7), on integers, with a
sensitivity of 1.  Each looks like the proved one with something left out.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction

from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.randomness import RandomSource
from dpublish.testing import privacy_loss
from mechanisms.sparse_vector.sparse_vector_distribution import (
    Outcome,
    Variant,
    is_over,
    probability,
)

Answers = list[int]
MOST_ROUNDS = 3


def lecture_notes(epsilon: Fraction, max_positives: int) -> Variant:
    """Alg. 19 (Roth 2011): tells the compared value, and so where the noisy threshold is."""
    return Variant(epsilon / 2, epsilon / (2 * max_positives), max_positives, publishes=True)


def lee_clifton(epsilon: Fraction, max_positives: int) -> Variant:
    """Alg. 20 (Lee and Clifton 2014): noise on the answers forgets how many may be positive."""
    return Variant(epsilon / 4, 3 * epsilon / 4, max_positives)


def stoddard(epsilon: Fraction) -> Variant:
    """Alg. 21 (Stoddard et al. 2014): no noise on the answers, and no end."""
    return Variant(epsilon / 2, None, None)


def chen(epsilon: Fraction) -> Variant:
    """Alg. 22 (Chen et al. 2015): noise for one positive, and no end."""
    return Variant(epsilon / 2, epsilon / 2, None)


def run(variant: Variant, answers: Answers, rng: RandomSource) -> Outcome:
    """Run the algorithm as it is printed (two-sided noise)."""
    threshold_noise = int(discrete_laplace(variant.threshold_rate, 1, rng)[0])
    outcome: Outcome = ()
    for answer in answers:
        value = answer
        if variant.answer_rate is not None:
            value += int(discrete_laplace(variant.answer_rate, 1, rng)[0])
        told = (value if variant.publishes else True) if value >= threshold_noise else None
        outcome = (*outcome, told)
        if is_over(variant, outcome):
            break
        if told is not None and variant.redraws:
            threshold_noise = int(discrete_laplace(variant.threshold_rate, 1, rng)[0])
    return outcome


def audit(
    distribution: Callable[[Answers], Mapping[Hashable, float]],
    neighbors: Iterable[tuple[Answers, Answers]],
) -> float:
    """Largest privacy loss of an algorithm's exact distribution on the given neighbors."""
    return max(privacy_loss(distribution(here), distribution(there)) for here, there in neighbors)


def telling_outcomes(variant: Variant) -> Callable[[Answers], dict[Outcome, float]]:
    """Distribution of a long stream, kept to the outcomes that gave the broken algorithms away.

    Those are negatives followed by positives, and the same in rounds that end with a positive.
    Leaving outcomes out can only make the audited loss smaller.
    """
    above = 0 if variant.publishes else True

    def distribution(answers: Answers) -> dict[Outcome, float]:
        length = len(answers)
        cap = length if variant.max_positives is None else min(variant.max_positives, length)
        tails = {0, 1, cap, min(cap, length // 2)}
        outcomes = {(None,) * (length - tail) + (above,) * tail for tail in tails}
        outcomes |= {
            ((None,) * (length // rounds - 1) + (above,)) * rounds
            for rounds in range(1, min(cap, MOST_ROUNDS) + 1)
            if length % rounds == 0
        }
        return {outcome: probability(variant, answers, outcome) for outcome in outcomes}

    return distribution


def telling_neighbors(
    variant: Variant, *, monotonic: bool = False, lengths: Iterable[int] = (1, 4, 16, 64)
) -> Iterable[tuple[Answers, Answers]]:
    """Streams of answers that one record changes in the way that hurts most.

    The first answers rise with the threshold (free only if the noisy one is not known); the
    last ones, meant to be found above though far below, fall or, if `monotonic`, stay.
    """
    fall = 0 if monotonic else 1
    for length in lengths:
        positives = length if variant.max_positives is None else variant.max_positives
        for near in (0, 4, 12):
            for far in (1, -12, -36):
                low, high = near + variant.offset, far + variant.offset
                here = [low] * length + [high] * positives
                there = [low + 1] * length + [high - fall] * positives
                yield here, there
                rounds = ([low] * length + [high]) * min(positives, MOST_ROUNDS)
                yield rounds, [a + 1 if a == low else a - fall for a in rounds]
