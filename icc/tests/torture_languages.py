# SPDX-License-Identifier: Apache-2.0
"""The same as torture_languages.c in Python: CHANNEL first|second DESCRIPTION FILE MESSAGES."""

import os
import sys

import numpy as np

from latenz.icc.description import fields_of
from latenz.icc.endpoints import (
    ExchangeClient,
    ExchangeServer,
    LatestReader,
    LatestWriter,
    MailboxReader,
    MailboxWriter,
    RingReader,
    RingWriter,
    load_channels,
)

CHANNELS = load_channels(sys.argv[3])
MEMORY = sys.argv[4]
MESSAGES = int(sys.argv[5])
errors = 0


def require(right: bool) -> None:
    global errors
    errors += not right


PADDING = np.ones(CHANNELS["state"].payload.size, bool)
for field in fields_of(CHANNELS["state"].payload):
    for at in range(field.offset, field.offset + field.count * field.stride, field.stride):
        PADDING[at : at + field.size] = False


def states(first: int, count: int, dtype) -> np.ndarray:
    """Messages whose bytes all tell their number."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    octets = np.repeat((numbers % 251).astype(np.uint8), PADDING.size).reshape(-1, PADDING.size)
    octets[:, PADDING] = 0
    whole = octets.reshape(-1).view(dtype)
    whole["time_ns"] = numbers
    return whole


def check(got: np.ndarray, first: int) -> None:
    found, wanted = (
        each.view(np.uint8).reshape(-1, PADDING.size)[:, ~PADDING]
        for each in (got, states(first, len(got), got.dtype))
    )
    require(np.array_equal(found, wanted))


def command(first: bool) -> None:
    if first:
        writer = MailboxWriter.create(CHANNELS["command"], MEMORY)
        for n in range(1, MESSAGES + 1):
            writer.write((n, n))
    else:
        reader = MailboxReader.attach(CHANNELS["command"], MEMORY, timeout_s=60)
        for n in range(1, MESSAGES + 1):
            require(reader.read().tolist() == (n, n))


def servo(first: bool) -> None:
    if first:
        client = ExchangeClient.create(CHANNELS["servo"], MEMORY)
        for n in range(1, MESSAGES + 1):
            require(client.call((n, n)).tolist() == (n, n + 1))
    else:
        server = ExchangeServer.attach(CHANNELS["servo"], MEMORY, timeout_s=60)
        for n in range(1, MESSAGES + 1):
            angle, cycle = server.take().tolist()
            require(cycle == n)
            server.answer((angle, n + 1))


def trace(first: bool) -> None:
    n = 1
    if first:
        writer = RingWriter.create(CHANNELS["trace"], MEMORY)
        while writer.late_reader() is None and not writer_has_reader(writer):
            os.sched_yield()
        while n <= MESSAGES:
            if n % 3 == 0:
                place = writer.loan()
                place[...] = states(n, 1, writer.dtype)[0]
                writer.publish()
                n += 1
            elif n % 3 == 1:
                sent = writer.try_write_some(states(n, min(2, MESSAGES + 1 - n), writer.dtype))
                n += sent
                if not sent:
                    os.sched_yield()
            else:
                writer.write(states(n, 1, writer.dtype)[0])
                n += 1
    else:
        reader = RingReader.attach(CHANNELS["trace"], MEMORY, timeout_s=60)
        while n <= MESSAGES:
            if n % 4 == 0:
                check(np.array([reader.take()]), n)
                reader.release()
                n += 1
                continue
            got = reader.try_read_some(3)
            check(got, n)
            n += len(got)
            if not len(got):
                os.sched_yield()


def writer_has_reader(writer: RingWriter) -> bool:
    """Nobody waits for a reader that is not there: so the writer waits for it to come."""
    from latenz.icc import find_channels, look, open_region

    with open_region(MEMORY) as region:
        [channel] = find_channels(region).channels
        return look(region, channel).sides[1].epoch != 0


def state(first: bool) -> None:
    if first:
        writer = LatestWriter.create(CHANNELS["state"], MEMORY)
        some = states(1, 1000, writer.dtype)
        for n in range(1, MESSAGES + 1):
            if n % 1000 == 1:
                some = states(n, 1000, writer.dtype)
            if n % 2:
                writer.update(some[(n - 1) % 1000])
            else:
                writer.loan()[...] = some[(n - 1) % 1000]
                writer.publish()
    else:
        reader = LatestReader.attach(CHANNELS["state"], MEMORY, timeout_s=60, reader=1)
        last = 0
        while last < MESSAGES:
            if last % 2:
                got = reader.view()
                got = got.copy() if got is not None and got["time_ns"] != last else None
            else:
                got = reader.poll()
            if got is None:
                os.sched_yield()
                continue
            require(got["time_ns"] > last)
            last = int(got["time_ns"])
            check(np.array([got]), last)


globals()[sys.argv[1]](sys.argv[2] == "first")
sys.stdout.write(f"{errors} errors\n")
sys.exit(bool(errors))
