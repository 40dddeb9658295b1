"""What is known of exits and other causes, and which tunings remove or shorten them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

_FILE = Path(__file__).parent / "reasons.toml"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reason(_Record):
    """Why a virtual machine leaves its guest.

    Attributes:
        names: As the kernel prints it: on Intel, where there, then on AMD.
        vmx: Number of the basic exit reason on Intel; None if it has none.
        what: What it is.
        usual: What usually brings it about in a real-time guest.
        tunings: Ids of the tuning catalogue that remove or shorten it, the best first.
        advice: What helps besides.
    """

    names: tuple[str, ...] = Field(min_length=1)
    vmx: int | None = None
    what: str
    usual: str
    tunings: tuple[str, ...]
    advice: str = ""


class Explanation(_Record):
    """A cause beside exits: what it is, and what removes or shortens it."""

    id: str
    what: str
    tunings: tuple[str, ...]
    advice: str = ""


class _File(_Record):
    reason: tuple[Reason, ...]
    cause: tuple[Explanation, ...]


@dataclass(frozen=True)
class Remedy:
    """What to do about a cause: ids of the tuning catalogue, and what helps besides."""

    tunings: tuple[str, ...]
    advice: str


@cache
def _file() -> _File:
    import tomllib

    return _File.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def reasons() -> tuple[Reason, ...]:
    """Return all reasons that are known."""
    return _file().reason


def explanations() -> tuple[Explanation, ...]:
    """Return all causes beside exits."""
    return _file().cause


def reason_named(name: str) -> Reason | None:
    """Return what is known of an exit reason by either vendor's name, whatever its case."""
    return next(
        (each for each in reasons() for known in each.names if known.lower() == name.lower()), None
    )


def remedy(cause: str) -> Remedy:
    """Return what to do about a cause, by its id (`throttled`, `exit:HLT`, ...)."""
    kind, _, name = cause.partition(":")
    if kind == "exit":
        reason = reason_named(name)
        return Remedy(reason.tunings, reason.advice) if reason else Remedy((), "")
    found = next((each for each in explanations() if each.id == kind), None)
    return Remedy(found.tunings, found.advice) if found else Remedy((), "")


def meaning(cause: str) -> str:
    """Return what a cause is, in a clause; of an exit, what it is and what usually brings it."""
    kind, _, name = cause.partition(":")
    if kind == "exit":
        reason = reason_named(name)
        return f"{reason.what} {reason.usual}" if reason else ""
    return next((each.what for each in explanations() if each.id == kind), "")
