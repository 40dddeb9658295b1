"""The interrupts that the hypervisor raises: those of `latenz simulate`, one by one."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latenz.analysis.options import arrivals_of
from latenz.analysis.simulate import Irqs, Times, simulated_irqs
from latenz.analysis.simulators import simulator_of
from latenz.errors import BadInput
from latenz.system import Mode, System

_MOST = 1 << 24
"""What fits into a board's memory by far."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Interrupts of all sources, in the order of their times.

    Attributes:
        time_ns: When each arrives, from the start of the first TDMA cycle of its processor; at
            equal times in the order of the sources.
        source: Number of its source in the system.
        end_ns: When the simulator has served them all, by the costs of the system file.
    """

    time_ns: Times
    source: Times
    end_ns: int

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.time_ns)

    def listed(self, system: System) -> "Arrivals":
        """Return those that no device and no channel raises."""
        others = [at for at in range(len(system.sources)) if system.is_raised_by_guest(at)]
        listed = ~np.isin(self.source, others)
        return Arrivals(self.time_ns[listed], self.source[listed], self.end_ns)

    def by_source(self, system: System, irqs: Irqs, masked: Collection[int] = ()) -> list[Times]:
        """Return when the interrupts of each source came in a run; what guests raise, as stamped.

        Args:
            system: What was run.
            irqs: What the run showed.
            masked: Numbers of sources that exceeded their limits: not all that is listed came.
        """
        return [
            np.sort(irqs.arrival_ns[irqs.source == number])
            if system.is_raised_by_guest(number) or number in masked
            else self.time_ns[self.source == number]
            for number in range(len(system.sources))
        ]


def arrivals(
    system: System, mode: Mode, file: Path | None, irqs: int | None, seed: int
) -> Arrivals:
    """Return the arrivals that `latenz simulate` has with the same file and options.

    Args:
        system: Gives the arrival models.
        mode: How the simulator serves them.
        file: Listed arrivals instead.
        irqs: How many are drawn; None: as many as traces have, or 10000.
        seed: Of what is drawn.

    Raises:
        BadInput: Options contradict each other, the file has a mistake, or there are too many.
    """
    times, most = arrivals_of(system, file, irqs)
    if most is not None and most > _MOST:
        where = "--irqs" if file is None else str(file)
        raise BadInput(f"{most} interrupts are too many", where, f"give at most {_MOST}")
    simulator = simulator_of(system, mode, arrivals=times, irqs=most, seed=seed, watch="irqs")
    batches = list(simulated_irqs(simulator))
    time_ns = np.concatenate([each.arrival_ns for each in batches])
    source = np.concatenate([each.source for each in batches])
    order = np.lexsort((source, time_ns))
    return Arrivals(time_ns[order], source[order], simulator.now_ns)
