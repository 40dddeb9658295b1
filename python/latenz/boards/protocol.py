"""What a bench asks of the labgrid driver that stands for its board."""

from abc import abstractmethod
from pathlib import Path

from labgrid.protocol import PowerProtocol

from latenz.boards.payload import Payload


class PayloadProtocol(PowerProtocol):
    """What a bench asks of whatever it measures on, besides switching it on and off.

    Attributes:
        command: The program that was started, with its arguments; empty for a real board.
    """

    command: list[str]

    @abstractmethod
    def prepare(self, payload: Payload, folder: Path, extra: tuple[str, ...]) -> None:
        """Take what to boot, before the driver is activated.

        Args:
            payload: The images.
            folder: Takes logs.
            extra: Further arguments of the emulator; a real board refuses them.
        """

    @abstractmethod
    def read_all(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """Return what the serial lines have brought, by line; wait a while if that is nothing.

        Raises:
            BadInput: The board is gone.
        """

    def starved_s(self) -> float:
        """Return how long it has waited for a processor that others had: an emulator does."""
        return 0.0

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """Return what, besides the payload, decides what will be measured: tools and versions."""
