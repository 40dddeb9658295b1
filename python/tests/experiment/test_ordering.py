"""The order of repetitions: complete, random, and the same for the same seed."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from latenz.experiment.ordering import interleave


@given(st.lists(st.text(), unique=True, min_size=1, max_size=8), st.integers(1, 6), st.integers(0))
def test_every_repetition_holds_every_item_once(items, repetitions, seed):
    order = interleave(items, repetitions, seed)
    assert order == interleave(items, repetitions, seed)
    assert Counter(order) == Counter((i, r) for i in items for r in range(1, repetitions + 1))
    assert [r for _, r in order] == sorted(r for _, r in order)


def test_every_item_comes_first_equally_often():
    first = Counter(interleave("abc", 1, seed)[0][0] for seed in range(3000))
    # 4 standard deviations of a binomial count (n = 3000, p = 1/3)
    assert all(abs(count - 1000) < 4 * (3000 * 2 / 9) ** 0.5 for count in first.values())


def test_blocks_are_ordered_independently():
    order = interleave("abcd", 50, seed=7)
    blocks = [tuple(i for i, r in order if r == k) for k in range(1, 51)]
    assert len(set(blocks)) > 12  # of 24 orders
    assert any(left != right for left, right in pairwise(blocks))
