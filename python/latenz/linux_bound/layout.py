"""What `latenz-kernel-recorder` must know of a kernel: places of functions, and of members."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from latenz.errors import BadInput
from latenz.linux_bound.btf import TypeInformation
from latenz.path.symbols import SymbolTable, embedded_symbols

Preemption = Literal["rt", "preempt", "lazy", "voluntary", "none"]
"""How a kernel preempts, as its configuration says."""
HIGHEST_PRIORITY = 99
_FUNCTIONS = {
    "vectors": "vectors",
    "schedule": "__schedule",
    "schedule_tail": "schedule_tail",
    "preempt_schedule_irq": "preempt_schedule_irq",
    "do_notify_resume": "do_notify_resume",
    "hrtimer_wakeup": "hrtimer_wakeup",
    "ktime_get": "ktime_get",
    "generic_handle_domain_irq": "generic_handle_domain_irq",
}
_WITH_ENDS = ("schedule", "schedule_tail", "ktime_get")
_LOOPS = (
    "schedule",
    "preempt_schedule",
    "preempt_schedule_notrace",
    "preempt_schedule_irq",
    "schedule_rtlock",
    "__cond_resched",
)
"""They call the scheduler again as long as the running thread's flags ask for it."""
_EFFECTIVE = ("__cond_resched",)
"""Of a kernel that does not preempt: the functions that call the scheduler if it is needed."""


@dataclass(frozen=True)
class Layout:
    """A kernel as the recorder takes it.

    Attributes:
        symbols: The kernel's functions.
        preemption: How it preempts.
        text: The file for the recorder, without the measured thread's priority.
    """

    symbols: SymbolTable
    preemption: Preemption
    text: str

    def write(self, path: Path, priority: int) -> None:
        """Write the recorder's file.

        Args:
            path: The file.
            priority: The measured thread's real-time priority, 1 to 99.
        """
        path.write_text(f"{self.text}priority={HIGHEST_PRIORITY - priority}\n")


def preemption_of(config: str) -> Preemption:
    """Return how a kernel preempts, from the file it was configured with."""
    settings = set(config.splitlines())
    modes: dict[str, Preemption] = {
        "CONFIG_PREEMPT_RT=y": "rt",
        "CONFIG_PREEMPT_LAZY=y": "lazy",
        "CONFIG_PREEMPT=y": "preempt",
        "CONFIG_PREEMPT_VOLUNTARY=y": "voluntary",
    }
    return next((mode for setting, mode in modes.items() if setting in settings), "none")


def layout_of(image: Path, preemption: Preemption) -> Layout:
    """Return what the recorder must know of a kernel for arm64.

    Args:
        image: The raw image.
        preemption: How it preempts.

    Raises:
        BadInput: The image does not say; or the kernel lacks a function that must be watched.
    """
    symbols = embedded_symbols(image)
    types = TypeInformation(image)
    wanted = {**_FUNCTIONS}
    numbers: dict[str, int] = {}
    for key, name in wanted.items():
        found = symbols.find(name)
        if found is None:
            raise BadInput(
                f"has no function {name}", str(image), "this kernel's windows cannot be recorded"
            )
        numbers[key] = found.address
        if key in _WITH_ENDS:
            numbers[f"{key}_end"] = found.end
    preemptible = preemption in ("rt", "preempt", "lazy")
    numbers |= {
        "preemptible": int(preemptible),
        "task_preempt_count": types.offset("task_struct", "thread_info", "preempt_count"),
        "task_priority": types.offset("task_struct", "prio"),
        "task_pid": types.offset("task_struct", "pid"),
        "task_name": types.offset("task_struct", "comm"),
        "timer_expires": types.offset("hrtimer", "node", "expires"),
        "timer_task": types.offset("hrtimer_sleeper", "task"),
    }
    lines = [f"{name}={number:#x}" for name, number in numbers.items()]
    lines += _ranges("loop", symbols, _LOOPS)
    if not preemptible:
        lines += _ranges("test", symbols, _EFFECTIVE)
    return Layout(symbols, preemption, "".join(f"{line}\n" for line in lines))


def _ranges(key: str, symbols: SymbolTable, names: Iterable[str]) -> list[str]:
    found = [symbols.find(name) for name in names]
    return [f"{key}={each.address:#x}-{each.end:#x}" for each in found if each is not None]
