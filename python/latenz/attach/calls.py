"""What a thread is blocked in, in words: system calls, the files and locks they are about."""

from functools import cache
from pathlib import Path

from latenz.machine import measured_machine

_FILE = Path(__file__).with_suffix(".txt")
NO_CALL = -1
UNKNOWN_CALL = -2
_ON_FILES = frozenset(
    [
        "read",
        "write",
        "readv",
        "writev",
        "pread64",
        "pwrite64",
        "preadv",
        "pwritev",
        "preadv2",
        "pwritev2",
        "fsync",
        "fdatasync",
        "sync_file_range",
        "ftruncate",
        "fallocate",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        "sendto",
        "sendmsg",
        "sendmmsg",
        "accept",
        "accept4",
        "connect",
        "ioctl",
        "splice",
        "tee",
        "vmsplice",
        "sendfile",
        "flock",
        "fcntl",
        "close",
        "lseek",
        "epoll_wait",
        "epoll_pwait",
        "epoll_pwait2",
        "copy_file_range",
    ]
)
_MEMORY = frozenset(
    ["mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mlock", "mlock2", "mlockall"]
)
SLEEPS = frozenset(("nanosleep", "clock_nanosleep"))
OUTPUT = frozenset(
    ["write", "writev", "pwrite64", "pwritev", "pwritev2", "fsync", "fdatasync", "sendfile"]
)
TIMER_ABSTIME = 1
_FUTEX_FLAGS = 128 | 256  # private, real time
_FUTEX_WAITS = (0, 9)


@cache
def _numbers(machine: str) -> dict[int, str]:
    column = {"x86_64": 1, "aarch64": 2, "riscv64": 2}.get(machine)
    if column is None:
        return {}
    rows = (line.split() for line in _FILE.read_text(encoding="ascii").splitlines())
    return {int(row[column]): row[0] for row in rows if row[0] != "#" and row[column].isdecimal()}


def call_name(number: int, machine: str = "") -> str:
    """Return the name of a system call; empty if the thread was in none, or none is known.

    Args:
        number: The kernel's.
        machine: As `uname -m` calls it; empty: the measured one.
    """
    if number < 0:
        return ""
    return _numbers(machine or measured_machine().architecture).get(number, f"system call {number}")


def takes_a_file(name: str) -> bool:
    """Return whether the first argument of a system call is a file."""
    return name in _ON_FILES


def is_plain_wait(operation: int) -> bool:
    """Return whether futex(2) waits for a lock whose holder inherits no priority."""
    return (operation & ~_FUTEX_FLAGS) in _FUTEX_WAITS


def changes_memory(name: str) -> bool:
    """Return whether a system call changes the address space, which all threads share."""
    return name in _MEMORY


def file_in_words(target: str) -> str:
    """Return what an open file is, by what its link in /proc/PID/fd points to."""
    kind, _, rest = target.partition(":")
    if kind in ("pipe", "socket") and rest:
        return f"a {kind}"
    if kind == "anon_inode":
        return f"an {rest.strip('[]')}"
    if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return f"the terminal {target}"
    return target
