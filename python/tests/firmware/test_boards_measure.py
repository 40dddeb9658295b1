"""The firmware on every emulated board: real QEMU, every sample."""

import math
import struct
import zlib

import numpy as np
import pytest
from machines import run, run_image
from scipy import stats

from latenz.boards.firmware import Parameters, image
from latenz.errors import BadInput

pytestmark = pytest.mark.boots

BOARDS = ("virt", "zcu102", "mps3-an536", "zcu102-r5")
INTERRUPTED = BOARDS[:3]


@pytest.mark.parametrize("optimization", ["O0", "O2"])
@pytest.mark.parametrize("board", BOARDS)
def test_samples_are_bit_identical(board, optimization, tmp_path):
    first, second = (run(board, optimization, tmp_path, again=True) for _ in range(2))
    assert first == second
    assert (first.complete, first.lost, first.faults) == (True, 0, [])
    assert len(first.latency) == 400
    assert first.hello["board"] == board
    assert first.hello["optimization"] == optimization
    assert first.hello["interrupt"] is (board in INTERRUPTED)


@pytest.mark.parametrize("board", INTERRUPTED)
def test_sleeping_costs_an_emulated_core_nothing(board, tmp_path):
    """Alone on its core, the way to the handler is as long from `wfi` as from a loop."""
    looping = run(board, "O0", tmp_path)
    sleeping = run(board, "O0", tmp_path, wait_for_interrupt=True)
    assert looping.latency == sleeping.latency
    assert sleeping.hello["parameters"]["wait"] == "wfi"


@pytest.mark.parametrize("board", INTERRUPTED)
def test_the_optimizer_shortens_the_way_to_the_handler(board, tmp_path):
    slow, fast = (run(board, level, tmp_path).latency for level in ("O0", "O2"))
    assert max(fast) <= min(slow)


def test_latency_is_the_instructions_of_the_path(tmp_path):
    """A tick of the virtual counter is one instruction: vector, saved registers, handler."""
    assert set(run("virt", "O2", tmp_path).latency) == {14}
    assert set(run("mps3-an536", "O2", tmp_path).latency) == {8}


@pytest.mark.parametrize("board", BOARDS)
def test_fifteen_thousand_samples_without_loss(board, tmp_path):
    sent = run(
        board,
        "O0",
        tmp_path,
        samples=15_000,
        period_ns=125_000,
        wait_for_interrupt=board in INTERRUPTED,
    )
    assert (sent.complete, sent.lost) == (True, 0)
    assert len(sent.latency) == len(sent.interarrival) == 15_000


def splitmix64(seed):
    """Steele, Lea, Flood: Fast splittable pseudorandom number generators, figure 17."""
    state, mask = seed, 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def expected_gaps(mean, least, seed, count):
    """What the documented generator gives, by Python's own logarithm."""
    numbers = splitmix64(seed)
    return [max(least, -mean * math.log((next(numbers) | 1) / 2**64)) for _ in range(count)]


@pytest.mark.parametrize("board", ["virt", "mps3-an536"])
@pytest.mark.parametrize(("seed", "least_ns"), [(1, 0), (2**64 - 1, 100_000)])
def test_exponential_arrivals_follow_the_generator(board, seed, least_ns, tmp_path):
    mean_ns, warm_up, count = 200_000, 5, 15_000
    sent = run(
        board,
        "O2",
        tmp_path,
        samples=count,
        warm_up=warm_up,
        period_ns=mean_ns,
        exponential=True,
        min_distance_ns=least_ns,
        seed=seed,
        wait_for_interrupt=True,
    )
    assert sent.hello["timer_hz"] == 10**9  # ticks are nanoseconds
    expected = expected_gaps(mean_ns, least_ns, seed, count + warm_up)[warm_up:]
    worst = np.max(np.abs(np.array(sent.interarrival) - np.array(expected)))
    assert worst <= 1 + mean_ns * 2**-20
    tail = np.array([gap for gap in sent.interarrival if gap > least_ns]) - least_ns
    assert stats.kstest(tail, stats.expon(scale=mean_ns).cdf).pvalue > 0.01


def test_every_event_has_its_time(tmp_path):
    """Periodic events by an absolute clock: no drift, whatever the handler takes."""
    sent = run("virt", "O0", tmp_path, samples=2000, period_ns=20_000)
    assert set(sent.interarrival) == {20_000}


def test_measuring_starts_when_asked(tmp_path):
    """Without warm-up the first event's distance is that to the start."""
    sent = run("virt", "O0", tmp_path, warm_up=0, start_after_ns=10**9, wait_for_interrupt=True)
    assert sent.interarrival[0] == 10**9
    assert set(sent.interarrival[1:]) == {250_000}
    assert sent.hello["parameters"]["start_after_ns"] == 10**9


@pytest.mark.parametrize("timer", ["generic", "ttc"])
def test_a_board_with_two_timers_measures_by_either(timer, tmp_path):
    sent = run("zcu102", "O0", tmp_path, timer=timer)
    assert sent.hello["timer"] == timer
    assert (sent.complete, len(sent.latency)) == (True, 400)


def test_the_dual_timer_measures_too(tmp_path):
    sent = run("mps3-an536", "O0", tmp_path, timer="dual")
    assert (sent.hello["timer"], sent.hello["timer_hz"]) == ("dual", 50_000_000)
    assert max(sent.latency) <= 1


@pytest.mark.parametrize("level", ["secure=on", "virtualization=on", "secure=on,virtualization=on"])
def test_any_exception_level_may_enter(level, tmp_path):
    kernel = image("zcu102", "O0", Parameters(), tmp_path)
    sent = run_image("zcu102", kernel, tmp_path, more=f"-M xlnx-zcu102,{level}")
    assert sent.hello["entry_level"] == (3 if "secure" in level else 2)
    assert sent.latency == run("zcu102", "O0", tmp_path).latency


@pytest.mark.parametrize("optimization", ["O0", "O2"])
@pytest.mark.parametrize("board", BOARDS)
def test_a_fault_is_told(board, optimization, tmp_path):
    sent = run(board, optimization, tmp_path, provoke="undefined instruction")
    [fault] = sent.faults
    assert fault.startswith("undefined instruction: ")
    assert sent.latency == []
    assert sent.complete is True


def patched(board, folder, offset, value):
    """An image whose parameter block was changed, with or without the right checksum."""
    path = image(board, "O0", Parameters(), folder)
    content = bytearray(path.read_bytes())
    start = content.index(Parameters().block())
    struct.pack_into("<I", content, start + offset, value)
    if offset != 92:
        struct.pack_into("<I", content, start + 92, zlib.crc32(content[start : start + 92]))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (92, 0, "parameter block: wrong checksum"),
        (8, 2, "parameter block: not of version 1"),
        (16, 0, "parameter samples: not 1 to 100000"),
        (16, 100_001, "parameter samples: not 1 to 100000"),
        (20, 2**32 - 1, "parameter warm_up: more than 100000 with samples"),
        (24, 0, "parameter period_ns: not 1 ns to 10 s"),
        (56, 2, "parameter arrivals: not 0 or 1"),
        (60, 9, "parameter wait: not 0 or 1"),
        (64, 2, "parameter timer: not on this board"),
        (68, 2, "parameter delivery: this timer cannot be polled"),
        (76, 256, "parameter sender: beyond 255"),
        (84, 1, "parameter await_command: nobody commands here"),
        (88, 1, "parameter reserved: not 0"),
    ],
)
def test_wrong_parameters_are_refused(offset, value, reason, tmp_path):
    sent = run_image("virt", patched("virt", tmp_path, offset, value), tmp_path)
    assert sent.faults == [reason]
    assert sent.latency == []


def test_what_a_timer_cannot_do_is_refused(tmp_path):
    sent = run("zcu102", "O0", tmp_path, exponential=True)
    assert sent.faults == ["parameter arrivals: this timer is periodic only; use the generic one"]
    sent = run("zcu102", "O0", tmp_path, period_ns=10**9)
    assert sent.faults == ["parameter period_ns: longer than the timer counts"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", 0),
        ("samples", 100_001),
        ("warm_up", -1),
        ("warm_up", 99_601),
        ("period_ns", 0),
        ("seed", 2**64),
        ("sender", 256),
        ("timer_hz", -1),
    ],
)
def test_parameters_out_of_range_are_named(field, value):
    with pytest.raises(BadInput, match=f"firmware parameter {field}: {value} is out of range"):
        Parameters(**{field: value})


def test_an_unknown_board_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"toaster-O0/latency\.elf: was not built"):
        image("toaster", "O0", Parameters(), tmp_path)
