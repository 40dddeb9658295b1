"""A load that only spins: it keeps the other cores of a board busy and touches nothing."""

from typing import Literal

from latenz.measuring.settings import StressorSettings


class SpinSettings(StressorSettings):
    """The neighbours spin, each in a loop of its own.

    On an emulated board all cores share one thread of the host. What changes in the figures when
    a neighbour merely spins is the emulator's doing; only what a load adds to that is the load's.
    """

    kind: Literal["spin"]
