"""Bounds, simulation and search for systems of partitions and interrupt sources."""

from latenz.analysis.bound import (
    Bounds,
    PartitionPromise,
    Printed,
    Share,
    SourceBound,
    bound,
    printed_equations,
)
from latenz.analysis.check import Check, CheckedSource, check
from latenz.analysis.simulate import (
    Irqs,
    Segments,
    SimulatedSource,
    Simulation,
    Simulator,
    simulate,
)

__all__ = [
    "Bounds",
    "Check",
    "CheckedSource",
    "Irqs",
    "PartitionPromise",
    "Printed",
    "Segments",
    "Share",
    "SimulatedSource",
    "Simulation",
    "Simulator",
    "SourceBound",
    "bound",
    "check",
    "printed_equations",
    "simulate",
]
