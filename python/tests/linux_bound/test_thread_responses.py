"""Response times of threads: against published examples, and a simulator that knows no equation."""

import itertools
import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass, field, replace

import pytest
from traced_kernel import Kernel as TracedKernel

from latenz.errors import BadInput
from latenz.linux_bound.model import Steps
from latenz.linux_bound.thread_file import has_threads, read_linux_system
from latenz.linux_bound.threads import Interrupt, Kernel, Thread, response_times

NONE = Kernel(0)


def responses(threads, kernel=NONE, interrupts=()):
    return {each.thread.name: each for each in response_times(threads, kernel, interrupts)}


def test_burns_and_wellings_textbook_example():
    """Real-Time Systems and Programming Languages, response-time analysis: 3, 6, 20."""
    threads = [Thread("a", 3, 3, 7), Thread("b", 2, 3, 12), Thread("c", 1, 5, 20)]
    found = responses(threads)
    assert [found[name].response for name in "abc"] == [3, 6, 20]


def test_lehoczkys_example_whose_first_activation_is_not_the_worst():
    """RTSS 1990: C 26 and 62, T 70 and 100; the second's responses are 114, 102, 116, 104, 118,
    106, 94."""
    found = responses([Thread("first", 2, 26, 70), Thread("second", 1, 62, 100)])
    assert found["second"].response == 118
    assert found["second"].activations == 5


def test_more_than_the_cpu_has_is_no_bound():
    found = responses([Thread("a", 2, 6, 10), Thread("b", 1, 5, 10), Thread("c", 3, 1, 10)])
    assert found["b"].response is None
    assert found["a"].response == 7


def test_who_follows_an_unbounded_thread_is_unbounded_and_so_is_who_is_below():
    threads = [
        Thread("a", 9, 9, 10),
        Thread("b", 8, 2, 10),
        Thread("c", 7, 1, 10, after="b"),
        Thread("d", 6, 1, 1000),
    ]
    found = responses(threads)
    assert found["a"].response == 9
    assert [found[name].end_to_end for name in "bcd"] == [None, None, None]


@dataclass
class Job:
    thread: Thread
    due: int
    left: int
    chain_due: int


@dataclass
class Simulated:
    """One CPU, tick by tick: threads by priority, switches and sections that nothing preempts."""

    threads: list[Thread]
    section: int = 0
    switch: int = 0
    stolen: frozenset[int] = frozenset()
    seen: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)

    def run(self, arrivals: list[tuple[int, str]], sections: set[int], ticks: int) -> None:
        named = {each.name: each for each in self.threads}
        due = sorted(arrivals)
        ready: list[Job] = []
        current: Job | None = None
        held = switching = 0
        for now in range(ticks):
            while due and due[0][0] <= now:
                at, name = due.pop(0)
                ready.append(Job(named[name], at, named[name].execution, at))
            if now in self.stolen:
                continue
            if held == 0 and switching == 0:
                wanted = max(ready, key=lambda job: (job.thread.priority, -job.due), default=None)
                switching = self.switch if wanted is not current else 0
                held = self.section if wanted is current is None and now in sections else 0
                current = wanted
            if held:
                held -= 1
            elif switching:
                switching -= 1
            elif current:
                current.left -= 1
                if current.left == 0:
                    ready.remove(current)
                    self.ended(current, now + 1, ready)
                    current = Job(current.thread, -1, 0, -1) if self.switch else None

    def ended(self, job: Job, now: int, ready: list[Job]) -> None:
        name = job.thread.name
        self.seen[name] = max(self.seen.get(name, 0), now - job.due)
        self.ends[name] = max(self.ends.get(name, 0), now - job.chain_due)
        for each in self.threads:
            if each.after == name:
                ready.append(Job(each, now, each.execution, job.chain_due))


@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_largest_of_all_phases(seed):
    """Without jitter and kernel: all combinations of phases of small periods, equal to the tick."""
    source = random.Random(seed)
    periods = [source.choice([3, 4, 6, 8, 12]) for _ in range(3)]
    threads = [
        Thread(name, 9 - at, source.randint(1, max(1, period // 3)), period)
        for at, (name, period) in enumerate(zip("abc", periods, strict=True))
    ]
    if sum(each.execution / each.period for each in threads) >= 1:
        threads = threads[:2]
    cycle = math.lcm(*(each.period for each in threads))
    largest: dict[str, int] = {}
    for phases in itertools.product(*(range(each.period) for each in threads[1:])):
        simulated = Simulated(threads)
        arrivals = [
            (phase + at, each.name)
            for phase, each in zip((0, *phases), threads, strict=True)
            for at in range(0, 2 * cycle, each.period)
        ]
        simulated.run(arrivals, set(), 3 * cycle)
        for name, seen in simulated.seen.items():
            largest[name] = max(largest.get(name, 0), seen)
    assert {name: each.response for name, each in responses(threads).items()} == largest


def random_system(source):
    section, switch = source.randrange(8), source.randrange(3)
    threads = []
    for at in range(source.randint(1, 4)):
        period = source.randint(30, 90)
        execution = source.randint(1, period // 8 + 1)
        jitter = source.choice([0, 0, source.randrange(2 * period)])
        threads.append(Thread(f"t{at}", source.randint(1, 5), execution, period, jitter))
    for at in range(source.randrange(3)):
        before = source.choice(threads)
        first = before
        while first.after:
            first = next(each for each in threads if each.name == first.after)
        name, priority = f"c{at}", source.randint(1, 5)
        threads.append(
            Thread(name, priority, source.randint(1, 4), first.period, after=before.name)
        )
    return threads, section, switch


def densest_arrivals(thread, ticks):
    """All at one instant: what can be late is late until then, and in time from then on."""
    begin = 300
    due = range(begin - thread.jitter, ticks, thread.period)
    return [(max(each, begin), thread.name) for each in due]


def random_arrivals(source, thread, ticks):
    """Give one arrival a period, each late by up to the jitter, or later where nothing comes."""
    at = source.randrange(thread.period)
    found = []
    while at < ticks:
        found.append(at + source.choice([0, thread.jitter, source.randint(0, thread.jitter)]))
        at += thread.period + source.choice([0, 0, 0, source.randrange(20)])
    return [(each, thread.name) for each in sorted(found)]


def test_no_thread_of_random_systems_ends_later_than_its_response_time():
    reached = compared = 0
    for seed in range(200):
        source = random.Random(seed)
        threads, section, switch = random_system(source)
        ticks = 1500
        if seed % 4 == 1:
            switch = 0
        stolen: set[int] = set()
        interrupts = []
        if seed % 3 == 0:
            told = Interrupt("irq", source.randint(1, 4), source.randint(15, 60))
            interrupts.append(told)
            at = source.randrange(told.period)
            while at < ticks:
                stolen |= set(range(at, at + told.execution))
                at += told.period + source.choice([0, 0, source.randrange(9)])
        found = responses(threads, Kernel(max(section, switch) + switch, switch), interrupts)
        simulated = Simulated(threads, section, switch, frozenset(stolen))
        arrivals = [
            each
            for thread in threads
            if not thread.after
            for each in (
                densest_arrivals(thread, ticks // 2)
                if seed % 4 == 1
                else random_arrivals(source, thread, ticks // 2)
            )
        ]
        first = {at for at, _ in arrivals}
        sections = {at - 1 for at in first} if seed % 2 else set(range(0, ticks, 7))
        simulated.run(arrivals, sections, ticks)
        for name, each in found.items():
            if each.response is None:
                continue
            assert simulated.seen[name] <= each.response, (seed, name)
            assert simulated.ends[name] <= each.end_to_end, (seed, name)
            compared += 1
            reached += simulated.seen[name] >= each.response - 1  # a section began before
    assert compared > 400
    assert reached > 40  # it is not only large enough, but as large as what can be


def test_interrupts_as_windows_are_taken_over_the_whole_response():
    """Q as a staircase against the same interrupt told by its period."""
    threads = [Thread("a", 2, 20, 100), Thread("b", 1, 30, 200)]
    steps = Steps.of([(30 * count, 4 * (count + 1)) for count in range(40)])
    told = responses(threads, Kernel(5, 1), [Interrupt("irq", 4, 30)])
    seen = responses(threads, Kernel(5, 1, steps))
    assert [each.response for each in told.values()] == [each.response for each in seen.values()]


def test_more_of_anything_never_shortens_a_response():
    for seed in range(60):
        source = random.Random(seed)
        threads, section, switch = random_system(source)
        before = responses(threads, Kernel(section, switch))
        at = source.randrange(len(threads))
        longer = [
            replace(each, execution=each.execution + 1) if number == at else each
            for number, each in enumerate(threads)
        ]
        after = responses(longer, Kernel(section + 1, switch))
        for name, each in before.items():
            later = after[name].response
            assert later is None or (each.response is not None and later >= each.response)


FILE = """
[linux]
wake_up = "49 us"
switch = "3 us"

[[linux.interrupt]]
name = "can"
period = "1 ms"
execution = "8 us"

[[linux.thread]]
name = "irq/33-can"
priority = 50
execution = "20 us"
after = "can"

[[linux.thread]]
name = "servo"
priority = 90
execution = "120 us"
after = "irq/33-can"

[[linux.thread]]
name = "planner"
priority = 40
execution = "900 us"
period = "10 ms"
"""


def latenz(*words):
    command = [sys.executable, "-m", "latenz", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_prints_threads_and_chains(tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(FILE)
    done = latenz("bound", path, "--json", "--deadline", "servo=1ms", "--deadline", "planner=1ms")
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    servo, planner = (
        next(each for each in found["threads"] if each["name"] == name)
        for name in ("servo", "planner")
    )
    # by hand: the servo: 49 + 120 + one interrupt of 8; irq/33-can: 49 + 20 + 126 (servo) + 8
    assert servo["response_ns"] == 177_000
    assert servo["chain"] == ["can", "irq/33-can", "servo"]
    assert servo["end_to_end_ns"] == 177_000 + 203_000
    # 49 + 900 + 2 of each (servo 126, irq 26, interrupt 8)
    assert planner["response_ns"] == 49_000 + 900_000 + 2 * (126_000 + 26_000 + 8_000)
    assert {each["thread"]: each["verdict"] for each in found["deadlines"]} == {
        "servo": "meets",
        "planner": "not shown",
    }
    done = latenz("bound", path)
    assert done.returncode == 0, done.stderr
    assert "can > irq/33-can > servo" in done.stdout


def test_a_thread_without_a_bound_is_named(tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(FILE.replace('"900 us"', '"9 ms"'))
    done = latenz("bound", path)
    assert done.returncode == 3, done.stderr
    assert "No bound of planner: together they may need more" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('wake_up = "49 us"', "", "the wake-up bound is not told"),
        ("[linux]", '[linux]\nwindows = "run"', "the wake-up bound is told twice"),
        ('wake_up = "49 us"', 'windows = "absent"', "does not exist"),
        ("priority = 50", "priority = 100", "linux.thread[1].priority"),
        ('after = "can"', 'after = "lin"', "there is no thread or interrupt 'lin'"),
        ('after = "can"', 'after = "servo"', "leads back to itself"),
        ('period = "10 ms"', "", "nothing tells how often 'planner' is activated"),
        ('after = "can"', 'after = "can"\nperiod = "1 ms"', "is that of 'can'"),
        ('name = "planner"', 'name = "servo"', "'servo' is there twice"),
        ('period = "10 ms"', "period = 0", "is not positive"),
        ("priority = 40", "priority = 40\ncolour = 3", "colour"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(old, new, told, tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(FILE.replace(old, new, 1))
    assert has_threads(path)
    with pytest.raises(BadInput) as mistake:
        read_linux_system(path)
    assert told in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_the_wake_up_bound_of_a_trace_is_taken(tmp_path):
    """Of a simulated kernel's trace: the least solution by trying one length after the other."""
    (tmp_path / "trace.txt").write_text(TracedKernel(random.Random(0)).run(60))
    path = tmp_path / "robot.toml"
    path.write_text(
        '[linux]\nwindows = "trace.txt"\n[[linux.thread]]\nname = "servo"\npriority = 90\n'
        'execution = "20 us"\nperiod = "1 ms"\n'
    )
    system = read_linux_system(path)
    assert system.evidence.is_open  # C3 and C4: a trace leaves them so
    terms = system.evidence.terms
    work = max(terms.blocking, terms.switching, terms.idle) + terms.scheduler + 20_000
    taken = system.evidence.observations[0].windows.joint()
    least = next(length for length in range(1, 10**6) if length == work + taken(length))
    [found] = response_times(system.threads, system.kernel)
    assert found.response == least > system.evidence.bound.bound_ns
    assert latenz("bound", path, "--deadline", "1ms").returncode == 3


def test_a_trace_that_lacks_a_term_is_refused(tmp_path):
    rows = TracedKernel(random.Random(0)).run(40).splitlines()
    (tmp_path / "trace.txt").write_text("\n".join(x for x in rows if ": irq_" not in x) + "\n")
    path = tmp_path / "robot.toml"
    path.write_text(FILE.replace('wake_up = "49 us"', 'windows = "trace.txt"'))
    with pytest.raises(BadInput, match=r"gives no wake-up bound .*blocking"):
        read_linux_system(path)


def test_other_system_files_are_left_to_others(tmp_path):
    path = tmp_path / "system.toml"
    path.write_text('[[slot]]\npartition = "P1"\nlength = "6 ms"\n')
    assert not has_threads(path)
    path.write_text("[linux")
    assert not has_threads(path)
