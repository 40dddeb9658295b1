import json
import mmap
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.ip.configuration import Configuration
from latenz.ip.instance import open_instances
from latenz.ip.link import SocketLink
from latenz.ip.target import Options, open_target, read_generics

PAGE = mmap.PAGESIZE


@pytest.fixture
def system(tmp_path):
    """A tree as the kernel makes it for IPs of the published configuration, in both forms."""
    (tmp_path / "dev").mkdir()
    samples, registers = bytearray(PAGE), bytearray(PAGE)
    for i in range(512):
        struct.pack_into("<I", samples, 4 * i, 1000 + i)
    struct.pack_into("<6I", registers, 0, 0, 0xFFFF, 1511, 1511, 1000, 512)
    (tmp_path / "dev/mem").write_bytes(bytes(4 * PAGE) + samples + registers)

    def device(number, name, maps, properties):
        folder = tmp_path / f"sys/class/uio/uio{number}"
        node = folder / "device/of_node"
        node.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        for property_name, content in properties.items():
            (node / property_name).write_bytes(content)
        (tmp_path / f"dev/uio{number}").write_bytes(b"".join(content for _, content in maps))
        for i, (map_name, _) in enumerate(maps):
            (folder / f"maps/map{i}").mkdir(parents=True)
            address = ("addr", "0x0000000870000000")
            for file, text in (("name", map_name), ("size", "0x1000"), ("offset", "0x0"), address):
                (folder / f"maps/map{i}" / file).write_text(f"{text}\n")

    told = {
        "latenz,published": b"",
        "latenz,clock-frequency-hz": (100_000_000).to_bytes(4, "big"),
        "label": b"T2\0",
        "latenz,from-event": b"pl_ps_irq\0",
        "latenz,to-event": b"data read\0",
    }
    device(3, "latencies-ip-t2", [("s01", registers), ("s00", samples)], told)
    device(4, "something-else", [("", samples), ("", registers)], {})
    # 32 bits, 64 deep, queue, 2 synchronisers, 256 log-linear bins of 4 sub-bits; some features.
    what = 32 | 6 << 8 | 2 << 16 | 2 << 18 | 8 << 20 | 4 << 25 | 1 << 29
    struct.pack_into("<4I", registers, 0x20, 0x4C5A0102, what, 0b10_0010_0101, 250_000_000)
    extended = {"latenz,extended": b"", "label": b"T1\0"}
    device(7, "latencies-ip-t1", [("s00", samples), ("s01", registers)], extended)
    ring = struct.pack("<QQ", 77, 5 << 57 | 9).ljust(PAGE, b"\0")
    maps = [("ring", ring), ("s00", samples), ("s01", registers), ("ring-writer", bytes(PAGE))]
    device(8, "latencies-ip-t4", maps, extended)
    return tmp_path


def test_an_ip_of_a_device_is_what_its_device_tree_says(system):
    with open_target("uio:/dev/uio3", Options(system=system)) as link:
        (instance,) = open_instances(link)
        assert (instance.name, instance.clock.hertz) == ("T2", 100_000_000)
        assert (instance.place.from_event, instance.place.to_event) == ("pl_ps_irq", "data read")
        assert not instance.configuration.extended
        assert link.board.time_base == "silicon"
        assert instance.read_samples(500, 20).latency.tolist() == [
            *range(1500, 1512),
            *range(1000, 1008),
        ]
        told = instance.statistics()
        assert (told.num, told.last, told.max, told.min) == (512, 1511, 1511, 1000)
        instance.set_alarm(2_000)
        instance.start()
    content = (system / "dev/uio3").read_bytes()
    assert struct.unpack_from("<2I", content) == (1, 2_000), "we, alarm_lat"
    assert struct.unpack_from("<I", content, 0x18) == (1,), "a pending alarm is cleared"
    assert content[0x1C:PAGE] == bytes(PAGE - 0x1C), "nothing else is touched"


def test_an_ip_with_additions_tells_what_it_is(system):
    with open_target("uio:/dev/uio7", Options(system=system)) as link:
        (instance,) = open_instances(link)
        found = instance.configuration
        assert (instance.name, instance.clock.hertz) == ("T1", 250_000_000)
        assert (found.latency_width, found.depth, found.policy) == (32, 64, "queue")
        assert (found.synchroniser_stages, found.bins, found.sub_bits) == (2, 256, 4)
        assert found.features == {"counters", "time_stamp", "histogram", "wide_num"}
        assert (found.minor, found.most_num, found.region_words) == (2, 2**32 - 1, 256)


def test_a_ring_is_two_more_maps_of_the_device(system):
    with open_target("uio:/dev/uio8", Options(system=system)) as link:
        (instance,) = open_instances(link)
        ring = instance.place.ring
        assert (ring.base, ring.size_log2) == (0x8_7000_0000, 8)
        assert link.read(ring.memory, 0, 4) == [77, 0, 9, 5 << 25]
        link.write(ring.registers, 0x14, 3)
        assert instance.register("num") == 512
    assert struct.unpack_from("<I", (system / "dev/uio8").read_bytes(), 3 * PAGE + 0x14) == (3,)
    folder = system / "sys/class/uio/uio8/maps/map0"
    for file, text, reason in (
        ("addr", "here", "tells no address of the ring"),
        ("size", "0xff0", "4080 bytes are no ring"),
    ):
        before = (folder / file).read_text()
        (folder / file).write_text(text)
        opened = open_target("uio:/dev/uio8", Options(system=system))
        with pytest.raises(BadInput, match=reason), opened:
            pass
        (folder / file).write_text(before)


def test_something_else_is_not_taken_for_an_ip(system):
    target = f"mem:{4 * PAGE:#x}+4K,{5 * PAGE:#x}"
    with (
        open_target(target, Options(clock="1 MHz", extended=True, system=system)) as link,
        pytest.raises(BadInput, match="its identification is 0x00000000"),
    ):
        open_instances(link)


@given(st.integers(0, 2**48 - 1), st.integers(1, 8))
def test_bins_of_a_log_linear_histogram(latency, sub_bits):
    """Bin 0 on, each bin by its definition: below 2^s one each, then 2^s an octave."""
    found = Configuration(latency_width=48, bins=1024, sub_bits=sub_bits).bin_of(latency, 0)
    octave, within = divmod(found, 1 << sub_bits)
    lowest = within if octave == 0 else ((1 << sub_bits) + within) << (octave - 1)
    width = 1 if octave == 0 else 1 << (octave - 1)
    assert lowest <= latency < lowest + width


def test_physical_memory_is_two_windows(system):
    target = f"mem:{4 * PAGE:#x}+4K,{5 * PAGE:#x}"
    with open_target(target, Options(clock="250 MHz", system=system)) as link:
        (instance,) = open_instances(link)
        assert (instance.clock.hertz, instance.register("num")) == (250_000_000, 512)
        assert instance.read_samples(0, 2).latency.tolist() == [1000, 1001]


def test_without_a_device_tree_the_clock_must_be_told(system):
    with (
        pytest.raises(BadInput, match="give --clock"),
        open_target(f"mem:{4 * PAGE:#x}+4K,{5 * PAGE:#x}", Options(system=system)),
    ):
        pass


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("", {}, "is not a board"),
        ("nonsense", {}, "is not a board"),
        ("http://x", {}, "is not a board"),
        ("sim:nothing", {}, "nothing"),
        ("unix:", {}, "is not a board"),
        ("unix:/nowhere/socket", {}, "no board answers"),
        ("unix:" + "x" * 300, {}, "no board answers"),
        ("tcp:host", {}, "no host and port"),
        ("tcp:host:0", {}, "no host and port"),
        ("tcp:host:99999", {}, "no host and port"),
        ("tcp:127.0.0.1:1", {}, "no board answers"),
        ("uio:/dev/uio77", {"clock": "1 MHz"}, "no such device; is the overlay loaded"),
        ("uio:/dev/uio77", {}, "no such device; is the overlay loaded"),
        ("uio:/dev/uio4", {}, "give --clock"),
        ("uio:/etc/passwd", {}, "is not a UIO device"),
        ("uio:/dev/uio3:0", {}, "is not a UIO device"),
        ("mem:0xA0000000", {"clock": "1 MHz"}, "names no two windows"),
        ("mem:0xA0000001+4K,0xB0000000", {"clock": "1 MHz"}, "multiple of 4"),
        ("mem:,", {"clock": "1 MHz"}, "names no two windows"),
        ("unix:/x", {"clock": "1 MHz"}, "says this itself"),
        ("unix:/x", {"generics": ("a=1",)}, "--generic"),
        ("uio:/dev/uio3", {"extended": True}, "no additions"),
        ("sim:latency_bench", {"generics": ("width",)}, "is not a generic"),
    ],
)
def test_what_is_no_board_is_one_line(system, target, options, reason):
    opened = open_target(target, Options(system=system, **options))
    with pytest.raises(BadInput, match=reason) as refused, opened:
        pass
    assert "\n" not in str(refused.value)


def test_generics_have_the_type_that_is_written():
    texts = ("depth_g=16", "counters_g=true", "freeze_g=false", "overlap_policy_g=queue")
    assert read_generics(texts) == {
        "depth_g": 16,
        "counters_g": True,
        "freeze_g": False,
        "overlap_policy_g": "queue",
    }


@pytest.fixture
def peer(tmp_path):
    """Answers a connection with given bytes, whatever it is asked, and hangs up."""
    threads = []

    def begin(answer):
        path = str(tmp_path / "socket")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        listening.listen(1)

        def serve():
            connection, _ = listening.accept()
            with connection, listening:
                connection.recv(8)
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return path

    yield begin
    for thread in threads:
        thread.join()


INSTANCE = {"name": "T1", "s00": 0, "s01": 1, "published": True}
BOARD = {"board": "b", "time_base": "silicon", "clock_hz": 1, "instances": [INSTANCE]}


def description(text):
    content = (text if isinstance(text, str) else json.dumps(text)).encode()
    return struct.pack("<BBHI", 0, 0, len(content), 0) + content + b" " * (-len(content) % 4)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n", "status"),
        (struct.pack("<BBHI", 0, 0, 100, 0) + b"{}", "closed the connection"),
        (struct.pack("<BBHI", 255, 0, 0, 0), "refuses"),
        (struct.pack("<BBHI", 2, 0, 0, 0), "SLVERR"),
        (struct.pack("<BBHI", 7, 0, 0, 0), "status 7"),
        (description("[" * 5000), "not JSON"),
        (description("{"), "not JSON"),
        (description({}), "wrong at board"),
        (description(BOARD | {"time_base": "published"}), "wrong at time_base"),
        (description(BOARD | {"clock_hz": 0}), "wrong at clock_hz"),
        (description(BOARD | {"instances": []}), "wrong at instances"),
        (description(BOARD | {"instances": [INSTANCE | {"name": "../x"}]}), "wrong at instances.0"),
        (description(BOARD | {"instances": [INSTANCE | {"s00": 256}]}), "wrong at instances.0"),
    ],
)
def test_a_peer_that_is_no_board_is_one_line(peer, answer, reason):
    with pytest.raises(BadInput, match=reason) as refused:
        SocketLink("peer", peer(answer))
    assert "\n" not in str(refused.value)


def test_a_board_that_serves_somebody_else_is_not_waited_for_in_vain(tmp_path, monkeypatch):
    monkeypatch.setattr("latenz.ip.link._GREETING_LIMIT_S", 0.05)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen(1)
        with pytest.raises(BadInput, match="it serves one at a time"):
            SocketLink("peer", str(tmp_path / "socket"))


def test_instances_are_found_by_name(peer):
    two = [INSTANCE, INSTANCE | {"name": "T2"}]
    with SocketLink("peer", peer(description(BOARD | {"instances": two}))) as link:
        assert [each.name for each in open_instances(link)] == ["T1", "T2"]
        assert [each.name for each in open_instances(link, "T2")] == ["T2"]
        with pytest.raises(BadInput, match="did you mean 'T1'"):
            open_instances(link, "T10")
