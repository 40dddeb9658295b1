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
from latenz.analysis.learn import HoldOut, Learned, LearnedSource, Step, learn
from latenz.analysis.simulate import (
    Irqs,
    Segments,
    SimulatedSource,
    Simulation,
    Simulator,
)
from latenz.analysis.simulators import simulate

__all__ = [
    "Bounds",
    "Check",
    "CheckedSource",
    "HoldOut",
    "Irqs",
    "Learned",
    "LearnedSource",
    "PartitionPromise",
    "Printed",
    "Segments",
    "Share",
    "SimulatedSource",
    "Simulation",
    "Simulator",
    "SourceBound",
    "Step",
    "bound",
    "check",
    "learn",
    "printed_equations",
    "simulate",
]
