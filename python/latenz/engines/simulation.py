"""The engine `simulation`: no program, but the simulator of systems, on system files."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from latenz.errors import shown
from latenz.measuring.settings import ProbeSettings
from latenz.settings import Settings

if TYPE_CHECKING:
    pass

_MOST_IRQS = 10**12
_SYSTEM_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    ]
}
_SYSTEM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"


def _named(value: Any) -> Any:
    """Give a system file that stands alone a name."""
    if isinstance(value, dict) and value:
        return value
    if isinstance(value, str) and value:
        return {"system": value}
    raise ValueError(f'{shown(value)} names no system file; write for example "systems/mine.toml"')


class LearnSettings(Settings):
    """A learning phase as in the appendix of beckert2014: Algorithms 1 and 2."""

    fraction: float = Field(default=0.1, gt=0, lt=1)
    """Part of each source's interrupts that is learned from, the first ones."""
    length: int = Field(default=5, ge=1, le=64)
    """How many minimum distances to learn."""
    allow: float = Field(default=1, gt=0, le=1)
    """Share of the learned load that is allowed: distances are divided by it."""


class SimulationSettings(ProbeSettings):
    """What to simulate."""

    engine: Literal["simulation"]
    system: Annotated[
        dict[Annotated[str, Field(pattern=f"^{_SYSTEM_NAME}$")], str],
        BeforeValidator(_named),
        WithJsonSchema(_SYSTEM_SCHEMA),
    ]
    """A system file, relative to this file, or several of them with names of yours, which are
    simulated one after the other and also summed up together."""
    mode: Literal["plain", "paper", "carry"] | None = None
    """None: the system's own."""
    irqs: int | None = Field(default=None, ge=1, le=_MOST_IRQS)
    """How many interrupts to simulate of each system; None: all that its traces have."""
    seed: int = Field(default=0, ge=0, lt=2**62)
    """Of drawn arrivals; repetitions take this seed, the next one, and so on."""
    learn: LearnSettings | None = None
    """A learning phase before the monitored one; every arrival must come from a trace."""
