"""A target as a machine that is measured."""

import errno
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from latenz.errors import BadInput, OutOfReach
from latenz.machine import Running, TargetMachine, Tree
from latenz.remote.connection import Gone, Lost
from latenz.remote.link import LEASE_S, Link, checked, number
from latenz.remote.mirror import Mirror
from latenz.remote.system_calls import TargetSystemCalls
from latenz.remote.tree import TargetTree
from latenz.remote.url import TargetUrl
from latenz.settings import format_cpu_list, parse_cpu_list

_LARGEST_FILE = 4 << 20
_OWN_PROGRAMS = {
    "latenz-attach": "attach",
    "latenz-wakeup": "wakeup",
    "latenz-memory-load": "memory",
    "latenz-cpu-load": "cpu",
}
_ASK_EVERY_S = 0.08  # with the probe's own 50 ms: no sample is older than 200 ms when it arrives
_LAST_PATIENCE_S = 10.0
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}")


class Target(TargetMachine):
    """A machine at the other end of a link.

    Attributes:
        link: The link with its agent.
        given_up: Asked while the link is cut, whether to stop waiting for it.
        lost: Why the link is lost for good; empty if it is not.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.given_up: Callable[[], bool] = lambda: False
        self.lost = ""
        self._numbers = itertools.count(1)
        self._mirrors: dict[Path, Mirror] = {}
        self._names: dict[Path, str] = {}
        self._last_clocks = (0, 0, 0)
        self._measured_apart = True
        self._used_before: dict[str, Any] = {}
        self._fetched: dict[str, bytes] = {}
        self._patterns: tuple[str, ...] = ()
        self._system_calls = TargetSystemCalls(self._ask, self._run, self._user())

    @property
    def url(self) -> TargetUrl:
        """Where it is."""
        return self.link.url

    @property
    def name(self) -> str:
        """Its URL."""
        return self.url.text

    def answered_or(self, given_up: Callable[[], bool]) -> AbstractContextManager[None]:
        """Wait for its answers only until a function says so, while the link is cut."""
        return self.link.abandoned_when(given_up)

    def system_calls(self) -> TargetSystemCalls:
        """Return those that its agent makes for us."""
        return self._system_calls

    @property
    def release(self) -> str:
        """The kernel's release."""
        return self.link.hello.get("release", "")

    @property
    def kernel(self) -> str:
        """The kernel's version."""
        return self.link.hello.get("kernel", "")

    @property
    def architecture(self) -> str:
        """The kind of processor."""
        return self.link.hello.get("machine", "")

    @property
    def ticks_a_second(self) -> int:
        """The unit of times in /proc."""
        return self._told_number("ticks_a_second", 100)

    @property
    def clock_resolution_ns(self) -> int:
        """The resolution of CLOCK_MONOTONIC."""
        return self._told_number("clock_resolution_ns", 1)

    def _told_number(self, name: str, otherwise: int) -> int:
        told = self.link.hello.get(name, "")
        return int(told) if told.isdigit() and 0 < int(told) < 10**12 else otherwise

    def _ask(self, verb: str, *fields: str) -> list[bytes]:
        """Ask, and say in one line what keeps the answer away."""
        try:
            return self.link.ask(verb, *fields)
        except Gone as reason:
            raise OutOfReach(str(reason), self.url.text, "start again") from None
        except Lost as reason:
            what = f"cannot be reached any longer: {reason}"
            raise OutOfReach(what, self.url.text, f"its agent ends after {LEASE_S} s") from None
        except OSError as error:
            raise BadInput(f"its agent refused: {error.strerror}", self.url.text) from None

    def content(self, path: str) -> bytes | None:
        """Return the bytes of a regular file, None if it cannot be read."""
        if self.lost:
            return None
        if path in self._fetched:
            return self._fetched[path]
        if any(fnmatchcase(path, pattern) for pattern in self._patterns):
            return None
        if not path.startswith("/") or "\0" in path:
            return None
        error, content = self._ask("read", str(_LARGEST_FILE), path)
        return content if error == b"0" else None

    def link_text(self, path: str) -> str | None:
        """Return what a symbolic link says, None if it cannot be read."""
        if self.lost:
            return None
        error, said = self._ask("link", path)
        return said.decode("utf-8", "replace") if error == b"0" else None

    def tree(self) -> Tree:
        """Return the files of the target, each as it is when it is first asked for."""
        return TargetTree(self._ask)

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a shell pattern."""
        if self.lost:
            return []
        if any(each in pattern.rpartition("/")[0] for each in "*?["):
            found = self._ask("match", str(_LARGEST_FILE), pattern)[::3]
            return sorted(each.decode("utf-8", "replace") for each in found)
        folder, _, name = pattern.rpartition("/")
        known = self._below(folder)
        if known is None:
            told = self._ask("names", folder)
            known = [each.decode("utf-8", "replace") for each in told[1::3]]
        return sorted(f"{folder}/{each}" for each in known if fnmatchcase(each, name))

    def _below(self, folder: str) -> list[str] | None:
        """Return the names in a folder, as far as files below it were fetched."""
        prefix = f"{folder}/"
        depth = prefix.count("/")
        if not any(
            fnmatchcase(prefix, "/".join(pattern.split("/")[:depth]) + "/")
            for pattern in self._patterns
            if pattern.count("/") >= depth
        ):
            return None
        found = {
            path[len(prefix) :].split("/")[0] for path in self._fetched if path.startswith(prefix)
        }
        return sorted(found)

    def may(self, path: str, mode: int) -> bool:
        """Return whether the agent may open a file."""
        return self._ask("access", path, str(mode))[0] == b"0"

    def inherited_cpus(self) -> frozenset[int]:
        """Return the CPUs that the agent was started on."""
        return _cpus(self.link.hello.get("started_on", ""))

    def enterable_cpus(self) -> frozenset[int]:
        """Return the CPUs that the agent's programs can enter."""
        return _cpus(self.link.hello.get("enterable", ""))

    def priority_error(self, policy: int, priority: int) -> int:
        """Return the error number of taking a real-time priority there, 0 if it is allowed."""
        return number(self._ask("priority", str(policy), str(priority))[0])

    def is_root(self) -> bool:
        """Return whether the agent is root."""
        return self._user() == 0

    def find_program(self, name: str) -> str | None:
        """Return the path of a program that is installed there, None if there is none."""
        found = self._ask("find", name)
        return found[0].decode("utf-8", "replace") if found else None

    def own_program(self, name: str) -> list[str]:
        """Return how the agent calls a program of ours."""
        if name not in _OWN_PROGRAMS:
            raise BadInput(
                "is not a part of the agent on a target", name, "measure it on this machine"
            )
        return [f"@{_OWN_PROGRAMS[name]}"]

    def output_of(self, command: Sequence[str], timeout_s: float = 30) -> str | None:
        """Return what a program prints there; None if it is not there or does not end."""
        try:
            _, output, errors = self._run(command, timeout_s)
        except OSError:
            return None
        return output + errors

    def _run(self, command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
        """Run a program to its end; return its exit status, its output and its errors.

        Raises:
            OSError: It is not there, or does not end.
        """
        if self.find_program(command[0]) is None:
            raise FileNotFoundError(errno.ENOENT, "is not installed there")
        child = str(next(self._numbers))
        folder = f"asked-{child}"
        self._ask("start", child, "", "1000", folder, "out", "err", *command)
        deadline = time.monotonic() + timeout_s
        while (status := self._ask("status", child)[0]) == b"":
            if time.monotonic() > deadline:
                self._ask("stop", child)
                raise OSError(errno.ETIMEDOUT, f"it took more than {timeout_s:.0f} s")
            time.sleep(0.02)
        paths = [f"{self.link.hello['home']}/{folder}/{name}" for name in ("out", "err")]
        told = self._ask("read", str(_LARGEST_FILE), *paths)
        output, errors = (each.decode("utf-8", "replace") for each in told[1::2])
        return number(status), output, errors

    def _user(self) -> int:
        """Return who the agent is there."""
        told = self.link.hello.get("user", "")
        return int(told) if told.isdigit() and len(told) <= 10 else -1

    def place(self, folder: Path) -> Path:
        """Return what the agent's programs call a folder of a run."""
        return Path(self.link.hello["home"]) / self._name(folder)

    def _name(self, folder: Path) -> str:
        """Return a folder's name there: its own, with a number behind if another run has that."""
        if folder not in self._names:
            name = _folder(folder)
            before = sum(each.name == name for each in self._names)
            self._names[folder] = f"{name}@{before + 1}" if before else name
        return self._names[folder]

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        output: str,
        errors: str,
        grace_s: float,
        cpus: frozenset[int],
    ) -> Running:
        """Start a program there, and bring what it writes into the folder of the run."""
        child = str(next(self._numbers))
        listed = format_cpu_list(tuple(sorted(cpus))) if cpus else ""
        grace_ms = str(round(grace_s * 1000))
        name = self._name(folder)
        self._ask("start", child, listed, grace_ms, name, output, errors, *command)
        # One for all programs of a folder: what one has brought is given back on the target.
        mirror = self._mirrors.setdefault(folder, Mirror(folder, name, self.url.text))
        return _Program(self, child, mirror, grace_s)

    def clocks(self) -> tuple[int, int, int]:
        """Return the three clocks of the target; the last ones known if the link is lost."""
        if not self.lost:
            monotonic, boot, real = (number(each) for each in self._ask("clocks"))
            self._last_clocks = monotonic, boot, real
        return self._last_clocks

    def clock_offset(self) -> dict[str, int]:
        """Return how far CLOCK_REALTIME there is ahead of ours, known to half a round trip."""
        best: dict[str, int] | None = None
        for _ in range(5):
            before_ns = time.time_ns()
            began_ns = time.monotonic_ns()
            there_ns = self.clocks()[2]
            trip_ns = time.monotonic_ns() - began_ns
            if best is None or trip_ns // 2 < best["uncertainty_ns"]:
                offset_ns = there_ns - before_ns - trip_ns // 2
                best = {"ahead_ns": offset_ns, "uncertainty_ns": trip_ns // 2}
        return best or {}

    def _usage(self) -> dict[str, Any]:
        """Return what the agent itself took until now: CPU time, and where it may run."""
        told = [each.decode("ascii", "replace") for each in self._ask("usage")]
        usage = dict(zip(told[::2], told[1::2], strict=False))
        cpu_time_ns = usage.get("cpu_time_ns", "")
        return {
            "agent_cpu_time_ns": int(cpu_time_ns) if cpu_time_ns.isdigit() else 0,
            "agent_cpus": usage.get("cpus", ""),
        }

    def account(self, elapsed_s: float) -> dict[str, Any]:
        """Return what the link and the agent did during a measurement of that length."""
        received, sent = self.link.carried_bytes()
        told = {
            "url": self.url.text,
            "cuts": self.link.cuts,
            "longest_cut_s": round(self.link.longest_cut_s(), 3),
            "received_bytes": received,
            "sent_bytes": sent,
        }
        if self.lost:
            return told
        usage, before = self._usage(), self._used_before
        spent_ns = usage["agent_cpu_time_ns"] - before.get("agent_cpu_time_ns", 0)
        self._used_before = usage
        share = round(spent_ns / (elapsed_s * 1e9), 5) if elapsed_s > 0 else None
        return {
            **told,
            "agent_cpus": usage["agent_cpus"],
            "agent_off_measured_cpus": self._measured_apart,
            "agent_cpu_time_ns": spent_ns,
            "agent_cpu_share": share,
            "clock": self.clock_offset(),
        }

    def notes(self, told: dict[str, Any]) -> list[str]:
        """Return what readers of the samples must know of the link and the agent."""
        notes = []
        if told["cuts"]:
            times = "once" if told["cuts"] == 1 else f"{told['cuts']} times"
            kept = "what came after that is lost" if self.lost else "samples were kept meanwhile"
            notes.append(
                f"the link was cut {times}, for {told['longest_cut_s']:.1f} s at most; {kept}"
            )
        if not told.get("agent_off_measured_cpus", True):
            share = told["agent_cpu_share"] or 0
            notes.append(
                "all CPUs of the target were measured, so that the agent ran on one of them: it"
                f" took {share:.2%} of a CPU"
            )
        return notes

    @contextmanager
    def kept_off(self, cpus: frozenset[int]) -> Iterator[None]:
        """Keep the agent off some CPUs, if there are others."""
        self._used_before = self._usage()
        if cpus:
            apart = self._ask("leave", format_cpu_list(tuple(sorted(cpus))))
            self._measured_apart = apart[0] == b"1"
        yield

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Leave the block if the link is cut, or is being cut."""
        with suppress(BadInput), self.link.abandoned_when(lambda: True):
            yield

    @contextmanager
    def fetching(self, patterns: Iterable[str]) -> Iterator[None]:
        """Read all files that match at once; until the end of the block they are not read again."""
        if self.lost:
            yield
            return
        before = self._patterns, self._fetched
        self._patterns = tuple(patterns)
        told = self._ask("match", str(_LARGEST_FILE), *self._patterns)
        names = (each.decode("utf-8", "replace") for each in told[::3])
        found = zip(names, told[1::3], told[2::3], strict=False)
        self._fetched = {name: content for name, error, content in found if error == b"0"}
        try:
            yield
        finally:
            self._patterns, self._fetched = before

    def lose(self, reason: str) -> None:
        """Note that the link is lost for good."""
        self.lost = self.lost or reason


class _Program:
    """A program that runs on a target."""

    def __init__(self, target: Target, child: str, mirror: Mirror, grace_s: float) -> None:
        self._target = target
        self._child = child
        self._mirror = mirror
        self._grace_s = grace_s
        self._status: int | None = None
        self._asked_at = 0.0

    @property
    def alive(self) -> bool:
        """Whether it runs, as far as is known: a cut link says nothing."""
        if self._status is None and time.monotonic() - self._asked_at >= _ASK_EVERY_S:
            with self._target.link.abandoned_when(self._target.given_up):
                self._look(patience_s=0)
            self._asked_at = time.monotonic()
        return self._status is None and not self._target.lost

    def _look(self, patience_s: float) -> bool:
        """Bring what is new, and the status; return whether the target answered."""
        target = self._target
        try:
            more = True
            while more:
                # The status comes first: once it has ended, what follows is all there is.
                asked = [("status", [self._child]), self._mirror.request()]
                status, news = target.link.ask_all(asked, patience_s)
                ended = checked(status)[0]
                more = self._mirror.take(news)
        except Lost:
            return False
        except Gone as reason:
            target.lose(str(reason))
            return False
        except OSError as error:
            raise BadInput(f"its agent refused: {error.strerror}", target.url.text) from None
        if ended:
            self._status = number(ended)
        return True

    def stop(self) -> int:
        """End it, bring the rest of what it wrote, and return its exit status."""
        target = self._target
        patience_s = _LAST_PATIENCE_S if target.given_up() else float(LEASE_S)
        deadline = time.monotonic() + patience_s + self._grace_s
        try:
            if self._status is None and not target.lost:
                target.link.ask("stop", self._child, patience_s=patience_s)
        except Gone as reason:
            target.lose(str(reason))
        except (Lost, OSError) as reason:
            target.lose(f"the target could not be reached at the end: {reason}")
        while not target.lost:
            if not self._look(patience_s):
                target.lose("the target could not be reached at the end")
            if self._status is not None:
                break
            if time.monotonic() > deadline:
                target.lose("the program on the target did not end")
            time.sleep(0.02)
        status = 0 if self._status is None else self._status
        return 128 - status if status > 128 else status


def _folder(folder: Path) -> str:
    if not _FOLDER.fullmatch(folder.name):
        raise BadInput("cannot be a folder's name on a target", folder.name)
    return folder.name


def _cpus(text: str) -> frozenset[int]:
    try:
        return frozenset(parse_cpu_list(text))
    except ValueError:
        return frozenset()


@contextmanager
def opened(url: TargetUrl) -> Iterator[Target]:
    """Give a target with an agent on it; at the end nothing of it is left there.

    Raises:
        BadInput: It cannot be reached or measured, or what is sent there is not built.
    """
    link = Link(url)
    try:
        yield Target(link)
    finally:
        link.close()
