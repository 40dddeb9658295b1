"""What the IP has beyond the publication: each addition against the model."""

import random
from collections.abc import Callable

import cocotb
from cocotb.triggers import RisingEdge

from verification.latencies_ip.bench import Bench, RefusedError, case
from verification.model.configuration import Configuration
from verification.model.registers import registers


def _has(feature: str) -> Callable[[Configuration], bool]:
    return lambda ip: bool(getattr(ip, feature))


async def _random_samples(bench: Bench, count: int, longest: int) -> None:
    chance = random.Random(count)
    for _ in range(count):
        await bench.measure(chance.choice((0, 1, 2, chance.randrange(longest))))
    await bench.settle()


@case()
async def identification_and_reset_values(bench: Bench) -> None:
    """Each register reads its reset value, also when software had written others; those that
    describe the IP describe this one."""
    for written in (False, True):
        if written:
            for register in registers(bench.ip):
                if register.access == "rw":
                    await bench.write(register.name, register.mask)
            await bench.reset()
        for register in registers(bench.ip):
            seen = await bench.read(register.name)
            if register.reset is not None:
                assert seen == register.reset, register


@case(needs=_has("histogram"))
async def histogram_counts_every_sample(bench: Bench) -> None:
    """Each bin is exact, what lies beyond is counted, and nothing is lost."""
    shift = 0 if bench.ip.log_linear else 2
    await bench.write("histogram_shift", shift)
    await bench.begin()
    await _random_samples(bench, 300, 30)
    for latency in (150, 300, 511, 512, 700):
        await bench.measure(latency)
    for _ in range(9):  # the same bin every other cycle
        await bench.pulse(irq=1, ack=1)
    await bench.check()
    bins, beyond = bench.model.histogram(shift)
    assert await bench.read("histogram_overflow") == beyond
    seen = [await _bin(bench, index) for index in range(bench.ip.histogram_bins)]
    assert seen == [bins[index] for index in range(bench.ip.histogram_bins)]
    assert sum(seen) + beyond == await bench.read("num")


async def _bin(bench: Bench, index: int) -> int:
    return await bench.read_word(bench.s00, 4 * bench.ip.region_bytes + 4 * index)


@case(needs=_has("histogram"))
async def histogram_read_and_clear_loses_nothing(bench: Bench) -> None:
    """Reading a bin while it is counted: what was read and what is left add up."""
    await bench.write("mode", 2)
    await bench.begin()

    async def drive() -> None:
        for _ in range(200):
            await bench.pulse(irq=1, ack=1)

    task, taken = cocotb.start_soon(drive()), 0
    while not task.done():
        taken += await _bin(bench, 0)
    await bench.settle()
    assert taken > 0
    taken += await _bin(bench, 0)
    assert taken == 200
    assert await _bin(bench, 0) == 0


@case(needs=_has("histogram"))
async def nothing_is_measured_before_ready(bench: Bench) -> None:
    """While the bins are swept edges are no measurement, and status says so."""
    await bench.write("we", 1)
    assert not await bench.read("status") & 0x20
    await bench.measure(3)
    await bench.cycles(bench.ip.histogram_bins)
    assert await bench.read("status") & 0x20
    await bench.check()
    assert await bench.read("num") == 0
    await bench.measure(4)
    await bench.check()


@case(needs=_has("time_stamp"))
async def time_stamps_are_the_starts(bench: Bench) -> None:
    """Each sample's time stamp is the cycle of its irq, on the clock that time_low tells."""
    if bench.ip.shared_time:
        cocotb.start_soon(_shared_time(bench))
    await bench.begin()
    await _random_samples(bench, 40, 30)
    stored = bench.model.stored()
    region = bench.ip.region_bytes
    seen = {}
    for index in stored:
        low = await bench.read_word(bench.s00, 2 * region + 4 * index)
        high = await bench.read_word(bench.s00, 3 * region + 4 * index)
        seen[index] = low | high << 32
    offset = seen[0] - stored[0].start
    assert seen == {index: sample.start + offset for index, sample in stored.items()}
    before = bench.tick
    now = await bench.read("time_low") | await bench.read("time_high") << 32
    assert before + offset <= now <= bench.tick + offset
    if bench.ip.shared_time:
        assert abs(offset - (7 << 32)) < before


async def _shared_time(bench: Bench) -> None:
    now = 7 << 32
    while True:
        bench.dut.time_in.value = now
        await RisingEdge(bench.dut.aclk)
        now += 1


@case(needs=_has("stream"))
async def stream_tells_what_it_could_not_send(bench: Bench) -> None:
    """With a slow receiver beats are dropped and counted; the sequence numbers show which."""
    await bench.begin()
    chance = random.Random(3)

    async def receive() -> None:
        while True:
            bench.dut.m_axis_tready.value = int(chance.random() < 0.1)
            await RisingEdge(bench.dut.aclk)

    task = cocotb.start_soon(receive())
    for _ in range(120):
        await bench.pulse(irq=1, ack=1)
        await bench.measure(chance.randrange(9))
    task.cancel()
    bench.dut.m_axis_tready.value = 1
    await bench.cycles(40)
    await bench.check()
    sent, dropped = await bench.read("stream_sent"), await bench.read("stream_dropped")
    assert dropped > 0
    assert sent == len(bench.beats)
    assert sent + dropped == len(bench.model.starts)
    wanted, index = bench.model.beats(), -1
    fields = (2**57 - 1) << 64
    for beat in bench.beats:
        sequence = beat >> 121
        index += (sequence - index - 1) % 128 + 1
        assert beat & fields == wanted[index] & fields


@case(needs=_has("freeze"))
async def half_with_the_maximum_is_kept(bench: Bench) -> None:
    """What came before and after a new maximum stays, with its place; then with alarms as well."""
    for mode, post_trigger in ((0, 5), (0, 0), (4, 9), (0, 2**32 - 1)):
        await bench.write("mode", mode)
        await bench.write("post_trigger", post_trigger)
        await bench.write("alarm_lat", 20)
        await bench.write("interrupt_status", 15)
        await bench.begin()
        chance = random.Random(post_trigger)
        for index in range(150):
            longest = 40 if index == 70 else 20 + index // 8 if index > 100 else 12
            await bench.measure(chance.randrange(2, longest))
            if index % 30 == 29:
                await _check_halves(bench)
        await bench.check()
        assert bool(await bench.read("interrupt_status") & 8) == (
            bench.model.halves()[1] is not None
        )


@case(needs=_has("freeze"))
async def a_series_does_not_end_what_the_one_before_began(bench: Bench) -> None:
    """Latencies of 0 are no new maximum: nothing is frozen, though a half was about to be."""
    await bench.write("mode", 0)
    await bench.write("post_trigger", 3)
    await bench.begin()
    await bench.measure(5)
    await bench.measure(1)
    await bench.begin()
    for _ in range(8):
        await bench.measure(0)
    await _check_halves(bench)
    await bench.check()


async def _check_halves(bench: Bench) -> None:
    await bench.settle()
    _, frozen, position = bench.model.halves()
    assert await bench.read("write_position") == position
    status = await bench.read("status")
    assert bool(status & 0x80) == (frozen is not None)
    if frozen:
        names = ("trigger_position", "frozen_end", "frozen_count")
        seen = [await bench.read(name) for name in names]
        assert [status >> 8 & 1, *seen] == list(frozen)


@case(needs=_has("self_test"))
async def self_test_measures_known_delays(bench: Bench) -> None:
    """Its latencies are those it was told, whatever the inputs do meanwhile."""
    await bench.write("self_test_delay", 3)
    await bench.write("self_test_count", 12)
    await bench.write("interrupt_enable", 4)
    await bench.begin()
    await bench.measure(9)
    await bench.write("command", 2)
    for _ in range(300):
        await bench.set(irq=random.randrange(2), ack=random.randrange(2))
    assert int(bench.dut.interrupt.value) == 0 or await bench.read("num") == 12
    for _ in range(60):
        if await bench.read("interrupt_status") & 4:
            break
        await bench.cycles(20)
    assert int(bench.dut.interrupt.value) == 1
    assert not await bench.read("status") & 0x40
    assert await bench.read("num") == 12
    if not bench.ip.freeze:
        assert await bench.samples(12) == list(range(3, 15))
    await bench.set(irq=0, ack=0)
    await bench.begin()
    await bench.measure(8)
    await bench.settle()
    assert (await bench.read("num"), await bench.read("last")) == (1, 8)


@case()
async def interrupt_of_an_alarm(bench: Bench) -> None:
    """The interrupt follows the enabled status bits, which stay until a 1 is written."""
    await bench.write("alarm_lat", 5)
    await bench.begin()
    await bench.measure(6)
    await bench.settle()
    assert await bench.read("interrupt_status") & 1
    assert int(bench.dut.interrupt.value) == 0
    await bench.write("interrupt_enable", 1)
    await bench.cycles(2)
    assert int(bench.dut.interrupt.value) == 1
    await bench.write("interrupt_status", 1)
    await bench.cycles(2)
    assert int(bench.dut.interrupt.value) == 0
    assert await bench.read("alarm") == 1


@case(needs=_has("counters"))
async def counters_begin_anew_with_a_series(bench: Bench) -> None:
    """Counters are of the series, and stay readable after it."""
    await bench.begin()
    for _ in range(3):
        await bench.pulse(ack=1)
    for _ in range(bench.ip.queue_depth + 2):
        await bench.pulse(irq=1)
    await bench.check()
    await bench.write("we", 0)
    await bench.check()
    assert await bench.read("orphans") == 3
    await bench.begin()
    await bench.check()
    assert await bench.read("orphans") == 0


@case()
async def absent_additions_answer_an_error(bench: Bench) -> None:
    """A register of an addition that is not there is as absent as any other."""
    present = {register.address for register in registers(bench.ip)}
    for address in range(0, 0x100, 4):
        try:
            await bench.read_word(bench.s01, address)
        except RefusedError:
            assert address not in present, hex(address)
        else:
            assert address in present, hex(address)
