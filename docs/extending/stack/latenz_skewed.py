"""The stack `linux-rt-skewed`: Debian's PREEMPT_RT kernel whose cores' ticks are apart."""

from typing import Literal

from latenz.measuring.settings import StackSettings
from latenz.stacks.linux import LinuxRt, LinuxRtSettings


class SkewedSettings(LinuxRtSettings):
    """What a `[stack.NAME]` table may hold: as that of `linux-rt`."""

    kind: Literal["linux-rt-skewed"]  # type: ignore[assignment] # another kind of the same


class Skewed(LinuxRt):
    """Starts Debian's kernel with one more parameter."""

    name = "linux-rt-skewed"
    settings_type: type[StackSettings] = SkewedSettings

    def parameters(self) -> list[str]:
        """Return parameters of the kernel besides those that all need."""
        return [*super().parameters(), "skew_tick=1"]
