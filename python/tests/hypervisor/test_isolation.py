"""What a hostile guest can do to others, attack by attack: nothing beyond what was promised.

Beside the attacker a witness looks through all of its memory without end, and answers interrupts.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from latenz.analysis import bound
from latenz.hypervisor.build import build
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.trace import Kind

SOURCES = Path(__file__).parents[3] / "firmware" / "guests" / "src" / "hostile"
NAMES = [
    name
    for path in sorted(SOURCES.glob("*.cpp"))
    for name in re.findall(r'^ {4}\{"([a-z0-9-]+)"', path.read_text(), re.MULTILINE)
]
LAST = {"psci-cpu-off", "psci-system-off"}
"""They end their partition."""
ENDLESS = {
    "events",
    "exception-storm",
    "gic-endless-handler",
    "gic-never-ends",
    "gic-pend-storm",
    "gic-software-storm",
    "memory-storm",
    "sleep-masked",
    "spin-masked",
    "timer-physical-storm",
    "timer-storm",
}
"""They never end by themselves."""
TIMELESS = {"vectors-lost-for-ever", "vectors-undefined"}
"""Exceptions that execute no instruction: time of the emulator, which counts instructions, stands
still. On silicon, and in the emulator by its real clock, the hypervisor's timer ends the slot."""
STEPS = 500_000
"""Of random calls, and of random accesses to devices; of others as many as they have."""
IRQS = dict.fromkeys(ENDLESS, 60) | {
    "console-registers": 500,
    "gic-distributor-accesses": 400,
    "memory-mapped": 500,
    "random-calls": 5000,
    "random-device-accesses": 5000,
}
"""How many arrive meanwhile: the run is as long."""
USUAL_IRQS = 150
PROMISE_NS = 3000
"""By how much a slot may start late: a trap of the guest before is served to its end."""
SYSTEM = """
[platform]
slot_switch = "20 us"
monitor = "1 us"
schedule = "2 us"
context_switch = "5 us"
[policy]
mode = "carry"
[[slot]]
partition = "witness"
length = "500 us"
[[slot]]
partition = "hostile"
length = "500 us"
[[source]]
name = "watched"
partition = "witness"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "400 us" }}
monitor = {{ distances = ["300 us"] }}
[[source]]
name = "own"
partition = "hostile"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "1 ms" }}
monitor = {{ distances = ["900 us"] }}
[[partition]]
name = "witness"
guest = "{witness}"
memory = "2 MiB"
[[partition]]
name = "hostile"
guest = "{hostile}"
memory = "2 MiB"
on_fault = "restart"
"""


def hostile(folder, attack, steps=STEPS, seed=1):
    """Write the hostile guest with its parameters: hostile/parameters.hpp."""
    content = installed("guests/hostile.bin").read_bytes()
    start = content.index(b"LATENZHA")
    numbers = steps.to_bytes(8, "little") + seed.to_bytes(8, "little")
    block = content[start : start + 8] + numbers + attack.encode().ljust(40, b"\0")
    path = folder / f"{attack}.bin"
    path.write_bytes(content[:start] + block + content[start + len(block) :])
    return path


def attacked(folder, attack, irqs=USUAL_IRQS, system=SYSTEM):
    """Boot the attack; return what was built and what the boot brought."""
    ensure_built()
    path = folder / "system.toml"
    witness = installed("guests/witness.bin")
    path.write_text(system.format(witness=witness, hostile=hostile(folder, attack)))
    built = build(path, irqs=irqs)
    return built, boot(built, "virt", folder)


def check_witness(built, found):
    """Nothing of the witness was touched: memory, state, interrupts, their bound."""
    witness = next(x for x in found.measured.statistics.partitions if x.name == "witness")
    assert (witness.state, witness.faults, witness.restarts) == ("running", 0, 0)
    assert 0 < witness.progress < 2**64 - 1, "it looked, and found no damage"
    assert not [line for line in found.console if "damaged" in line]
    watched = next(x for x in found.measured.statistics.sources if x.name == "watched")
    assert watched.raised == watched.completed == np.sum(built.arrivals.source == 0)
    assert (watched.overruns, watched.dropped) == (0, 0)
    own = with_costs(built.system, found.measured.costs, found.measured.sections)[0]
    limit_ns = next(x for x in bound(own, built.mode).sources if x.name == "watched").wcrt_ns
    irqs = found.measured.irqs
    latency_ns = irqs.end_ns - irqs.arrival_ns
    assert latency_ns[irqs.source == 0].max() <= limit_ns


def check_slots(built, found):
    """Each slot began where the table has it, no later than promised; the cycle did not drift."""
    records = found.measured.records
    slots = records[records["kind"] == Kind.SLOT_SWITCH]
    began_ns = found.measured.clock.times_ns(slots["start"].astype(np.int64))
    starts_ns = np.cumsum([0, *(slot.length_ns for slot in built.system.slots)])
    cycles = np.arange(len(slots) // len(built.system.slots) + 1)[:, None]
    edges_ns = (cycles * built.system.cycle_ns + starts_ns[:-1]).ravel()[: len(slots)]
    # Earlier than its edge begins the switch of a hypervisor that was at work already.
    assert np.abs(began_ns - edges_ns).max() <= PROMISE_NS


@pytest.mark.parametrize("attack", [name for name in NAMES if name not in TIMELESS])
def test_attack_harms_nobody_else(tmp_path, attack):
    built, found = attacked(tmp_path, attack, IRQS.get(attack, USUAL_IRQS))
    said = [line for line in found.console if line.startswith("hostile| ")]
    assert any(line.startswith(f"hostile| begins: {attack} ") for line in said)
    if attack not in ENDLESS | LAST:
        assert any(f"done: {attack} " in line for line in said), "it went through"
    check_witness(built, found)
    check_slots(built, found)


def test_there_are_more_than_sixty_attacks():
    assert len(NAMES) == len(set(NAMES)) > 60
    assert set(NAMES) >= LAST | TIMELESS | set(IRQS)


def test_unknown_attack_is_told(tmp_path):
    _, found = attacked(tmp_path, "harmless", irqs=10)
    assert "hostile| no such attack" in found.console


def test_stopped_guest_stays_stopped(tmp_path):
    system = SYSTEM.replace('on_fault = "restart"', 'on_fault = "stop"')
    built, found = attacked(tmp_path, "memory-write", irqs=100, system=system)
    hostile = next(x for x in found.measured.statistics.partitions if x.name == "hostile")
    assert (hostile.state, hostile.faults, hostile.restarts) == ("stopped", 1, 0)
    check_witness(built, found)
    check_slots(built, found)
