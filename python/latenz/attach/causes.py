"""Why the worst cycles of a thread were late: in one sentence, and as shares of the time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from latenz.attach.account import Segment, Story, Thread
from latenz.attach.calls import (
    NO_CALL,
    OUTPUT,
    SLEEPS,
    UNKNOWN_CALL,
    call_name,
    changes_memory,
    file_in_words,
    is_plain_wait,
    takes_a_file,
)
from latenz.durations import format_duration

_FIRST_REAL_TIME, _FIRST_ORDINARY = 0, 100  # the kernel's numbers of priorities
_UNKNOWN_PRIORITY = -2
_SHORT_NS = 100_000
_THROTTLED_NS = 2_000_000
_WORST = 10
_SOFTIRQS = [
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
    "RCU",
]


@dataclass
class Surroundings:
    """What is known of the program besides its cycles.

    Attributes:
        file_of: What a file of a process is, by process and number; empty if not known.
        priority_of: Of a thread, in the kernel's numbers; -2: not known.
        place_of: The file that an address of a process belongs to; empty if not known.
        throttled: Its control group used up its CPU time meanwhile.
        is_guest: The machine is a virtual one.
    """

    file_of: Callable[[int, int], str] = field(default=lambda _pid, _fd: "")
    priority_of: Callable[[int], int] = field(default=lambda _tid: _UNKNOWN_PRIORITY)
    place_of: Callable[[int, int], str] = field(default=lambda _pid, _address: "")
    throttled: bool = False
    is_guest: bool = False


@dataclass
class _Share:
    """What one cause contributed, and how that reads."""

    cause: str
    share_ns: int = 0
    count: int = 0
    words: str = ""
    longest_ns: int = -1
    confidence: str = "certain"

    def add(self, length_ns: int, words: str) -> None:
        self.share_ns += length_ns
        self.count += 1
        if length_ns > self.longest_ns:
            self.longest_ns, self.words = length_ns, words


def worst_causes(
    threads: Iterable[Thread], known: Surroundings, most: int = _WORST
) -> list[dict[str, Any]]:
    """Return why the worst cycles were late, the worst first, as `explain` tells causes.

    Args:
        threads: With the worst cycles of each.
        known: What else is known of the program.
        most: How many to return.
    """
    stories = [(thread, story) for thread in threads for story in thread.worst]
    stories.sort(key=lambda each: -_excess_ns(*each))
    found = [explained(thread, story, known) for thread, story in stories[:most]]
    return [{"rank": rank, **each} for rank, each in enumerate(found, 1)]


def _excess_ns(thread: Thread, story: Story) -> int:
    """How much longer than usual a cycle took, or how late it began."""
    return max(story.response_ns - thread.usual_response_ns, story.latency_ns)


def explained(thread: Thread, story: Story, known: Surroundings) -> dict[str, Any]:
    """Return why one cycle was late, as `worst_causes` does."""
    began_late = 2 * story.latency_ns >= _excess_ns(thread, story)
    shares = _shares(thread, story, known, began_late)
    first = shares[0]
    latency_ns = story.latency_ns if began_late else story.response_ns
    late = f"{format_duration(story.latency_ns)} late" if began_late else "done "
    if not began_late:
        late += f"{format_duration(story.response_ns)} after it was due"
    rest = "; ".join(f"{_time(each)} {each.words}" for each in shares[1:3] if _matters(each, first))
    sentence = f"cycle {story.number:,} of {thread.comm} was {late}: {_time(first)} {first.words}"
    return {
        "t_ns": story.due_ns,
        "latency_ns": latency_ns,
        "what": f"cycle {story.number:,} of {thread.comm} ({thread.tid})",
        "cpu": next((each.cpu for each in story.segments if each.what == "run"), 0),
        "cause": first.cause,
        "share_ns": first.share_ns,
        "sentence": sentence + (f"; then {rest}" if rest else ""),
        "evidence": f"{_time(first)} {first.words}",
        "confidence": first.confidence,
        "tunings": [],  # who knows the catalogue fills it in
        "advice": "",
        "alternatives": [],
        "record": [],
        "shares": [
            {
                "cause": each.cause,
                "share_ns": each.share_ns,
                "count": each.count,
                "evidence": each.words,
                "confidence": each.confidence,
            }
            for each in shares
        ],
        "side": "",
        "guest": "",
        "thread": thread.folder,
        "cycle": story.number,
        "response_ns": story.response_ns,
        "execution_ns": story.run_ns,
        "ready_ns": story.ready_ns,
        "blocked_ns": story.blocked_ns,
        "timer_late_ns": story.timer_late_ns,
        "segments": [each.model_dump() for each in story.segments],
    }


def _time(share: _Share) -> str:
    return format_duration(share.share_ns)


def _matters(share: _Share, first: _Share) -> bool:
    return share.share_ns * 10 >= first.share_ns


def _shares(thread: Thread, story: Story, known: Surroundings, until_it_runs: bool) -> list[_Share]:
    """Return all causes of a cycle's time beyond its usual work, the largest first.

    Args:
        thread: Whose cycle it is.
        story: The cycle.
        known: What else is known of the program.
        until_it_runs: Only of the time until the thread runs.
    """
    shares: dict[str, _Share] = {}
    end_ns = story.due_ns + (story.latency_ns if until_it_runs else story.response_ns)
    segments = [each for each in story.segments if each.t_ns < end_ns]

    def add(cause: str, length_ns: int, words: str, confidence: str = "certain") -> None:
        if length_ns > 0:
            share = shares.setdefault(cause, _Share(cause, confidence=confidence))
            share.add(length_ns, words)

    waits = [each for each in segments if each.what == "ready"]
    # Where less urgent threads change among themselves, the kernel could have taken this one, but
    # not while it was handling interrupts.
    others = [each for each in waits if each.tid and _is_less_urgent(each, story.own_priority)]
    others_ns = sum(each.length_ns - each.stolen_ns for each in others)
    less_urgent_ns = others_ns if len(others) > 1 else 0
    used_up = (
        known.throttled
        and story.own_priority >= _FIRST_ORDINARY
        and sum(each.length_ns for each in waits) >= _THROTTLED_NS
    )
    for each in segments:
        if each.what == "late":
            _add_late_timer(add, each, story, known)
        elif each.what == "ready" and used_up:
            words = f"its control group had used up its time, {_named(each)} ran"
            add("cgroup-quota", each.length_ns, words, "likely")
        elif each.what == "ready":
            _add_wait(add, each, story, less_urgent_ns)
        elif each.what == "blocked":
            _add_block(add, each, thread, story, known)
    if not until_it_runs:
        _add_work(add, thread, story, known)
    found = sorted(shares.values(), key=lambda each: -each.share_ns)
    return found or [_Share("own-execution", story.run_ns, 1, "in its own work")]


_Add = Callable[..., None]


def _add_late_timer(add: _Add, segment: Segment, story: Story, known: Surroundings) -> None:
    if story.clock_step_ns:
        step = format_duration(abs(story.clock_step_ns))
        way = "forward" if story.clock_step_ns > 0 else "back"
        words = f"because the clock of its timer was set {way} by {step}"
        add("clock-step", segment.length_ns, words)
        return
    while_ = f"while {segment.comm} ({segment.tid}) ran" if segment.tid else "on an idle CPU"
    if segment.length_ns < _SHORT_NS:
        add("timer-late", segment.length_ns, f"until the timer's interrupt, {while_}")
        return
    who = (
        "the host had the CPU, or interrupts were off" if known.is_guest else "interrupts were off"
    )
    cause = "smi-like-gap" if known.is_guest else "irqs-off"
    add(cause, segment.length_ns, f"until the timer's interrupt, {while_}: {who}", "likely")


def _is_less_urgent(segment: Segment, own: int) -> bool:
    """Return whether it should have had to give the CPU up; ordinary threads take turns."""
    if segment.tid == 0:
        return True
    return own < _FIRST_ORDINARY and segment.priority > own


def _named(segment: Segment) -> str:
    if segment.tid == 0:
        return "the idle CPU"
    told = f"{segment.comm} ({segment.tid}"
    if segment.priority != _UNKNOWN_PRIORITY:
        told += f", {priority_in_words(segment.priority)}"
    return f"{told})"


def priority_in_words(priority: int) -> str:
    """Return one of the kernel's numbers of priorities as people write it."""
    if priority < _FIRST_REAL_TIME:
        return "SCHED_DEADLINE"
    if priority < _FIRST_ORDINARY:
        return f"real-time priority {99 - priority}"
    return f"nice {priority - 120}"


def _add_wait(add: _Add, segment: Segment, story: Story, less_urgent_ns: int) -> None:
    own = story.own_priority
    length_ns, who = segment.length_ns, _named(segment)
    if segment.comm.startswith(("migration/", "stopper/")):
        moved = "moved it to another CPU" if story.migrations else "stopped the CPU"
        cause = "migration" if story.migrations else "stopper"
        add(cause, length_ns, f"ready while {who} {moved}")
    elif _is_less_urgent(segment, own):
        _add_wait_for_less_urgent(add, segment, story, less_urgent_ns)
    elif segment.comm.startswith("irq/"):
        add("threaded-interrupt", length_ns, f"ready while {who} handled an interrupt")
    elif segment.comm.startswith("ksoftirqd/"):
        add("softirq", length_ns, f"ready while {who} ran")
    else:
        add("preempted", length_ns, f"ready while {who} ran")


def _add_wait_for_less_urgent(
    add: _Add, segment: Segment, story: Story, less_urgent_ns: int
) -> None:
    own = story.own_priority
    length_ns, who = segment.length_ns, _named(segment)
    if 2 * segment.stolen_ns >= length_ns >= _SHORT_NS:
        words = f"ready while interrupts and softirqs were handled on its CPU, over {who}"
        add("interrupt", length_ns, words)
    elif _FIRST_REAL_TIME <= own < _FIRST_ORDINARY and less_urgent_ns >= _THROTTLED_NS:
        words = f"ready while {who} ran, which is less urgent: real-time throttling"
        add("throttled", length_ns, words, "likely")
    elif segment.tid == 0:
        add("scheduling", length_ns, "to leave the idle state and switch to it")
    elif length_ns >= _SHORT_NS:
        words = f"ready while {who} ran in a part of the kernel that is not preemptible"
        add("preemption-off", length_ns, words, "likely")
    else:
        add("scheduling", length_ns, f"to switch to it from {who}")


def _add_block(
    add: _Add, segment: Segment, thread: Thread, story: Story, known: Surroundings
) -> None:
    name = call_name(segment.call)
    if name in SLEEPS:
        add("own-pause", segment.length_ns, f"asleep in its own {name}")
        return
    woken = _waker(segment)
    if name == "futex":
        _add_lock(add, segment, story, known, woken)
    elif changes_memory(name):
        add("mmap-lock", segment.length_ns, f"blocked in {name}, woken by {woken}")
    elif segment.call == NO_CALL and story.reclaim_ns * 2 >= segment.length_ns:
        add("reclaim", segment.length_ns, f"blocked while memory was short, woken by {woken}")
    elif segment.call == NO_CALL and story.forks and segment.tid == story.forker:
        add("fork", segment.length_ns, f"blocked in a page fault while {woken} made a process")
    elif segment.call == NO_CALL or (segment.call == UNKNOWN_CALL and story.faults):
        place = next((p for a in story.fault_addresses if (p := known.place_of(thread.pid, a))), "")
        of = f" of {place}" if place else ""
        add("page-fault", segment.length_ns, f"blocked in a page fault{of}, woken by {woken}")
    elif name and takes_a_file(name):
        target = known.file_of(thread.pid, segment.argument_0)
        on_disk = name in OUTPUT and target.startswith("/") and not target.startswith("/dev/")
        cause = "disk-output" if on_disk else "blocked"
        add(cause, segment.length_ns, f"blocked in {name}{_about(name, target, woken)}")
    else:
        where = f" in {name}" if name else ""
        add("blocked", segment.length_ns, f"blocked{where}, woken by {woken}")


def _about(name: str, target: str, woken: str) -> str:
    if not target:
        return f", woken by {woken}"
    words = file_in_words(target)
    gives = name.startswith(("write", "pwrite", "send"))
    if target.startswith(("pipe:", "socket:")):
        return f" {'to' if gives else 'from'} {words} that {woken} served late"
    return f" {'to' if gives else 'of'} {words}, woken by {woken}"


def _waker(segment: Segment) -> str:
    if segment.by == "timer":
        return "a timer"
    if segment.by == "interrupt":
        return f"interrupt {segment.number}"
    if segment.by == "softirq":
        known = 0 <= segment.number < len(_SOFTIRQS)
        return f"softirq {_SOFTIRQS[segment.number] if known else segment.number}"
    return f"{segment.comm} ({segment.tid})"


def _add_lock(add: _Add, segment: Segment, story: Story, known: Surroundings, woken: str) -> None:
    holder = known.priority_of(segment.tid) if segment.by == "thread" else _UNKNOWN_PRIORITY
    address = f"{segment.argument_0 & (2**64 - 1):#x}"
    words = f"blocked in futex({address}), which {woken} held"
    if segment.by == "timer":
        add("own-pause", segment.length_ns, f"asleep in futex({address}) until a time-out")
    elif holder > story.own_priority and is_plain_wait(segment.argument_1):
        less = priority_in_words(holder)
        add("priority-inversion", segment.length_ns, f"{words}, with {less}", "likely")
    else:
        add("blocked", segment.length_ns, words)


def _add_work(add: _Add, thread: Thread, story: Story, known: Surroundings) -> None:
    """Tell what made the thread run longer than usual."""
    longer_ns = story.run_ns - thread.usual_run_ns
    if longer_ns <= 0:
        return
    stolen_ns = min(story.stolen_ns, longer_ns)
    add("interrupt", stolen_ns, "of interrupts and softirqs while it ran")
    longer_ns -= stolen_ns
    reclaim_ns = min(story.reclaim_ns, longer_ns)
    add("reclaim", reclaim_ns, "looking for free memory itself")
    longer_ns -= reclaim_ns
    slow_ns = min(_slow_ns(story), longer_ns)
    add("low-frequency", slow_ns, f"more on the CPU, as {_frequencies(story)}", "likely")
    _add_longer_run(add, thread, story, known, longer_ns - slow_ns)


def _slow_ns(story: Story) -> int:
    """Return how much of a cycle's run time a CPU at its usual frequency would have spared."""
    if not 0 < story.lowest_khz < story.highest_khz:
        return 0
    return story.run_ns - story.run_ns * story.lowest_khz // story.highest_khz


def _frequencies(story: Story) -> str:
    lowest, highest = story.lowest_khz // 1000, story.highest_khz // 1000
    return f"its CPU went at {lowest} MHz, which has gone at {highest} MHz"


def _add_longer_run(
    add: _Add, thread: Thread, story: Story, known: Surroundings, longer_ns: int
) -> None:
    if story.faults:
        places = {known.place_of(thread.pid, each) for each in story.fault_addresses} - {""}
        of = f" in {', '.join(sorted(places))}" if places else ""
        plural = "s" if story.faults > 1 else ""
        words = f"more on the CPU, with {story.faults} page fault{plural}{of}"
        if story.forker and 2 * story.copies >= story.faults:
            by = f"{story.forker_name or 'a thread'} ({story.forker})"
            words = f"{words}, {story.copies} of them to copy memory shared since {by} forked"
            add("fork", longer_ns, words, "likely")
        else:
            add("page-fault", longer_ns, words, "likely")
    elif story.forks and story.forker == thread.tid:
        add("fork", longer_ns, "more on the CPU, in which it made a process itself", "likely")
    elif story.migrations:
        times = "once" if story.migrations == 1 else f"{story.migrations} times"
        words = f"more on the CPU, while it moved to another one {times}"
        add("migration", longer_ns, words, "likely")
    else:
        words = f"more on the CPU than its usual {format_duration(thread.usual_run_ns)}"
        add("own-execution", longer_ns, words)
