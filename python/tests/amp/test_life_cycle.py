"""Linux loads, starts, stops, restarts and supervises firmware on an emulated R5."""

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from latenz.boards import images
from latenz.boards.console import Collector, Received
from latenz.boards.environment import board_in
from latenz.boards.firmware import Parameters, image
from latenz.boards.payload import Payload
from latenz.boards.places import ENVIRONMENTS
from latenz.boards.setup import ensure_boards
from latenz.experiment.schema import Experiment
from latenz.model import Metadata
from latenz.programs import board_program
from latenz.stacks import STACKS, Job, guest_linux
from latenz.store.run import Run

pytestmark = pytest.mark.boots
LIMIT_S = 500
LATENZ = Path(__file__).parents[3] / "latenz"
SCRIPT = """
life() { # what is done, and what the core does then
  told=$(latenz-remote "$@" 2>&1)
  note "$*: exit $?, $(latenz-remote status)${told:+, told $told}"
}
life start
life load /damaged.elf
life load /linux.elf
life load /long.elf
life stop
life start
life start
life stop
life restart
life restart
life stop
life load /short.elf
life start
sleep 1
note "later: $(latenz-remote status)"
life load /faulty.elf
life start
usleep 100000
note "later: $(latenz-remote status)"
life load /short.elf
life restart
sleep 1
note "later: $(latenz-remote status)"
life load /hung.elf
life start
usleep 100000
note "later: $(latenz-remote status)"
life restart
end
"""
EXPERIMENT = """
name = "amp"
seed = 1
duration = "1 s"
[probe.interrupt]
engine = "interrupt"
samples = 100
[[condition]]
name = "amp"
bench = "zcu102"
stack = "amp"
probe = "interrupt"
"""


class Life(NamedTuple):
    """What a board told while it carried out the script."""

    received: Received
    told: list[str]


def programs(folder: Path) -> dict[str, bytes]:
    """Firmware that measures for long or short, fails, hangs, and files that are no firmware."""
    wanted = {
        "long": Parameters(samples=50_000, warm_up=0),
        "short": Parameters(samples=20, warm_up=0),
        "faulty": Parameters(provoke="undefined instruction"),
        "hung": Parameters(provoke="hang"),
    }
    found = {}
    for name, parameters in wanted.items():
        place = folder / name
        place.mkdir()
        found[f"/{name}.elf"] = image("zcu102-r5", "O2", parameters, place).read_bytes()
    found["/damaged.elf"] = found["/short.elf"][:5000]
    found["/linux.elf"] = board_program("latenz-send").read_bytes()
    return found


@pytest.fixture(scope="module")
def life(tmp_path_factory) -> Life:
    """The whole script, carried out once."""
    assert ensure_boards() is None
    folder = tmp_path_factory.mktemp("amp")
    experiment = folder / "amp.toml"
    experiment.write_text(EXPERIMENT)
    [condition] = Experiment.read(experiment).conditions
    job = Job("zcu102", condition, folder, Metadata(name="amp", time_base="virtual"))
    plain = STACKS["amp"](condition.system, job).payload()
    initrd = images.initrd(
        "life-cycle",
        guest_linux.script("common") + SCRIPT,
        packages=["busybox-static"],
        programs=["/bin/busybox"],
        files={
            **{f"/bin/{name}": board_program(name) for name in ("latenz-send", "latenz-remote")},
            **programs(folder),
        },
    )
    payload = Payload(**{**vars(plain), "initrd": initrd.path, "tick_us": 100})
    return _carried_out(payload, folder)


def _carried_out(payload: Payload, folder: Path) -> Life:
    collector = Collector(payload.uarts)
    received = collector.received
    with board_in(ENVIRONMENTS / "zcu102.yaml") as (target, driver):
        driver.prepare(payload, folder, ())
        target.activate(driver)
        driver.on()
        until = time.monotonic() + LIMIT_S
        while 1 not in received.ended:
            assert time.monotonic() < until, received.last_words
            collector.feed(driver.read_all(1.0))
    return Life(received, received.notes)


def after(life: Life, what: str) -> str:
    """Return what was told of the only step of that name."""
    [found] = [each for each in life.told if each.startswith(f"{what}: ")]
    return found.removeprefix(f"{what}: ")


def steps(life: Life) -> list[str]:
    return [each.partition(", told")[0] for each in life.told]


def test_nothing_starts_before_it_is_loaded(life):
    assert life.told[0].startswith("start: exit 2, offline, told latenz-remote: nothing is loaded")


def test_damaged_and_foreign_programs_are_refused_in_one_line(life):
    damaged, foreign = after(life, "load /damaged.elf"), after(life, "load /linux.elf")
    assert damaged.startswith("exit 2, offline, told latenz-remote: /damaged.elf: ")
    assert "beyond the end of the file (5000 bytes)" in damaged
    assert "/linux.elf: is for another processor; build it for 32-bit Arm" in foreign
    assert "\n" not in damaged + foreign


def test_load_start_stop_and_restart(life):
    seen = steps(life)
    loaded = seen.index("load /long.elf: exit 0, offline")
    assert seen[loaded + 1 : loaded + 8] == [
        "stop: exit 2, offline",
        "start: exit 0, running",
        "start: exit 2, running",
        "stop: exit 0, offline",
        "restart: exit 0, running",
        "restart: exit 0, running",
        "stop: exit 0, offline",
    ]


def test_a_program_that_ends_gives_the_core_back(life):
    seen = steps(life)
    assert seen[seen.index("load /short.elf: exit 0, offline") + 2] == "later: offline"


def test_a_fault_is_seen_and_the_core_can_be_used_again(life):
    seen = steps(life)
    loaded = seen.index("load /faulty.elf: exit 0, offline")
    assert seen[loaded + 2].startswith("later: crashed: ")
    assert seen[loaded + 3].startswith("load /short.elf: exit 0, crashed: ")
    assert seen[loaded + 4].startswith("restart: exit 0, ")
    assert seen[loaded + 5] == "later: offline"
    assert any("undefined instruction" in fault for fault in life.received.faults)


def test_a_core_without_heartbeat_is_a_crash_that_only_a_reset_ends(life):
    seen = steps(life)
    loaded = seen.index("load /hung.elf: exit 0, offline")
    assert seen[loaded + 2] == "later: crashed: no heartbeat for 500 ms"
    assert life.told[-1].startswith("restart: exit 2, crashed: no heartbeat for 500 ms, told ")
    assert "only a reset of the core can end it" in life.told[-1]


@pytest.mark.long
def test_the_stack_measures_the_same_twice(tmp_path):
    experiment = tmp_path / "amp.toml"
    experiment.write_text(EXPERIMENT)
    hashes = []
    for name in ("first", "second"):
        done = subprocess.run(
            [LATENZ, "run", experiment, "-o", tmp_path / name],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        [account] = json.loads((tmp_path / name / "run.json").read_text())["conditions"]
        hashes.append(account["samples_sha256"])
    assert hashes[0] == hashes[1]
    [found] = Run.open(tmp_path / "first").sample_sets
    assert found.metadata.to_event == "a loop on the R5 has seen it"
    assert any(
        "on a real ZCU102 the R5 takes the interrupt" in note for note in found.metadata.notes
    )
