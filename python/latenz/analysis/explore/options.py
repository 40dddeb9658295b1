"""Options of `latenz explore`."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from latenz.analysis.explore.evaluate import OBJECTIVES, Objective
from latenz.errors import BadInput, closest
from latenz.importers.source import share
from latenz.system import System


def objectives_of(texts: Sequence[str]) -> tuple[Objective, ...]:
    """Return what --objective asks for.

    Raises:
        BadInput: One is not known, or is named twice.
    """
    found: list[Objective] = []
    for text in texts:
        objective = next((each for each in OBJECTIVES if each == text), None)
        if objective is None:
            raise BadInput(
                f"{text!r} is not an objective", "--objective", closest(text, OBJECTIVES)
            )
        if objective in found:
            raise BadInput(f"{text!r} is named twice", "--objective", "name each once")
        found.append(objective)
    return tuple(found)


def shares_of(texts: Sequence[str], system: System) -> dict[str, Fraction]:
    """Return the share of the cycle that partitions need, from texts such as diagnosis=10%.

    Raises:
        BadInput: A text is not a share, names no partition, or asks for more than there is.
    """
    found: dict[str, Fraction] = {}
    for text in texts:
        name, _, written = text.rpartition("=")
        asked = share(written)
        if not name or asked is None:
            raise BadInput(f"{text!r} is not a share", "--share", "write for example diagnosis=10%")
        if name not in system.partitions:
            raise BadInput(
                f"{name!r} is not a partition", "--share", closest(name, system.partitions)
            )
        if name in found:
            raise BadInput(f"{name!r} has two shares", "--share", "give each partition one")
        found[name] = asked
        has_ns = sum(slot.length_ns for slot in system.slots if slot.partition == name)
        if not 0 < ceil(found[name] * system.cycle_ns) <= has_ns:
            raise BadInput(
                f"{name!r} cannot need {written}",
                "--share",
                f"it has {has_ns / system.cycle_ns:.6g} of the cycle; name at most that",
            )
    return found
