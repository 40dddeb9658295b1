"""The self-test generator, simulated."""

from pathlib import Path

from verification.passing import passes


def test_generator_makes_the_delays_it_is_told(tmp_path: Path) -> None:
    passes("self_test", {}, tmp_path, cases=3)
