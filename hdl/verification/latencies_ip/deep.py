"""A deep memory of wide latencies, and a stream without time stamps: small designs hide both."""

from verification.latencies_ip.bench import Bench, RefusedError, case


@case()
async def every_region_is_within_the_window(bench: Bench) -> None:
    """First and last word of both regions can be read; what is behind them is refused."""
    await bench.begin()
    await bench.measure(7)
    await bench.settle()
    region = bench.ip.region_bytes
    assert region > 4096, "the regions of this design need more than the smallest window"
    for place, word in ((0, 7), (region - 4, 0), (region, 0), (2 * region - 4, 0)):
        assert await bench.read_word(bench.s00, place) == word
    for place in (2 * region, 8 * region - 4):
        try:
            await bench.read_word(bench.s00, place)
        except RefusedError:
            continue
        raise AssertionError(f"{place:#x} is not a word")


@case()
async def a_beat_without_a_time_stamp_starts_at_0(bench: Bench) -> None:
    """As the page of the stream says."""
    await bench.begin()
    for latency in (3, 9):
        await bench.measure(latency)
        await bench.cycles(5)
    await bench.settle()
    told = [(beat & 2**64 - 1, beat >> 64 & 2**48 - 1) for beat in bench.beats]
    assert told == [(0, 3), (0, 9)]
