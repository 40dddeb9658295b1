"""Constrained random edges while software reads, writes and restarts; every channel pauses."""

import random

import cocotb

from verification.latencies_ip import coverage
from verification.latencies_ip.bench import Bench, case

SERIES = 8
EDGES = 80


async def _edges(bench: Bench, chance: random.Random) -> None:
    """Irqs and acks with all kinds of distances, levels and bursts."""
    for _ in range(EDGES):
        style = chance.randrange(6)
        if style == 0:  # both wires by chance, for some cycles
            for _ in range(chance.randrange(1, 12)):
                await bench.set(irq=chance.randrange(2), ack=chance.randrange(2))
        elif style == 1:  # a burst of irqs, then of acks
            for _ in range(chance.randrange(1, bench.ip.queue_depth + 3)):
                await bench.pulse(irq=1)
            for _ in range(chance.randrange(bench.ip.queue_depth + 3)):
                await bench.pulse(ack=1)
        else:
            await bench.measure(chance.choice((0, 1, 1, 2, 3, chance.randrange(40))))
            await bench.cycles(chance.choice((0, 0, 1, chance.randrange(20))))
    await bench.set(irq=0, ack=0)


async def _software(bench: Bench, chance: random.Random, driving: cocotb.task.Task[None]) -> None:
    """Reads that must fit the recent past, and writes that change what counts."""
    limits = (0, 1, 2, 5, 30, bench.ip.latency_max)
    while not driving.done():
        action = chance.randrange(6)
        if action == 0:
            await bench.write("alarm_lat", chance.choice(limits))
        elif action == 1:
            await bench.write("alarm", chance.randrange(2))
        elif action == 2:
            index = chance.randrange(bench.ip.depth)
            await bench.read_word(bench.s00, 4 * index)
        elif action == 3:
            before = bench.model.max
            assert before <= await bench.read("max") or len(bench.model.starts) == 0
        elif action == 4:
            await bench.write("we", 1)
        else:
            await bench.read("num")


@case()
async def random_traffic(bench: Bench) -> None:
    """Series of random edges with software at work; after each, everything is compared."""
    chance = random.Random(f"{bench.ip}")
    bench.pause(30)
    for series in range(SERIES):
        if bench.ip.extended:
            await bench.write("we", 0)
            await bench.write("mode", series % 2)
        await bench.begin()
        driving = cocotb.start_soon(_edges(bench, chance))
        await _software(bench, chance, driving)
        if series % 3 == 0:
            await bench.write("we", 0)
        await bench.check()
        coverage.samples(bench.model)
        if bench.ip.stream:
            _check_beats(bench)


def _check_beats(bench: Bench) -> None:
    """The stream has told each sample of the series, with its start."""
    expected, told = bench.model.beats(), bench.beats
    bench.beats = []
    assert len(told) == len(expected)
    if not told:
        return
    offset = (told[0] - expected[0]) % 2**64  # when the counter began
    low = 2**64 - 1
    sequence = (told[0] >> 121) - (expected[0] >> 121)
    for beat, wanted in zip(told, expected, strict=True):
        assert (beat & low) == (wanted + offset) % 2**64
        assert beat >> 64 & 2**57 - 1 == wanted >> 64 & 2**57 - 1
        assert beat >> 121 == ((wanted >> 121) + sequence) % 128
