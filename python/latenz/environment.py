"""What must be known about a machine to understand latencies measured on it.

Nothing that names the machine or its owner is recorded: no host name, no addresses, no serial
numbers.
"""

import os
import platform
import re
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from latenz.affinity import MOUNTS, enterable_cpus, isolated_cpus
from latenz.boards import apt_sources
from latenz.machine import measured_machine
from latenz.programs import program_version
from latenz.unpacking import Damaged, unpack

_CONFIG = re.compile(
    r"CONFIG_(PREEMPT\w*|HZ|NO_HZ\w*|HIGH_RES_TIMERS|CPU_ISOLATION|RCU_NOCB_CPU|CPU_FREQ|CPU_IDLE"
    r"|TIMERLAT_TRACER|OSNOISE_TRACER|HWLAT_TRACER|FUNCTION_TRACER|IRQ_FORCED_THREADING"
    r"|PARAVIRT|KVM_GUEST|DEBUG_PREEMPT|PROVE_LOCKING|LOCKDEP|SCHED_DEBUG|TRANSPARENT_HUGEPAGE"
    r"|RT_GROUP_SCHED|XENO\w*|IPIPE|DOVETAIL)=(.*)"
)
_IDENTIFYING = re.compile(
    r"\b(root|resume|ip|nfsroot|BOOT_IMAGE|ostree|cryptdevice|rd\.[\w.]+|ds|addr)[= ]\S+"
)
_LARGEST_CONFIG = 4 << 20
_CPU = Path("/sys/devices/system/cpu")
_KERNEL = Path("/proc/sys/kernel")


def read_text(path: Path | str) -> str | None:
    """Return the stripped text of a small file, None if it cannot be read."""
    content = measured_machine().content(os.fspath(path))
    return None if content is None else content.decode("utf-8", "replace").strip()


def anonymous_command_line(text: str) -> str:
    """Return a kernel command line without what names the machine, its disks or its network."""
    return _IDENTIFYING.sub(r"\1=...", text)


def kernel_config() -> dict[str, str]:
    """Return those options of the running kernel's configuration that concern latency."""
    machine = measured_machine()
    text = None
    if packed := machine.content("/proc/config.gz"):
        with suppress(Damaged):
            text = unpack(packed, _LARGEST_CONFIG).decode("utf-8", "replace")
    text = text or read_text(f"/boot/config-{machine.release}") or ""
    matches = (_CONFIG.fullmatch(line) for line in text.splitlines())
    return {f"CONFIG_{match[1]}": match[2].strip('"') for match in matches if match}


def preemption_model() -> str:
    """Return how the running kernel preempts itself: PREEMPT_RT, full, lazy, voluntary, none."""
    kernel = measured_machine().kernel
    if read_text("/sys/kernel/realtime") == "1" or "PREEMPT_RT" in kernel:
        return "PREEMPT_RT"
    config = kernel_config()
    if "PREEMPT_DYNAMIC" in kernel:
        chosen = read_text("/sys/kernel/debug/sched/preempt")
        if chosen and (match := re.search(r"\((\w+)\)", chosen)):
            return f"{match[1]} (chosen at boot)"
        if match := re.search(r"\bpreempt=(\w+)", read_text("/proc/cmdline") or ""):
            return f"{match[1]} (chosen at boot)"
    for option, model in (
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_NONE", "none"),
    ):
        if config.get(option) == "y":
            return model
    return "unknown"


def virtualization() -> str | None:
    """Return the name of the hypervisor this system runs under, None on bare hardware."""
    if xen := read_text("/sys/hypervisor/type"):
        return xen
    products = " ".join(
        read_text(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")
    )
    for word, hypervisor in _HYPERVISORS.items():
        if word in products:
            return hypervisor
    if is_qemu():
        return "qemu"
    if "hypervisor" in (cpu_field("flags") or "").split():
        kernel = read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        return "kvm" if "kvm-clock" in (kernel or "") else "unknown hypervisor"
    return None


def is_qemu() -> bool:
    """Return whether this system says of itself, by device tree or CPU, that QEMU runs it."""
    board = read_text("/proc/device-tree/compatible") or ""
    model = cpu_field("model name") or ""
    return bool(_QEMU_BOARDS.search(board) or _QEMU_CPUS.search(model))


_QEMU_BOARDS = re.compile(r"linux,dummy-virt|riscv-virtio|qemu", re.IGNORECASE)
_QEMU_CPUS = re.compile(r"QEMU (TCG|Virtual) CPU", re.IGNORECASE)
_HYPERVISORS = {
    "QEMU": "qemu",
    "KVM": "kvm",
    "VMware": "vmware",
    "VirtualBox": "virtualbox",
    "Virtual Machine": "hyper-v",
    "Amazon EC2": "kvm",
    "Google": "kvm",
}


def cpu_field(name: str) -> str | None:
    """Return a field of the first CPU in /proc/cpuinfo."""
    for line in (read_text("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def machine() -> str:
    """Return the processor's name, with the number of CPUs that can be entered."""
    model = cpu_field("model name") or cpu_field("Model") or measured_machine().architecture
    cpus = len(enterable_cpus())
    return f"{model}, {cpus} CPU{'s' if cpus != 1 else ''}"


def smi_count(cpu: int) -> int | None:
    """Return how many System Management Interrupts a CPU has seen; None where unreadable."""
    if not measured_machine().is_here or cpu_field("vendor_id") != "GenuineIntel":
        return None  # the counter, MSR 0x34, is Intel's, and lies in no file that is read whole
    try:
        descriptor = os.open(f"/dev/cpu/{cpu}/msr", os.O_RDONLY)
    except OSError:
        return None
    try:
        count: int = struct.unpack("<Q", os.pread(descriptor, 8, 0x34))[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return count


def describe() -> dict[str, Any]:
    """Return everything about this machine that does not change while a run lasts."""
    with measured_machine().fetching(_DESCRIBING):
        return _described()


def _described() -> dict[str, Any]:
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "kernel": _kernel,
        "cpu": _cpu,
        "clock": _clock,
        "memory": _memory,
        "software": _software,
    }
    if measured_machine().is_here:
        sections["packages"] = apt_sources.account
    return {name: section() for name, section in sections.items()}


def _kernel() -> dict[str, Any]:
    return {
        "release": measured_machine().release,
        "version": measured_machine().kernel,
        "preemption": preemption_model(),
        "command_line": anonymous_command_line(read_text("/proc/cmdline") or ""),
        "config": kernel_config(),
        "sched_rt_runtime_us": read_text(_KERNEL / "sched_rt_runtime_us"),
        "sched_rt_period_us": read_text(_KERNEL / "sched_rt_period_us"),
        "timer_migration": read_text(_KERNEL / "timer_migration"),
        "virtualization": virtualization(),
    }


def _cpu() -> dict[str, Any]:
    mitigations = {
        Path(path).name: read_text(path)
        for path in measured_machine().matching(f"{_CPU}/vulnerabilities/*")
    }
    return {
        "model": cpu_field("model name"),
        "architecture": measured_machine().architecture,
        "microcode": cpu_field("microcode"),
        "online": read_text(_CPU / "online"),
        "isolated": read_text(_CPU / "isolated") or None,
        "isolation": {str(cpu): reason for cpu, reason in isolated_cpus().items()},
        "nohz_full": _cpu_list(_CPU / "nohz_full"),
        "smt": read_text(_CPU / "smt/control"),
        "topology": {name: _of_each_cpu(f"topology/{name}") for name in _TOPOLOGY},
        "governor": _of_each_cpu("cpufreq/scaling_governor"),
        "driver": read_text(_CPU / "cpu0/cpufreq/scaling_driver"),
        "idle_driver": read_text(_CPU / "cpuidle/current_driver"),
        "idle_states": [
            {
                "name": read_text(f"{state}/name"),
                "exit_latency_us": read_text(f"{state}/latency"),
                "disabled": read_text(f"{state}/disable"),
            }
            for state in measured_machine().matching(f"{_CPU}/cpu0/cpuidle/state*")
        ],
        "mitigations": {name: text for name, text in mitigations.items() if text != "Not affected"},
    }


_DESCRIBING = (
    *("/proc/cpuinfo", "/proc/cmdline", "/proc/meminfo", "/proc/config.gz", "/proc/timer_list"),
    *(f"{_KERNEL}/sched_rt_*", f"{_KERNEL}/timer_migration", "/proc/sys/vm/swappiness"),
    *("/sys/kernel/realtime", "/sys/kernel/debug/sched/preempt", "/sys/hypervisor/type"),
    *("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"),
    *(MOUNTS, "/sys/fs/cgroup/cpuset.cpus.isolated", "/sys/kernel/mm/ksm/run"),
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/clocksource/clocksource0/*",
    *(f"{_CPU}/{name}" for name in ("online", "isolated", "nohz_full", "smt/control")),
    *(f"{_CPU}/{name}" for name in ("vulnerabilities/*", "cpuidle/current_driver")),
    *(f"{_CPU}/cpu*/topology/{name}" for name in ("core_id", "physical_package_id")),
    f"{_CPU}/cpu*/topology/thread_siblings_list",
    *(f"{_CPU}/cpu*/cpufreq/{name}" for name in ("scaling_governor", "scaling_driver")),
    *(f"{_CPU}/cpu*/cpuidle/state*/{name}" for name in ("name", "latency", "disable")),
)
"""What `describe` reads, as patterns."""
_CHANGING = (
    *("/proc/meminfo", "/proc/loadavg", "/proc/stat", "/proc/interrupts", "/proc/softirqs"),
    f"{_CPU}/cpu*/cpufreq/scaling_cur_freq",
    f"{_CPU}/cpu*/thermal_throttle/core_throttle_count",
)
"""What `moment` reads."""


_TOPOLOGY = ("core_id", "physical_package_id", "thread_siblings_list")


def _cpu_list(path: Path) -> str | None:
    text = read_text(path)
    return None if text in (None, "", "(null)") else text


def _of_each_cpu(name: str) -> dict[str, str]:
    found = {cpu: read_text(_CPU / f"cpu{cpu}" / name) for cpu in sorted(enterable_cpus())}
    return {str(cpu): text for cpu, text in found.items() if text is not None}


def _clock() -> dict[str, Any]:
    source = Path("/sys/devices/system/clocksource/clocksource0")
    resolution = re.search(r"\.resolution:\s+(\d+) nsecs", read_text("/proc/timer_list") or "")
    return {
        "source": read_text(source / "current_clocksource"),
        "available": (read_text(source / "available_clocksource") or "").split(),
        "resolution_ns": int(resolution[1]) if resolution else None,
    }


def _memory() -> dict[str, Any]:
    text = read_text("/proc/meminfo") or ""
    total = re.search(r"MemTotal:\s+(\d+) kB", text)
    return {
        "total_bytes": int(total[1]) * 1024 if total else None,
        "transparent_hugepages": read_text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ksm": read_text("/sys/kernel/mm/ksm/run"),
        "swappiness": read_text("/proc/sys/vm/swappiness"),
    }


def _software() -> dict[str, Any]:
    return {
        "latenz": own_version(),
        "cyclictest": program_version("cyclictest", "--help"),
        "stress-ng": program_version("stress-ng", "--version"),
        "rtla": program_version("rtla", "--version"),
        **({"python": platform.python_version()} if measured_machine().is_here else {}),
    }


def own_version() -> dict[str, str | bool | None]:
    """Return the version, the git revision and whether the checkout differs from it."""
    from importlib.metadata import version

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(Path(__file__).parent), *arguments],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # Installed inside somebody's project, that project's revision is not ours.
    ours = git("ls-files", "--error-unmatch", Path(__file__).name) is not None
    changes = git("status", "--porcelain", "--untracked-files=no") if ours else None
    return {
        "version": version("latenz"),
        "revision": git("rev-parse", "HEAD") if ours else None,
        "modified": None if changes is None else bool(changes),
    }


def moment() -> dict[str, Any]:
    """Return what changes while a run lasts: load, memory, clock rates, interrupt counts."""
    with measured_machine().fetching(_CHANGING):
        return _this_moment()


def _this_moment() -> dict[str, Any]:
    memory = re.search(r"MemAvailable:\s+(\d+) kB", read_text("/proc/meminfo") or "")
    return {
        "load_average": read_text("/proc/loadavg"),
        "available_memory_bytes": int(memory[1]) * 1024 if memory else None,
        "frequency_khz": _of_each_cpu("cpufreq/scaling_cur_freq"),
        "throttled": _of_each_cpu("thermal_throttle/core_throttle_count"),
        "steal_ns": steal_ns(read_text("/proc/stat") or ""),
        "smi": {str(cpu): smi_count(cpu) for cpu in sorted(enterable_cpus())},
        "interrupts": interrupts(read_text("/proc/interrupts") or ""),
        "softirqs": _per_cpu_table(read_text("/proc/softirqs") or ""),
    }


def steal_ns(text: str) -> dict[str, int]:
    """Return how long the hypervisor has kept each CPU from running since boot: /proc/stat."""
    tick_ns = 1_000_000_000 // measured_machine().ticks_a_second
    rows = (line.split() for line in text.splitlines())
    return {
        row[0].removeprefix("cpu"): int(row[8]) * tick_ns
        for row in rows
        if re.fullmatch(r"cpu\d+", row[0]) and len(row) > 8
    }


def interrupts(text: str) -> dict[str, dict[str, int]]:
    """Return the interrupts of each CPU by source since boot, those never seen left out.

    Args:
        text: What /proc/interrupts says.
    """
    return _per_cpu_table(text)


def _per_cpu_table(text: str) -> dict[str, dict[str, int]]:
    header, *rows = text.splitlines() or [""]
    cpus = [name.removeprefix("CPU") for name in header.split()]
    table: dict[str, dict[str, int]] = {cpu: {} for cpu in cpus}
    for row in rows:
        key, _, rest = row.partition(":")
        words = rest.split()
        counts, label = words[: len(cpus)], " ".join(words[len(cpus) :])
        if len(counts) < len(cpus) or not all(count.isdecimal() for count in counts):
            continue
        for cpu, count in zip(cpus, counts, strict=True):
            if int(count):
                table[cpu][f"{key.strip()} {label}".strip()] = int(count)
    return table


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return how much each count of each CPU grew between two tables of `interrupts`."""
    return {
        cpu: {
            name: count - before.get(cpu, {}).get(name, 0)
            for name, count in counts.items()
            if count > before.get(cpu, {}).get(name, 0)
        }
        for cpu, counts in after.items()
    }
