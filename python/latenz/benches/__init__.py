"""Benches: where a condition runs. A further bench is a further module and one line here."""

from latenz.benches.base import Bench
from latenz.benches.host import Host

BENCHES: dict[str, type[Bench]] = {bench.name: bench for bench in (Host,)}
"""Every bench by its name."""

__all__ = ["BENCHES", "Bench"]
