"""The simulated board: what it serves, that it repeats itself, and that nothing of it stays."""

import itertools
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.ip import simulated
from latenz.ip.edges import Edge, read_edges, write_edges
from latenz.ip.simulated import Answers, Scenario, simulated_board

pytestmark = pytest.mark.boots

SERVE = Path(__file__).parents[1] / "simulation/serve"
READ, WRITE, WAIT, DESCRIBE = 1, 2, 3, 4
OKAY, SLVERR, DECERR, REFUSED = 0, 2, 3, 255
WE, LAST, MAX, MIN, NUM = 0x00, 0x08, 0x0C, 0x10, 0x14
ORPHANS, MISSED, TIMEOUT, TIMEOUTS = 0x4C, 0x54, 0x5C, 0x60
REQUESTS, OVERRUNS = 0x18, 0x14
ENABLE, BASE_LOW, WRITTEN, CONSUMED = 0x00, 0x04, 0x10, 0x14
START_LIMIT_S = 120


class Client:
    """The protocol, byte by byte."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(START_LIMIT_S)
        self.socket.connect(os.fspath(path))

    def close(self) -> None:
        self.socket.close()

    def receive(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self.socket.recv(size - len(content))
            if not part:
                raise EOFError
            content += part
        return content

    def ask(
        self, operation: int, window: int, count: int, argument: int, words: bytes = b""
    ) -> tuple[int, int, int]:
        self.socket.sendall(struct.pack("<BBHI", operation, window, count, argument) + words)
        status, zero, found, index = struct.unpack("<BBHI", self.receive(8))
        assert zero == 0
        return status, found, index

    def read(self, window: int, address: int, count: int = 1) -> list[int]:
        assert self.ask(READ, window, count, address) == (OKAY, count, 0)
        return list(struct.unpack(f"<{count}I", self.receive(4 * count)))

    def write(self, window: int, address: int, *words: int) -> None:
        content = struct.pack(f"<{len(words)}I", *words)
        assert self.ask(WRITE, window, len(words), address, content) == (OKAY, 0, 0)

    def wait(self, cycles: int) -> None:
        assert self.ask(WAIT, 0, 0, cycles) == (OKAY, 0, 0)

    def describe(self) -> dict:
        status, size, _ = self.ask(DESCRIBE, 0, 0, 0)
        assert status == OKAY
        return json.loads(self.receive(-(-size // 4) * 4)[:size])


@pytest.fixture(scope="module")
def bench() -> Iterator[Path]:
    """A bench whose processor is so slow that it never interrupts."""
    with simulated_board(scenario=Scenario(period_cycles=1 << 31)) as path:
        yield path


@pytest.fixture
def client(bench: Path) -> Iterator[Client]:
    with closing(Client(bench)) as connected:
        yield connected


def test_board_says_what_it_is(client: Client) -> None:
    found = client.describe()
    assert [each["name"] for each in found.pop("instances")] == ["T1", "T2"]
    assert found == {
        "board": "simulated latency_bench",
        "time_base": "simulated",
        "clock_hz": 100_000_000,
        "generator": 4,
    }


def test_errors_name_the_first_word_that_failed(client: Client) -> None:
    assert client.ask(READ, 1, 3, 0x14) == (SLVERR, 2, 2)  # num and alarm, then nothing
    assert len(client.receive(8)) == 8
    assert client.ask(WRITE, 1, 3, 0x00, struct.pack("<3I", 0, 77, 0)) == (SLVERR, 0, 2)
    assert client.read(1, 0x04) == [77]  # the words before the first that failed are written
    assert client.ask(READ, 1, 2, 0x0FFC)[0] == SLVERR
    assert client.ask(READ, 1, 1, 0x1000) == (DECERR, 0, 0)
    assert client.ask(WRITE, 1, 1, 0xFFFFFFFC, bytes(4)) == (DECERR, 0, 0)
    assert client.read(1, 0x05) == [77]  # the low two bits of an address are ignored


def test_what_is_no_request_is_refused_and_the_rest_served(bench: Path, client: Client) -> None:
    assert client.ask(READ, 5, 1, 0) == (REFUSED, 0, 0)
    assert client.ask(READ, 0, 0, 0) == (REFUSED, 0, 0)
    assert client.ask(WRITE, 9, 2, 0, bytes(8)) == (REFUSED, 0, 0)
    client.write(1, 0x04, 5)
    assert client.ask(200, 0, 0, 0) == (REFUSED, 0, 0)
    with pytest.raises(EOFError):
        client.receive(1)
    with closing(Client(bench)) as other:  # what was written is still there
        assert other.read(1, 0x04) == [5]


@pytest.mark.parametrize("sent", [b"", b"\x01", b"\x02\x01\x05\x00\0\0\0\0" + bytes(7)])
def test_a_client_may_leave_anywhere(bench: Path, sent: bytes) -> None:
    with closing(Client(bench)) as leaving:
        leaving.socket.sendall(sent)
    with closing(Client(bench)) as other:
        assert other.describe()["time_base"] == "simulated"


def test_a_client_that_leaves_ends_its_wait(bench: Path) -> None:
    with closing(Client(bench)) as leaving:
        leaving.socket.sendall(struct.pack("<BBHI", WAIT, 0, 0, 0xFFFFFFFF))  # hours
    with closing(Client(bench)) as other:
        assert other.describe()["time_base"] == "simulated"


def test_time_passes_only_while_a_request_is_served() -> None:
    scenario = Scenario(period_cycles=200, lose_every=7, seed=5)
    found = []
    for pause_s in (0.0, 0.4):
        with simulated_board(scenario=scenario) as path, closing(Client(path)) as client:
            for window in (1, 3):
                client.write(window, WE, 1)
            time.sleep(pause_s)
            client.wait(6_000)
            found.append(
                [client.read(window, 0, 64) for window in (0, 2)]
                + [client.read(window, LAST, 4) for window in (1, 3)]
                + [client.read(4, REQUESTS)]
            )
    assert found[0] == found[1]
    assert found[0][-1][0] >= 30


def drawn(answers: Answers, seed: int) -> Iterator[int]:
    """The latencies that the documentation promises."""
    chance = random.Random(seed)
    while True:
        latency = answers.least_cycles + int(chance.random() * (answers.spread_cycles + 1))
        if int(chance.random() * answers.late_one_in) == 0:
            latency += 1 + int(chance.random() * answers.late_cycles)
        yield latency


def test_samples_go_into_the_memory_of_the_ring() -> None:
    """Word by word as sample_stream.md has it: tick, latency, channel and number."""
    answers = Answers(least_cycles=3, spread_cycles=9, late_one_in=4, late_cycles=30)
    scenario = Scenario(period_cycles=100, answers=answers, seed=11, ring_log2=3)
    with (
        simulated_board("latency_stream", {"channel_g": 5}, scenario) as path,
        closing(Client(path)) as client,
    ):
        (instance,) = client.describe()["instances"]
        ring = instance["ring"]
        assert not instance["published"]
        assert (ring["registers"], ring["memory"], ring["size_log2"]) == (2, 3, 3)
        client.write(2, BASE_LOW, ring["base"], 0, 3)
        client.write(2, ENABLE, 1)
        client.write(1, WE, 1)
        client.wait(4_000)
        assert client.read(2, WRITTEN) == [8]
        words = client.read(3, 0, 32)
        expected = list(itertools.islice(drawn(answers, 11), 100))
        latencies = [words[4 * i + 2] for i in range(8)]
        assert any(expected[i : i + 8] == latencies for i in range(50))
        assert [words[4 * i + 3] for i in range(8)] == [i << 25 | 5 << 16 for i in range(8)]
        starts = [words[4 * i + 1] << 32 | words[4 * i] for i in range(8)]
        assert {b - a for a, b in itertools.pairwise(starts)} == {100}
        assert client.ask(WRITE, 3, 1, 0, bytes(4)) == (SLVERR, 0, 0)
        assert client.ask(READ, 3, 2, 124) == (DECERR, 1, 1)
        assert len(client.receive(4)) == 4
        client.write(2, CONSUMED, 8)
        client.wait(100)
        assert client.read(2, WRITTEN) == [16]
        assert client.read(3, 0, 32) != words


def test_ip_alone_measures_exactly_what_was_drawn() -> None:
    answers = Answers(least_cycles=3, spread_cycles=9, late_one_in=4, late_cycles=30)
    scenario = Scenario(period_cycles=100, count=40, answers=answers, seed=11)
    with (
        simulated_board("latencies_ip", {"synchroniser_stages_g": 2}, scenario) as path,
        closing(Client(path)) as client,
    ):
        client.write(1, WE, 1)
        client.wait(5_000)
        expected = [latency for latency, _ in zip(drawn(answers, 11), range(40), strict=False)]
        assert client.read(1, NUM) == [40]
        assert client.read(0, 0, 40) == expected
        assert client.read(1, LAST, 3) == [expected[-1], max(expected), min(expected)]
        assert client.describe()["generator"] is None


def test_bench_measures_the_drawn_latency_and_the_read() -> None:
    answers = Answers(least_cycles=20, spread_cycles=40, late_one_in=3, late_cycles=100)
    scenario = Scenario(period_cycles=400, count=30, answers=answers, seed=3)
    with (
        simulated_board(generics={"words_g": 5}, scenario=scenario) as path,
        closing(Client(path)) as client,
    ):
        for window in (1, 3):
            client.write(window, WE, 1)
        client.wait(31 * 400)
        expected = [latency + 1 for latency, _ in zip(drawn(answers, 3), range(30), strict=False)]
        assert client.read(2, 0, 30) == expected
        assert client.read(0, 0, 30) == [6] * 30
        assert client.read(4, REQUESTS) + client.read(4, OVERRUNS) == [30, 0]


def test_lost_interrupts_are_what_the_watchdog_sees() -> None:
    scenario = Scenario(period_cycles=500, count=20, lose_every=5, seed=2)
    generics = {"watchdog_g": True, "counters_g": True, "words_g": 8}
    with (
        simulated_board(generics=generics, scenario=scenario) as path,
        closing(Client(path)) as client,
    ):
        assert not client.describe()["instances"][0]["published"]
        for window in (1, 3):
            client.write(window, TIMEOUT, 300)
            client.write(window, WE, 1)
        client.wait(20 * 500 + 2_000)
        requests, overruns = client.read(4, REQUESTS)[0], client.read(4, OVERRUNS)[0]
        # Each lost one is noticed at the next interrupt, whose request comes too early: T1 of
        # that request and T2 of the lost one are given up.
        lost = (requests - overruns) // 5
        assert requests == 20
        assert overruns == lost == 3
        for window in (1, 3):
            assert client.read(window, TIMEOUTS) == [lost]
            assert client.read(window, MISSED) == [lost]
        assert client.read(1, NUM) == [requests - overruns]
        assert client.read(3, NUM) == [requests - overruns - lost]
        assert client.read(1, MAX) == client.read(1, MIN) == [9]
        assert client.read(3, ORPHANS) == [(requests - overruns) * 8 - (17 - lost)]


def random_edges(seed: int) -> list[Edge]:
    """Levels that change at random: together, alone, back to back, and once after very long."""
    chance = random.Random(seed)
    edges, cycle, irq, ack = [], chance.randrange(3), 0, 0
    for number in range(400):
        choice = chance.randrange(3)
        irq, ack = irq ^ (choice != 1), ack ^ (choice != 0)
        edges.append(Edge(cycle, irq, ack))
        cycle += 70_000 if number == 200 else chance.choice((1, 1, 2, 3, 10, 40))
    return edges


def paired(edges: list[Edge]) -> list[int]:
    """Latencies by the rules of the policy `drop`, from the trace alone."""
    latencies, begun, irq, ack = [], None, 0, 0
    for edge in edges:
        starts, stops = edge.irq > irq, edge.ack > ack
        irq, ack = edge.irq, edge.ack
        if stops and begun is not None:
            latencies.append(edge.cycle - begun)
            begun = edge.cycle if starts else None
        elif starts and stops:
            latencies.append(0)
        elif starts and begun is None:
            begun = edge.cycle
    return latencies


@pytest.mark.parametrize("stages", [0, 3])
def test_replay_gives_the_traces_latencies_to_the_cycle(tmp_path: Path, stages: int) -> None:
    edges = random_edges(stages)
    write_edges(tmp_path / "edges.csv", edges)
    generics = {"latency_width_g": 32, "synchroniser_stages_g": stages}
    scenario = Scenario(replay=tmp_path / "edges.csv")
    with (
        simulated_board("latencies_ip", generics, scenario) as path,
        closing(Client(path)) as client,
    ):
        client.write(1, WE, 1)
        client.wait(edges[-1].cycle + 20)
        expected = paired(edges)
        assert client.read(1, NUM) == [len(expected)]
        assert client.read(0, 0, len(expected)) == expected
        assert len(expected) > 50
        assert 0 in expected


def test_edges_come_back_as_they_were_written(tmp_path: Path) -> None:
    edges = random_edges(9)
    write_edges(tmp_path / "edges.csv", edges)
    assert read_edges(tmp_path / "edges.csv") == edges


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "edges.csv"),
        ("cycle,irq\n", "edges.csv"),
        ("cycle,irq,ack\n1,0,0\n1,1,0\n", "line 3"),
        ("cycle,irq,ack\n-1,0,0\n", "line 2"),
        ("cycle,irq,ack\n1,2,0\n", "line 2"),
        ("cycle,irq,ack\n1,0\n", "line 2"),
        ("cycle,irq,ack\n99999999999999999999999,0,0\n", "line 2"),
    ],
)
def test_files_that_are_no_edges_are_named(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(BadInput) as told:
        read_edges(tmp_path / "edges.csv")
    assert where in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("design", "generics", "scenario", "told"),
    [
        ("latencies", {}, Scenario(), "latencies_ip"),
        ("latency_bench", {"word_g": 3}, Scenario(), "words_g"),
        ("latency_bench", {"words_g": "many"}, Scenario(), "whole number"),
        ("latency_bench", {"counters_g": 1}, Scenario(), "true or false"),
        ("latency_bench", {"depth_g": 500}, Scenario(), "power of two"),
        ("latencies_ip", {"overlap_policy_g": "x;y"}, Scenario(), "letters"),
        ("latencies_ip", {"overlap_policy_g": "never"}, Scenario(), "overlap_policy_g"),
        (
            "latencies_ip",  # software is told them in four bits
            {"histogram_g": True, "histogram_sub_bits_g": 16, "latency_width_g": 32},
            Scenario(),
            "sub_bits_g is 16; 1 to 15",
        ),
        ("latency_bench", {}, Scenario(period_cycles=1), "period_cycles"),
        ("latency_bench", {}, Scenario(answers=Answers(least_cycles=0)), "least_cycles"),
        ("latency_bench", {}, Scenario(replay=Path("x")), "latencies_ip"),
        ("latencies_ip", {}, Scenario(replay=Path("/nowhere")), "/nowhere"),
        ("latency_stream", {}, Scenario(ring_log2=21), "ring_log2"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(
    design: str, generics: dict[str, int | str], scenario: Scenario, told: str
) -> None:
    with (
        pytest.raises(BadInput) as found,
        simulated_board(design, generics, scenario),
    ):
        pass
    assert told in str(found.value)
    assert "\n" not in str(found.value)
    assert "Traceback" not in str(found.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--scenario", '{"perod_cycles": 5}'], "perod_cycles"),
        (["--scenario", '{"answers": {"least_cycles": "x"}}'], "answers.least_cycles"),
        (["--scenario", "["], "scenario"),
        (["--generic", "words_g"], "words_g"),
        (["--socket", __file__], "already"),
        (["--socket", "/nowhere/s"], "folder"),
        (["--socket", "/tmp/" + "x" * 100], "too long"),
    ],
)
def test_serve_tells_a_mistake_in_one_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = [sys.executable, SERVE, "--socket", tmp_path / "s", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert Path(__file__).exists()


def started(path: Path) -> subprocess.Popen[bytes]:
    """A board started by hand that serves."""
    board = subprocess.Popen([sys.executable, SERVE, "--socket", path], stderr=subprocess.PIPE)
    until = time.monotonic() + START_LIMIT_S
    while not path.exists() and board.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert path.exists(), board.stderr.read() if board.stderr else ""
    return board


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_simulation_ends_with_the_process_that_started_it(tmp_path: Path, number: int) -> None:
    board = started(tmp_path / "s")
    with board, closing(Client(tmp_path / "s")) as client:
        children = Path(f"/proc/{board.pid}/task/{board.pid}/children").read_text().split()
        assert len(children) == 1
        # in the middle of a wait, or rather somewhere in it
        client.socket.sendall(struct.pack("<BBHI", WAIT, 0, 0, 50_000_000))
        board.send_signal(number)
        board.wait(60)
        until = time.monotonic() + 60
        while running(int(children[0])) and time.monotonic() < until:
            time.sleep(0.05)
        assert not running(int(children[0]))
    assert (tmp_path / "s").exists() == (number == signal.SIGKILL)
    assert board.returncode == (-number if number == signal.SIGKILL else 130)


def running(process: int) -> bool:
    """Whether there is such a process, and no zombie of it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_of_a_board_stays_behind() -> None:
    with simulated_board() as path:
        folder = path.parent
        assert path.is_socket()
    assert not folder.exists()


def test_nothing_stays_of_a_board_that_had_no_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine so busy that it is killed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path is short
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(simulated, "_GRACE_S", 0.0)
        with simulated_board("latencies_ip") as path:
            assert path.is_relative_to(folder)
        assert list(Path(folder).iterdir()) == []
