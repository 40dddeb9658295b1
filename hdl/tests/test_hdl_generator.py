"""The random data generator, simulated: its register's whole period, its words, its timing."""

from pathlib import Path

import pytest

from verification.linear_feedback_register.reference import is_maximal
from verification.passing import passes


@pytest.mark.parametrize("width", [8, 16, 32])
def test_register_follows_the_recurrence(tmp_path: Path, width: int) -> None:
    passes("linear_feedback_register", {"width_g": str(width)}, tmp_path, cases=2)


@pytest.mark.parametrize(
    ("width", "primes"), [(8, (3, 5, 17)), (16, (3, 5, 17, 257)), (32, (3, 5, 17, 257, 65537))]
)
def test_reference_has_maximal_length(width: int, primes: tuple[int, ...]) -> None:
    assert is_maximal(width, primes)


@pytest.mark.parametrize(("words", "depth", "stages"), [(16, 64, 0), (1, 2, 2), (8, 8, 3)])
def test_generator_does_what_its_page_says(
    tmp_path: Path, words: int, depth: int, stages: int
) -> None:
    generics = {"words_g": words, "fifo_depth_g": depth, "synchroniser_stages_g": stages}
    values = {name: str(value) for name, value in generics.items()}
    passes("random_data_generator", values, tmp_path, cases=9)
