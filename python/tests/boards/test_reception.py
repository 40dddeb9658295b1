"""How long a board may be silent: time that others had of this machine's processors is not its."""

import os
import subprocess
import sys
import time
from pathlib import Path

from latenz.boards.console import Collector
from latenz.boards.driver import _ready_ns
from latenz.boards.payload import Payload
from latenz.boards.protocol import PayloadProtocol
from latenz.boards.reception import Listener


class Silent(PayloadProtocol):
    """A board that says nothing, on a machine that gives it a share of the time."""

    def __init__(self, starved: float) -> None:
        self.share = starved
        self.began = time.monotonic()

    def starved_s(self) -> float:
        return self.share * (time.monotonic() - self.began)

    def read_all(self, timeout_s: float) -> list[tuple[int, bytes]]:
        time.sleep(timeout_s / 10)
        return []

    def on(self) -> None: ...
    def off(self) -> None: ...
    def cycle(self) -> None: ...
    def prepare(self, *_: object) -> None: ...
    def identity(self) -> dict[str, str]:
        return {}


def given_up_after_s(starved: float) -> float:
    began = time.monotonic()
    listener = Listener(
        done=lambda _: False,
        stopped=lambda: time.monotonic() - began > 2,
        tell=lambda _: None,
    )
    payload = Payload(kernel=Path("none"), cpus=1, memory_mib=1, boot_limit_s=1)
    told = listener.receive(Silent(starved), Collector(1), payload)
    return 0.0 if told is None else float(told.split(" in ")[1].split(" s;")[0])


def test_a_board_of_a_busy_machine_is_given_more_time() -> None:
    assert given_up_after_s(starved=0.0) == 1
    assert given_up_after_s(starved=0.9) == 0  # its 1 s is not over after 2 s


def test_the_kernel_tells_what_a_thread_waited_for() -> None:
    spin = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
    try:
        until = time.monotonic() + 60
        while not all(_ready_ns(each.pid) for each in busy) and time.monotonic() < until:
            time.sleep(0.05)
        assert all(_ready_ns(each.pid) for each in busy)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert _ready_ns(1 << 30) == 0
    assert _ready_ns(os.getpid()) >= 0
