"""Opens a trace: trace.dat, perf.data, CTF, text of ftrace, trace-cmd or perf script, or a table.

Reading is the work of the program `latenz-trace`, in a process of its own: whatever a damaged file
does to it, what it had told is kept.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.errors import BadInput
from latenz.kinds import other_use_of
from latenz.programs import probe_program
from latenz.traces.model import (
    Candidate,
    Event,
    Exits,
    Loss,
    Lost,
    RecordedGuest,
    Session,
    Summary,
    VirtualCpu,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

START_BYTES = 65536
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}|[0-9a-f]{16}")
_LATENCY_FORMAT = (
    "this is ftrace's latency format: record events with the tracer nop instead, and stacks by "
    "echo 'stacktrace if prio < 100 && common_pid != 0' > events/sched/sched_waking/trigger"
)
REMEDY = (
    "give a trace.dat, a perf.data, a folder of CTF, the text of tracefs' file trace, of trace-cmd "
    "report, of perf script or of perf kvm stat report"
)


class RecordedTrace:
    """Events as they were recorded, read from the file again for each new question.

    Args:
        path: The file.
        clock: By which clock times are told: empty, that of the file; `host`, that of the host of
            this guest, as the file says; `MULTIPLIER:SHIFT:OFFSET`, another one, which is
            (time * MULTIPLIER >> SHIFT) + OFFSET.
        file: What is read in place of `path`, which is what messages name.
    """

    def __init__(self, path: Path, clock: str = "", file: Path | None = None) -> None:
        self.path = path
        self._file = (file or path).absolute()
        self._clock = ["--clock", clock] if clock else []
        self._told: tuple[int, Summary] | None = None

    def by_clock(self, clock: str) -> "RecordedTrace":
        """Return the same events with times of another clock."""
        other = copy(self)
        other._clock = ["--clock", clock] if clock else []
        other._told = None
        return other

    def summary(self, worst: int = 10) -> Summary:
        """Read the whole trace once; more than `worst` candidates of a kind may be there.

        Raises:
            BadInput: No event of it can be read, or its times have no unit.
        """
        if self._told and self._told[0] >= worst:
            return self._told[1]
        self._told = worst, self._read(worst)
        return self._told[1]

    def _read(self, worst: int) -> Summary:
        done = subprocess.run(
            self._command("summary", str(worst)), capture_output=True, check=False
        )
        if done.returncode != 0:
            raise self._refusal(done.returncode, done.stderr)
        told = json.loads(done.stdout)
        if told["format"] != "trace.dat" and told["events"] == 0:
            where = told["truncated_at"] or "it is empty"
            remedy = self._of_latency_tracer() or other_use_of(self.path) or REMEDY
            raise BadInput(f"no event can be read ({where})", str(self.path), remedy)
        return _summary(told)

    def _of_latency_tracer(self) -> str | None:
        """Return what to do with the text that irqsoff, wakeup_rt and their like make."""
        if not self.path.is_file():
            return None
        with self.path.open("rb") as file:
            is_one = b" latency trace v" in file.read(START_BYTES)
        return _LATENCY_FORMAT if is_one else None

    def _command(self, mode: str, *arguments: str) -> list[str]:
        program = str(probe_program("latenz-trace"))
        return [program, *self._clock, mode, str(self._file), *arguments]

    def times(self, names: Sequence[str], most: int) -> "IntArray":
        """Return when events of some names were: rows of time (ns), CPU, thread, place of the name.

        Args:
            names: Of which events; none: of all.
            most: Only so many, the first ones.
        """
        import numpy as np

        done = subprocess.run(
            self._command("times", str(most), *names), capture_output=True, check=False
        )
        if done.returncode != 0:
            raise self._refusal(done.returncode, done.stderr)
        return np.frombuffer(done.stdout, dtype="<i8").reshape(-1, 4)

    def events(
        self, windows: Sequence[tuple[int, int]], most: int | None = None
    ) -> Iterator[Event]:
        """Give the events in these windows, by time; of each only the first `most`."""
        if not windows:
            return
        limit = "" if most is None else f":{most}"
        wanted = (f"{start}:{end}{limit}" for start, end in windows)
        command = self._command("events", *wanted)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                for line in process.stdout or ():
                    yield _event(json.loads(line))
                said = process.stderr.read() if process.stderr else b""
            finally:
                process.kill()  # changes nothing if it has ended
        if process.returncode != 0:
            raise self._refusal(process.returncode, said)

    def _refusal(self, code: int, said: bytes) -> BadInput:
        line = said.decode(errors="replace").strip().removeprefix("latenz-trace: ")
        if code == 2 and line:
            return BadInput(line.removeprefix(f"{self._file}: "), str(self.path))
        how = f"signal {-code}" if code < 0 else f"code {code}"
        return BadInput(f"the reader of traces ended with {how}: {line[-200:]}", str(self.path))


def _event(told: dict[str, Any]) -> Event:
    fields = {name: _value(value) for name, value in told["fields"].items()}
    if "vcpu" in fields:
        fields["vcpu_id"] = fields.pop("vcpu")
    name, flags = told["name"], told.get("flags", "")
    return Event(told["t_ns"], told["cpu"], told["pid"], told["comm"], name, fields, flags)


def _value(value: int | str) -> int | str:
    """Return an address as a number; older kernels print it without 0x, in 16 digits."""
    if isinstance(value, str) and _ADDRESS.fullmatch(value):
        return int(value, 16)
    return value


def _summary(told: dict[str, Any]) -> Summary:
    return Summary(
        format=told["format"],
        version=told["version"],
        compression=told["compression"],
        clock=told["clock"],
        buffers=tuple(told["buffers"]),
        truncated_at=told["truncated_at"],
        damages=told["damages"],
        notes=tuple(told["notes"]),
        events=told["events"],
        start_ns=told["start_ns"],
        end_ns=told["end_ns"],
        lost=Lost(**told["lost"]),
        losses=tuple(Loss(**each) for each in told["losses"]),
        backwards=told["backwards"],
        cpus={each["cpu"]: each["events"] for each in told["cpus"]},
        names=told["names"],
        vcpus=tuple(VirtualCpu(**each) for each in told["vcpus"]),
        exits=tuple(Exits(**each) for each in told["exits"]),
        worst=tuple(Candidate(**each) for each in told["worst"]),
        session=_session(told["session"]),
    )


def _session(told: dict[str, Any]) -> Session:
    guests = tuple(
        RecordedGuest(
            each["name"], each["id"], {vcpu["cpu"]: vcpu["pid"] for vcpu in each["vcpus"]}
        )
        for each in told["guests"]
    )
    return Session(**(told | {"guests": guests}))
