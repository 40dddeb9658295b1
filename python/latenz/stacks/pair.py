"""The stack `pair`: a program on the first Cortex-A53 and one on the first Cortex-R5, no Linux.

Both are built from the same source (`firmware/icc`) and talk through the channels of `latenz::icc`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from latenz.engines.intercore import IntercoreSettings, board_obstacle
from latenz.errors import BadInput
from latenz.measuring.settings import StackSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received, Stream
    from latenz.boards.pair_firmware import PairTask
    from latenz.boards.payload import Payload

_WARM_UP = 10
_MOST_SAMPLES = 100_000 - _WARM_UP
_NS = 1_000_000_000
_CORES = ("Cortex-A53", "Cortex-R5")


class PairSettings(StackSettings):
    """Two programs that talk to each other."""

    kind: Literal["pair"]
    tick_us: int = Field(default=1, ge=1, le=1000)
    """Longest turn of all emulated cores together while a load runs, in virtual microseconds."""


@dataclass(frozen=True)
class _Kind:
    """What one stream of the firmware's samples is.

    Attributes:
        name: Of the sample set, behind the condition's.
        halved: The firmware sends round trips.
        begin: What `{first}` does at the beginning.
        end: What is at the end, on `{second}`.
    """

    name: str
    halved: bool
    begin: str
    end: str


_KINDS = {
    0: _Kind("half-round-trip", True, "{first} begins to send", "half of the time to the reply"),
    1: _Kind("one-way", False, "stamp before sending on {first}", "stamp at {second}"),
    2: _Kind("raw", True, "{first} writes a word", "half of the time to the reply"),
}
"""By the number of the stream."""
_RAW = 2


class Pair(Stack[PairSettings]):
    """The same program on both processors, each for its own instruction set."""

    name = "pair"
    settings_type = PairSettings
    benches = ("zcu102", "zcu102-board")
    engines = ("intercore",)
    loads = ("none", "spin", "memory")
    planned_s = 5

    @classmethod
    def obstacle(cls, settings: PairSettings, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return that a real board's real-time core is started by hand."""
        if bench == "zcu102":
            return None
        return Obstacle("nothing here starts its Cortex-R5", "start both as docs/pair.md tells")

    @classmethod
    def engine_obstacle(cls, engine: Any, bench: str) -> Obstacle | None:
        """Return what of the wanted measurement the board cannot do."""
        assert isinstance(engine, IntercoreSettings)  # noqa: S101 - the only one of `engines`
        emulated = bench == "zcu102"
        if engine.samples > _MOST_SAMPLES:
            return Obstacle(f"boards keep {_MOST_SAMPLES} samples", "write samples = 10000")
        if engine.wait == "spin":
            return Obstacle(
                "a core that spins would keep the emulator to itself until its turn ends",
                'write wait = "pause"',
            )
        called = engine.through == "interrupt" or engine.wait == "doorbell"
        if emulated and called and engine.direction == "there":
            return Obstacle("QEMU's Cortex-R5 gets no interrupts", 'write direction = "back"')
        return board_obstacle(engine, emulated)

    def payload(self) -> "Payload":
        """Return both programs with their task."""
        from latenz.boards.pair_firmware import payload

        task = self._task()
        loaded = task.load != "none"
        return payload(task, self.job.folder, self.settings.tick_us if loaded else None)

    def done(self, received: "Received") -> bool:
        """Return whether both programs have said their last word."""
        from latenz.boards.pair_firmware import all_said

        return all_said(received)

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return half round trips, ways there, and round trips of the raw word beside them.

        Raises:
            BadInput: Nothing was measured.
        """
        streams = {number: each for number, each in received.streams.items() if number in _KINDS}
        if received.hello is None or not streams:
            raise BadInput("the firmware sent no samples", str(self.job.folder / "console.log"))
        return [self._sample_set(number, received) for number in sorted(streams)]

    @property
    def _engine(self) -> IntercoreSettings:
        engine = self.job.condition.engine
        assert isinstance(engine, IntercoreSettings)  # noqa: S101 - the only one of `engines`
        return engine

    def _task(self) -> "PairTask":
        from latenz.boards.pair_firmware import PairTask

        engine = self._engine
        return PairTask(
            through=engine.through,  # type: ignore[arg-type] # board_obstacle refuses the peers
            message_bytes=engine.payload_bytes or 1,
            samples=engine.samples,
            warm_up=_WARM_UP,
            memory="ocm" if engine.memory == "shared" else engine.memory,
            direction=engine.direction,
            load=self.job.condition.load.kind,  # type: ignore[arg-type] # one of `loads`
            wait="doorbell" if engine.wait == "doorbell" else "poll",
        )

    def _sample_set(self, number: int, received: "Received") -> SampleSet:
        hello, stream, kind = received.hello or {}, received.streams[number], _KINDS[number]
        first, second = _CORES if self._engine.direction == "there" else _CORES[::-1]
        size = 0 if number == _RAW else self._engine.payload_bytes
        what = "raw" if number == _RAW else self._engine.through
        sent = f"{what}: {size} bytes" if size else f"{what}: a flag"
        hz = int(hello["timer_hz"])
        metadata = self.job.metadata.model_copy(
            update={
                "name": f"{self.job.metadata.name}/{kind.name}",
                "from_event": f"{sent}, {kind.begin.format(first=first)}",
                "to_event": kind.end.format(second=second),
                "tool": "latenz firmware, pair",
                "tool_version": hello.get("version"),
                "machine": f"{first} and {second}",
                "resolution_ns": max(1, -(-_NS // hz)),
                "notes": (*self._notes(kind, hello), *self._lost(stream)),
            }
        )
        parts = 2 if kind.halved else 1
        latency_ns = _nanoseconds(stream.latency_ticks, hz * parts)
        if stream.gaps:  # nobody knows when those after a gap came
            return SampleSet.from_columns(metadata, latency_ns=latency_ns)
        t_ns = _nanoseconds(accumulate(stream.interarrival_ticks), hz)
        return SampleSet.from_columns(metadata, latency_ns=latency_ns, t_ns=t_ns)

    def _lost(self, stream: "Stream") -> Iterable[str]:
        if not stream.complete:
            lost = self._engine.samples - len(stream.latency_ticks)
            yield f"{lost} of {self._engine.samples} samples did not arrive"

    def _notes(self, kind: _Kind, hello: dict[str, Any]) -> Iterable[str]:
        yield _CONTENT
        if not kind.halved:
            doubt_ns = -(-int(hello["clock_doubt_ticks"]) * _NS // int(hello["timer_hz"]))
            yield f"the clocks of both cores are compared to within {doubt_ns} ns"
        if self.job.condition.load.kind != "none":
            yield (
                f"the load's turns lie between, each up to a share of {self.settings.tick_us} us; a"
                " core that only spins adds as much"
            )
        by_interrupt = self._engine.through == "interrupt" and kind.name == "one-way"
        if by_interrupt or (self._engine.wait == "doorbell" and kind.name != "raw"):
            yield _DOORBELL


_CONTENT = (
    "what both cores execute one after the other, at 1 ns; memory and interconnect take no time"
)
_DOORBELL = (
    "QEMU's inter-processor interrupts reach nobody: the Cortex-R5 sets it pending at the"
    " Cortex-A53's interrupt controller"
)


def _nanoseconds(ticks: Iterable[int], hz: int) -> list[int]:
    """Return ticks as whole nanoseconds, to the nearest; halves up."""
    return [(each * _NS + hz // 2) // hz for each in ticks]
