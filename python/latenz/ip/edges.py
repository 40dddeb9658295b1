"""Edges of two signals by clock cycle: what a replay drives into a simulated Latencies IP.

The file is CSV with the header `cycle,irq,ack`. A row gives the levels from that cycle on, in
which they are first sampled; cycles rise strictly. Before the first row both are low.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from latenz.errors import BadInput, shown

HEADER = "cycle,irq,ack"
_MOST_CYCLES = 1 << 62


class Edge(NamedTuple):
    """Levels that hold from one clock cycle on.

    Attributes:
        cycle: Clock cycles since the replay began.
        irq: Level of `irq_in`, 0 or 1.
        ack: Level of `ack_in`, 0 or 1.
    """

    cycle: int
    irq: int
    ack: int


def write_edges(path: Path, edges: Iterable[Edge]) -> None:
    """Write a file of edges."""
    with path.open("w", encoding="ascii") as file:
        file.write(HEADER + "\n")
        file.writelines(f"{edge.cycle},{edge.irq},{edge.ack}\n" for edge in edges)


def read_edges(path: Path) -> list[Edge]:
    """Read a file of edges.

    Raises:
        BadInput: The file cannot be read, or a line is not what the format says.
    """
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise BadInput(
            str(reason), str(path), f"give a CSV file with the header {HEADER}"
        ) from None
    if not lines or lines[0] != HEADER:
        found = shown(lines[0]) if lines else "nothing"
        raise BadInput(f"begins with {found}", str(path), f"the first line is {HEADER}")
    edges: list[Edge] = []
    for number, line in enumerate(lines[1:], 2):
        edge = _edge(line)
        if edge is None or (edges and edge.cycle <= edges[-1].cycle):
            remedy = "wanted: a cycle later than the one before, then two levels, each 0 or 1"
            raise BadInput(f"{shown(line)} is not an edge", f"{path}, line {number}", remedy)
        edges.append(edge)
    return edges


def _edge(line: str) -> Edge | None:
    fields = line.split(",")
    if len(fields) != 3 or not all(field.isdecimal() and len(field) < 20 for field in fields):
        return None
    cycle, irq, ack = map(int, fields)
    return Edge(cycle, irq, ack) if cycle < _MOST_CYCLES and irq < 2 and ack < 2 else None
