"""The path of an interrupt: where the instructions of its latency went.

The latency of one interrupt is cut into segments by what the executed instructions belong to, and
summed up by the terms of Eq. (1) of Alonso et al., Electronics 2024, 13, 1626:
t = t_irq + t_hyp + t_os + t_user. It holds for emulated boards, whose time is the number of
executed instructions (1 ns each): the instructions of a path are exactly its latency, to within one
tick of the timer that measured it. The emulator takes no time to raise and to take an interrupt, so
t_irq is 0 here, which it is on no silicon.
"""

from collections.abc import Sequence
from pathlib import Path

from latenz.errors import BadInput
from latenz.path.cutting import paths
from latenz.path.model import PathFile
from latenz.path.recording import read_recording
from latenz.path.software import Software
from latenz.path.symbols import SymbolTable
from latenz.programs import escaped, plugin_arguments

_RECORDING = "path.txt"


class Recorder:
    """Records paths while an emulator runs.

    Give `arguments` to the emulator; when it has ended, `read` what was recorded.

    Args:
        folder: Takes the recording.
        handlers: Addresses of the functions that handle the measured interrupt; the first counter
            or device that one reads is its first action, where the path ends.
        captures: How many interrupts are recorded at most.
        skip: How many entries into handlers go before the first measured one.
    """

    def __init__(self, folder: Path, handlers: Sequence[int], captures: int, skip: int = 0) -> None:
        if not handlers or captures < 1 or skip < 0:
            raise ValueError("handlers and captures are needed")
        self._recording = folder / _RECORDING
        self._handlers = tuple(handlers)
        self._captures = captures
        self._skip = skip

    def arguments(self) -> tuple[str, ...]:
        """Return what makes QEMU record.

        Raises:
            BadInput: The recorder is not installed.
        """
        return plugin_arguments(
            "latenz-path-recorder",
            *(f"handler={address:#x}" for address in self._handlers),
            f"captures={self._captures}",
            f"skip={self._skip}",
            f"output={escaped(self._recording)}",
        )

    def read(
        self,
        software: Software,
        latencies_ns: Sequence[int] | None = None,
        tick_ns: float = 1.0,
        keep: bool = False,
    ) -> PathFile:
        """Return the different paths of the recorded interrupts.

        Args:
            software: What the instructions belong to.
            latencies_ns: Measured latency of each interrupt, in the order of recording; they decide
                where a path begins that could begin in several places.
            tick_ns: Tick of the timer that measured them; a latency v stands for [v, v + tick).
            keep: Leave the recording in the folder.

        Raises:
            BadInput: There is no recording, or it is damaged or empty.
        """
        captures = read_recording(self._recording).captures
        if not captures:
            raise BadInput(
                "holds no interrupt", str(self._recording), "see whether the handler ever ran"
            )
        found = paths(captures, software, latencies_ns, tick_ns)
        if not keep:
            self._recording.unlink(missing_ok=True)
        return PathFile(tick_ns=tick_ns, paths=tuple(found))


def handlers(symbols: SymbolTable, ending: str = "::on_interrupt()") -> tuple[int, ...]:
    """Return where the functions begin whose names end so; by default the firmware's handlers.

    Raises:
        BadInput: There is none.
    """
    found = tuple(symbol.address for symbol in symbols if symbol.name.endswith(ending))
    if not found:
        raise BadInput(f"there is no function {ending!r}", "the firmware", "build it again")
    return found
