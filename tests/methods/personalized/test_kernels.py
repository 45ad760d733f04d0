"""Records by level: counted once each, whatever the cut, and only if asked for."""

import numpy as np
import pytest

from dpublish.data.batch import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.kernels import LevelCounts
from dpublish.randomness import plain_generator

LEVEL_OF = (-1, 0, 2, 2)
ASKED = (("sex", (True, False)), ("age", (False, True, True)), ("age", (True, True, False)))


def records(size=500):
    rng = plain_generator(3)
    sizes = {"own": 4, "sex": 2, "age": 3}
    codes = {name: rng.integers(0, n, size).astype(np.uint8) for name, n in sizes.items()}
    return Batch(size, codes=codes), codes


@pytest.mark.parametrize("rows", [1, 7, 500])
def test_each_record_is_counted_once_however_batches_are_cut(rows):
    batch, codes = records()
    kernel = LevelCounts("own", LEVEL_OF, 3, ASKED)
    whole, other = kernel.zero(), kernel.zero()
    for number, part in enumerate(batch.cut(rows)):
        kernel.add(part, whole if number % 2 else other)
    kernel.merge(whole, other)
    expected = [0, 0, 0]
    for own, sex, age in zip(codes["own"], codes["sex"], codes["age"], strict=True):
        if LEVEL_OF[own] >= 0 and sex == 0 and age == 1:
            expected[LEVEL_OF[own]] += 1
    assert whole.tolist() == expected
    assert sum(expected) > 0


def test_it_reads_each_column_once_and_no_numbers():
    kernel = LevelCounts("own", LEVEL_OF, 3, (("own", (True,) * 4), *ASKED))
    assert kernel.codes == ("own", "sex", "age")
    assert kernel.values == ()


@pytest.mark.parametrize(("level_of", "levels"), [((-2, 0), 1), ((0, 1), 1), ((0,), 0)])
def test_leaves_of_no_such_level_are_refused(level_of, levels):
    with pytest.raises(InvalidParameter):
        LevelCounts("own", level_of, levels)
