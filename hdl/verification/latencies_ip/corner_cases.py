"""One test, or a few, for each corner case of the circuit; the number is in the name."""

import random
from collections.abc import Coroutine
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from verification.latencies_ip import coverage
from verification.latencies_ip.bench import CLOCK_NS, Bench, RefusedError, case, nanoseconds
from verification.model.configuration import Configuration


def _extended(ip: Configuration) -> bool:
    return ip.extended


OFFSETS = range(14)  # of a write against an ack, from well before to well after


async def ack_around(bench: Bench, write: Coroutine[Any, Any, None], offset: int) -> None:
    """A write that begins after `offset` cycles, and an ack at a fixed time between."""

    async def later() -> None:
        await bench.cycles(offset)
        await write

    task = cocotb.start_soon(later())
    await bench.cycles(5)
    await bench.pulse(ack=1)
    await task


def _short(ip: Configuration) -> bool:
    return ip.latency_width == 16


@case()
async def case_01_ack_without_irq(bench: Bench) -> None:
    """An ack with nothing open is not a sample, and counts as orphan."""
    await bench.begin()
    await bench.pulse(ack=1)
    await bench.cycles(7)
    await bench.pulse(ack=1)
    assert not bench.model.starts
    await bench.check()
    await bench.measure(5)
    await bench.check()
    if bench.ip.counters:
        assert await bench.read("orphans") == 2


@case()
async def case_02_second_irq_before_ack(bench: Bench) -> None:
    """Two, then many irqs before acks: the policy says which start counts."""
    await bench.begin()
    await bench.pulse(irq=1)
    await bench.cycles(8)
    await bench.pulse(irq=1)
    await bench.cycles(3)
    await bench.pulse(ack=1)
    await bench.settle()
    expected = {"drop": 15, "queue": 15, "restart": 5}[bench.ip.overlap_policy]
    assert await bench.read("last") == expected
    await bench.pulse(ack=1)
    for _ in range(bench.ip.queue_depth + 3):
        await bench.pulse(irq=1)
    await bench.check()
    for _ in range(bench.ip.queue_depth + 3):
        await bench.cycles(2)
        await bench.pulse(ack=1)
    await bench.check()


@case(needs=lambda ip: ip.overlap_policy == "queue")
async def case_02_full_queue_and_ack_with_irq(bench: Bench) -> None:
    """With a full queue, the ack of a cycle makes room for the irq of the same cycle."""
    await bench.begin()
    for _ in range(bench.ip.queue_depth):
        await bench.pulse(irq=1)
    await bench.pulse(irq=1)  # lost
    await bench.pulse(irq=1, ack=1)
    for _ in range(bench.ip.queue_depth + 1):
        await bench.pulse(ack=1)
    assert len(bench.model.starts) == bench.ip.queue_depth + 1
    assert bench.model.missed == 1
    await bench.check()


@case()
async def case_03_level_held_irq(bench: Bench) -> None:
    """A level is one edge: one measurement, and a new one only after it has fallen."""
    await bench.begin()
    await bench.set(irq=1)
    for _ in range(3):
        await bench.cycles(6)
        await bench.set(ack=1)
        await bench.set(ack=0)
    await bench.settle()
    assert await bench.read("num") == 1
    await bench.set(irq=0)
    await bench.set(irq=1)
    await bench.cycles(3)
    await bench.set(ack=1)
    await bench.cycles(20)
    await bench.set(irq=0, ack=0)
    await bench.settle()
    assert await bench.read("num") == 2
    await bench.check()


@case()
async def case_04_irq_and_ack_in_one_cycle(bench: Bench) -> None:
    """Idle: a latency of 0. Busy: the ack ends the old one, the irq begins the new one."""
    await bench.begin()
    await bench.pulse(irq=1, ack=1)
    await bench.settle()
    assert (await bench.read("num"), await bench.read("last")) == (1, 0)
    await bench.pulse(irq=1)
    await bench.cycles(4)
    await bench.pulse(irq=1, ack=1)  # ends 6, begins
    await bench.cycles(1)
    await bench.pulse(ack=1)  # ends 3
    await bench.settle()
    assert await bench.samples(3) == [0, 6, 3]
    await bench.check()


@case(needs=_short)
async def case_05_saturation(bench: Bench) -> None:
    """All ones is a true latency; one more is stored as all ones and always alarms."""
    largest = bench.ip.latency_max
    await bench.begin()
    for latency, alarm in ((largest, 0), (largest + 1, 1), (3, 1)):
        await bench.measure(latency)
        await bench.settle()
        assert await bench.read("last") == min(latency, largest)
        assert await bench.read("alarm") == alarm
    await bench.check()
    coverage.samples(bench.model)


@case()
async def case_06_memory_full(bench: Bench) -> None:
    """The memory stops when it is full; num goes on."""
    await bench.begin()
    for index in range(bench.ip.depth + 7):
        await bench.measure(index % 5 + 1)
    await bench.check()
    assert await bench.read("num") == bench.ip.depth + 7
    coverage.samples(bench.model)


@case(needs=_extended)
async def case_06_memory_is_a_ring(bench: Bench) -> None:
    """With mode.wrap the newest samples replace the oldest, and status says so."""
    await bench.write("mode", 1)
    await bench.begin()
    for index in range(bench.ip.depth + 7):
        await bench.measure(index % 9 + 1)
    await bench.check()
    wrapped = bool(await bench.read("status") & 4)
    if not bench.ip.freeze:
        assert wrapped
        assert await bench.read("write_position") == 7
    coverage.samples(bench.model)


@case()
async def case_07_reset_during_a_measurement(bench: Bench) -> None:
    """A reset ends everything; inputs that are high in it are no edges after it."""
    await bench.begin()
    await bench.write("alarm_lat", 3)
    await bench.measure(5)
    await bench.pulse(irq=1)
    await bench.cycles(4)
    bench.dut.irq_in.value = 1
    bench.dut.ack_in.value = 1
    await bench.reset()
    assert await bench.read("we") == 0
    assert await bench.read("alarm_lat") == bench.ip.latency_max % 2**32
    await bench.check()
    await bench.begin()
    await bench.set(ack=0)
    await bench.cycles(5)
    await bench.set(ack=1)  # nothing open: no sample, whatever irq was before
    await bench.set(irq=0, ack=0)
    await bench.settle()
    assert await bench.read("num") == 0
    await bench.measure(9)
    await bench.check()
    assert await bench.read("num") == 1


@case()
async def case_07_reset_with_inputs_high_and_we_at_once(bench: Bench) -> None:
    """The first edge after a reset is a change, not a level, even if software is quick."""
    bench.dut.irq_in.value = 1
    bench.dut.ack_in.value = 1
    bench.dut.aresetn.value = 0
    await bench.cycles(4)
    bench.dut.aresetn.value = 1
    await bench.write("we", 1)
    await bench.cycles(5)
    assert not bench.model.starts
    await bench.check()


@case()
async def case_08_asynchronous_inputs(bench: Bench) -> None:
    """Edges at any time: equal synchronisers cancel, what is left is less than one cycle."""
    await bench.begin()
    true_ns = []
    for index in range(40):
        phase_ns = 1 + index * 3 % (CLOCK_NS - 1)
        latency_ns = 20 + 7 * index
        if (phase_ns + latency_ns) % CLOCK_NS == 0:
            latency_ns += 1  # no change at the very moment of an edge
        await RisingEdge(bench.dut.aclk)
        await nanoseconds(phase_ns)
        bench.dut.irq_in.value = 1
        await nanoseconds(latency_ns)
        bench.dut.ack_in.value = 1
        await nanoseconds(25)
        bench.dut.irq_in.value = 0
        bench.dut.ack_in.value = 0
        await bench.cycles(4)
        true_ns.append(latency_ns)
    await bench.check()
    for told, true in zip(bench.model.latencies(), true_ns, strict=True):
        assert abs(told * CLOCK_NS - true) < CLOCK_NS


@case()
async def case_09_before_the_first_sample(bench: Bench) -> None:
    """Nothing measured: min all ones, everything else 0; the same when a series begins."""
    for _ in range(2):
        seen = [await bench.wide(name) for name in ("last", "max", "min")]
        assert seen == [0, 0, bench.ip.latency_max]
        assert await bench.read("num") == 0
        await bench.begin()
        await bench.measure(4)
        await bench.check()
        await bench.begin()


@case()
async def case_10_reading_while_samples_arrive(bench: Bench) -> None:
    """Each value is of one cycle: last is always one of the recent latencies."""
    await bench.begin()

    async def drive() -> None:
        for index in range(120):
            await bench.measure(index * 7 % 11)

    task = cocotb.start_soon(drive())
    before = 0
    while not task.done():
        last, num = await bench.read("last"), await bench.read("num")
        assert before <= num
        before = num
        assert last in [0, *bench.model.latencies()[-6:]]
    await bench.check()


@case(needs=lambda ip: ip.snapshot and ip.counters and ip.sums)
async def case_10_snapshot_does_not_tear(bench: Bench) -> None:
    """All values of a snapshot are of one moment, however slowly they are read."""
    await bench.begin()

    async def drive() -> None:
        for index in range(400):
            await bench.measure(index * 7 % 13)
            if index % 5 == 0:
                await bench.pulse(ack=1)

    task = cocotb.start_soon(drive())
    while not task.done():
        await bench.write("command", 1)
        num = await bench.read("snapshot_num")
        await bench.cycles(11)
        names = ("snapshot_last", "snapshot_max", "snapshot_min")
        seen = [await bench.wide(name) for name in names]
        total = await bench.read("snapshot_sum") | await bench.read("snapshot_sum_high") << 32
        squares = 0
        for word in range(4):
            squares |= await bench.read(f"snapshot_sum_of_squares_{word}") << 32 * word
        latencies = bench.model.latencies()[:num]
        if latencies:
            assert seen == [latencies[-1], max(latencies), min(latencies)]
        assert total == sum(latencies)
        assert squares == sum(latency**2 for latency in latencies)
    await bench.check()


@case(needs=lambda ip: ip.snapshot and ip.counters)
async def case_10_snapshot_is_of_one_cycle(bench: Bench) -> None:
    """Number and counts of a snapshot are those of one clock cycle, among edges in every cycle."""
    await bench.begin()
    chance = random.Random(10)
    moments: set[tuple[int, ...]] = set()

    async def drive() -> None:
        while len(moments) < 300:
            model = bench.model
            moments.add((model.num, model.orphans, model.overlaps, model.missed))
            await bench.set(irq=chance.randrange(2), ack=chance.randrange(2))

    task = cocotb.start_soon(drive())
    names = ("num", "orphans", "overlaps", "missed")
    while not task.done():
        await bench.cycles(chance.randrange(5))
        await bench.write("command", 1)
        seen = tuple([await bench.read(f"snapshot_{name}") for name in names])
        assert seen in moments, seen
    await bench.set(irq=0, ack=0)
    await bench.check()


@case()
async def case_11_memory_read_during_write(bench: Bench) -> None:
    """A word that is read while it is written is the old or the new one, then the new one."""
    words = 6
    await bench.begin()
    for index in range(words):
        await bench.measure(20 + index)
    await bench.settle()
    await bench.begin()

    async def drive() -> None:
        for index in range(words):
            await bench.cycles(3)
            await bench.measure(40 + index)

    task = cocotb.start_soon(drive())
    previous = 0
    while not task.done():
        index = min(len(bench.model.starts), words - 1)  # the one that comes next
        word = await bench.read_word(bench.s00, 4 * index)
        assert word in (20 + index, 40 + index)
        if previous > 0:
            assert await bench.read_word(bench.s00, 4 * previous - 4) == 39 + previous
        previous = index
    await bench.check()
    assert await bench.samples(words) == [40 + index for index in range(words)]


@case()
async def case_12_we_cleared_during_a_measurement(bench: Bench) -> None:
    """What is open is aborted; the old samples stay readable."""
    await bench.begin()
    await bench.measure(7)
    await bench.set(irq=1)
    await bench.settle()
    coverage.hit("we", "cleared while open")
    await bench.write("we", 0)
    await bench.pulse(ack=1)
    assert await bench.read("num") == 1
    await bench.check()
    assert await bench.samples(1) == [7]
    await bench.begin()
    await bench.set(irq=0)
    await bench.pulse(irq=1)
    await bench.settle()
    await bench.begin()
    await bench.pulse(ack=1)  # no ack in between: what was open is gone all the same
    await bench.check()
    assert await bench.read("num") == 0
    assert await bench.samples(1) == [7]


@case()
async def case_12_we_set_while_irq_is_high(bench: Bench) -> None:
    """A level that was there before is no edge: the next one counts."""
    await bench.set(irq=1)
    await bench.settle()
    coverage.hit("we", "set while irq is high")
    await bench.begin()
    await bench.pulse(ack=1)
    await bench.set(irq=0)
    await bench.check()
    assert await bench.read("num") == 0
    await bench.measure(4)
    await bench.check()
    assert await bench.read("num") == 1


@case()
async def case_12_we_set_while_set(bench: Bench) -> None:
    """Writing 1 again changes nothing, not even what is open."""
    await bench.begin()
    await bench.measure(7)
    await bench.pulse(irq=1)
    await bench.write("we", 1)
    coverage.hit("we", "set while set")
    await bench.pulse(ack=1)
    await bench.check()
    assert await bench.read("num") == 2


@case()
async def case_13_clear_while_a_store_is_pending(bench: Bench) -> None:
    """Acks in every cycle around the end of a series and the begin of the next one."""
    for offset in OFFSETS:
        await bench.begin()
        await bench.measure(3)
        await bench.set(irq=1)
        await bench.set(irq=0)
        await bench.settle()
        await ack_around(bench, bench.begin(), offset)
        await bench.check()
        assert await bench.read("num") == 0
        await bench.measure(5 + offset)
        await bench.check()


@case()
async def case_13_ack_while_we_is_being_cleared(bench: Bench) -> None:
    """An ack counts up to the very cycle in which we is being cleared, then no more."""
    counted = set()
    for offset in OFFSETS:
        await bench.begin()
        await bench.pulse(irq=1)
        await bench.settle()
        await ack_around(bench, bench.write("we", 0), offset)
        await bench.check()
        counted.add(await bench.read("num"))
    assert counted == {0, 1}
    coverage.hit("we", "cleared in an ack's cycle")


@case()
async def case_14_alarm(bench: Bench) -> None:
    """Strictly greater than alarm_lat, sticky until a 1 is written."""
    await bench.begin()
    await bench.write("alarm_lat", 20)
    for latency, alarm in ((19, 0), (20, 0), (21, 1), (3, 1), (90, 1)):
        await bench.measure(latency)
        await bench.settle()
        assert await bench.read("alarm") == alarm, latency
        assert int(bench.dut.alarm.value) == alarm
    await bench.check()
    coverage.samples(bench.model)
    await bench.write("alarm", 0)
    assert await bench.read("alarm") == 1
    await bench.begin()
    assert await bench.read("alarm") == 1
    await bench.write("alarm", 1)
    assert await bench.read("alarm") == 0
    await bench.measure(20)
    await bench.check()


@case()
async def case_14_alarm_set_wins_over_clear(bench: Bench) -> None:
    """Clears in every cycle around the ack: one in the same cycle does not lose the alarm."""
    seen = set()
    await bench.write("alarm_lat", 4)
    await bench.begin()
    for offset in OFFSETS:
        await bench.pulse(irq=1)
        await bench.cycles(8)
        await ack_around(bench, bench.write("alarm", 1), offset)
        await bench.check()
        seen.add(bench.model.alarm)
        await bench.write("alarm", 1)
    assert seen == {True, False}


@case()
async def case_14_alarm_lat_changed_during_a_measurement(bench: Bench) -> None:
    """The value at the ack counts, whatever it was at the irq."""
    await bench.begin()
    await bench.write("alarm_lat", 1)
    await bench.pulse(irq=1)
    await bench.write("alarm_lat", 1000)
    await bench.cycles(20)
    await bench.pulse(ack=1)
    await bench.check()
    assert await bench.read("alarm") == 0
    seen = set()
    for offset in OFFSETS:
        await bench.write("alarm_lat", 1000)
        await bench.pulse(irq=1)
        await bench.cycles(8)
        await ack_around(bench, bench.write("alarm_lat", 2), offset)
        await bench.check()
        seen.add(bench.model.alarm)
        await bench.write("alarm", 1)
    assert seen == {True, False}


@case(needs=lambda ip: ip.watchdog)
async def case_15_open_and_too_late(bench: Bench) -> None:
    """A measurement without an ack is given up after `timeout` cycles, with an interrupt."""
    await bench.write("timeout", 40)
    await bench.write("interrupt_enable", 2)
    await bench.begin()
    await bench.measure(40)  # just in time
    await bench.check()
    assert int(bench.dut.interrupt.value) == 0
    await bench.pulse(irq=1)
    await bench.cycles(38)
    assert int(bench.dut.interrupt.value) == 0
    await bench.settle()
    assert int(bench.dut.interrupt.value) == 1
    await bench.check()
    assert await bench.read("timeouts") == 1
    assert await bench.read("interrupt_status") & 2
    await bench.write("interrupt_status", 2)
    await bench.cycles(1)
    assert int(bench.dut.interrupt.value) == 0
    await bench.pulse(ack=1)  # too late: an orphan
    await bench.measure(6)
    await bench.check()
    for latency in (39, 40, 41, 42):  # irqs around the end of one that is given up
        await bench.measure(latency)
        await bench.pulse(irq=1)
        await bench.cycles(latency - 3)
        await bench.pulse(irq=1)
        await bench.cycles(9)
        await bench.pulse(ack=1)
        await bench.cycles(60)
        await bench.check()


@case()
async def case_19_every_latency_is_exact(bench: Bench) -> None:
    """An ack in the cycle after the irq is 1; then every number up to 64."""
    await bench.begin()
    for latency in range(65):
        await bench.measure(latency)
        await bench.settle()
        assert await bench.read("last") == latency
    await bench.check()
    coverage.samples(bench.model)


@case(needs=lambda ip: not ip.extended)
async def published_map_has_nothing_more(bench: Bench) -> None:
    """Every address from 0x1C on answers an error."""
    for address in (0x1C, 0x20, 0x34, 0x80, 0xFC, 0x100, 0xFFC):
        for access in (
            bench.read_word(bench.s01, address),
            bench.write_word(bench.s01, address, 1),
        ):
            try:
                await access
            except RefusedError:
                continue
            raise AssertionError(hex(address))
