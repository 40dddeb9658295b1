# SPDX-License-Identifier: Apache-2.0
"""The simulated board, from inside the simulation: cocotb starts `serve`, which never returns.

Requests come from one client at a time; while none is served, the simulation stands still.
Frames are those of docs/ip.md. What is not one gets status 255, and an unknown operation ends the
connection, because nobody can tell where the next frame begins.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import cocotb
from axi import Master
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from designs import DESIGNS, all_generics
from memory import BASE, Memory
from processor import CLOCK_NS, acknowledge, edges, handler, interrupts, replay

from latenz.ip.edges import read_edges

READ, WRITE, WAIT, DESCRIBE = 1, 2, 3, 4
OKAY, DECERR, REFUSED = 0, 3, 255
HEADER = struct.Struct("<BBHI")
WORD = 4
# A wait is done in parts, between which a client that left is noticed.
WAIT_PART_CYCLES = 50_000
ADDITIONS = (
    "counters_g", "watchdog_g", "time_stamp_g", "snapshot_g", "sums_g", "histogram_g", "stream_g",
    "freeze_g", "self_test_g", "identification_g",
)  # fmt: skip
_PR_SET_PDEATHSIG = 1


class ClientGoneError(Exception):
    """The client has left."""


class Answer(NamedTuple):
    """A response: status, how many words or bytes follow, the first word that failed, these."""

    status: int
    count: int = 0
    index: int = 0
    content: bytes = b""


class Client:
    """One connection: exact reads and whole answers."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive(self, size: int) -> bytes:
        """Return exactly so many bytes."""
        content = b""
        while len(content) < size:
            try:
                part = self._connection.recv(size - len(content))
            except OSError as error:
                raise ClientGoneError from error
            if not part:
                raise ClientGoneError
            content += part
        return content

    def answer(self, answer: Answer) -> None:
        """Send a response."""
        header = HEADER.pack(answer.status, 0, answer.count, answer.index)
        try:
            self._connection.sendall(header + answer.content)
        except OSError as error:
            raise ClientGoneError from error

    def stays(self) -> None:
        """Raise ClientGoneError if the client has left."""
        try:
            if not self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise ClientGoneError
        except BlockingIOError:
            pass
        except OSError as error:
            raise ClientGoneError from error


class Board:
    """The running design, its windows and what happens around it."""

    def __init__(self, dut, request: dict) -> None:
        self._dut = dut
        self._name = request["design"]
        self._design = DESIGNS[self._name]
        self._generics = all_generics(self._design, request["generics"])
        self._scenario = request["scenario"]
        self._replay = None
        if self._scenario["replay"]:
            self._replay = read_edges(Path(self._scenario["replay"]))

    async def start(self) -> None:
        """Reset the design, then let its surroundings begin; a replay waits for its first wait."""
        dut = self._dut
        alone = self._design.generator is None
        interrupt = dut.irq_in if alone else dut.ps_pl_irq
        interrupt.value = 0
        if alone:
            dut.ack_in.value = 0
        dut.aresetn.value = 0
        cocotb.start_soon(Clock(dut.aclk, CLOCK_NS, unit="ns").start())
        prefixes = [
            f"{instance.prefix}{slave}_axi"
            for instance in self._design.instances
            for slave in ("s00", "s01")
        ]
        self._windows = [Master(dut, prefix) for prefix in prefixes]
        if not alone:
            self._windows.append(Master(dut, self._design.generator))
        if self._design.ring is not None:
            memory = Memory(dut, 1 << self._scenario["ring_log2"])
            cocotb.start_soon(memory.run())
            self._windows += [Master(dut, self._design.ring), memory]
        await ClockCycles(dut.aclk, 4)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        if self._replay is None:
            cocotb.start_soon(interrupts(dut, interrupt, self._scenario))
            if alone:
                cocotb.start_soon(acknowledge(dut, self._scenario))
            else:
                cocotb.start_soon(handler(dut, self._windows[-1], self._scenario))

    def description(self) -> bytes:
        """Return what the board says of itself."""
        generics = self._generics
        has_ring = self._design.ring is not None
        published = not has_ring and not any(generics.get(name) == "true" for name in ADDITIONS)
        ring = {
            "registers": len(self._windows) - 2,
            "memory": len(self._windows) - 1,
            "base": BASE,
            "size_log2": self._scenario["ring_log2"],
        }
        instances = [
            {
                "name": instance.name,
                "s00": 2 * number,
                "s01": 2 * number + 1,
                "published": published,
                "from_event": instance.from_event,
                "to_event": instance.to_event,
                **({"ring": ring} if has_ring else {}),
            }
            for number, instance in enumerate(self._design.instances)
        ]
        board = {
            "board": f"simulated {self._name}",
            "time_base": "simulated",
            "clock_hz": int(generics["clock_frequency_hz_g"].replace("_", "")),
            "instances": instances,
            "generator": len(self._windows) - 1 if self._design.generator else None,
        }
        return json.dumps(board).encode()

    async def serve(self, client: Client) -> None:
        """Serve one client until it leaves or says something that is not a request."""
        while True:
            operation, window, count, argument = HEADER.unpack(client.receive(HEADER.size))
            written = client.receive(WORD * count) if operation == WRITE else b""
            if operation in (READ, WRITE) and not (window < len(self._windows) and count):
                answer = _refused(f"{count} words of window {window} of {len(self._windows)}")
            elif operation == READ:
                answer = await self._read(self._windows[window], argument, count)
            elif operation == WRITE:
                answer = await self._write(self._windows[window], argument, written)
            elif operation == WAIT:
                answer = await self._wait(client, argument)
            elif operation == DESCRIBE:
                text = self.description()
                answer = Answer(OKAY, len(text), 0, text + b" " * (-len(text) % WORD))
            else:
                client.answer(_refused(f"there is no operation {operation}"))
                return
            client.answer(answer)

    async def _read(self, master: Master | Memory, address: int, count: int) -> Answer:
        content = b""
        for index in range(count):
            place = (address & ~3) + WORD * index
            if place >= master.size:
                return Answer(DECERR, index, index, content)
            response, word = await master.read(place)
            if response:
                return Answer(response, index, index, content)
            content += word.to_bytes(WORD, "little")
        return Answer(OKAY, count, 0, content)

    async def _write(self, master: Master | Memory, address: int, written: bytes) -> Answer:
        for offset in range(0, len(written), WORD):
            place = (address & ~3) + offset
            if place >= master.size:
                return Answer(DECERR, 0, offset // WORD)
            word = int.from_bytes(written[offset : offset + WORD], "little")
            if response := await master.write(place, word):
                return Answer(response, 0, offset // WORD)
        return Answer(OKAY)

    async def _wait(self, client: Client, count: int) -> Answer:
        if self._replay is not None:
            cocotb.start_soon(replay(self._dut, self._replay))
            self._replay = None
        left = count
        while left:
            part = min(left, WAIT_PART_CYCLES)
            await edges(self._dut, part)
            left -= part
            if left:
                client.stays()
        return Answer(OKAY)


def _refused(why: str) -> Answer:
    sys.stderr.write(f"refused: {why}\n")
    sys.stderr.flush()
    return Answer(REFUSED)


def _listening(path: Path) -> socket.socket:
    """Listen; the path appears when a client can connect."""
    made = path.with_name(path.name + ".made")
    made.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.fspath(made))
    listening.listen(1)
    made.rename(path)
    return listening


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@cocotb.test()
async def serve(dut) -> None:
    """Start the board and serve one client after the other, until the process is ended."""
    request = json.loads(os.environ["LATENZ_SIMULATED_BOARD"])
    _end_with_parent(request["parent"])
    board = Board(dut, request)
    await board.start()
    listening = _listening(Path(request["socket"]))
    while True:
        connection, _ = listening.accept()
        with connection:
            try:
                await board.serve(Client(connection))
            except ClientGoneError:
                continue
