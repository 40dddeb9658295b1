"""In which order the repetitions of an experiment are measured."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def interleave(items: Sequence[Item], repetitions: int, seed: int) -> list[tuple[Item, int]]:
    """Return every item once for each repetition, in random order within each repetition.

    A randomised complete block design: whatever drifts while the experiment lasts (temperature,
    other users of the machine) meets all conditions alike, and neighbours are not always the
    same. The same seed gives the same order everywhere.

    Args:
        items: What to repeat.
        repetitions: How often.
        seed: Seed of the order.

    Returns:
        Pairs of an item and its repetition, counted from 1.
    """
    generator = random.Random(seed)  # noqa: S311 - an order, not a secret
    order: list[tuple[Item, int]] = []
    for repetition in range(1, repetitions + 1):
        block = list(items)
        generator.shuffle(block)
        order += [(item, repetition) for item in block]
    return order
