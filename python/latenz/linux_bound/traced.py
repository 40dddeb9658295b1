"""Windows of a real kernel, from a trace of its own tracepoints.

A trace shows less than the emulator's recorder, and less exactly: events lie inside of their
sections. Windows are taken from the event before to the event after, so that they are never too
short; terms that a trace does not show are named, with what to record, and then there is no bound.
docs/linux-bound.md says what each source sees.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from latenz.errors import BadInput
from latenz.linux_bound.layout import Preemption
from latenz.linux_bound.model import TERMS
from latenz.linux_bound.windows import TraceTold, Windows
from latenz.programs import probe_program
from latenz.traces.opening import open_trace
from latenz.traces.reader import REMEDY, RecordedTrace

MASKING = ("irq_disable", "irq_enable", "preempt_disable", "preempt_enable")
INTERRUPTS = ("irq_handler_entry", "local_timer_entry", "ipi_entry", "reschedule_entry")
SWITCHES = ("sched_switch", "sched_waking")
TIMERS = ("hrtimer_start", "hrtimer_expire_entry", "hrtimer_expire_exit")
SCHEDULER = (
    *("sched_entry", "sched_exit", "sched_set_need_resched"),
    *("sched_entry_tp", "sched_exit_tp", "sched_set_need_resched_tp"),
    *(f"event_{monitor}" for monitor in ("nrp", "opid", "sco", "scpd", "snep", "sncid", "sts")),
)
NOISE = ("irq_noise", "softirq_noise", "thread_noise", "nmi_noise")
_PREEMPTIBLE: dict[Preemption, bool] = {
    "rt": True,
    "preempt": True,
    "lazy": True,
    "voluntary": False,
    "none": False,
}
_MASKING_REMEDY = (
    "record preemptirq:* (a kernel with CONFIG_IRQSOFF_TRACER or CONFIG_PREEMPT_TRACER has them)"
)
_TIMER_REMEDY = (
    "record timer:hrtimer_start, timer:hrtimer_expire_entry and timer:hrtimer_expire_exit with"
    " trace_clock mono"
)


@dataclass(frozen=True, slots=True)
class Sight:
    """What a kind of events tells of the theorem's terms.

    Attributes:
        source: The events.
        sees: Which terms, in words.
        lacks: What it cannot tell.
        names: Of the events; one of them is enough.
    """

    source: str
    sees: str
    lacks: str
    names: tuple[str, ...]


SIGHTS = (
    Sight(
        "preemptirq:*",
        "blocking, switching, idle_direct, begin and end of interrupts",
        "the way from hardware to the first event, and out after the last",
        MASKING,
    ),
    Sight("sched:*", "scheduler, wake-ups, other real-time threads", "idle's sleep", SWITCHES),
    Sight(
        "irq:*, irq_vectors:*, ipi:*",
        "which interrupt it was, softirqs",
        "vector entry and exit",
        INTERRUPTS,
    ),
    Sight(
        "timer:hrtimer_*",
        "when a wake-up was due, how long the way in from hardware is",
        "wake-ups by devices: due where their interrupt begins",
        TIMERS,
    ),
    Sight(
        "power:cpu_idle",
        "idle_in, idle_out",
        "sleep that an idle loop does not tell of",
        ("cpu_idle",),
    ),
    Sight(
        "sched_*_tp, rv:event_*",
        "when the running thread shall give way, calls of the scheduler (from Linux 6.15 on)",
        "every term by itself: they tell more of those of preemptirq",
        SCHEDULER,
    ),
    Sight(
        "osnoise, timerlat",
        "Q(x): interrupts, softirqs, NMIs; the largest latency",
        "every term of threads: blocking, switching, idle, scheduler",
        (*NOISE, "timerlat"),
    ),
)
"""What each source of events can and cannot see."""


def windows_of_trace(path: Path, claimed: Preemption | None = None) -> tuple[Windows, ...]:
    """Return the windows that a trace shows, one for each CPU where a thread was measured.

    Args:
        path: trace.dat, or the text of ftrace, trace-cmd or perf script.
        claimed: How the kernel preempts; None: as was seen of it.

    Raises:
        BadInput: It is no such trace.
    """
    trace = open_trace(path)
    if not isinstance(trace, RecordedTrace):
        raise BadInput("is not a trace of a kernel's tracepoints", str(path), REMEDY)
    told = _told(trace, claimed)
    return tuple(_windows(path, told, each, claimed) for each in told["cpus"])


def _told(trace: RecordedTrace, claimed: Preemption | None) -> dict[str, Any]:
    path = trace.path
    kind = () if claimed is None else ("preemptible" if _PREEMPTIBLE[claimed] else "points",)
    command = [str(probe_program("latenz-trace")), "windows", str(path.absolute()), *kind]
    done = subprocess.run(command, capture_output=True, check=False)
    told: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    if not told.get("events"):
        trace.summary(1)  # refuses what holds no event, and says what it is
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        raise BadInput(f"the reader of traces ended with {done.returncode}: {said}", str(path))
    if not told["cpus"]:
        raise BadInput("no event of it can be read", str(path), REMEDY)
    return told


def _windows(
    path: Path, told: Mapping[str, Any], cpu: dict[str, Any], claimed: Preemption | None
) -> Windows:
    lost = cpu["checks"]["lost"]
    if told["lost_places"] and not lost:
        lost["events that the trace's buffer could not take"] = max(told["lost_events"], 1)
    if told["truncated_at"]:
        lost[f"the file cannot be read at {told['truncated_at']}"[:100]] = max(told["damages"], 1)
    seen: Preemption = "preempt" if told["preemptible"] else "voluntary"
    checks = cpu["checks"] | {"preempted_in_kernel": cpu["preempted_in_kernel"]}
    try:
        return Windows.model_validate(
            cpu
            | {
                "format": 1,
                "preemptible": told["preemptible"],
                "preemption": claimed or seen,
                "time_base": "trace",
                "condition": f"CPU {cpu['cpu']}" if len(told["cpus"]) > 1 else path.name,
                "load": "what ran while it was traced",
                "checks": checks,
                "trace": TraceTold(
                    clock=told["clock"],
                    events=told["events"],
                    cpu=cpu["cpu"],
                    thread=cpu["thread"],
                    thread_name=cpu["thread_name"],
                    claimed=claimed is not None,
                    entry_ns=told["entry_ns"],
                    from_sleep_ns=told["from_sleep_ns"],
                    entries=cpu["interrupt_entries"],
                    stolen=cpu["stolen"],
                    ignored_points=cpu["ignored_points"],
                    resolution_ns=max(told["grain_ns"], 1),
                    inner_ns={name: cpu["terms"][name]["inner_ns"] for name in TERMS},
                    unseen=_unseen(told, cpu),
                    sources=tuple(_sources(told["saw"])),
                    timerlat=cpu["timerlat"],
                ),
            }
        )
    except ValidationError as error:
        raise BadInput(f"windows cannot be told ({error.errors()[0]['msg']})", str(path)) from None


def _sources(saw: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(each.source, sum(saw.get(name, 0) for name in each.names)) for each in SIGHTS]


def _unseen(told: Mapping[str, Any], cpu: Mapping[str, Any]) -> dict[str, str]:
    """Return what the trace does not show, each with what to record."""
    saw = told["saw"]
    terms = cpu["terms"]
    unseen: dict[str, str] = {}
    if not all(saw.get(name) for name in ("irq_disable", "irq_enable")):
        unseen["blocking, switching"] = _MASKING_REMEDY
    elif told["preemptible"] and not saw.get("preempt_disable"):
        unseen["blocking"] = (
            "record preemptirq:preempt_disable and preempt_enable (CONFIG_PREEMPT_TRACER)"
        )
    elif not told["has_names"]:
        unseen["blocking"] = "record with trace-cmd, which keeps the names of functions"
    if not saw.get("sched_switch"):
        unseen["scheduler"] = "record sched:sched_switch and sched:sched_waking"
    elif cpu["wake_ups"] < 2:
        unseen["wake-ups"] = (
            "record sched:sched_waking, and " + _TIMER_REMEDY + ", while a real-time thread waits"
            " for its period"
        )
    if cpu["idles"] and not terms["idle_in"]["n"]:
        unseen["idle"] = "record power:cpu_idle"
    elif terms["idle_in"]["n"] and told["from_sleep_ns"] is None:
        unseen["the way out of sleep"] = _TIMER_REMEDY
    if told["entry_ns"] is None:
        unseen["the way in from hardware"] = _TIMER_REMEDY
    if not told["has_flags"] and not any(saw.get(name) for name in INTERRUPTS):
        unseen["interrupts"] = "record irq:*, irq_vectors:* and ipi:*"
    return unseen
