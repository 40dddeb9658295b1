"""Defects planted into the state machine that reads windows out of traces: its tests find each.

The tests are those that hold a trace's windows against a simulated kernel that knows the truth.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parents[2]
PROBES = ROOT / "probes/src"
COMPILE = ("g++", "-std=c++20", "-O0", f"-I{PROBES}", f"-I{ROOT / 'core/include'}")
JUDGES = ("test_trace_sections.py", "test_bound_from_trace.py", "test_scheduler_events.py")
MUTATED = ("trace_windows.cpp", "trace_windows_reading.cpp", "window_account.cpp")
PLUGIN = """
import os
from pathlib import Path
import latenz.linux_bound.traced as traced
import latenz.programs as programs
programs.probe_program = traced.probe_program = lambda name: Path(os.environ["PLANTED_PROGRAM"])
"""

WINDOWS, READING, ACCOUNT = MUTATED
DEFECTS = {
    "a window begins at its first event": (
        WINDOWS,
        "end - begin.outer - taken + more",
        "end - begin.t_ns - taken + more",
    ),
    "a window ends at its last event": (
        WINDOWS,
        "gaps.end = ends ? gaps.exit : after + settings_.grain;",
        "gaps.end = ends ? gaps.exit : step.t_ns + settings_.grain;",
    ),
    "interrupts' time is that of threads": (
        WINDOWS,
        "  taken_ += std::max<std::int64_t>(t_ns - entry.t_ns - settings_.grain, 0);\n",
        "",
    ),
    "an interrupt takes more than its time from threads": (
        WINDOWS,
        "  taken_ += std::max<std::int64_t>(t_ns - entry.t_ns - settings_.grain, 0);\n",
        "  taken_ += 2 * (t_ns - entry.t_ns);\n",
    ),
    "an interrupt begins at its first event": (
        WINDOWS,
        "  account_.execution(entry.outer, end - entry.outer, frame_->source);\n",
        "  account_.execution(entry.t_ns, end - entry.t_ns, frame_->source);\n",
    ),
    "the first interrupt of a window is all there are": (
        WINDOWS,
        "  account_.execution(entry.outer, end - entry.outer, frame_->source);\n",
        "  if (window_) account_.execution(entry.outer, end - entry.outer, frame_->source);\n",
    ),
    "any enabling ends a section": (
        WINDOWS,
        "  } else if (window_ && (is_point || !window_->owed)) {",
        "  } else if (window_) {",
    ),
    "no enabling ends a section": (
        WINDOWS,
        "  } else if (window_ && (is_point || !window_->owed)) {",
        "  } else if (false) {",
    ),
    "an interrupt that was taken is not remembered": (
        WINDOWS,
        "    window_->owed = window_->owed || !irqs_off_;\n",
        "    window_->owed = !irqs_off_;\n",
    ),
    "every enabling looks": (
        READING,
        "  made.tests = !name.empty() &&",
        "  made.tests = true || !name.empty() &&",
    ),
    "no enabling looks": (
        WINDOWS,
        "      is_point = !irqs_off_ && step.tests;\n",
        "      is_point = false;\n",
    ),
    "a kernel that does not preempt is free in its own code": (
        "trace_windows.hpp",
        "return settings_.preemptible ? !irqs_off_ && !count_off_ : in_user_;",
        "return !irqs_off_ && !count_off_;",
    ),
    "the count is not looked at": (
        "trace_windows.hpp",
        "return settings_.preemptible ? !irqs_off_ && !count_off_ : in_user_;",
        "return settings_.preemptible ? !irqs_off_ : in_user_;",
    ),
    "user mode is within the window": (
        WINDOWS,
        "  gaps.begin = is_cut ? std::max(gaps.before, step.t_ns - edge()) : gaps.before;\n",
        "  gaps.begin = gaps.before;\n",
    ),
    "the way in from user mode is left out": (
        WINDOWS,
        "  gaps.begin = is_cut ? std::max(gaps.before, step.t_ns - edge()) : gaps.before;\n",
        "  gaps.begin = is_cut ? step.t_ns : gaps.before;\n",
    ),
    "the way in is the shortest that was seen": (
        WINDOWS,
        "    seen_edges_.entry = std::max(seen_edges_.entry, way);\n",
        "    seen_edges_.entry = seen_edges_.entry < 0 ? way : std::min(seen_edges_.entry, way);\n",
    ),
    "the scheduler's part begins behind its choice": (
        WINDOWS,
        "    scheduling_ = since;\n",
        "    scheduling_ = mark(step.t_ns, step.t_ns, step.place);\n",
    ),
    "a switch is held from its end only": (
        WINDOWS,
        "    window_ = Window{masked, Term::switching, false, false};\n",
        "",
    ),
    "the way into idle begins at sleep": (
        WINDOWS,
        "  record(Term::idle_in, has_slept_ ? woke_ : idle_since_, step.t_ns,\n",
        "  record(Term::idle_in, mark(step.t_ns, step.t_ns, step.place), step.t_ns,\n",
    ),
    "sleep is not told from the way into idle": (
        WINDOWS,
        "  is_asleep_ = has_slept_ = true;\n",
        "  is_asleep_ = true;\n",
    ),
    "sleep is on the way out of it": (
        WINDOWS,
        "    woke_ = mark(step.t_ns, step.t_ns, step.place);\n",
        "    woke_ = mark(gaps.before, step.t_ns, step.place);\n",
    ),
    "a wake-up was due when its interrupt began": (
        WINDOWS,
        "  pending_ = Pending{is_timer ? timer_due_ : begin};\n",
        "  pending_ = Pending{begin};\n",
    ),
    "who was preferred goes unseen": (
        WINDOWS,
        "is_lower && waits) account_.passed_over();",
        "is_lower && waits) account_.schedule();",
    ),
    "who went on goes unseen": (
        WINDOWS,
        "      waits_at_choice_ = step.chooses && pending_;\n",
        "",
    ),
    "another thread of the priority goes unseen": (
        WINDOWS,
        "    account_.rival(step.pid, step.priority, step.name.data());\n",
        "",
    ),
    "time that goes back goes unseen": (
        WINDOWS,
        'forget("events with a time before that of the event before them", 1);',
        "held_.reset();",
    ),
    "a gap in the trace goes unseen": (
        WINDOWS,
        '  forget("events that the trace\'s buffer could not take", count);\n',
        "  (void)count;\n",
    ),
    "points that are passed over go unseen": (
        WINDOWS,
        "  const bool is_ignored = point_needed_ && step.needed && !step.schedules;\n",
        "  const bool is_ignored = false;\n",
    ),
    "stolen time goes unseen": (
        WINDOWS,
        "    stolen_ += step.what == What::other ? 0 : 1U;\n",
        "",
    ),
    "rounded stamps are taken as exact": (
        READING,
        "  settings.grain = common_grain_ > 0 ? common_grain_ - 1 : 0;\n",
        "  settings.grain = 0;\n",
    ),
    "the shortest window is kept": (
        ACCOUNT,
        "    longest.ns = std::max(longest.ns, ns);\n",
        "    longest.ns = longest.n == 1 ? ns : std::min(longest.ns, ns);\n",
    ),
    "a block loses its windows": (
        ACCOUNT,
        "    open_.longest.at(number) = std::max(open_.longest.at(number), ns);\n",
        "",
    ),
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory) -> Path:
    """A folder with all that the program is made of, compiled once."""
    folder = tmp_path_factory.mktemp("objects")
    wanted = [
        PROBES / f"{name}.cpp" for name in ("kernel_windows", "window_account", "file", "text")
    ]
    for source in (*wanted, *PROBES.glob("trace_*.cpp")):
        subprocess.run([*COMPILE, "-c", source, "-o", folder / f"{source.stem}.o"], check=True)
    return folder


def judged(folder: Path, objects: Path, planted: tuple[str, str, str] | None) -> int:
    """Return how the tests end with a program of which one source has a defect."""
    program = folder / "latenz-trace"
    name, right, wrong = planted or (WINDOWS, "", "")
    source = (PROBES / name).read_text()
    assert right in source
    (folder / name).write_text(source.replace(right, wrong, 1) if right else source)
    renewed = MUTATED[:2] if name.endswith(".hpp") else (name,)
    for each in renewed:
        if each != name:
            (folder / each).write_text((PROBES / each).read_text())
    kept = [each for each in objects.glob("*.o") if f"{each.stem}.cpp" not in renewed]
    command = [*COMPILE[:3], f"-I{folder}", *COMPILE[3:], *(folder / each for each in renewed)]
    subprocess.run([*command, *kept, "-o", program], check=True)
    (folder / "planted_defect.py").write_text(PLUGIN)
    environment = {**os.environ, "PLANTED_PROGRAM": str(program), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "planted_defect"]
    command += ["-p", "no:cacheprovider", "-m", "not long", *(TESTS / each for each in JUDGES)]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.long
def test_without_a_defect_they_pass(objects, tmp_path):
    assert judged(tmp_path, objects, None) == 0


@pytest.mark.long
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect, objects, tmp_path):
    assert judged(tmp_path, objects, DEFECTS[defect]) == 1  # tests failed, and nothing else did
