"""The source of all noise: fresh words, or a stream that a seed gives away."""

import subprocess
import sys

import numpy as np

from dpublish.randomness import secure, seeded

DRAWN = 20_000


def test_secure_words_are_new_at_every_draw_and_in_every_source():
    one, other = secure(), secure()
    drawn = np.concatenate([one.words(DRAWN), one.words(DRAWN), other.words(DRAWN)])
    assert len(np.unique(drawn)) == 3 * DRAWN


def test_every_bit_of_a_secure_word_is_set_half_of_the_time():
    bits = np.unpackbits(secure().words(DRAWN).view(np.uint8)).reshape(DRAWN, 64)
    deviation = DRAWN**0.5 / 2
    assert np.abs(bits.sum(axis=0) - DRAWN / 2).max() < 8 * deviation


def test_another_process_draws_other_words():
    code = "from dpublish.randomness import secure; print(*secure().words(4))"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = (set(run.stdout.split()) for run in runs)
    assert len(first) == len(second) == 4
    assert not first & second


def test_seeded_words_come_again_with_their_seed_alone():
    assert seeded(1).words(9).tolist() == seeded(1).words(9).tolist()
    assert not set(seeded(1).words(9).tolist()) & set(seeded(2).words(9).tolist())
