"""Systems of partitions and interrupt sources: their model, their files, recorded arrivals."""

from latenz.system.arrivals import (
    Arrival,
    Distances,
    Exponential,
    Monitor,
    Periodic,
    RecordedTrace,
)
from latenz.system.channels import Channel
from latenz.system.contents import LatencyFrom, Mode, Platform, Slot, Source
from latenz.system.hosting import Device, Learning, Partition, SharedMemory
from latenz.system.model import System
from latenz.system.schema import read_system
from latenz.system.trace import read_arrivals
from latenz.system.writer import write_system

__all__ = [
    "Arrival",
    "Channel",
    "Device",
    "Distances",
    "Exponential",
    "LatencyFrom",
    "Learning",
    "Mode",
    "Monitor",
    "Partition",
    "Periodic",
    "Platform",
    "RecordedTrace",
    "SharedMemory",
    "Slot",
    "Source",
    "System",
    "read_arrivals",
    "read_system",
    "write_system",
]
