"""What only a running program tells of itself: gathered while it is measured, for its causes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from latenz.attach.account import Segment, Thread
from latenz.attach.calls import call_name, takes_a_file
from latenz.attach.causes import Surroundings
from latenz.attach.findings import Task
from latenz.machine import measured_machine

_MOST_FILES = 4096
_UNKNOWN_PRIORITY = -2


class Gathered:
    """Files, mappings and priorities of programs, looked up as long as these run.

    Attributes:
        before: What /proc told of each thread when it was first looked at, by its number.
        after: The same when it was last there.
    """

    def __init__(self) -> None:
        self.before: dict[int, Task] = {}
        self.after: dict[int, Task] = {}
        self._files: dict[tuple[int, int], str] = {}
        self._maps: dict[int, list[tuple[int, int, str]]] = {}
        self._priorities: dict[int, int] = {}
        self._is_guest = False

    def look(self, threads: Sequence[Thread]) -> None:
        """Look up what is not known yet of threads and their worst cycles."""
        with measured_machine().at_once():
            self._is_guest = self._is_guest or is_guest()
            self._keep_tasks(threads)
            self._keep_words(threads)

    def told(self, threads: Iterable[Thread]) -> Surroundings:
        """Return what is known for telling causes of these threads."""
        throttled = any(
            (self.after[each.tid].throttled or 0) > (self.before[each.tid].throttled or 0)
            for each in threads
            if each.tid in self.after and each.tid in self.before
        )
        return Surroundings(
            file_of=lambda pid, number: self._files.get((pid, number), ""),
            priority_of=lambda tid: self._priorities.get(tid, _UNKNOWN_PRIORITY),
            place_of=self._place_of,
            throttled=throttled,
            is_guest=self._is_guest,
        )

    def _keep_tasks(self, threads: Iterable[Thread]) -> None:
        for tid, task in Task.read_all((each.pid, each.tid) for each in threads).items():
            if task.policy is not None:
                self.after[tid] = task
            self.before.setdefault(tid, task)

    def _keep_words(self, threads: Sequence[Thread]) -> None:
        blocks = [
            (thread.pid, segment)
            for thread in threads
            for story in thread.worst
            for segment in story.segments
            if segment.what == "blocked"
        ]
        wakers = {segment.tid for _, segment in blocks} - set(self._priorities)
        unmapped = {each.pid for each in threads if self._lacks_mappings(each)}
        files = (f"/proc/{tid}/stat" for tid in wakers), (f"/proc/{pid}/maps" for pid in unmapped)
        with measured_machine().fetching([*files[0], *files[1]]):
            self._priorities |= {tid: _priority(tid) for tid in wakers}
            self._maps |= {pid: maps for pid in unmapped if (maps := _mappings(pid))}
        self._keep_files(blocks)

    def _keep_files(self, blocks: Iterable[tuple[int, Segment]]) -> None:
        for pid, segment in blocks:
            key = (pid, segment.argument_0)
            is_new = key not in self._files and len(self._files) < _MOST_FILES
            if is_new and takes_a_file(call_name(segment.call)):
                said = measured_machine().link_text(f"/proc/{pid}/fd/{segment.argument_0}")
                if said is not None:
                    self._files[key] = said

    def _lacks_mappings(self, thread: Thread) -> bool:
        """Return whether what is known of a process's memory does not tell all of its faults."""
        if thread.pid not in self._maps:
            return True
        addresses = {address for story in thread.worst for address in story.fault_addresses}
        return any(not self._place_of(thread.pid, each) for each in addresses)

    def _place_of(self, pid: int, address: int) -> str:
        address &= 2**64 - 1
        for first, last, name in self._maps.get(pid, ()):
            if first <= address < last:
                return name or "its own memory"
        return ""


def is_guest() -> bool:
    """Return whether the measured machine is a virtual one."""
    return " hypervisor" in _text("/proc/cpuinfo")


def _priority(tid: int) -> int:
    """Return a thread's priority in the kernel's numbers; -2: there is no such thread."""
    with suppress(IndexError, ValueError):
        return int(_text(f"/proc/{tid}/stat").rpartition(")")[2].split()[15]) + 100
    return _UNKNOWN_PRIORITY


def _mappings(pid: int) -> list[tuple[int, int, str]]:
    found = []
    for line in _text(f"/proc/{pid}/maps").splitlines():
        words = line.split(None, 5)
        first, _, last = words[0].partition("-")
        found.append((int(first, 16), int(last, 16), words[5] if len(words) > 5 else ""))
    return found


def _text(path: str) -> str:
    return (measured_machine().content(path) or b"").decode("utf-8", "replace")
