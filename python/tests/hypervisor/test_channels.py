"""Channels between partitions: memory and a doorbell that is a monitored source.

One guest streams messages to another. And one that rings without end takes no more from a third
than was promised with the costs of a run in which it rang seldom.
"""

import numpy as np
import pytest
from test_isolation import check_sections

from latenz.analysis import bound
from latenz.errors import BadInput
from latenz.hypervisor.attacked import hostile_guest
from latenz.hypervisor.build import build
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.trace import Kind

pytestmark = pytest.mark.boots

MESSAGES = 10_000
TURN_NS = 3
"""Of the victim's loop: an instruction is a nanosecond."""
PLATFORM = """
[platform]
slot_switch = "5 us"
monitor = "1 us"
schedule = "1 us"
context_switch = "2 us"
[policy]
mode = "carry"
"""
STREAM = (
    PLATFORM
    + """
[[slot]]
partition = "sender"
length = "2 ms"
[[slot]]
partition = "receiver"
length = "500 us"
[[source]]
name = "frame ready"
partition = "receiver"
top = "3 us"
bottom = "8 us"
arrival = {{ kind = "periodic", period = "25 us", jitter = "5 us", min_distance = "20 us" }}
monitor = {{ distances = ["20 us"] }}
[[partition]]
name = "sender"
guest = "{stream}"
memory = "2 MiB"
[[partition]]
name = "receiver"
guest = "{stream}"
memory = "2 MiB"
[[channel]]
name = "frames"
from = "sender"
to = "receiver"
size = "16 KiB"
address = 0x70000000
doorbell = "frame ready"
"""
)
STORM = (
    PLATFORM
    + """
[[slot]]
partition = "receiver"
length = "300 us"
[[slot]]
partition = "victim"
length = "200 us"
[[slot]]
partition = "sender"
length = "500 us"
[[source]]
name = "bell"
partition = "receiver"
top = "5 us"
bottom = "10 us"
arrival = {{ kind = "distances", distances = ["10 us", "400 us"] }}
monitor = {{ distances = ["300 us"] }}
[[source]]
name = "own"
partition = "sender"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "1 ms" }}
monitor = {{ distances = ["900 us"] }}
[[source]]
name = "watched"
partition = "receiver"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "1 ms" }}
monitor = {{ distances = ["900 us"] }}
[[partition]]
name = "receiver"
guest = "witness"
memory = "2 MiB"
[[partition]]
name = "victim"
guest = "victim"
memory = "2 MiB"
[[partition]]
name = "sender"
guest = "{sender}"
memory = "2 MiB"
[[channel]]
name = "bells"
from = "sender"
to = "receiver"
size = "4 KiB"
address = 0x70000000
doorbell = "bell"
"""
).replace('"witness"', '"{witness}"')


def made(folder, text, irqs, **guests):
    ensure_built()
    path = folder / "system.toml"
    path.write_text(text.format(**guests))
    return build(path, irqs=irqs)


@pytest.mark.parametrize(
    "bench",
    ["virt", *(pytest.param(each, marks=pytest.mark.long) for each in ("virt-gicv3", "zcu102"))],
)
def test_ten_thousand_messages_go_through_a_ring_without_error(tmp_path, bench):
    stream = installed("guests/stream.bin")
    built = made(tmp_path, STREAM, 2 * MESSAGES, stream=stream)
    run = boot(built, bench).measured
    sender, receiver = run.statistics.partitions
    assert (sender.progress, sender.faults, sender.restarts) == (MESSAGES, 0, 0)
    assert (receiver.progress, receiver.faults, receiver.restarts) == (MESSAGES, 0, 0)
    [bell] = run.statistics.sources
    assert bell.interposed > 0.9 * MESSAGES, "nobody waits for a slot"
    assert bell.raised + bell.masked > MESSAGES
    found = compared(built.system, built, run)
    assert found.exceeding == 0
    assert found.alike == found.irqs > 0.9 * MESSAGES


def storm(folder, sender, irqs):
    witness = installed("guests/witness.bin")
    built = made(folder, STORM, irqs, sender=sender, witness=witness)
    return built, boot(built, "virt", folder)


def honest(folder):
    """Return the bounds with the costs of a run whose sender rings once a millisecond."""
    built, brought = storm(folder, installed("guests/ringer.bin"), 1500)
    run = brought.measured
    bell = run.statistics.sources[0]
    assert bell.raised == bell.completed > 50
    costly, missing = with_costs(built.system, run.costs, run.sections)
    assert not missing, "all costs were measured"
    return bound(costly, built.mode)


@pytest.fixture(scope="module")
def promised(tmp_path_factory):
    return honest(tmp_path_factory.mktemp("honest"))


@pytest.mark.parametrize(("attack", "least"), [("notify-storm", 50), ("notify-numbers", 2)])
def test_a_storm_of_calls_takes_no_more_than_promised(tmp_path, promised, attack, least):
    guest = tmp_path / "hostile.bin"
    guest.write_bytes(hostile_guest(attack, 200_000))
    built, brought = storm(tmp_path, guest, 1500)
    run = brought.measured
    bell, _own, watched = run.statistics.sources
    assert bell.masked >= least, "it rang more often than its model permits"
    assert bell.denied >= least, "and than the monitor grants"
    assert bell.raised == bell.completed
    assert watched.raised == watched.completed == np.sum(built.arrivals.source == 2)
    check_sections(brought)
    names = [each.name for each in run.statistics.partitions]
    records = run.records
    own = records[
        (records["kind"] == Kind.PROGRESS) & (records["partition"] == names.index("victim"))
    ]
    turns = own["value"].astype(np.int64) + (own["detail"].astype(np.int64) << 32)
    lost_ns = 200_000 - np.diff(turns).min() * TURN_NS
    [limit_ns] = next(x for x in promised.partitions if x.name == "victim").interference_ns_by_slot
    assert len(own) > 50
    assert 0 < lost_ns <= limit_ns
    latency_ns = run.irqs.end_ns - run.irqs.arrival_ns
    for number, source in enumerate(promised.sources):
        worst_ns = latency_ns[run.irqs.source == number].max()
        assert worst_ns <= source.wcrt_ns


def test_a_guest_that_rings_no_doorbell_is_refused(tmp_path):
    with pytest.raises(
        BadInput, match=r"channel\[1\]\.from: 'worker', the guest of 'sender', rings"
    ):
        made(tmp_path, STORM, 100, sender="worker", witness="worker")
