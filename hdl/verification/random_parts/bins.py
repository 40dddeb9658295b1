"""Which situations a random test has really been in: named bins, counted, reported, and gated."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

FILE = "LATENZ_BINS"  # environment: where a simulation leaves its hits


class Bins:
    """The bins of one design; all that no test reaches are told.

    Args:
        names: All of them. One that is hit and not among these is a mistake of the test.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._hits = Counter(dict.fromkeys(names, 0))

    def hit(self, name: str, happened: bool = True) -> None:
        """Count one hit, if it happened."""
        if name not in self._hits:
            raise KeyError(name)
        self._hits[name] += happened

    def save(self) -> None:
        """Write the hits where the environment says."""
        if FILE in os.environ:
            Path(os.environ[FILE]).write_text(json.dumps(self._hits))


def merged(files: Iterable[Path]) -> Counter[str]:
    """The hits of several simulations of one design."""
    total: Counter[str] = Counter()
    for file in files:
        total.update(json.loads(file.read_text()))
    return total


def missed(hits: Mapping[str, int]) -> list[str]:
    """The bins that nothing reached."""
    return [name for name, count in hits.items() if not count]


def table(design: str, hits: Mapping[str, int]) -> str:
    """The rows of a design in the report."""
    return "".join(f"| {design} | {name} | {count} |\n" for name, count in hits.items())
