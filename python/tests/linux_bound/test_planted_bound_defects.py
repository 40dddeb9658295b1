"""Defects planted into the state machine that cuts windows out of events: its tests find each."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "probes/src"
TESTS = ROOT / "probes/tests/kernel_windows_test.cpp"
COMPILE = ("g++", "-std=c++20", "-O0", f"-I{SOURCES}")

DEFECTS = {
    "a nested interrupt's time is also the outer one's": (
        "    outer.own += now - outer.resumed;\n",
        "",
    ),
    "an interrupted interrupt does not go on": (
        "    frames_.back().resumed = now;\n",
        "",
    ),
    "the time of interrupts is not summed": (
        "    interrupt_time_ += now - outer_begin_;\n",
        "",
    ),
    "an exception's return ends the interrupt": (
        "    frames_.push_back({.is_interrupt = false, .begin = now, .resumed = now});\n",
        "",
    ),
    "the return of an interrupt is no point": (
        "  if (to_user || (ended_interrupt && can_be_preempted())) {",
        "  if (to_user) {",
    ),
    "every return of an interrupt is a point": (
        "  if (to_user || (ended_interrupt && can_be_preempted())) {",
        "  if (to_user || ended_interrupt) {",
    ),
    "the way to user mode is no point": (
        "  if (to_user || (ended_interrupt && can_be_preempted())) {",
        "  if (!to_user && ended_interrupt && can_be_preempted()) {",
    ),
    "any enabling ends a section": (
        "  } else if (window_ && !window_->owed) {",
        "  } else if (window_) {",
    ),
    "no enabling ends a section": (
        "  } else if (window_ && !window_->owed) {",
        "  } else if (false) {",
    ),
    "an interrupt that was taken is not remembered": (
        "window_->owed = window_->owed || interrupts_on_;",
        "window_->owed = interrupts_on_;",
    ),
    "a test with interrupts masked is a point": (
        "!in_thread() || !interrupts_on_ || is_idle()",
        "!in_thread() || is_idle()",
    ),
    "the last decrement is no point": (
        "  enabling_needed_ = count == 1 && needed;\n",
        "",
    ),
    "the scheduler's time begins at its call": (
        "  scheduling_since_ = needed_since_ ? *needed_since_ : thread_time(now);",
        "  scheduling_since_ = thread_time(now);",
    ),
    "the switch is held from its end only": (
        "    masked_since_ = thread_time(now);\n",
        "    masked_since_ = thread_time(now) + 100;\n",
    ),
    "the way into idle begins at the idle thread": (
        "    idle_since_ = masked_since_;\n",
        "    idle_since_ = 0;\n",
    ),
    "sleep is not told from the way into idle": (
        "  slept_in_idle_ = true;\n",
        "",
    ),
    "the preemption count is not that of the next thread": (
        "  current_ = task;\n",
        "  const auto kept = current_.preempt_count;\n  current_ = task;\n"
        "  current_.preempt_count = kept;\n",
    ),
    "windows before the first wake-up count": (
        "  if (observing() && found_.size() < most_found) {\n",
        "  if (found_.size() < most_found) {\n",
    ),
    "windows after the last wake-up count": (
        "    found_.push_back({term, ns, site});\n",
        "    found_.push_back({term, ns, site});\n    commit();\n",
    ),
    "another thread of the priority goes unseen": (
        "task.pid != 0 && task.priority <= settings_.priority &&",
        "task.pid != 0 && task.priority < settings_.priority &&",
    ),
    "a preferred thread goes unseen": ("    ++passed_over_found_;\n", ""),
    "a thread that goes on though another is preferred goes unseen": (
        "    waits_at_choice_ = pending_.has_value();\n",
        "",
    ),
    "a thread woken behind the choice is taken as passed over": (
        "    waits_at_choice_ = pending_.has_value();\n",
        "    waits_at_choice_ = true;\n",
    ),
    "a wake-up at another priority goes unseen": (
        "    other_priority_found_ += measured_ && task.pid == *measured_ ? 1U : 0U;\n",
        "",
    ),
    "an interrupt without a begin goes unseen": (
        '    lost("an interrupt preempted the kernel whose begin was not seen");\n',
        "",
    ),
    "a wrong count goes unseen": ("    ++wrong_counts_;\n", ""),
    "a wake-up that comes twice goes unseen": ("    ++missed_;\n", ""),
    "the clock stands still while the CPU sleeps": (
        "  offset_ += static_cast<std::uint64_t>(ahead);\n",
        "  offset_ += ahead < 0 ? static_cast<std::uint64_t>(ahead) : 0;\n",
    ),
    "executions before and after sleep are neighbours": (
        "      recent_[i].begin_ns += asleep;\n",
        "      (void)i;\n",
    ),
    "a segment loses the maximum of the next one": (
        "    longest.at(i) = std::max(longest.at(i), later.longest.at(i));\n",
        "    (void)i;\n",
    ),
}


@pytest.fixture(scope="module")
def tests(tmp_path_factory) -> Path:
    """The tests, compiled once."""
    compiled = tmp_path_factory.mktemp("tests") / "tests.o"
    subprocess.run([*COMPILE, "-c", TESTS, "-o", compiled], check=True)
    return compiled


def outcome(source: str, tests: Path, folder: Path) -> int:
    """Return how the tests end on a state machine."""
    path = folder / "kernel_windows.cpp"
    path.write_text(source)
    program = folder / "program"
    libraries = ("-lgtest", "-lgtest_main", "-lpthread")
    subprocess.run([*COMPILE, path, tests, *libraries, "-o", program], check=True)
    return subprocess.run([program], capture_output=True, check=False, timeout=60).returncode


def test_without_a_defect_they_pass(tests, tmp_path):
    assert outcome((SOURCES / "kernel_windows.cpp").read_text(), tests, tmp_path) == 0


@pytest.mark.long
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect, tests, tmp_path):
    source = (SOURCES / "kernel_windows.cpp").read_text()
    right, wrong = DEFECTS[defect]
    assert right in source
    assert outcome(source.replace(right, wrong), tests, tmp_path) != 0
