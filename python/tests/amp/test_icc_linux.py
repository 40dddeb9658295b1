"""Linux and firmware on an emulated R5 talk by channels in on-chip memory and in DDR."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_life_cycle import EXPERIMENT
from test_life_cycle import _carried_out as carried_out

from latenz.boards import images
from latenz.boards.payload import Payload
from latenz.boards.setup import ensure_boards
from latenz.experiment.schema import Experiment
from latenz.model import Metadata
from latenz.programs import board_program
from latenz.stacks import STACKS, Job, guest_linux

pytestmark = pytest.mark.boots
PROGRAMS = ("latenz-send", "latenz-remote", "latenz-icc-echo")
SCRIPT = """
remote() { note "$*: exit $? $(latenz-remote "$@" 2>&1)"; }
echo_by() { told=$(latenz-icc-echo "$@" 2>&1); note "exit $?: $told"; }
echo_by call mem:0xFFFD0000 1
remote load /echo.elf
remote start
echo_by call mem:0xFFFD0000 50000
echo_by call mem:0x70400000 50000
(usleep 300000; remote restart) &
echo_by call mem:0x70400000 50000
wait
remote stop
remote status
end
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> list[str]:
    """What Linux told while it carried out the script."""
    assert ensure_boards() is None
    folder = tmp_path_factory.mktemp("echo")
    experiment = folder / "echo.toml"
    experiment.write_text(EXPERIMENT)
    [condition] = Experiment.read(experiment).conditions
    job = Job("zcu102", condition, folder, Metadata(name="echo", time_base="virtual"))
    plain = STACKS["amp"](condition.system, job).payload()
    firmware = Path(sys.prefix, "firmware/zcu102-r5-echo/echo.elf")
    initrd = images.initrd(
        "icc-echo",
        guest_linux.script("common") + SCRIPT,
        packages=["busybox-static"],
        programs=["/bin/busybox"],
        files={
            **{f"/bin/{name}": board_program(name) for name in PROGRAMS},
            "/echo.elf": firmware.read_bytes(),
        },
    )
    payload = Payload(**{**vars(plain), "initrd": initrd.path})
    return carried_out(payload, folder).told


def answers(told: list[str], place: str) -> list[tuple[int, ...]]:
    """Return answers, wrong ones, restarts and calls without answer of each run at a place."""
    form = rf"exit 0: {place}: (\d+) answers, (\d+) wrong, (\d+) restarts, (\d+) calls without"
    found = [re.match(form, line) for line in told]
    return [tuple(int(each) for each in match.groups()) for match in found if match]


def test_a_core_that_does_not_run_gives_no_answer(told):
    assert told[0] == (
        "exit 1: mem:0xFFFD0000: 0 answers, 0 wrong, 0 restarts, 10 calls without answer"
    )


def test_both_memories_carry_whole_messages(told):
    assert answers(told, "mem:0xFFFD0000") == [(50000, 0, 0, 0)]
    assert answers(told, "mem:0x70400000")[0] == (50000, 0, 0, 0)


def test_a_restart_of_the_core_is_told_and_survived(told):
    answered, wrong, restarts, _ = answers(told, "mem:0x70400000")[1]
    assert (answered, wrong, restarts) == (50000, 0, 1)


def test_the_core_can_be_stopped(told):
    assert told[-1] == "status: exit 0 offline"


def test_two_processes_of_one_linux_use_the_same_program(tmp_path):
    root = Path(__file__).parents[3]
    program = tmp_path / "echo"
    source = root / "icc/examples/linux_echo.cpp"
    options = ["-std=c++20", "-O2", f"-I{root}/icc/include"]
    subprocess.run(["g++", *options, source, "-o", program], check=True)
    region = f"shm:/latenz-{tmp_path.name}"
    shared = Path("/dev/shm", region.partition("/")[2])
    try:
        with subprocess.Popen([program, "serve", region]) as server:
            command = [program, "call", region, "2000", "100"]
            answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert answer.stdout.startswith(f"{region}: 2000 answers, 0 wrong, 0 restarts")
            assert server.wait(60) == 0
    finally:
        shared.unlink(missing_ok=True)
