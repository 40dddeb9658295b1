"""What this machine can and cannot measure, and why."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from latenz import environment, idle
from latenz.affinity import LEFT_OUT, enterable_cpus, isolated_cpus
from latenz.engines import ENGINES
from latenz.engines.timerlat import available_tracers
from latenz.environment import read_text
from latenz.errors import BadInput
from latenz.installation import clone
from latenz.loads import STRESSORS
from latenz.machine import measured_machine
from latenz.obstacle import Obstacle, forbidden_priority
from latenz.programs import LEAST_QEMU, program_version
from latenz.traces import ring
from latenz.traces.offers import missing_for_bound

State = Literal["ok", "limited", "missing"]
_CAP_IPC_LOCK = 14
_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Check:
    """One thing that decides what can be measured here.

    Attributes:
        id: Its name.
        state: `ok`; `limited`: measuring works, but the figures suffer or say less; `missing`.
        found: What was found.
        consequence: What follows from it; empty if all is well.
        fix: The command that changes it; empty if there is none or nothing to change.
    """

    id: str
    state: State
    found: str
    consequence: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, and what follows from them.

    Attributes:
        checks: In the order in which they are best read.
        can_measure: What can be measured, and under which loads.
        cannot_measure: What cannot: `what`, `why` and `fix`.
    """

    checks: tuple[Check, ...]
    can_measure: tuple[str, ...]
    cannot_measure: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as plain values."""
        return asdict(self)


def diagnose() -> Diagnosis:
    """Check this machine; changes nothing on it."""
    can: list[str] = []
    cannot: list[dict[str, str]] = []

    def sort(what: str, obstacle: Obstacle | None) -> None:
        if obstacle is None:
            can.append(what)
        else:
            cannot.append({"what": what, "why": obstacle.reason, "fix": obstacle.fix})

    for name, engine in ENGINES.items():
        settings = engine.settings_type.model_validate({"engine": name, **engine.needed()})
        sort(f"{engine.measures} ({name})", engine.obstacle(settings))
    for name, stressor in STRESSORS.items():
        load = stressor.settings_type.model_validate({"kind": name})
        sort(f"under load {name}" if name != "none" else "without load", stressor.obstacle(load))
    checks = (check for check in CHECKS if measured_machine().is_here or check not in _OF_HERE)
    return Diagnosis(tuple(check() for check in checks), tuple(can), tuple(cannot))


def _priority() -> Check:
    obstacle = forbidden_priority(os.SCHED_FIFO, 99)
    if obstacle is None:
        return Check("realtime-priority", "ok", "SCHED_FIFO up to 99")
    consequence = "no engine can measure as a real-time thread would run"
    return Check("realtime-priority", "missing", obstacle.reason, consequence, obstacle.fix)


def _memory_lock() -> Check:
    capabilities = re.search(r"CapEff:\s*([0-9a-f]+)", read_text("/proc/self/status") or "")
    limits = read_text("/proc/self/limits") or ""
    limit = re.search(r"^Max locked memory\s+(\d+|unlimited)", limits, re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1:
        return Check("memory-lock", "ok", "unlimited")
    if limit and limit[1] == "unlimited":
        return Check("memory-lock", "ok", "unlimited")
    return Check(
        "memory-lock",
        "limited",
        f"{int(limit[1]) // 1024} KiB" if limit else "not known",
        "probes cannot keep their memory from being paged out: page faults look like latency",
        "run as root, or raise memlock in /etc/security/limits.d and log in again",
    )


def _idle_states() -> Check:
    deepest = idle.deepest_state(enterable_cpus())
    held_us = idle.requested_us()
    told = "nobody keeps the CPUs awake" if held_us is None else f"somebody holds {held_us} us"
    found = f"deepest: {deepest}; {told}" if deepest else "no idle states known"
    if idle.deep_idle_note(enterable_cpus(), held_us) is None:
        return Check("idle-states", "ok", found)
    can_hold = measured_machine().may("/dev/cpu_dma_latency", os.W_OK)
    return Check(
        "idle-states",
        "limited",
        found,
        "waking up from there counts as latency, as it does for every program that leaves"
        " /dev/cpu_dma_latency alone",
        'measure both: dma_latency = "0 us" and "left alone" (experiments/idle-states.toml)'
        if can_hold
        else "run as root to hold /dev/cpu_dma_latency",
    )


def _clock_source() -> Check:
    source = read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    found = f"{source}, {_reading_ns()} ns a reading (from Python)"
    if not measured_machine().is_here:
        found = f"{source}"
    if source in ("tsc", "arch_sys_counter", "kvm-clock", "xen", "riscv_clocksource"):
        return Check("clock-source", "ok", found)
    return Check(
        "clock-source",
        "limited",
        found,
        "reading the time costs a system call or a slow device: every latency is longer by it",
        "boot with clocksource=tsc tsc=reliable if the processor's counter is constant",
    )


def _reading_ns() -> int:
    began = time.perf_counter_ns()
    for _ in range(1000):
        time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return (time.perf_counter_ns() - began) // 1000


def _timers() -> Check:
    step = measured_machine().clock_resolution_ns
    if step == 1:
        return Check("high-resolution-timers", "ok", "1 ns")
    return Check(
        "high-resolution-timers",
        "missing",
        f"timers tick every {step} ns",
        "latencies below one tick cannot be told",
        "boot without highres=off, on a kernel with CONFIG_HIGH_RES_TIMERS=y",
    )


def _preemption() -> Check:
    model = environment.preemption_model()
    if model == "PREEMPT_RT":
        return Check("preemption", "ok", model)
    image = {"x86_64": "amd64", "aarch64": "arm64"}.get(measured_machine().architecture)
    return Check(
        "preemption",
        "limited",
        f"{model}, not PREEMPT_RT",
        "under load this kernel makes real-time threads wait for whole system calls and interrupts",
        f"apt-get install linux-image-rt-{image}, then reboot" if image else "",
    )


def _throttling() -> Check:
    runtime = read_text("/proc/sys/kernel/sched_rt_runtime_us")
    period = read_text("/proc/sys/kernel/sched_rt_period_us")
    if runtime in (None, "-1", period):
        return Check("realtime-throttling", "ok", "off")
    return Check(
        "realtime-throttling",
        "limited",
        f"real-time tasks may use {runtime} of every {period} us",
        "a busy real-time task is stopped for the rest; probes, which mostly sleep, are not",
        "sysctl -w kernel.sched_rt_runtime_us=-1 (a runaway real-time task then hangs its CPU)",
    )


def _isolation() -> Check:
    isolated = isolated_cpus()
    if any(reason != LEFT_OUT for reason in isolated.values()):
        told = ", ".join(f"CPU {cpu} ({reason})" for cpu, reason in isolated.items())
        return Check("isolation", "ok", f"{told}; can be entered, and are measured")
    last = max(enterable_cpus())
    if last == 0:
        return Check("isolation", "limited", "one CPU", "everything shares it with the probe")
    return Check(
        "isolation",
        "limited",
        "no CPU is isolated",
        "other tasks and interrupts share every CPU with the probe",
        f"boot with isolcpus=managed_irq,domain,{last} nohz_full={last} rcu_nocbs={last}",
    )


def _frequency() -> Check:
    governors = {
        text
        for path in measured_machine().matching(f"{_CPU}/cpu*/cpufreq/scaling_governor")
        if (text := read_text(path)) is not None
    }
    if not governors:
        return Check("frequency", "ok", "this system does not scale it")
    if governors == {"performance"}:
        return Check("frequency", "ok", "governor performance")
    return Check(
        "frequency",
        "limited",
        f"governor {', '.join(sorted(governors))}",
        "a CPU that has slowed down runs the woken thread later",
        "cpupower frequency-set -g performance",
    )


def _thermal() -> Check:
    counts = [
        int(text)
        for path in measured_machine().matching(f"{_CPU}/cpu*/thermal_throttle/core_throttle_count")
        if (text := read_text(path)) is not None
    ]
    if not counts:
        return Check("thermal-throttling", "ok", "no counter on this system")
    if not any(counts):
        return Check("thermal-throttling", "ok", "never since boot")
    consequence = "the processor slows down when hot: long runs differ from short ones"
    return Check(
        "thermal-throttling", "limited", f"{max(counts)} times since boot", consequence, ""
    )


def _smi() -> Check:
    if measured_machine().architecture not in ("x86_64", "i686"):
        return Check("smi-counter", "ok", "this architecture has no System Management Mode")
    consequence = "time that firmware takes away cannot be told from other delays"
    if environment.cpu_field("vendor_id") != "GenuineIntel":
        return Check("smi-counter", "limited", "this processor has no counter", consequence)
    count = environment.smi_count(min(enterable_cpus()))
    if count is None:
        return Check(
            "smi-counter",
            "limited",
            "MSR 0x34 cannot be read",
            consequence,
            "as root: modprobe msr",
        )
    return Check("smi-counter", "ok", f"{count} System Management Interrupts since boot")


def _tracing() -> Check:
    tracers = available_tracers()
    consequence = "the cause of a long latency cannot be recorded"
    if tracers is None:
        fix = "as root: mount -t tracefs tracefs /sys/kernel/tracing"
        return Check("tracing", "missing", "no tracing file system", consequence, fix)
    wanted = [name for name in ("timerlat", "osnoise", "hwlat", "function") if name in tracers]
    found = ", ".join(wanted) or "no tracer that concerns latency"
    if "timerlat" in wanted:
        return Check("tracing", "ok", found)
    fix = "boot a kernel built with CONFIG_TIMERLAT_TRACER=y"
    return Check("tracing", "limited", found, "the engine timerlat is not available", fix)


def _bound_events() -> Check:
    """Look for what a bound of the wake-up latency needs of this kernel's events."""
    consequence = "no bound of the wake-up latency from a trace of this kernel"
    tracefs = ring.find_tracefs()
    if tracefs is None:
        fix = "as root: mount -t tracefs tracefs /sys/kernel/tracing"
        return Check("bound-events", "missing", "no tracing file system", consequence, fix)
    missing = missing_for_bound(tracefs)
    if not missing:
        return Check("bound-events", "ok", "a trace gives latenz bound --linux every term")
    if missing[0].startswith("preemptirq:"):
        fix = "boot a kernel built with CONFIG_IRQSOFF_TRACER=y and CONFIG_PREEMPT_TRACER=y"
    else:
        fix = "boot a kernel built with CONFIG_FTRACE=y"
    return Check("bound-events", "limited", f"no {', '.join(missing[:4])}", consequence, fix)


def _left_traces() -> Check:
    """Look for what runs with --trace leave in the kernel if they are killed."""
    left = ring.leftovers()
    if not left:
        return Check("left-traces", "ok", "none")
    names = ", ".join(each.name for each in left)
    consequence = "a run that was killed left the kernel tracing: it costs memory and time"
    fix = f"rmdir {' '.join(map(str, left))} (the next latenz run --trace does it, too)"
    return Check("left-traces", "limited", names, consequence, fix)


def _virtual_machine() -> Check:
    hypervisor = environment.virtualization()
    if hypervisor is None:
        return Check("virtual-machine", "ok", "bare hardware")
    return Check(
        "virtual-machine",
        "limited",
        f"{hypervisor}; the host took {_stolen():.2%} of the CPU time since boot",
        "latencies include those of the hypervisor and of its other guests",
        "measure on bare hardware to know the hardware's own latency",
    )


def _stolen() -> float:
    """Return the share of CPU time since boot that the hypervisor gave to others."""
    words = (read_text("/proc/stat") or "cpu").splitlines()[0].split()[1:9]
    ticks = [int(word) for word in words]
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else 0.0


def _kvm() -> Check:
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Check("kvm", "ok", "/dev/kvm can be used")
    exists = Path("/dev/kvm").exists()
    return Check(
        "kvm",
        "missing",
        "/dev/kvm may not be opened" if exists else "there is no /dev/kvm",
        "virtual machines run in emulation, whose times are not silicon times",
        "usermod -aG kvm $USER, then log in again" if exists else "turn on virtualization in BIOS",
    )


def _boards() -> Check:
    from latenz.boards import cache

    found = program_version("qemu-system-aarch64", "--version")
    if found and int(found.partition(".")[0]) >= LEAST_QEMU:
        size = sum(path.stat().st_size for path in cache.location().rglob("*") if path.is_file())
        kept = f"{size >> 20} MiB of packages and images in {cache.location()}"
        return Check("emulated-boards", "ok", f"QEMU {found}; {kept}")
    return Check(
        "emulated-boards",
        "missing",
        f"QEMU {found}, older than {LEAST_QEMU}" if found else "QEMU is not installed",
        "no experiment can run on emulated boards",
        "setup/ensure boards (started by the first experiment that needs it)"
        if clone()
        else f"install QEMU {LEAST_QEMU} or later",
    )


def _packages() -> Check:
    from latenz.boards import apt_sources

    try:
        weaknesses = apt_sources.weaknesses()
    except BadInput as mistake:
        return Check(
            "packages", "missing", str(mistake), "nothing can be fetched for boards and guests"
        )
    if not apt_sources.KEYRING.exists():
        return Check(
            "packages",
            "missing",
            "Debian's keys are not installed",
            "nothing is fetched for boards and guests: nothing could be verified",
            "apt-get install debian-archive-keyring",
        )
    if not weaknesses:
        return Check("packages", "ok", "apt takes signed packages only")
    consequence = "Latenz takes signed packages only, but what apt installs may be weaker"
    return Check("packages", "limited", "; ".join(weaknesses), consequence)


def _load() -> Check:
    one_minute = float((read_text("/proc/loadavg") or "0").split()[0])
    cpus = len(enterable_cpus())
    found = f"load average {one_minute:.2f} on {cpus} CPUs"
    if one_minute < 0.5 * cpus:
        return Check("other-load", "ok", found)
    consequence = "other programs are running: an idle condition is not idle"
    return Check("other-load", "limited", found, consequence, "end them, or wait")


def _tool(program: str, package: str, *version: str) -> Callable[[], Check]:
    """Return the check of one of the tools that Latenz drives or reads."""

    def check() -> Check:
        found = program_version(program, *version)
        if found:
            return Check(f"tool-{program}", "ok", found)
        consequence = f"what needs {program} cannot be done"
        return Check(
            f"tool-{program}", "missing", "not installed", consequence, f"apt-get install {package}"
        )

    return check


CHECKS: tuple[Callable[[], Check], ...] = (
    _priority,
    _memory_lock,
    _idle_states,
    _clock_source,
    _timers,
    _preemption,
    _throttling,
    _isolation,
    _frequency,
    _thermal,
    _smi,
    _tracing,
    _bound_events,
    _left_traces,
    _virtual_machine,
    _kvm,
    _boards,
    _packages,
    _load,
    _tool("cyclictest", "rt-tests", "--help"),
    _tool("oslat", "rt-tests", "--help"),
    _tool("stress-ng", "stress-ng", "--version"),
    _tool("rtla", "rtla", "--version"),
    _tool("trace-cmd", "trace-cmd", "--version"),
)
"""Every check; none changes anything."""
_OF_HERE = (_bound_events, _left_traces, _kvm, _boards, _packages)
"""Those of what only the machine has that Latenz is installed on."""
