"""Python's ends of a pool, and mailbox and exchange without a copy; against C++ and a model."""

import os
import random
import subprocess
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from latenz.errors import BadInput
from latenz.icc.endpoints import (
    ChannelError,
    ExchangeClient,
    ExchangeServer,
    MailboxReader,
    MailboxWriter,
    PoolReader,
    PoolWriter,
    Result,
    load_channels,
)

ROOT = Path(__file__).parents[3]
DESCRIPTION = """\
[types.Echo]
distance = "float32"
number = "uint32"
[types.Order]
speed = "float64"
steps = "uint32[100]"
[channels.scans]
kind = "pool"
payload = "Echo"
longest = 100
slots = 9
[channels.orders]
kind = "mailbox"
payload = "Order"
[channels.servo]
kind = "exchange"
request = "Order"
reply = "Echo"
"""
BACK = 16384
ECHO = f"""\
#include <chrono>
#include "latenz/icc/linux_memory.hpp"
#include "described.hpp"
using Scans = described::scans<>;
static_assert(Scans::bytes <= {BACK});
int main(int, char** argv) {{
  auto memory = latenz::icc::LinuxMemory::file(argv[1]);
  if (!memory) return 2;
  auto* begin = static_cast<std::byte*>(memory.data());
  auto reader = *Scans::Reader::attach(begin, {BACK});
  auto writer = *Scans::Writer::create(begin + {BACK}, memory.size() - {BACK}, "back");
  for (unsigned n = 0; n < 4000;) {{
    std::span<const described::Echo> message;
    const auto taken = reader.try_take(message);
    if (taken == latenz::icc::Result::empty) continue;
    if (taken != latenz::icc::Result::ok) return 3;
    std::span<described::Echo> copy;
    while (writer.try_loan(message.size(), copy) != latenz::icc::Result::ok) {{}}
    for (std::size_t i = 0; i < message.size(); ++i) {{
      copy[i] = {{message[i].distance, ~message[i].number}};
    }}
    writer.publish(message.size());
    if (reader.release(message) != latenz::icc::Result::ok) return 4;
    ++n;
  }}
}}
"""


@pytest.fixture
def memory(tmp_path):
    path = tmp_path / "memory"
    path.write_bytes(bytes(65536))
    return str(path)


@pytest.fixture
def channels(tmp_path):
    (tmp_path / "described.toml").write_text(DESCRIPTION)
    return load_channels(tmp_path / "described.toml")


def numbered(count, start):
    made = np.zeros(count, [("distance", "<f4"), ("number", "<u4")])
    made["number"] = np.arange(start, start + count, dtype=np.uint32)
    return made


def test_a_pool_does_what_a_queue_of_lists_does(channels, memory):
    """Random calls on both, with messages given back in any order."""
    chance = random.Random(7)
    writer = PoolWriter.create(channels["scans"], memory)
    reader = PoolReader.attach(channels["scans"], memory)
    queue, held, refused = deque(), [], 0
    for step in range(5000):
        what = chance.randrange(4)
        if what == 0:
            message = numbered(chance.choice([0, 1, 7, 50, 100]), step)
            if writer.try_write(message):
                queue.append(message)
            else:
                refused += 1
        elif what == 1:
            count = chance.randrange(101)
            if (lent := writer.try_loan(count)) is not None:
                lent[...] = numbered(count, step)
                shorter = chance.randrange(count + 1)
                writer.publish(shorter)
                queue.append(numbered(count, step)[:shorter])
        elif what == 2:
            taken = reader.try_take()
            assert (taken is None) == (not queue)
            if taken is not None:
                assert np.array_equal(taken, queue[0])
                held.append((taken, queue.popleft()))
        elif held:
            taken, told = held.pop(chance.randrange(len(held)))
            assert np.array_equal(taken, told)  # nobody wrote over it meanwhile
            reader.release(taken)
    assert refused
    assert reader.dropped == 0


def test_what_a_pool_refuses(channels, memory):
    writer = PoolWriter.create(channels["scans"], memory)
    reader = PoolReader.attach(channels["scans"], memory)
    for call in (writer.loan, lambda items: writer.write(numbered(items, 0))):
        with pytest.raises(ChannelError) as refused:
            call(101)
        assert refused.value.result is Result.FULL
    assert writer.try_loan(101) is None
    for items in (-1, 1 << 32):
        with pytest.raises(ValueError, match="items"):
            writer.try_loan(items)
    with pytest.raises(ChannelError, match="timeout"):
        reader.read(timeout_s=0.01)
    writer.write([(0.5, 1), (0.25, 2)], timeout_s=9)
    taken = reader.take(timeout_s=9)
    with pytest.raises(ValueError, match="read-only"):
        taken["number"] = 1
    for other in (taken[1:], taken.copy(), np.zeros(1, taken.dtype)):
        with pytest.raises(ChannelError, match="empty"):
            reader.release(other)
    assert taken["distance"].tolist() == [0.5, 0.25]
    reader.release(taken)
    with pytest.raises(ChannelError, match="empty"):
        reader.release(taken)
    with pytest.raises(BadInput, match="a mailbox"):
        PoolReader.attach(channels["orders"], memory)


def test_what_a_dead_reader_held_is_given_back_and_counted(channels, memory):
    writer = PoolWriter.create(channels["scans"], memory)
    for number in range(3):
        assert writer.try_write(numbered(5, number))
    child = os.fork()
    if child == 0:
        reader = PoolReader.attach(channels["scans"], memory)
        reader.try_take()
        reader.try_take()
        os._exit(0)
    os.waitpid(child, 0)
    reader = PoolReader.attach(channels["scans"], memory)
    assert (reader.epoch, reader.dropped) == (2, 2)
    assert reader.try_read()["number"].tolist() == [2, 3, 4, 5, 6]
    for number in range(100):  # no block is lost
        assert writer.try_write(numbered(100, number))
        assert len(reader.try_read()) == 100


def test_cpp_gives_every_message_back(channels, memory, tmp_path, run_latenz):
    done = run_latenz("icc", "generate", tmp_path / "described.toml", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "echo.cpp").write_text(ECHO)
    build = ["g++", "-std=c++20", "-O2", f"-I{ROOT / 'icc/include'}", tmp_path / "echo.cpp"]
    subprocess.run([*build, "-o", tmp_path / "echo"], check=True)
    writer = PoolWriter.create(channels["scans"], memory)
    chance = random.Random(11)
    sent = deque()
    with subprocess.Popen([tmp_path / "echo", memory]) as echo:
        reader = PoolReader.attach(channels["scans"], memory, timeout_s=60, offset=BACK)
        written = read = 0
        while read < 4000:
            if written < 4000:
                message = numbered(chance.randrange(101), written)
                if writer.try_write(message):
                    sent.append(~message["number"])
                    written += 1
            if (taken := reader.try_take()) is not None:
                assert np.array_equal(taken["number"], sent.popleft())
                reader.release(taken)
                read += 1
    assert echo.returncode == 0
    assert reader.dropped == 0


def test_a_mailbox_in_place(channels, memory):
    writer = MailboxWriter.create(channels["orders"], memory)
    reader = MailboxReader.attach(channels["orders"], memory)
    assert reader.try_take() is None
    for number in range(100):
        lent = writer.try_loan()
        lent["speed"] = number
        lent["steps"][...] = np.arange(100) + number
        assert reader.try_take() is None
        writer.publish()
        assert writer.try_loan() is None  # it is not read yet
        taken = reader.try_take()
        assert taken["speed"] == number
        assert taken["steps"].sum() == 4950 + 100 * number
        with pytest.raises(ValueError, match="read-only"):
            taken["speed"] = 1
        reader.release()
        with pytest.raises(ChannelError, match="empty"):
            reader.release()
    assert writer.try_write((1.0, range(100)))


def test_an_exchange_in_place(channels, memory):
    client = ExchangeClient.create(channels["servo"], memory)
    server = ExchangeServer.attach(channels["servo"], memory)
    assert server.loan_reply() is None
    for number in range(100):
        request = client.try_loan()
        request["steps"][7] = number
        assert server.try_take_request() is None
        client.publish()
        assert client.try_loan() is None  # it is not answered yet
        taken = server.try_take_request()
        told = int(taken["steps"][7])
        with pytest.raises(ChannelError, match="busy"):
            server.try_take_request()
        assert client.try_take_reply() is None
        server.loan_reply()[()] = (0.5, told + 1)
        server.publish_reply()
        reply = client.try_take_reply()
        assert (reply["distance"], reply["number"]) == (0.5, number + 1)
        client.release()
        with pytest.raises(ChannelError, match="empty"):
            client.release()
    assert client.try_post((0.0, range(100)))
    assert server.try_take()["steps"][99] == 99
