"""What only a program or a device tells: asked on this machine, kept as text in snapshots.

Each text has a name, by which the catalogue's `text` probes ask for it. In a snapshot it stands in
/latenz/NAME, and there only the lines that probes look for: the rest is nobody's business.
"""

import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterable

from latenz.affinity import enterable_cpus
from latenz.machine import measured_machine
from latenz.tune.root import ABSENT, Root

FOLDER = "/latenz"
_LARGEST = 8 << 20


class NotTold(Exception):  # noqa: N818 - an answer, not a mistake in the program
    """Why there is no such text."""


def title(name: str) -> str:
    """Return what a text is, for people."""
    return _SOURCES[name][0]


def read(root: Root, name: str) -> str:
    """Return a text, of a snapshot's those lines that probes look for.

    Raises:
        NotTold: It cannot be had, with the reason.
    """
    if root.running:
        return _SOURCES[name][1]()
    path = f"{FOLDER}/{name}"
    text = root.read(path)
    if text is None:
        problem = root.problem(path)
        raise NotTold("is not in this tree" if problem in (ABSENT, None) else str(problem))
    return text


def matching_lines(text: str, regexes: Iterable[str]) -> str:
    """Return those lines of a text that match one of the expressions."""
    patterns = [re.compile(regex, re.MULTILINE) for regex in regexes]
    lines = [line for line in text.splitlines() if any(each.search(line) for each in patterns)]
    return "".join(f"{line}\n" for line in lines)


def _program(*arguments: str) -> Callable[[], str]:
    def run() -> str:
        if not measured_machine().is_here:
            printed = measured_machine().output_of(arguments, 60)
            if printed is None:
                raise NotTold(f"the target has no {arguments[0]}")
            return printed[-_LARGEST:]
        try:
            done = subprocess.run(
                arguments, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotTold(getattr(error, "strerror", None) or "does not answer") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise NotTold(said[-1][:200] if said else f"ended with {done.returncode}")
        return done.stdout[-_LARGEST:].decode("utf-8", "replace")

    return run


def _only_here() -> None:
    if not measured_machine().is_here:
        raise NotTold("a device of a target is not read")


def _enhanced_halt() -> str:
    """Return for each CPU whether C1E is on: bit 1 of MSR_POWER_CTL."""
    states = []
    for cpu in sorted(enterable_cpus()):
        enabled = _model_specific_register(cpu, 0x1FC) >> 1 & 1
        states.append(f"CPU {cpu}: C1E {'enabled' if enabled else 'disabled'}\n")
    return "".join(states)


def _model_specific_register(cpu: int, number: int) -> int:
    _only_here()
    try:
        descriptor = os.open(f"/dev/cpu/{cpu}/msr", os.O_RDONLY)
        try:
            (value,) = struct.unpack("<Q", os.pread(descriptor, 8, number))
        finally:
            os.close(descriptor)
    except (OSError, struct.error):
        raise NotTold(f"MSR {number:#x} cannot be read; as root: modprobe msr") from None
    return int(value)


def _management_interrupts() -> str:
    """Return how many System Management Interrupts each CPU had, and how many an hour that is."""
    from latenz.environment import cpu_field

    if cpu_field("vendor_id") != "GenuineIntel":
        raise NotTold("only Intel's processors count them")
    hours = time.clock_gettime(time.CLOCK_BOOTTIME) / 3600
    counts = {cpu: _model_specific_register(cpu, 0x34) for cpu in sorted(enterable_cpus())}
    return "".join(
        f"CPU {cpu}: {count} since boot, {int(count / max(hours, 1))} an hour\n"
        for cpu, count in counts.items()
    )


def _latency_request() -> str:
    """Return the shortest wake-up time that anybody asks for, in microseconds."""
    _only_here()
    try:
        descriptor = os.open("/dev/cpu_dma_latency", os.O_RDONLY)
        try:
            (latency_us,) = struct.unpack("=i", os.read(descriptor, 4))
        finally:
            os.close(descriptor)
    except (OSError, struct.error) as error:
        raise NotTold(getattr(error, "strerror", None) or "cannot be read") from None
    return f"{latency_us} us\n"


_SOURCES: dict[str, tuple[str, Callable[[], str]]] = {
    "dmesg": ("dmesg", _program("dmesg")),
    "c1e": ("MSR 0x1fc", _enhanced_halt),
    "smi": ("MSR 0x34", _management_interrupts),
    "cpu-dma-latency": ("/dev/cpu_dma_latency", _latency_request),
}
