"""The bench around one simulated latencies_ip: clock, AXI masters and a scoreboard.

The scoreboard watches the pins in every clock cycle, finds edges and register writes by itself, and
feeds them to the model; so a test may do what it likes, at any cycle, and then call `check`.
"""

import itertools
import json
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import SimHandleBase
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.latencies_ip import coverage
from verification.model.configuration import Configuration
from verification.model.latencies import Latencies
from verification.model.registers import ADDRESS

CLOCK_NS = 10
SETTLE_CYCLES = 12  # longer than any pipeline behind the inputs
CONFIGURATION = "LATENZ_CONFIGURATION"  # environment: the generics as JSON
LONG_CYCLES = 500
WRITES_SEEN = ("we", "alarm_lat", "alarm_lat_high", "alarm", "mode", "timeout", "post_trigger")


class RefusedError(Exception):
    """An AXI transaction was answered with an error."""


def configuration() -> Configuration:
    """The generics of the design that is being simulated."""
    return Configuration(**json.loads(os.environ[CONFIGURATION]))


def case(*, needs: Callable[[Configuration], bool] = lambda _: True) -> Callable[..., Any]:
    """A cocotb test that gets a started bench; left out where the configuration lacks its part."""

    def decorate(function: Callable[["Bench"], Coroutine[Any, Any, None]]) -> Any:
        if not needs(configuration()):
            return function

        async def test(dut: SimHandleBase) -> None:
            try:
                await function(await Bench.start(dut))
            finally:
                coverage.save()

        test.__name__ = test.__qualname__ = function.__name__
        test.__doc__ = function.__doc__
        return cocotb.test()(test)

    return decorate


def _paused(percent: int, seed: int) -> Iterator[bool]:
    """A pause generator for an AXI channel: pauses in so many of hundred cycles."""
    chance = random.Random(seed)
    return (chance.randrange(100) < percent for _ in itertools.count())


class Bench:
    """One simulated IP.

    Attributes:
        model: What the IP must answer.
        ip: Its configuration.
        tick: The current clock cycle.
        beats: The stream's beats, in order.
        irqs: Rising edges of irq that were measured or not.
        acks: The same of ack.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.ip = configuration()
        self.model = Latencies(self.ip)
        self.tick = 0
        self.beats: list[int] = []
        self.begins_at: int | None = None
        delay = self.ip.synchroniser_stages
        self._inputs: deque[tuple[int, int]] = deque([(1, 1)] * (delay + 2), delay + 2)
        self._write_address: int | None = None
        self._idle = 0  # cycles that the scoreboard may sleep

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose IP has been reset and measures nothing yet."""
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        bench = cls(dut)
        dut.irq_in.value = 0
        dut.ack_in.value = 0
        dut.aresetn.value = 0
        dut.m_axis_tready.value = 1
        dut.time_in.value = 0
        for port in ("s00_axi", "s01_axi"):
            for name in ("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready"):
                getattr(dut, f"{port}_{name}").value = 0
            for name in ("araddr", "arprot", "arvalid", "rready"):
                getattr(dut, f"{port}_{name}").value = 0
        cocotb.start_soon(Clock(dut.aclk, CLOCK_NS, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        bench.s00 = bench._master("s00_axi")
        bench.s01 = bench._master("s01_axi")
        cocotb.start_soon(bench._watch())
        await bench.reset()
        return bench

    def _master(self, prefix: str) -> AxiLiteMaster:
        master = AxiLiteMaster(
            AxiLiteBus.from_prefix(self.dut, prefix),
            self.dut.aclk,
            self.dut.aresetn,
            reset_active_level=False,
        )
        for part in (master.write_if, master.read_if):
            part.log.setLevel(logging.WARNING)
        return master

    # The scoreboard.

    async def _watch(self) -> None:
        dut = self.dut
        edge = RisingEdge(dut.aclk)
        while True:
            await edge
            self.tick += 1
            if self._idle:
                self.tick += self._idle
                await Timer(self._idle * CLOCK_NS - CLOCK_NS // 2, unit="ns")
                await edge
                self._idle = 0
            self._inputs.append((int(dut.irq_in.value), int(dut.ack_in.value)))
            (irq_before, ack_before), (irq, ack) = self._inputs[0], self._inputs[1]
            irq_rises, ack_rises = irq > irq_before, ack > ack_before
            if not dut.aresetn.value:
                self._reset()
                continue
            if self.tick == self.begins_at:
                self.begins_at = None
                self.model.write_we(True)
            if irq_rises or ack_rises:
                coverage.edges(self.ip, self.model, irq_rises, ack_rises)
                self.model.edges(self.tick, irq_rises, ack_rises)
            if dut.s01_axi_awvalid.value and dut.s01_axi_awready.value:
                self._write_address = int(dut.s01_axi_awaddr.value) & ~3
            if dut.s01_axi_wvalid.value and dut.s01_axi_wready.value:
                self._written(int(dut.s01_axi_wdata.value), int(dut.s01_axi_wstrb.value))
            if self.ip.stream and dut.m_axis_tvalid.value and dut.m_axis_tready.value:
                self.beats.append(int(dut.m_axis_tdata.value))

    def _reset(self) -> None:
        self.model = Latencies(self.ip)
        self.begins_at = None

    def _written(self, data: int, strobes: int) -> None:
        """One register was written in this cycle: both handshakes come at once."""
        names = [name for name in WRITES_SEEN if ADDRESS[name] == self._write_address]
        if not names:
            return
        mask = sum(0xFF << 8 * byte for byte in range(4) if strobes >> byte & 1)
        flag = bool(data & mask & 1)
        match names[0]:
            case "we" if strobes & 1:
                self._write_we(flag)
            case "alarm_lat":
                keep = self.model.alarm_lat & ~mask
                self.model.alarm_lat = (keep | data & mask) & self.ip.latency_max
            case "alarm_lat_high":
                keep = self.model.alarm_lat & ~(mask << 32)
                self.model.alarm_lat = (keep | (data & mask) << 32) & self.ip.latency_max
            case "alarm" if flag:
                self.model.clear_alarm(self.tick)
            case "mode" if strobes & 1:
                self.model.wrap, self.model.freeze_on_alarm = flag, bool(data & 4)
            case "post_trigger":
                self.model.post_trigger = self.model.post_trigger & ~mask | data & mask
            case "timeout":
                self.model.timeout = self.model.timeout & ~mask | data & mask

    def _write_we(self, value: bool) -> None:
        if self.ip.histogram and value and not self.model.we:
            self.begins_at = self.tick + self.ip.histogram_bins + 1  # the bins are swept first
        else:
            self.begins_at = None
            self.model.write_we(value)

    # What tests do.

    async def cycles(self, count: int) -> None:
        """Let so many clock cycles pass."""
        if count:
            await ClockCycles(self.dut.aclk, count)

    async def idle(self, count: int) -> None:
        """Let many cycles pass in which nothing changes, without looking at each."""
        await self.cycles(8)  # until edges are through the synchronisers
        count -= 8
        self._idle = count - 8
        await Timer(count * CLOCK_NS - CLOCK_NS // 2, unit="ns")
        await RisingEdge(self.dut.aclk)

    async def settle(self) -> None:
        """Until what happened is visible in every register."""
        await self.cycles(SETTLE_CYCLES + self.ip.synchroniser_stages)

    async def reset(self) -> None:
        """Hold the reset for some cycles."""
        self.dut.aresetn.value = 0
        await self.cycles(5)
        self.dut.aresetn.value = 1
        await self.cycles(2)

    async def set(self, irq: int | None = None, ack: int | None = None) -> None:
        """Set input levels, to be sampled by the next clock edge; return after that edge."""
        if irq is not None:
            self.dut.irq_in.value = irq
        if ack is not None:
            self.dut.ack_in.value = ack
        await self.cycles(1)

    async def pulse(self, irq: int = 0, ack: int = 0) -> None:
        """One cycle high, one low."""
        await self.set(irq=irq, ack=ack)
        await self.set(irq=0, ack=0)

    async def measure(self, latency: int) -> None:
        """One irq and its ack so many cycles later; two cycles more."""
        if latency == 0:
            await self.pulse(irq=1, ack=1)
            return
        await self.set(irq=1)
        if latency > LONG_CYCLES:
            await self.idle(latency - 50)
            latency = 50
        await self.cycles(latency - 1)
        await self.set(ack=1, irq=0)
        await self.set(ack=0)

    async def read(self, name: str) -> int:
        """Read a register of S01."""
        return await self.read_word(self.s01, ADDRESS[name])

    async def write(self, name: str, value: int) -> None:
        """Write a register of S01; the whole of `alarm_lat`, however wide."""
        if name == "alarm_lat" and self.ip.latency_width > 32:
            await self.write_word(self.s01, ADDRESS["alarm_lat_high"], value >> 32)
            value %= 2**32
        await self.write_word(self.s01, ADDRESS[name], value)

    async def read_word(self, port: AxiLiteMaster, address: int) -> int:
        """Read a word; `RefusedError` if the answer is an error."""
        answer = await port.read(address, 4)
        if answer.resp != AxiResp.OKAY:
            assert answer.resp == AxiResp.SLVERR, answer.resp
            raise RefusedError(hex(address))
        return int.from_bytes(answer.data, "little")

    async def write_word(self, port: AxiLiteMaster, address: int, value: int) -> None:
        """Write a word; `RefusedError` if the answer is an error."""
        answer = await port.write(address, value.to_bytes(4, "little"))
        if answer.resp != AxiResp.OKAY:
            assert answer.resp == AxiResp.SLVERR, answer.resp
            raise RefusedError(hex(address))

    def pause(self, percent: int) -> None:
        """From now on every channel of both masters pauses in so many of hundred cycles."""
        for index, port in enumerate((self.s00, self.s01)):
            write, read = port.write_if, port.read_if
            channels = (write.aw_channel, write.w_channel, write.b_channel)
            for place, channel in enumerate((*channels, read.ar_channel, read.r_channel)):
                channel.set_pause_generator(_paused(percent, 10 * index + place))

    async def begin(self) -> None:
        """Start a new series, and wait until it has begun."""
        await self.write("we", 0)
        await self.write("we", 1)
        if self.ip.histogram:
            await self.cycles(self.ip.histogram_bins + 4)
            assert await self.read("status") & 0x20, "not ready when the bins have been swept"

    async def wide(self, name: str) -> int:
        """Read a latency of any width."""
        low = await self.read(name)
        return low | (await self.read(f"{name}_high") << 32 if self.ip.latency_width > 32 else 0)

    async def sample(self, index: int) -> int:
        """Read one word of the memory of latencies."""
        latency = await self.read_word(self.s00, 4 * index)
        if self.ip.latency_width > 32:
            high = await self.read_word(self.s00, self.ip.region_bytes + 4 * index)
            latency |= high << 32
        return latency

    async def samples(self, count: int) -> list[int]:
        """Read the first samples of the memory."""
        return [await self.sample(index) for index in range(count)]

    async def check(self, *, memory: bool = True) -> None:
        """Everything that can be read is what the model says."""
        await self.settle()
        self.model.pass_time(self.tick)
        model = self.model
        read = {name: await self.wide(name) for name in ("last", "max", "min")}
        assert read == {"last": model.last, "max": model.max, "min": model.min}
        assert await self.read("num") == model.num
        assert await self.read("alarm") == model.alarm
        assert int(self.dut.alarm.value) == model.alarm
        if memory:
            await self.check_memory()
        if self.ip.counters:
            counted = ("orphans", "overlaps", "missed", "saturations")
            seen = {name: await self.read(name) for name in counted}
            assert seen == {name: getattr(model, name) for name in counted}
        if self.ip.watchdog:
            assert await self.read("timeouts") == model.timeouts
        if self.ip.extended:
            await self._check_status()

    async def check_memory(self) -> None:
        """Every sample of the series that is stored."""
        for index, sample in self.model.stored().items():
            assert await self.sample(index) == self.model.told(sample.latency), index

    async def _check_status(self) -> None:
        model, status = self.model, await self.read("status")
        told = {
            "open": bool(status & 1),
            "full": bool(status & 2),
            "num_stopped": bool(status & 8),
            "saturated": bool(status & 16),
        }
        assert told == {
            "open": model.open > 0,
            "full": bool(status & 2) if self.ip.freeze else model.full,
            "num_stopped": model.num == 2**self.ip.num_width - 1,
            "saturated": model.saturations > 0,
        }


def as_environment(ip: Configuration) -> dict[str, str]:
    """The environment in which a bench for this configuration runs."""
    return {CONFIGURATION: json.dumps(asdict(ip))}


async def nanoseconds(count: int) -> None:
    """Let time pass that need not be whole clock cycles."""
    await Timer(count, unit="ns")
