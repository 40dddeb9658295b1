"""Python's ends of channels, against each other and against those in C and C++."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from latenz import _core
from latenz.errors import BadInput
from latenz.icc.description import fields_of
from latenz.icc.endpoints import (
    ChannelError,
    ExchangeClient,
    ExchangeServer,
    LatestReader,
    LatestWriter,
    MailboxReader,
    MailboxWriter,
    Result,
    RingReader,
    RingWriter,
    load_channels,
)
from latenz.icc.records import dtype_of, items, put, text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/icc-python.md").read_text()
C_PAGE = (ROOT / "docs/icc-c.md").read_text()
ROBOT = ROOT / "icc/examples/robot.toml"
TORTURE = ROOT / "icc/tests/torture_languages"
INCLUDE = f"-I{ROOT / 'icc/include'}"
PLAN = """
[types.Point]
x = "float64"
tag = "char[4]"
[types.Plan]
name = "string<5>"
points = "vector<Point, 3>"
raw = "byte[2]"
[channels.plans]
kind = "ring"
payload = "Plan"
slots = 2
"""


@pytest.fixture
def memory(tmp_path):
    """A file of zeros, as the path of a region."""
    path = tmp_path / "memory"
    path.write_bytes(bytes(65536))
    return str(path)


@pytest.fixture
def channels():
    return load_channels(ROBOT)


@pytest.fixture
def plans(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return load_channels(tmp_path / "plan.toml")["plans"]


def printed(page: str, after: str) -> list[str]:
    return page.split(after)[1].split("```text\n")[1].split("```")[0].splitlines()


def test_the_page_s_programs_print_what_it_says(tmp_path):
    [robot] = re.findall(r"```toml\n# robot.toml\n(.*?)```", C_PAGE, re.S)
    (tmp_path / "robot.toml").write_text(robot)
    for name, program in re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.S):
        assert program.count("\n") < 30, name
        (tmp_path / name).write_text(program)
    for name in ("robot", "camera", "lidar"):
        Path(f"/dev/shm/{name}").unlink(missing_ok=True)
    run = {"cwd": tmp_path, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "servo.py"], **run) as servo:
        planner = subprocess.run([sys.executable, "planner.py"], timeout=60, check=True, **run)
        said, _ = servo.communicate(timeout=60)
    wanted = printed(PAGE, "prints, in either order,")
    assert sorted((planner.stdout + said).splitlines()) == sorted(wanted)
    for name in ("camera", "lidar"):
        alone = subprocess.run([sys.executable, f"{name}.py"], timeout=60, check=True, **run)
        Path(f"/dev/shm/{name}").unlink()
        assert alone.stdout.splitlines() == printed(PAGE, f"# {name}.toml")


def torture(folder: Path, channel: str, first: str, second: str, messages: int) -> None:
    """One side in each language; both count what is wrong."""
    memory = folder / f"{channel}-{first}-{second}"
    memory.write_bytes(bytes(65536))

    def command(language: str, side: str) -> list[str | Path]:
        end = [memory, str(messages)]
        if language == "python":
            return [sys.executable, f"{TORTURE}.py", channel, side, ROBOT, *end]
        return [folder / f"torture-{language}", channel, side, *end]

    with subprocess.Popen(command(second, "second"), stdout=subprocess.PIPE, text=True) as other:
        begun = subprocess.run(
            command(first, "first"), capture_output=True, text=True, timeout=500, check=False
        )
        said, _ = other.communicate(timeout=500)
    assert (begun.stdout, begun.stderr, said) == ("0 errors\n", "", "0 errors\n")


@pytest.fixture(scope="module")
def tortures(run_latenz, tmp_path_factory):
    """The folder with the programs in C and C++."""
    folder = tmp_path_factory.mktemp("languages")
    assert run_latenz("icc", "generate", ROBOT, "-o", folder).returncode == 0
    for language, compiler in (("c", ("gcc", "-std=c99")), ("cpp", ("g++", "-std=c++20"))):
        command = (*compiler, "-O2", INCLUDE, f"-I{folder}", f"{TORTURE}.{language}")
        subprocess.run([*command, "-o", folder / f"torture-{language}"], check=True)
    return folder


CHANNELS = ("command", "servo", "trace", "state")


@pytest.mark.parametrize(
    ("channel", "first", "second"),
    [
        ("command", "python", "c"),
        ("servo", "cpp", "python"),
        ("trace", "python", "cpp"),
        ("state", "c", "python"),
    ],
)
def test_every_message_arrives(tortures, channel, first, second):
    torture(tortures, channel, first, second, 10_000)


@pytest.mark.long
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("first", "second"),
    [("python", "c"), ("c", "python"), ("python", "cpp"), ("cpp", "python"), ("python", "python")],
)
def test_each_of_a_million_messages_arrives(tortures, channel, first, second):
    torture(tortures, channel, first, second, 1_000_000)


def test_an_unlike_type_is_refused_by_its_field_as_in_cpp(tmp_path, memory):
    [line] = re.findall(r"```text\nshm:/robot: (payload differs.*)\n```", PAGE)
    assert f"\n{line}\n" in C_PAGE
    robot = (
        '[types.T]\nangle = "float32"\ncycle = "{}"\n[channels.c]\nkind="mailbox"\npayload="T"\n'
    )
    made = {}
    for kind in ("uint32", "uint64"):
        (tmp_path / f"{kind}.toml").write_text(robot.format(kind))
        made[kind] = load_channels(tmp_path / f"{kind}.toml")["c"]
    MailboxWriter.create(made["uint64"], memory)
    with pytest.raises(BadInput) as refused:
        MailboxReader.attach(made["uint32"], memory)
    assert (refused.value.what, refused.value.where) == (line, memory)


def test_results_are_those_of_c():
    for result in Result:
        assert _core.channel_result_name(result) == result.name.lower().replace("_", " ")
    assert _core.channel_result_name(len(Result)) == "unknown"


def test_records_lie_as_described(plans):
    """Each field in turn holds ones: numpy sees them where C and C++ have that field."""
    dtype = dtype_of(plans.payload)
    assert dtype.itemsize == plans.payload.size
    for field in fields_of(plans.payload):
        content = np.zeros(dtype.itemsize, np.uint8)
        for at in range(field.offset, field.offset + field.count * field.stride, field.stride):
            content[at : at + field.size] = 1
        found = content.view(dtype)[0]
        for name in field.name.split("."):
            found = found[name.split("[")[0]]
        assert np.count_nonzero(found) > 0
        assert content.sum() == field.count * field.size
        blank = np.zeros(dtype.itemsize, np.uint8).view(dtype)[0]
        others = [name for name in dtype.names if name != field.name.split(".")[0]]
        record = content.view(dtype)[0]
        assert all(record[name].tobytes() == blank[name].tobytes() for name in others)


def test_a_loan_is_seen_when_it_is_published_and_lies_in_the_memory(channels, memory):
    writer = RingWriter.create(channels["trace"], memory)
    reader = RingReader.attach(channels["trace"], memory)
    lent = writer.loan()
    lent["time_ns"] = 7
    lent["joints"]["angle"][:] = range(6)
    assert reader.try_take() is None
    assert (7).to_bytes(8, "little") in Path(memory).read_bytes()  # no copy is on its way
    writer.publish()
    taken = reader.take(timeout_s=9)
    assert taken["joints"][5]["angle"] == 5
    with pytest.raises(ValueError, match="read-only"):
        taken["time_ns"] = 8
    lent["time_ns"] = 9
    assert taken["time_ns"] == 9  # one place
    reader.release()
    with pytest.raises(ChannelError, match="empty"):
        reader.release()


def test_a_view_outlives_its_endpoint(channels, memory):
    writer = LatestWriter.create(channels["state"], memory)
    reader = LatestReader.attach(channels["state"], memory, reader=1)
    assert reader.view() is None
    writer.loan()["time_ns"] = 5
    writer.publish()
    view = reader.view()
    del writer, reader
    gc.collect()
    Path(memory).unlink()
    assert view["time_ns"] == 5


def test_a_stream_in_batches(channels, memory):
    writer = RingWriter.create(channels["trace"], memory)
    reader = RingReader.attach(channels["trace"], memory)
    some = np.zeros(100, writer.dtype)
    some["time_ns"] = range(100)
    assert writer.try_write_some(some) == 64
    assert writer.try_write_some(some) == 0
    assert not writer.try_write(some[0])
    assert writer.try_loan() is None
    assert writer.late_reader() == 0
    assert reader.try_read_some(10)["time_ns"].tolist() == list(range(10))
    assert len(reader.try_read_some(0)) == 0
    assert writer.try_write_some(some[::-3]) == 10  # with strides
    assert writer.try_write_some([]) == 0
    assert reader.try_read_some(100)["time_ns"].tolist() == list(range(10, 64))
    assert reader.try_read_some(100)["time_ns"].tolist() == list(range(99, 69, -3))
    assert reader.try_read() is None
    with pytest.raises(ChannelError, match="timeout"):
        reader.read(timeout_s=0.01)
    writer.close()
    with pytest.raises(ChannelError) as gone:
        reader.read()
    assert gone.value.result is Result.PEER_GONE


def test_a_writer_that_died_amid_a_loan_leaves_nothing_torn(channels, memory):
    child = os.fork()
    if child == 0:
        writer = RingWriter.create(channels["trace"], memory)
        while not writer.late_reader() and writer.number < 1:
            writer.write(np.zeros((), writer.dtype))
        writer.loan()["time_ns"] = 1 << 60
        os._exit(0)
    os.waitpid(child, 0)
    reader = RingReader.attach(channels["trace"], memory)
    assert reader.try_take() is None
    writer = RingWriter.create(channels["trace"], memory)
    assert writer.epoch == 2
    with pytest.raises(ChannelError, match="peer restarted"):
        reader.read(timeout_s=9)
    whole = np.zeros((), writer.dtype)
    for number in range(64):
        whole["time_ns"] = number
        assert writer.try_write(whole)
    assert not writer.try_write(whole)
    assert reader.try_read_some(99)["time_ns"].tolist() == list(range(64))


def test_a_signal_ends_a_wait(channels, memory):
    class AlarmError(Exception):
        pass

    def ring(*_):
        raise AlarmError

    MailboxWriter.create(channels["command"], memory)
    reader = MailboxReader.attach(channels["command"], memory)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for wait_s in (None, 60):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(AlarmError):
                reader.read(timeout_s=wait_s)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert reader.try_read() is None  # the endpoint is not held any more


def test_other_threads_run_meanwhile_but_not_on_the_same_endpoint(channels, memory):
    client = ExchangeClient.create(channels["servo"], memory)
    server = ExchangeServer.attach(channels["servo"], memory)
    refused = []

    def serve():
        while not refused:
            try:
                client.try_collect()
            except RuntimeError as error:
                refused.append(str(error))
        request = server.take(timeout_s=60)
        server.answer((request["angle"] * 2, 5))

    thread = threading.Thread(target=serve)
    thread.start()
    reply = client.call((1.5, 4), timeout_s=60)
    thread.join()
    assert reply.tolist() == (3.0, 5)
    assert refused == ["an endpoint is for one thread at a time"]
    with pytest.raises(ChannelError, match="empty"):
        server.answer((0, 0))


@pytest.mark.long
def test_a_peer_that_is_silent_is_gone(channels, memory):
    """It has not left: it gives no sign of life, as one that was killed."""
    MailboxWriter.create(channels["command"], memory)
    reader = MailboxReader.attach(channels["command"], memory)
    with pytest.raises(ChannelError, match="peer gone"):
        reader.read()


def test_lists_and_text(plans, memory):
    writer = RingWriter.create(plans, memory)
    reader = RingReader.attach(plans, memory)
    lent = writer.loan()
    put(lent["name"], "é\0x")
    put(lent["points"], [(0.5, b"ab"), (1.5, b"cd")])
    for container, wrong in ((lent["name"], "longer"), (lent["points"], [(0, b"")] * 4)):
        with pytest.raises(ValueError, match="into room for"):
            put(container, wrong)
    writer.publish()
    got = reader.read(timeout_s=9)
    assert text(got["name"]) == "é\0x"
    assert items(got["points"]).tolist() == [(0.5, b"ab"), (1.5, b"cd")]
    for count in (4, 1 << 31, (1 << 32) - 1):
        lent = writer.loan(timeout_s=9)
        lent["points"]["count"] = count
        lent["name"]["count"] = max(count, 6)
        writer.publish()
        got = reader.read(timeout_s=9)
        assert len(items(got["points"])) == 0
        assert text(got["name"]) == ""


def test_what_cannot_be_opened_is_told(channels, memory, tmp_path):
    (tmp_path / "small").write_bytes(bytes(64))
    for name, told in (
        ("mem:0xFFFD0000+4K", "takes whole words only"),
        ("uio:/dev/uio0", "takes whole words only"),
        (str(tmp_path / "none"), "cannot be opened"),
        (str(tmp_path / "small"), "memory must begin at a line of 64 bytes and have"),
        ("shm:robot", "shm:/NAME or a file"),
        (memory, "no channel is there"),
    ):
        with pytest.raises(BadInput) as refused:
            MailboxReader.attach(channels["command"], name)
        assert told in str(refused.value)
        assert "\n" not in str(refused.value)
    RingWriter.create(channels["trace"], memory)
    for call, told in (
        (lambda: RingReader.attach(channels["trace"], memory, reader=1), "none is 1"),
        (lambda: RingReader.attach(channels["trace"], memory, reader=-1), "from 0 on"),
        (lambda: RingReader.attach(channels["state"], memory), "'state' a latest"),
        (lambda: RingReader.attach(channels["trace"], memory, offset=4), "at a line of 64"),
        (lambda: RingReader.attach(channels["trace"], memory, offset=1 << 40), "not 0"),
        (lambda: LatestReader.attach(channels["state"], memory, reader=2), "none is 2"),
    ):
        with pytest.raises(BadInput, match=told):
            call()


def test_attach_waits_for_the_creator(channels, memory):
    def create():
        time.sleep(0.05)
        made.append(LatestWriter.create(channels["state"], memory, offset=4096))

    made: list[LatestWriter] = []
    thread = threading.Thread(target=create)
    thread.start()
    reader = LatestReader.attach(channels["state"], memory, timeout_s=60, offset=4096)
    thread.join()
    value = np.zeros((), made[0].dtype)
    value["name"] = b"arm"
    made[0].update(value)
    polled = reader.poll()
    assert polled is not None
    assert polled["name"] == b"arm"
    assert reader.poll() is None
    assert reader.check_writer() is Result.OK
