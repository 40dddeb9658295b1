"""Small files that would unpack to gigabytes, or be read for hours: refused, or read in part."""

import json
import os
import resource
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import (
    CHUNK,
    FUNCTIONS,
    NAMES,
    PAGE,
    TEXT_BUFFER,
    Hostile,
    buffer,
    event_format,
    fields,
    number,
    option,
    page,
    pages,
    record,
)

from latenz.programs import probe_program

pytestmark = pytest.mark.fuzzing

MEBIBYTE = 1 << 20
MOST_BYTES = 256 * MEBIBYTE
LONGEST_S = 30
EXIT = fields(("int exit_reason", 4), ("int isa", 4), ("int vcpu_id", 4))
SWITCH = fields(("char prev_comm[16]", 16), ("int prev_pid", 4), ("int prev_prio", 4))


def same_place(compression: str) -> Hostile:
    """200 CPUs, each of which has the same 64 MiB of zeros."""
    made = Hostile(compression)
    place = made.chunks(made.compress(bytes(CHUNK)), CHUNK)
    made.cpus([place] * 200)
    return made


def each_its_own(compression: str) -> Hostile:
    """As many CPUs as fit, each with its own 64 MiB, all of which are open at once."""
    made = Hostile(compression)
    packed = made.compress(page(record(bytes(8))) * (CHUNK // PAGE))
    made.cpus([made.chunks(packed, CHUNK) for _ in range(900_000 // len(packed))])
    return made


def endless_chunks() -> Hostile:
    """One CPU, gigabytes of the shortest events."""
    made = Hostile()
    packed = made.compress(
        page(number(1, 4) + number(0) + record(bytes(4)) * 500) * (CHUNK // PAGE)
    )
    made.cpus([made.chunks(packed, CHUNK, 900_000 // (len(packed) + 8))])
    return made


def lying_chunks() -> Hostile:
    """A hundred thousand chunks that promise 64 MiB and hold nothing."""
    made = Hostile()
    made.cpus([made.chunks(b"x", CHUNK, 100_000)])
    return made


def one_section_for_all() -> Hostile:
    """Seventy thousand options that all name one section of 60 MiB."""
    made = Hostile()
    made.part(NAMES, number(60 * MEBIBYTE, 8) + bytes(60 * MEBIBYTE), 70_000)
    return made


def many_buffers() -> Hostile:
    made = Hostile()
    made.options += buffer([], 0) * 2_000_000
    return made


def many_cpus() -> Hostile:
    made = Hostile()
    made.options += buffer([(i, 1 << 62, 5) for i in range(60_000)], 0) * 15
    return made


def huge_pages() -> Hostile:
    """60,000 CPUs with pages of 16 MiB that the file does not have."""
    made = Hostile()
    made.options += buffer(
        [(i, (1 << 40) + (i << 24), 1 << 24) for i in range(60_000)], 37, 1 << 24
    )
    return made


def many_notes() -> Hostile:
    made = Hostile()
    made.options += option(TEXT_BUFFER, b"") * 8_000_000
    return made


def tables_without_end() -> Hostile:
    """Each table of reasons would hold all that follow it."""
    made = Hostile()
    text = '\nprint fmt: "' + '__print_symbolic(x,{1,"a"},{2,"b"},' * 29_000
    made.formats(*[event_format("kvm_exit", i, EXIT + text) for i in range(15)])
    return made


def many_formats() -> Hostile:
    made = Hostile()
    text = "".join(f"field:a a{i};offset:0;size:1;\n" for i in range(250))
    made.formats(*[event_format(f"e{i}", i, text) for i in range(6_000)])
    return made


def many_symbols() -> Hostile:
    made = Hostile()
    symbols = "".join(f'{{{i},""}}' for i in range(90_000))
    text = f'{EXIT}\nprint fmt: "", __print_symbolic(x,{symbols})\n'
    made.formats(*[event_format("kvm_exit", i, text) for i in range(15)])
    return made


def exits(pids: range, reasons: range) -> bytes:
    parts = [struct.pack("<HHiIIi", 7, 0, pid, code, 1, 0) for pid in pids for code in reasons]
    return pages(map(record, parts))


def a_long_reason() -> Hostile:
    """4,000 threads that exit for a reason whose name is a megabyte long."""
    made = Hostile()
    name = "r" * (MEBIBYTE - 1000)
    tables = f'__print_symbolic(x,{{5,"{name}"}}), __print_symbolic(y,{{6,"s"}})'
    made.formats(event_format("kvm_exit", 7, f'{EXIT}\nprint fmt: "", {tables}\n'))
    made.data(exits(range(1, 4001), range(5, 6)))
    return made


def many_reasons() -> Hostile:
    """4,000 threads, each of which exits for 220 reasons."""
    made = Hostile()
    made.formats(event_format("kvm_exit", 7, EXIT))
    made.data(exits(range(1, 4001), range(1000, 1220)))
    return made


def a_long_function() -> Hostile:
    """60,000 timers whose function has a name of 30 MiB."""
    made = Hostile()
    made.part(FUNCTIONS, number(30 * MEBIBYTE) + b"0 T " + b"f" * (30 * MEBIBYTE))
    timer = fields(("void * hrtimer", 8), ("void * function", 8), ("s64 expires", 8))
    made.formats(event_format("hrtimer_start", 7, timer))
    parts = (struct.pack("<HHiQQQ", 7, 0, 1, i, 16, 0) for i in range(60_000))
    made.data(pages(map(record, parts)))
    return made


def many_functions() -> Hostile:
    made = Hostile()
    made.part(FUNCTIONS, number(0) + b"1 T a\n" * (10 * MEBIBYTE))
    made.formats(event_format("kvm_exit", 7, EXIT))
    made.data(exits(range(9), range(9)))
    return made


def long_names_of_threads() -> Hostile:
    made = Hostile()
    lines = b"".join(b"%d %s\n" % (i, b"n" * 80) for i in range(190_000))
    for _ in range(2):
        made.part(NAMES, number(len(lines), 8) + lines)
    made.formats(
        event_format(
            "sched_switch",
            7,
            SWITCH + "field:__data_loc char[] next_comm; offset:36; size:4;\n"
            "field:int next_pid; offset:40; size:4; signed:1;\n",
        )
    )
    parts = (
        struct.pack("<HHi16siiiIi", 7, 0, 1, b"a", -i, 0, 0, 44 | 3000 << 16, i) + b"x" * 3000
        for i in range(1, 15_000)
    )
    made.data(pages(map(record, parts)))
    return made


def many_losses() -> Hostile:
    """Each page tells that events were lost before it, while thousands of threads wait."""
    made = Hostile()
    waking = fields(("char comm[16]", 16), ("int pid", 4), ("int prio", 4), ("int target_cpu", 4))
    made.formats(event_format("sched_waking", 7, waking))
    parts = (struct.pack("<HHi16siii", 7, 0, 1, b"a", i, 0, 900) for i in range(100_000))
    made.data(pages(map(record, parts)), page(b"", 2, missed=True) * 12_000)
    return made


def slow_fields() -> Hostile:
    """Events whose fields are found last among many of the same length."""
    made = Hostile()
    odd = "".join(f"field:int next_{i:03}; offset:8; size:4;\n" for i in range(55))
    made.formats(event_format("sched_switch", 7, odd + fields(("int next_pid", 4))))
    content = page(record(struct.pack("<HHii", 7, 0, 1, 1)) * 250) * (CHUNK // PAGE)
    made.data(content)
    return made


def many_owners() -> Hostile:
    """Two buffers, and events of sixty thousand kinds on each CPU."""
    made = Hostile()
    kinds = pages(record(struct.pack("<HHi", i, 0, 1)) for i in range(60_000))
    for _ in range(2):
        made.data(*[kinds] * 4)
    return made


BOMBS: dict[str, Callable[[], Hostile]] = {
    "same place, zstd": lambda: same_place("zstd"),
    "same place, zlib": lambda: same_place("zlib"),
    "each its own, zstd": lambda: each_its_own("zstd"),
    "each its own, zlib": lambda: each_its_own("zlib"),
    **{
        made.__name__.replace("_", " "): made
        for made in (
            endless_chunks,
            lying_chunks,
            one_section_for_all,
            many_buffers,
            many_cpus,
            huge_pages,
            many_notes,
            tables_without_end,
            many_formats,
            many_symbols,
            a_long_reason,
            many_reasons,
            a_long_function,
            many_functions,
            long_names_of_threads,
            many_losses,
            slow_fields,
            many_owners,
        )
    },
}


def read(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the reader with no more memory and time than it may take."""
    command = [probe_program("latenz-trace"), *arguments[:1], path, *arguments[1:]]
    return subprocess.run(
        command,
        capture_output=True,
        check=False,
        timeout=LONGEST_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)),
    )


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_of_a_megabyte_takes_bounded_memory_and_time(tmp_path, bomb):
    path = BOMBS[bomb]().write(tmp_path / "bomb.dat")
    assert path.stat().st_size <= MEBIBYTE
    done = read(path, "summary")
    assert done.returncode == 0, done.stderr  # 2 if memory is refused
    json.loads(done.stdout)


@pytest.mark.parametrize("mode", [("summary",), ("events", "0:9000000000000000000")], ids=str)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, mode):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        done = read(path, *mode)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == f"latenz-trace: {path}: is not a regular file\n".encode()


@pytest.mark.parametrize("page_size", [4096, 65536])
def test_a_large_machine_is_read_whole(tmp_path, page_size):
    """256 CPUs, all of which have a chunk of ten pages open at once, as trace-cmd writes them."""
    made = Hostile()
    one = page(record(bytes(8)) * 100).ljust(page_size, b"\0")
    made.cpus(
        [made.chunks(made.compress(one * 10), 10 * page_size, 3) for _ in range(256)], page_size
    )
    path = made.write(tmp_path / "large.dat")
    with path.open("ab") as file:  # what it holds is monotonous: so small it would be a bomb
        file.write(struct.pack("<HHIQ", 15, 0, 0, 16 * MEBIBYTE) + bytes(16 * MEBIBYTE))
    command = [probe_program("latenz-trace"), "summary", path]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert told["truncated_at"] is None
    assert told["events"] == 256 * 3 * 10 * 100
    assert len(told["cpus"]) == 256
