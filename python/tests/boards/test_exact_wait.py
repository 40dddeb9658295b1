"""What a board measures depends neither on the host's scheduler nor on who reads."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from latenz.boards.console import Collector
from latenz.boards.environment import board_in
from latenz.boards.firmware import Parameters, image
from latenz.boards.payload import Payload
from latenz.boards.places import ENVIRONMENTS
from latenz.boards.setup import ensure_boards
from latenz.errors import BadInput

pytestmark = pytest.mark.boots

HERE = Path(__file__).parent
SAMPLES = 150


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """Stand-ins for QEMU by name."""
    assert ensure_boards() is None
    folder = tmp_path_factory.mktemp("tools")
    library = folder / "late_wakeups.so"
    compiler = ("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([*compiler, "-o", library, HERE / "late_wakeups.c"], check=True)

    def made(how: str) -> Path:
        tool = folder / how.replace(" ", "-")
        tool.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n"
            f"import sabotage\nsys.exit(sabotage.main({how!r}))\n"
        )
        tool.chmod(0o755)
        return tool

    return {how: made(how) for how in ("late", "late, plugin left out")}


def everything_said(folder: Path, bench: str, payload: Payload, tool: Path | None = None):
    """Boot, read nothing until the board has switched itself off, and then all."""
    environment = folder / "board.yaml"
    text = (ENVIRONMENTS / f"{bench}.yaml").read_text()
    named = f"qemu: {tool or 'qemu-system-aarch64'}"
    environment.write_text(text.replace("qemu: qemu-system-aarch64", named))
    collector = Collector(payload.uarts)
    with board_in(environment) as (target, driver):
        driver.prepare(payload, folder, ())
        target.activate(driver)
        driver.on()
        until = time.monotonic() + 120
        while driver.alive:
            assert time.monotonic() < until, "the board waits for its reader"
            time.sleep(0.05)
        with pytest.raises(BadInput, match="switched itself off"):
            read_on(driver, collector)
    return collector.received


def read_on(driver, collector: Collector) -> None:
    while True:
        collector.feed(driver.read_all(0.0))


def asleep(folder: Path, bench: str, memory_mib: int, cpus: int, samples: int = SAMPLES) -> Payload:
    built = image(bench, "O2", Parameters(samples=samples, wait_for_interrupt=True), folder)
    return Payload(built, cpus=cpus, memory_mib=memory_mib)


@pytest.mark.parametrize(("bench", "memory_mib", "cpus"), [("virt", 128, 1), ("zcu102", 2048, 4)])
def test_boards_do_not_wait_for_their_reader(tmp_path, bench, memory_mib, cpus):
    """More than sockets and pipes hold: whoever reads slowly would be seen by the guest."""
    payload = asleep(tmp_path, bench, memory_mib, cpus, samples=15_000)
    received = everything_said(tmp_path, bench, payload)
    assert received.streams[0].complete
    assert len(received.streams[0].latency_ticks) == 15_000
    assert (tmp_path / "console.log").stat().st_size > 90_000


def test_late_wakeups_of_the_emulator_change_no_sample(tmp_path, tools):
    payload = asleep(tmp_path, "virt", 128, 1)
    undisturbed = everything_said(tmp_path, "virt", payload).streams
    assert undisturbed[0].complete
    for _ in range(3):
        assert everything_said(tmp_path, "virt", payload, tools["late"]).streams == undisturbed


def test_without_the_plugin_they_do(tmp_path, tools):
    """So that the test above shows something: events come late by what was not yet counted."""
    payload = asleep(tmp_path, "virt", 128, 1)
    tool = tools["late, plugin left out"]
    found = [everything_said(tmp_path, "virt", payload, tool).streams[0] for _ in range(3)]
    latencies = {latency for each in found for latency in each.latency_ticks}
    assert min(latencies) == 14
    assert len(latencies) > 1
