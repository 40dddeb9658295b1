"""Traces in the Common Trace Format: of LTTng, ros2_tracing, and perf data convert --to-ctf.

babeltrace2(1) reads them, and puts several streams into the order of time. What it prints becomes
the text of the same events by the kernel's names, so that they are analysed as all others are.
LTTng names and counts a few things otherwise (lttng-modules, include/instrumentation/events):
threads are `tid`, priorities begin at -100, and events of timers, softirqs and KVM have prefixes.
"""

import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.traces.model import Summary
from latenz.traces.reader import RecordedTrace

_METADATA = "metadata"
_MAGICS = (b"\x75\xd1\x1d\x57", b"\x57\x1d\xd1\x75", b"/* CTF 1")
_DEEPEST = 4  # kernel/, ust/uid/1000/64-bit/ of an LTTng session
_MOST_FOLDERS = 1000
_HERTZ = 1_000_000_000
_FREQUENCY = re.compile(rb"\bfreq\s*=\s*(\d+)\s*;")
_HEAD = re.compile(r"\[(\d+)\] (?:.* )?(\S+)")
_LONGEST_HEAD = 1024
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
_PAIR = re.compile(
    r'\b(\w+) = ("(?:[^"\\]|\\.)*"|\( (?:"[^"]*"|<unknown>) : container = (-?\d+) \)|-?\w+)'
)
_DISCARDED = re.compile(r"discarded (\d+) events?\b")
_PREFIXES = {
    "irq_softirq_": "softirq_",
    "timer_hrtimer_": "hrtimer_",
    "x86_irq_vectors_": "",
    "x86_exceptions_": "",
    "kvm_x86_": "kvm_",
    "power_cpu_": "cpu_",
}
_OF_THREADS = {"tid": "pid", "prev_tid": "prev_pid", "next_tid": "next_pid"}
_PRIORITIES = ("prio", "prev_prio", "next_prio", "oldprio", "newprio")
_LTTNG_PRIORITY = 100  # MAX_RT_PRIO, which it takes off
_STATES = "SDTtXZPI"
_PREEMPTED = 0x100
_SWITCH = (
    "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state} ==> "
    "next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}"
)
_OWN = ("common_", "perf_")  # fields that perf adds to each event


def is_ctf(path: Path) -> bool:
    """Return whether a folder holds a trace in the Common Trace Format, or several."""
    return path.is_dir() and not (path / "run.json").exists() and bool(_traces(path))


def _traces(path: Path) -> list[Path]:
    """Return the folders of traces in a folder, itself included."""
    found, level = [], [path]
    for _ in range(_DEEPEST + 1):
        found += [each for each in level if _is_trace(each)]
        level = [below for each in level for below in _folders(each)][:_MOST_FOLDERS]
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []


def _is_trace(folder: Path) -> bool:
    try:
        metadata = folder / _METADATA
        if not metadata.is_file():
            return False
        with metadata.open("rb") as file:
            return file.read(8).startswith(_MAGICS)
    except OSError:
        return False


class CtfTrace(RecordedTrace):
    """Events of a folder, read by babeltrace2 once.

    Raises:
        BadInput: babeltrace2 is missing or refuses, or the times are not nanoseconds.
    """

    def __init__(self, path: Path) -> None:
        program = shutil.which("babeltrace2")
        if program is None:
            remedy = "as root: apt-get install babeltrace2"
            raise BadInput("is a CTF trace, which needs babeltrace2", str(path), remedy)
        self._place = tempfile.TemporaryDirectory(prefix="latenz-ctf-", dir=scratch_place())
        text = Path(self._place.name, "trace.txt")
        super().__init__(path, file=text)
        _check_clocks(program, path)
        words = EventWords()
        self._lost = _translate(program, path, words, text)
        self._notes = words.notes()

    def _read(self, worst: int) -> Summary:
        found = super()._read(worst)
        notes = (*found.notes, *self._notes)
        if self._lost:
            notes = (*notes, f"the tracer discarded {self._lost:,} events; counts are lower limits")
        lost = replace(found.lost, events=found.lost.events + self._lost)
        return replace(found, format="CTF", notes=notes, lost=lost)


def _check_clocks(program: str, path: Path) -> None:
    """Refuse clocks that do not count nanoseconds."""
    for each in _traces(path):
        command = [program, "--output-format=ctf-metadata", str(each.absolute())]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            raise _refusal(path, done.stderr)
        for hertz in _FREQUENCY.findall(done.stdout):
            if int(hertz) != _HERTZ:
                what = f"its clock counts at {int(hertz):,} Hz, not nanoseconds"
                raise BadInput(what, str(path), "record with the tracer's own clock")


def _translate(program: str, path: Path, words: "EventWords", text: Path) -> int:
    """Write the events of a folder as text; return how many the tracer discarded."""
    command = [program, "--clock-cycles", "--no-delta", str(path.absolute())]
    with tempfile.TemporaryFile(dir=text.parent) as said, text.open("w") as file:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, errors="replace"
        ) as process:
            file.writelines(words.lines(process.stdout or ()))
        said.seek(0)
        errors = said.read()
    if process.returncode != 0:
        raise _refusal(path, errors)
    return sum(int(count) for count in _DISCARDED.findall(errors.decode(errors="replace")))


def _refusal(path: Path, said: bytes) -> BadInput:
    """Return what babeltrace2 said was wrong: of its causes the innermost one."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(("CAUSED BY", "at:"))]
    why = (told[-1] if told else "without a word")[:200]
    return BadInput(f"babeltrace2 cannot read it: {why}", str(path), "copy the whole folder")


class EventWords:
    """Turns what babeltrace2 prints into what the kernel's own tracer would."""

    def __init__(self) -> None:
        self._running: dict[int, int] = {}  # thread by CPU
        self._names: dict[int, str] = {0: "<idle>"}
        self._unread = 0
        self._of_nobody: dict[int, int] = defaultdict(int)

    def notes(self) -> tuple[str, ...]:
        """Return what was left out, and why."""
        notes = []
        if self._unread:
            notes.append(f"{self._unread:,} events tell no CPU or could not be read: left out")
        if nobody := sum(self._of_nobody.values()):
            why = "it is not told which thread ran (lttng add-context --kernel -t tid)"
            notes.append(f"{nobody:,} events before each CPU's first switch left out: {why}")
        return tuple(notes)

    def lines(self, printed: Iterable[str]) -> Iterator[str]:
        """Yield a line for each event that can be told."""
        for line in printed:
            if (told := self._line(line)) is not None:
                yield told

    def _line(self, line: str) -> str | None:
        head, colon, rest = line.partition(": {")
        found = _HEAD.fullmatch(head) if len(head) < _LONGEST_HEAD else None
        groups = _groups(colon[2:] + rest) if found else []
        fields = groups[-1] if groups else {}
        context = {key: value for each in groups[:-1] for key, value in each.items()}
        cpu = context.get("cpu_id", "")
        if found is None or not cpu.isdecimal():
            self._unread += 1
            return None
        name = _kernel_name(found[2])
        pid = self._thread(int(cpu), name, fields, context)
        if pid is None:
            self._of_nobody[int(cpu)] += 1
            return None
        t_ns, comm = int(found[1]), self._names.get(pid, "<...>")
        details = _details(name, _kernel_fields(name, fields))
        return (
            f"{comm}-{pid} [{int(cpu):03}] {t_ns // _HERTZ}.{t_ns % _HERTZ:09}: {name}: {details}\n"
        )

    def _thread(
        self, cpu: int, name: str, fields: dict[str, str], context: dict[str, str]
    ) -> int | None:
        """Return the thread of an event: as it is told, else who was switched to last."""
        is_switch = name == "sched_switch"
        told = fields.get("prev_tid") or fields.get("prev_pid") if is_switch else None
        told = told or fields.get("common_pid") or context.get("tid") or context.get("vtid")
        pid = _integer(told) if told else self._running.get(cpu)
        if pid is not None and pid and "procname" in context:
            self._names[pid] = context["procname"]
        if is_switch:
            for side in ("prev", "next"):
                thread = _integer(fields.get(f"{side}_tid") or fields.get(f"{side}_pid") or "")
                if thread:
                    self._names[thread] = fields.get(f"{side}_comm", "<...>")
                if thread is not None and side == "next":
                    self._running[cpu] = thread
        return pid


def _groups(text: str) -> list[dict[str, str]]:
    """Return the fields of each outer pair of braces: contexts first, the event's own last."""
    found, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            start = token.end() if depth == 0 else start
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                pairs = _PAIR.finditer(text, start, token.start())
                found.append({pair[1]: _plain(pair[3] or pair[2]) for pair in pairs})
    return found


def _plain(value: str) -> str:
    """Return a value without quotes, and without what would end the line that it stands in."""
    if not value.startswith('"'):
        return value.lower() if value.startswith("0x") else value
    return "".join(each if each.isprintable() else "?" for each in value[1:-1])


def _integer(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdecimal() else None


def _kernel_name(name: str) -> str:
    """Return an event's name as the kernel has it, without its system."""
    plain = name.rpartition(":")[2]
    for prefix, kernel in _PREFIXES.items():
        if plain.startswith(prefix):
            return kernel + plain.removeprefix(prefix)
    return plain


def _kernel_fields(name: str, fields: dict[str, str]) -> dict[str, str]:
    """Return fields by the kernel's names and counts."""
    is_lttng = name.startswith("sched_") and any(each in fields for each in _OF_THREADS)
    told = {}
    for key, value in fields.items():
        if key.startswith(_OWN):
            continue
        if is_lttng and key in _PRIORITIES and (priority := _integer(value)) is not None:
            value = str(priority + _LTTNG_PRIORITY)
        told[_OF_THREADS.get(key, key) if is_lttng else key] = value
    if name.startswith("kvm_") and "vcpu_id" in told:
        told["vcpu"] = told.pop("vcpu_id")
    return told


def _details(name: str, fields: dict[str, str]) -> str:
    if name == "sched_switch":
        fields = fields | {"prev_state": _state(fields.get("prev_state", "0"))}
        return _SWITCH.format_map(defaultdict(str, fields))
    return " ".join(f"{key}={value}" for key, value in fields.items())


def _state(value: str) -> str:
    """Return the letter of a thread's state, as ps(1) has it; R+ if it was preempted."""
    bits = _integer(value) or 0
    letters = [letter for place, letter in enumerate(_STATES) if bits >> place & 1]
    return letters[0] if letters else "R+" if bits & _PREEMPTED else "R"
