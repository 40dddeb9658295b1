"""Corner case 16: what the two AXI4-Lite slaves do with every order, pause, strobe and address.

The masters are cocotbext-axi's; channels are driven one by one where their order matters.
"""

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteMaster, AxiResp

from verification.latencies_ip import coverage
from verification.latencies_ip.bench import Bench, case
from verification.model.registers import ADDRESS, WORD, Register, registers

RANDOM_TRANSACTIONS = 1500
PAUSED_PERCENT = 60


async def send_address(port: AxiLiteMaster, address: int) -> None:
    """Offer one write address."""
    channel = port.write_if.aw_channel
    beat = channel._transaction_obj()
    beat.awaddr, beat.awprot = address, 0
    await channel.send(beat)


async def send_data(port: AxiLiteMaster, data: int, strobes: int) -> None:
    """Offer one word to write."""
    channel = port.write_if.w_channel
    beat = channel._transaction_obj()
    beat.wdata, beat.wstrb = data, strobes
    await channel.send(beat)


async def answer(port: AxiLiteMaster) -> AxiResp:
    """The answer to a write."""
    beat = await port.write_if.b_channel.recv()
    return AxiResp(int(beat.bresp))


async def write(port: AxiLiteMaster, address: int, data: int, strobes: int = 15) -> AxiResp:
    """One write with any strobes."""
    await send_address(port, address)
    await send_data(port, data, strobes)
    return await answer(port)


async def read(port: AxiLiteMaster, address: int) -> tuple[AxiResp, int]:
    """One read at any address."""
    channel = port.read_if.ar_channel
    beat = channel._transaction_obj()
    beat.araddr, beat.arprot = address, 0
    await channel.send(beat)
    got = await port.read_if.r_channel.recv()
    return AxiResp(int(got.rresp)), int(got.rdata)


def masked(old: int, data: int, strobes: int) -> int:
    """A word after a write of some of its bytes."""
    mask = sum(0xFF << 8 * byte for byte in range(4) if strobes >> byte & 1)
    return old & ~mask | data & mask


async def obeys(dut: Any, prefix: str) -> None:
    """What a slave offers stays until it is taken, and it answers only what was asked."""

    def value(name: str) -> int:
        return int(getattr(dut, f"{prefix}_{name}").value)

    offered: dict[str, tuple[int, ...]] = {}
    owed = {"b": 0, "r": 0}
    payloads = {"b": ("bresp",), "r": ("rdata", "rresp")}
    while True:
        await RisingEdge(dut.aclk)
        if not dut.aresetn.value:
            offered, owed = {}, {"b": 0, "r": 0}
            continue
        for channel, payload in payloads.items():
            now = tuple(value(name) for name in payload)
            valid = value(f"{channel}valid")
            if channel in offered:
                assert valid, f"{channel}valid fell before it was taken"
                assert now == offered.pop(channel), f"{channel} changed before it was taken"
            if valid:
                assert owed[channel] == 1, f"{channel}valid without a request"
                if value(f"{channel}ready"):
                    owed[channel] -= 1
                else:
                    offered[channel] = now
        owed["r"] += value("arvalid") and value("arready")
        owed["b"] += value("wvalid") and value("wready")
        assert value("awvalid") * value("awready") == value("wvalid") * value("wready")


@case()
async def case_16_address_before_data(bench: Bench) -> None:
    """No answer and no change until the word is there; a long wait is no matter."""
    cocotb.start_soon(obeys(bench.dut, "s01_axi"))
    cocotb.start_soon(coverage.watch_axi(bench.dut, "s01_axi"))
    await send_address(bench.s01, ADDRESS["alarm_lat"])
    await bench.cycles(40)
    assert not bench.dut.s01_axi_bvalid.value
    assert await bench.read("alarm_lat") == bench.ip.latency_max & WORD
    await send_data(bench.s01, 77, 15)
    assert await answer(bench.s01) == AxiResp.OKAY
    assert await bench.read("alarm_lat") == 77


@case()
async def case_16_data_before_address(bench: Bench) -> None:
    """The same with the channels exchanged."""
    cocotb.start_soon(obeys(bench.dut, "s01_axi"))
    cocotb.start_soon(coverage.watch_axi(bench.dut, "s01_axi"))
    await send_data(bench.s01, 78, 15)
    await bench.cycles(40)
    assert not bench.dut.s01_axi_bvalid.value
    assert await bench.read("alarm_lat") == bench.ip.latency_max & WORD
    await send_address(bench.s01, ADDRESS["alarm_lat"])
    assert await answer(bench.s01) == AxiResp.OKAY
    assert await bench.read("alarm_lat") == 78


@case()
async def case_16_answers_wait(bench: Bench) -> None:
    """B and R stay as they are for many cycles; the next requests wait and are not lost."""
    cocotb.start_soon(obeys(bench.dut, "s01_axi"))
    cocotb.start_soon(coverage.watch_axi(bench.dut, "s01_axi"))
    await bench.write("alarm_lat", 5)
    bench.s01.read_if.r_channel.pause = True
    task = cocotb.start_soon(read(bench.s01, ADDRESS["alarm_lat"]))
    await bench.cycles(5)
    await bench.write("alarm_lat", 6)
    second = cocotb.start_soon(read(bench.s01, ADDRESS["num"]))
    await bench.cycles(50)
    bench.s01.read_if.r_channel.pause = False
    assert await task == (AxiResp.OKAY, 5)
    assert await second == (AxiResp.OKAY, 0)
    bench.s01.write_if.b_channel.pause = True
    first = cocotb.start_soon(write(bench.s01, ADDRESS["alarm_lat"], 7))
    await bench.cycles(5)
    for _ in range(2):
        await send_address(bench.s01, ADDRESS["alarm_lat"])
    await send_data(bench.s01, 8, 15)
    await send_data(bench.s01, 9, 15)
    await bench.cycles(50)
    assert await bench.read("alarm_lat") == 7
    bench.s01.write_if.b_channel.pause = False
    assert await first == AxiResp.OKAY
    assert [await answer(bench.s01) for _ in range(2)] == [AxiResp.OKAY] * 2
    assert await bench.read("alarm_lat") == 9


@case()
async def case_16_strobes(bench: Bench) -> None:
    """Every combination of byte strobes writes these bytes and no other."""
    ip, expected = bench.ip, 0
    await bench.write("alarm_lat", 0)
    for strobes in range(16):
        data = 0x11223344 * (strobes + 1) & WORD
        expected = masked(expected, data, strobes) & ip.latency_max & WORD
        assert await write(bench.s01, ADDRESS["alarm_lat"], data, strobes) == AxiResp.OKAY
        assert await bench.read("alarm_lat") == expected
    for strobes in (0, 2, 4, 8, 14):
        assert await write(bench.s01, ADDRESS["we"], WORD, strobes) == AxiResp.OKAY
        assert await bench.read("we") == 0, strobes
    await bench.write("alarm_lat", 0)
    await bench.begin()
    await bench.measure(3)
    for strobes, alarm in ((0, 1), (14, 1), (1, 0)):
        assert await write(bench.s01, ADDRESS["alarm"], WORD, strobes) == AxiResp.OKAY
        assert await bench.read("alarm") == alarm
    assert await write(bench.s01, ADDRESS["we"], 0, 14) == AxiResp.OKAY
    assert await bench.read("we") == 1


@case(needs=lambda ip: not ip.freeze)
async def case_16_unaligned_addresses(bench: Bench) -> None:
    """The low two address bits are ignored."""
    for low in range(4):
        address = ADDRESS["alarm_lat"] + low
        assert await write(bench.s01, address, 40 + low) == AxiResp.OKAY
        assert await read(bench.s01, address) == (AxiResp.OKAY, 40 + low)
    await bench.begin()
    await bench.measure(3)
    await bench.measure(6)
    await bench.settle()
    for low in range(4):
        assert await read(bench.s00, 4 + low) == (AxiResp.OKAY, 6)


@case()
async def case_16_out_of_range_and_read_only(bench: Bench) -> None:
    """SLVERR, and nothing changes: not a register, not a sample, not the other slave."""
    await bench.write("alarm_lat", 2)
    await bench.begin()
    for latency in (3, 8, 1):
        await bench.measure(latency)
    await bench.settle()
    here = registers(bench.ip)
    known = {register.address for register in here}
    read_only = [register.address for register in here if register.access == "ro"]
    absent = [address for address in range(0, 0x1000, 4) if address not in known]
    for address in (*read_only, *random.Random(1).sample(absent, 40), 0x1C, 0xFFC):
        assert await write(bench.s01, address, WORD) == AxiResp.SLVERR, hex(address)
        if address not in read_only:
            assert await read(bench.s01, address) == (AxiResp.SLVERR, 0), hex(address)
    for address in (0, 4, 8, 4 * bench.ip.depth - 4):
        assert await write(bench.s00, address, 0x55) == AxiResp.SLVERR, hex(address)
    for address in absent_samples(bench):
        assert (await read(bench.s00, address))[0] == AxiResp.SLVERR, hex(address)
        assert await write(bench.s00, address, 0x55) == AxiResp.SLVERR, hex(address)
    assert await bench.read("we") == 1
    assert await bench.read("alarm_lat") == 2
    await bench.check()


def absent_samples(bench: Bench) -> list[int]:
    """Some byte addresses of S00 at which there is nothing."""
    ip = bench.ip
    present = [True, ip.latency_width > 32, ip.time_stamp, ip.time_stamp, ip.histogram]
    end = 2 ** len(bench.dut.s00_axi_araddr)
    found = []
    for region, start in enumerate(range(0, end, ip.region_bytes)):
        here = region < len(present) and present[region]
        words = ip.histogram_bins if region == 4 else ip.depth
        first = start + 4 * words if here else start
        if first < start + ip.region_bytes:
            found += [first, start + ip.region_bytes - 4]
    return found


@case()
async def case_16_read_and_write_at_once(bench: Bench) -> None:
    """A read and a write of one register in the same cycle: the old value or the new one."""
    cocotb.start_soon(coverage.watch_axi(bench.dut, "s01_axi"))
    for value in range(1, 40):
        old = bench.model.alarm_lat
        writing = cocotb.start_soon(write(bench.s01, ADDRESS["alarm_lat"], value))
        await bench.cycles(value % 3)  # a write is taken one cycle after it is offered
        reading = cocotb.start_soon(read(bench.s01, ADDRESS["alarm_lat"]))
        assert await writing == AxiResp.OKAY
        response, seen = await reading
        assert response == AxiResp.OKAY
        assert seen in (old & WORD, value)


@case()
async def case_16_reset_between_address_and_data(bench: Bench) -> None:
    """After a reset nothing of a half transaction is left."""
    for half in (send_address(bench.s01, ADDRESS["we"]), send_data(bench.s01, 1, 15)):
        await half
        await bench.cycles(6)
        await bench.reset()
        assert await bench.read("we") == 0
        assert await write(bench.s01, ADDRESS["alarm_lat"], 12) == AxiResp.OKAY
        assert (await bench.read("we"), await bench.read("alarm_lat")) == (0, 12)
        await bench.reset()


def _quiet(register: Register) -> bool:
    """Whether a random write leaves everything else as it is."""
    return register.name not in ("we", "command", "self_test_count", "interrupt_enable")


class _Registers:
    """What S01 must answer to random accesses, and the accesses themselves."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.here = {register.address: register for register in registers(bench.ip)}
        self.values = {address: register.reset for address, register in self.here.items()}
        self.chance = random.Random(16)

    async def learn(self) -> None:
        """Read what has no specified reset value."""
        for address, register in self.here.items():
            if register.access == "rw" and register.reset is None:
                self.values[address] = (await read(self.bench.s01, address))[1]

    def _kind(self, place: int) -> str:
        if place not in self.here:
            return "absent"
        return "read-only" if self.here[place].access == "ro" else "read-write"

    async def access(self) -> None:
        """One random access, compared."""
        place = self.chance.choice((*self.here, *self.here, self.chance.randrange(0, 0x1000, 4)))
        if self.chance.random() < 0.5:
            await self._write(place)
        else:
            await self._read(place)

    async def _write(self, place: int) -> None:
        kind, register = self._kind(place), self.here.get(place)
        strobes = self.chance.choice((0, 15, 15, self.chance.randrange(16)))
        data = self.chance.randrange(2**32)
        if register is not None and not _quiet(register):
            data = 0
        coverage.hit("access", f"write, {kind}")
        coverage.hit("strobes", {0: "none", 15: "all"}.get(strobes, "some"))
        response = await write(self.bench.s01, place + self.chance.randrange(4), data, strobes)
        wanted = AxiResp.OKAY if kind == "read-write" else AxiResp.SLVERR
        assert response == wanted, hex(place)
        if register is not None and register.access == "rw":
            changed = masked(self.values[place] or 0, data, strobes)
            self.values[place] = changed & register.mask

    async def _read(self, place: int) -> None:
        kind = self._kind(place)
        coverage.hit("access", f"read, {kind}")
        response, seen = await read(self.bench.s01, place + self.chance.randrange(4))
        assert response == (AxiResp.SLVERR if kind == "absent" else AxiResp.OKAY), hex(place)
        wanted = self.values.get(place)
        if wanted is not None:
            assert seen == wanted, self.here[place]


@case()
async def case_16_random_transactions(bench: Bench) -> None:
    """Random accesses to both slaves, every channel paused 60 % of the time."""
    bench.pause(PAUSED_PERCENT)
    for prefix in ("s00_axi", "s01_axi"):
        cocotb.start_soon(obeys(bench.dut, prefix))
        cocotb.start_soon(coverage.watch_axi(bench.dut, prefix))
    slave = _Registers(bench)
    await slave.learn()
    elsewhere = cocotb.start_soon(_disturb(bench, RANDOM_TRANSACTIONS // 3))
    for _ in range(RANDOM_TRANSACTIONS):
        await slave.access()
    await elsewhere


async def _disturb(bench: Bench, count: int) -> None:
    """Random accesses to the samples, of which there are none yet."""
    chance = random.Random(17)
    absent = absent_samples(bench)
    for _ in range(count):
        address = chance.choice((4 * chance.randrange(bench.ip.depth), *absent))
        if chance.random() < 0.3:
            assert await write(bench.s00, address, 1) == AxiResp.SLVERR
        else:
            response, _ = await read(bench.s00, address)
            assert response == (AxiResp.SLVERR if address in absent else AxiResp.OKAY)
