"""A board that is simulated: GHDL runs the design, a socket gives access to its registers.

```python
with simulated_board("latency_bench", {"words_g": 8}, Scenario(period_cycles=2_000)) as path:
    ...  # connect to the Unix socket, speak the protocol of docs/ip.md
```

Simulated time advances only while a request is served, so a run is the same every time.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from latenz.errors import BadInput, closest, shown
from latenz.files import scratch_place
from latenz.ip.edges import read_edges
from latenz.keeper import KeptProgram
from latenz.progress import counting
from latenz.setup import ensure_group

DESIGNS = ("latency_bench", "latencies_ip", "latency_stream")
LEAST_PERIOD_CYCLES = 8
_HDL = Path(__file__).parents[3] / "hdl"
_MOST_CYCLES = 1 << 31
_MOST_RING_LOG2 = 20
_START_LIMIT_S = 300.0
_PAUSE_S = 0.02
_GRACE_S = 2.0


@dataclass(frozen=True)
class Answers:
    """How long the processor takes from an interrupt to the first read of its handler, in cycles.

    A latency is least + a whole number drawn evenly from [0, spread]; one in `late_one_in` is
    later by a whole number drawn evenly from [1, late]. The defaults are near what was published
    for a bare A53 core at 100 MHz (638 ns on average, 650 ns at most), and a tail, which was not.

    Attributes:
        least_cycles: The shortest latency.
        spread_cycles: Width of the even part.
        late_one_in: One in how many is late; 0: none.
        late_cycles: By how much at most.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    least_cycles: int = 60
    spread_cycles: int = 5
    late_one_in: int = 50
    late_cycles: int = 100


@dataclass(frozen=True)
class Scenario:
    """What happens around the design; see hdl/simulation/README.md.

    Attributes:
        period_cycles: From one interrupt of the processor to the next.
        count: How many interrupts; 0: endless.
        answers: How the processor answers the interrupts of the logic.
        seed: Of the draws of `answers`.
        lose_every: Every how many interrupts one does not reach the processor; 0: none.
        replay: File of edges (see `latenz.ip.edges`) that drives `latencies_ip` instead. Its
            cycle 0 is the first clock cycle of the first `wait`.
        ring_log2: The memory behind `latency_stream` holds 2 to this power records.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    period_cycles: int = 1_000
    count: int = 0
    answers: Answers = field(default_factory=Answers)
    seed: int = 1
    lose_every: int = 0
    replay: Path | None = None
    ring_log2: int = 8


_SCENARIO = TypeAdapter(Scenario)


def scenario_from(text: str) -> Scenario:
    """Return a scenario written as JSON; what it leaves out has its default.

    Raises:
        BadInput: It is not a scenario.
    """
    try:
        return _SCENARIO.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], f"scenario {place}".strip()) from None


def checked(scenario: Scenario, design: str) -> Scenario:
    """Return a scenario that makes sense for a design.

    Raises:
        BadInput: One of its numbers is out of range, or there is no such design.
    """
    if design not in DESIGNS:
        raise BadInput(f"{shown(design)} is not a design", "design", closest(design, DESIGNS))
    if scenario.replay is not None and design != "latencies_ip":
        raise BadInput("a replay drives latencies_ip alone", "replay", "give design latencies_ip")
    ranges = {
        "period_cycles": (scenario.period_cycles, LEAST_PERIOD_CYCLES, _MOST_CYCLES),
        "count": (scenario.count, 0, _MOST_CYCLES),
        "seed": (scenario.seed, 0, _MOST_CYCLES),
        "lose_every": (scenario.lose_every, 0, _MOST_CYCLES),
        "least_cycles": (scenario.answers.least_cycles, 1, _MOST_CYCLES),
        "spread_cycles": (scenario.answers.spread_cycles, 0, _MOST_CYCLES),
        "late_one_in": (scenario.answers.late_one_in, 0, _MOST_CYCLES),
        "late_cycles": (scenario.answers.late_cycles, 1, _MOST_CYCLES),
        "ring_log2": (scenario.ring_log2, 0, _MOST_RING_LOG2),
    }
    for name, (value, least, most) in ranges.items():
        if not least <= value <= most:
            raise BadInput(f"is {value}", f"scenario, {name}", f"wanted: {least} to {most}")
    return scenario


@contextmanager
def simulated_board(
    design: str = "latency_bench",
    generics: Mapping[str, int | bool | str] | None = None,
    scenario: Scenario | None = None,
    *,
    progress: bool = False,
) -> Iterator[Path]:
    """Build and start a simulated board; give the Unix socket it serves; end it afterwards.

    Args:
        design: `latency_bench` (generator, T1 and T2), `latencies_ip` alone, or `latency_stream`
            (one with a ring in memory behind it).
        generics: Of the design; those not named keep their defaults.
        scenario: What happens around the design; None: the defaults.
        progress: Show on standard error that it starts, if that is a terminal.

    Raises:
        BadInput: An argument makes no sense, a tool is missing, or the design did not start.
    """
    wanted = checked(scenario or Scenario(), design)
    if wanted.replay is not None:
        read_edges(wanted.replay)
        wanted = replace(wanted, replay=wanted.replay.absolute())
    if obstacle := ensure_group("hdl", "simulated boards"):
        raise BadInput(obstacle.reason, "simulated board", obstacle.fix and f"run {obstacle.fix}")
    # Paths of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="latenz-simulated-", dir=scratch_place()))
    program = None
    try:
        socket, log = folder / "socket", folder / "serve.err"
        command = [sys.executable, os.fspath(_HDL / "simulation/serve")]
        command += ["--socket", os.fspath(socket), "--design", design]
        command += ["--scenario", _SCENARIO.dump_json(wanted).decode()]
        for name, value in (generics or {}).items():
            command += ["--generic", f"{name}={value}"]
        program = KeptProgram(command, folder / "serve.out", log, _GRACE_S)
        with counting("starting the simulated board", None, wanted=progress) as beat:
            _wait_for(socket, program, log, beat)
        yield socket
    finally:
        if program is not None:
            program.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(socket: Path, program: KeptProgram, log: Path, beat: Callable[[int], None]) -> None:
    until = time.monotonic() + _START_LIMIT_S
    while not socket.exists():
        alive = program.alive  # asked first: what it said before its end is read
        if not alive or time.monotonic() > until:
            said = log.read_text("utf-8", "replace").strip().splitlines()
            raise BadInput(said[-1] if said else "did not start", "simulated board")
        beat(0)
        time.sleep(_PAUSE_S)
