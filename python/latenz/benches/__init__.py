"""Benches: where a condition runs. A further bench is a further module and one line here."""

from latenz.benches.base import Bench
from latenz.benches.host import Host
from latenz.benches.simulation import Simulation

BENCHES: dict[str, type[Bench]] = {bench.name: bench for bench in (Host, Simulation)}
"""Every bench by its name."""

__all__ = ["BENCHES", "Bench"]
