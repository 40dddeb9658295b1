"""The bridge program against a planted board, the tree of files that Linux shows of its devices."""

import json
import os
import random
import socket
import struct
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from planted_board import BRIDGE, PAGE, ROOT, bridge, compiled, planted, series, serving

from latenz.errors import BadInput
from latenz.ip.instance import open_instances
from latenz.ip.link import NotAnswered, SocketLink, Window
from latenz.ip.ring import RegisterRingWriter, RingReader
from latenz.ip.target import Options, open_target

pytestmark = pytest.mark.proofs

__all__ = ["bridge", "planted", "series"]


def test_python_reads_a_board_through_the_bridge(bridge, planted):
    with serving(bridge, planted) as address, SocketLink("board", address) as link:
        assert link.board.board == "Planted board"
        assert link.board.time_base == "silicon"
        assert link.board.clock_hz == 1_000_000
        [ip] = open_instances(link)
        assert (ip.name, ip.place.from_event, ip.place.to_event) == ("T1", "ps_pl_irq", "ack_in")
        assert ip.read_samples(0, 3).latency.tolist() == [11, 12, 13]
        ip.set_alarm(77)
        ip.stop()
        assert (planted.word(1, 0), planted.word(1, 1)) == (0, 77)
        assert link.read(link.board.generator, 4, 2) == [1, 16]
        with pytest.raises(NotAnswered) as failed:
            link.read(ip.place.s01, 0x14, 3)
        assert failed.value.address == 0x1C


def test_python_reads_a_ring_through_the_bridge(bridge, planted):
    planted.plant_ring()
    with (
        serving(bridge, planted, windows=5) as address,
        SocketLink("board", address) as link,
    ):
        ring = link.board.instances[0].ring
        assert (ring.base, ring.size_log2) == (0x8_7000_0000, 8)
        writer = RegisterRingWriter(Window(link, ring.registers, PAGE))
        elsewhere = ring.base + PAGE
        with pytest.raises(NotAnswered):
            writer.begin(elsewhere, ring.size_log2, link.pause)
        planted.put(2, 0x1C, struct.pack("<I", 2))  # idle: a file has no bits that clear themselves
        consumed = writer.begin(ring.base, ring.size_log2, link.pause)
        assert consumed == 5
        assert [planted.word(2, i) for i in range(6)] == [1, 0x7000_0000, 8, 8, 5, 5]
        reader = RingReader(Window(link, ring.memory, PAGE), writer, consumed)
        assert len(reader.read()) == 0
        records = b"".join(struct.pack("<QQ", 100 * i, i << 57 | 7 + i) for i in range(3))
        planted.put(3, 5 * 16, records)
        planted.put(2, 0x10, struct.pack("<I", 8))
        found = reader.read()
        assert found.start.tolist() == [0, 100, 200]
        assert (found.latency.tolist(), found.sequence.tolist()) == ([7, 8, 9], [0, 1, 2])
        assert planted.word(2, 5) == 8


def test_the_driver_reads_a_board_through_the_bridge(bridge, planted, series):
    with serving(bridge, planted) as (host, port):
        command = [series, f"{host}:{port}", "0", "1", "published", "series", "1000"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    told = json.loads(done.stdout)
    assert told["samples"] == [[11, 0], [12, 0], [13, 0]]
    assert (told["num"], told["last"], told["max"], told["min"]) == (3, 9, 20, 5)


def test_a_word_behind_a_devices_end_is_a_bus_error_and_the_next_is_read(bridge, planted):
    planted.make_samples_longer_than_they_are()
    with serving(bridge, planted) as address, SocketLink("board", address) as link:
        for _ in range(3):
            with pytest.raises(NotAnswered):
                link.read(0, 2 * PAGE)
            assert link.read(0, 4) == [12]


def exchange(connection: socket.socket, request: bytes, size: int) -> bytes:
    connection.sendall(request)
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            break
        content += part
    return content


READ_TWO = struct.pack("<BBHI", 1, 0, 2, 0)
TWO_WORDS = struct.pack("<BBHIII", 0, 0, 2, 0, 11, 12)


def test_every_client_finds_it_as_the_first_did(bridge, planted):
    """Half frames, rubbish, an unknown operation, leaving while it waits: then the next client."""
    chosen = random.Random(8)
    rubbish = [chosen.randbytes(chosen.randrange(1, 60)) for _ in range(30)]
    # Not `wait`: a minute may be asked for. It gets its own turn below.
    rubbish = [part if part[0] != 3 else b"\x09" + part[1:] for part in rubbish]
    with serving(bridge, planted) as address:
        for part in [READ_TWO[:5], b"", b"\x09\x00\x00\x00\x00\x00\x00\x00", *rubbish]:
            with socket.create_connection(address, timeout=100) as connection:
                connection.sendall(part)
            with socket.create_connection(address, timeout=100) as connection:
                assert exchange(connection, READ_TWO, 16) == TWO_WORDS
        with socket.create_connection(address, timeout=100) as connection:
            connection.sendall(struct.pack("<BBHI", 3, 0, 0, 0xFFFF_FFFF))
        with socket.create_connection(address, timeout=100) as connection:
            assert exchange(connection, READ_TWO, 16) == TWO_WORDS
            answer = exchange(connection, struct.pack("<BBHI", 77, 0, 0, 0), 9)
            assert answer == struct.pack("<BBHI", 255, 0, 0, 0)  # and then the end
    assert planted.word(0, 0) == 11


def test_it_speaks_over_standard_input_and_output(bridge, planted):
    """As `ssh board latenz-ip-bridge --stdio` would; it ends with its input."""
    wait = struct.pack("<BBHI", 3, 0, 0, 10)
    done = subprocess.run(
        [bridge, "--stdio", f"--root={planted.root}"],
        input=READ_TWO + wait + READ_TWO,
        capture_output=True,
        check=True,
        timeout=600,
    )
    assert done.stdout == TWO_WORDS + struct.pack("<BBHI", 0, 0, 0, 0) + TWO_WORDS
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port=70000"], "--port: "),
        (
            ["--address=localhost"],
            "--address: 'localhost' is not an IPv4 address such as 192.168.1.10",
        ),
        (["--address=127.1.2.3", "--port=1", "--secret=/nonexistent"], "cannot be opened: "),
        (["--address=203.0.113.1"], "give --secret FILE, or keep 127.0.0.1 and come through ssh"),
        (["--address=0.0.0.0"], "give --secret FILE"),
        (["--stdio", "--secret=x"], "--secret: whoever started --stdio is let in; omit it"),
        (["--listen=x"], "--listen: no such option; --help lists them all"),
        (["--root=/nonexistent"], "no device named latencies-ip-NAME"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(bridge, planted, options, said):
    command = [bridge, *([] if "--root" in options[0] else [f"--root={planted.root}"]), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_bridge_for_boards_runs_alone(tmp_path, planted):
    """Built as for a board, without its libraries, and run by an emulator of its processor."""
    program = compiled(
        "aarch64-linux-gnu-g++",
        tmp_path / "bridge-arm64",
        *[ROOT / f"probes/src/{name}.cpp" for name in BRIDGE],
        extra=("-static",),
    )
    planted.make_samples_longer_than_they_are()
    bus_error = struct.pack("<BBHI", 1, 0, 2, 2 * PAGE - 4)
    done = subprocess.run(
        ["qemu-aarch64", program, "--stdio", f"--root={planted.root}"],
        input=READ_TWO + bus_error + READ_TWO,
        capture_output=True,
        check=True,
        timeout=600,
        env={**os.environ, "QEMU_LD_PREFIX": "/nonexistent"},
    )
    assert done.stdout == TWO_WORDS + struct.pack("<BBHII", 2, 0, 1, 1, 0) + TWO_WORDS


MOST_CLIENTS = 16
ANOTHER = struct.pack("<BBHII", 2, 1, 1, 4, 500)  # a write
OKAY, FULL, BUSY = (struct.pack("<BBHI", status, 0, 0, 0) for status in (0, 251, 252))
LONG_WAIT = struct.pack("<BBHI", 3, 0, 0, 60_000_000)  # a minute


def connected(stack: ExitStack, address: tuple[str, int]) -> socket.socket:
    return stack.enter_context(socket.create_connection(address, timeout=100))


def test_nobody_waits_for_a_client_that_is_silent_slow_or_waits(bridge, planted):
    with serving(bridge, planted) as address, ExitStack() as stack:
        connected(stack, address)
        connected(stack, address).sendall(READ_TWO[:7])
        connected(stack, address).sendall(struct.pack("<BBHI", 2, 1, 65_535, 0) + bytes(1000))
        connected(stack, address).sendall(LONG_WAIT)
        deaf = connected(stack, address)
        deaf.setblocking(False)
        most = struct.pack("<BBHI", 1, 0, PAGE // 4, 0)
        with suppress(BlockingIOError):  # its answers are not taken, so no more is read
            while True:
                deaf.send(most * 100)
        link = stack.enter_context(SocketLink("board", address))
        assert link.read(0, 0, 3) == [11, 12, 13]
        assert exchange(connected(stack, address), READ_TWO, 16) == TWO_WORDS


def test_a_client_that_does_not_finish_is_left_and_an_idle_one_is_kept(bridge, planted):
    with serving(bridge, planted) as address, ExitStack() as stack:
        idle = connected(stack, address)
        assert exchange(idle, READ_TWO, 16) == TWO_WORDS
        silent, half, later_half = (connected(stack, address) for _ in range(3))
        half.sendall(READ_TWO[:3])
        assert exchange(later_half, READ_TWO + READ_TWO[:5], 16) == TWO_WORDS
        for each in (silent, half, later_half):
            assert each.recv(1) == b""  # a time-out would be an exception
        assert exchange(idle, READ_TWO, 16) == TWO_WORDS


def test_one_changes_and_the_others_read(bridge, planted):
    with serving(bridge, planted) as address, ExitStack() as stack:
        first, second = connected(stack, address), connected(stack, address)
        assert exchange(first, ANOTHER, 8) == OKAY
        assert exchange(second, ANOTHER, 8) == BUSY
        assert exchange(second, READ_TWO, 16) == TWO_WORDS
        link = stack.enter_context(SocketLink("board", address))
        with pytest.raises(BadInput, match="another program changes something on the board"):
            link.write(1, 4, 5)
        assert link.read(1, 4) == [500]
        first.close()
        while exchange(second, ANOTHER, 8) != OKAY:
            pass
        assert exchange(connected(stack, address), ANOTHER, 8) == BUSY


def test_whoever_is_silent_makes_room_and_whoever_asks_keeps_it(bridge, planted):
    with serving(bridge, planted) as address, ExitStack() as stack:
        for _ in range(3 * MOST_CLIENTS):
            connected(stack, address)
        clients = [connected(stack, address) for _ in range(MOST_CLIENTS)]
        for each in clients:
            assert exchange(each, READ_TWO, 16) == TWO_WORDS
        assert connected(stack, address).recv(8) == FULL
        for each in clients:
            assert exchange(each, READ_TWO, 16) == TWO_WORDS


def test_many_clients_at_once_get_each_their_own_answers(bridge, planted):
    """In pieces of any size, and several requests at once."""
    failed = []

    def talk(seed: int, address: tuple[str, int]) -> None:
        source = random.Random(seed)
        with socket.create_connection(address, timeout=100) as connection:
            for _ in range(100):
                places = [source.randrange(3) for _ in range(source.randrange(1, 20))]
                asked = b"".join(struct.pack("<BBHI", 1, 0, 1, 4 * place) for place in places)
                wanted = b"".join(struct.pack("<BBHII", 0, 0, 1, 0, 11 + each) for each in places)
                cut = source.randrange(len(asked))
                connection.sendall(asked[:cut])
                if exchange(connection, asked[cut:], len(wanted)) != wanted:
                    failed.append(seed)

    with serving(bridge, planted) as address:
        threads = [threading.Thread(target=talk, args=(seed, address)) for seed in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not failed


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef" * 4 + "\n")
    path.chmod(0o600)
    return path


def refusal(target: str, secret: Path | None) -> str:
    with pytest.raises(BadInput) as refused, open_target(target, Options(secret=secret)):
        pass
    return str(refused.value)


def test_a_board_that_others_reach_lets_in_who_knows_its_secret(bridge, planted, secret, tmp_path):
    with serving(bridge, planted, "--address=0.0.0.0", f"--secret={secret}") as address:
        target = f"tcp:127.0.0.1:{address[1]}"
        with open_target(target, Options(secret=secret)) as link:
            assert link.read(0, 0, 3) == [11, 12, 13]
        said = refusal(target, None)
        assert said.endswith(
            "lets in only who knows its secret; give --secret FILE; see docs/ip.md"
        )
        other = tmp_path / "other"
        other.write_text("f" * 64)
        other.chmod(0o600)
        assert "the board has another secret" in refusal(target, other)
        other.chmod(0o640)
        assert "others may read it, or own it; make it yours alone" in refusal(target, other)
        with socket.create_connection(address, timeout=100) as connection:
            locked = struct.pack("<BBHI", 253, 0, 0, 1)
            assert exchange(connection, READ_TWO, 8) == locked
            assert exchange(connection, ANOTHER, 8) == locked
    assert planted.word(1, 1) == 0xFFFF


def test_a_bridge_does_not_take_a_secret_that_others_may_read(bridge, planted, secret):
    secret.chmod(0o604)
    command = [bridge, f"--root={planted.root}", f"--secret={secret}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert "others may read it, or own it; make it yours alone" in done.stderr


def test_a_stranger_in_the_boards_place_is_found_out(bridge, planted):
    """It asks for no secret, or cannot show that it knows it."""
    with (
        serving(bridge, planted) as address,
        pytest.raises(BadInput, match="the board asks for no secret"),
    ):
        SocketLink("board", address, b"0" * 32)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pretend() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(8)
                connection.sendall(struct.pack("<BBHI", 0, 0, 8, 1) + bytes(32))
                told = connection.recv(72, socket.MSG_WAITALL)
                connection.sendall(struct.pack("<BBHI", 0, 0, 8, 1) + told[-32:])

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(BadInput, match="the board does not know the secret"):
            SocketLink("board", listening.getsockname(), b"0" * 32)
        thread.join()
