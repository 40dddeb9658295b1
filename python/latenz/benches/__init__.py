"""Benches: where a condition runs. A further bench is a further module and one line here."""

from latenz.benches.base import Bench
from latenz.benches.board import Mps3An536, Virt, Zcu102, Zcu102Board
from latenz.benches.host import Host
from latenz.benches.hypervisor import Hypervisor
from latenz.benches.simulation import Simulation
from latenz.benches.vm import Vm

_ALL: tuple[type[Bench], ...] = (
    *(Host, Simulation, Hypervisor, Vm),
    *(Virt, Zcu102, Mps3An536, Zcu102Board),
)

BENCHES: dict[str, type[Bench]] = {bench.name: bench for bench in _ALL}
"""Every bench by its name."""

__all__ = ["BENCHES", "Bench"]
