"""Why the worst samples were late, as the conditions of traced runs tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from latenz.errors import BadInput
from latenz.traces.advice import meaning


class _Told(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Share(_Told):
    """What one cause contributed to a latency."""

    cause: str
    share_ns: int

    @property
    def meaning(self) -> str:
        """What the cause is, in a clause."""
        return meaning(self.cause)


class _Known(_Told):
    t_ns: int
    cpu: int
    cause: str
    confidence: str


class LateSample(_Told):
    """One of the worst samples with its causes, the largest first.

    Attributes:
        alternatives: What else it could be; nothing if it is certain, or was told before there
            were any.
        record: Events to record besides, which would decide it.
    """

    latency_ns: int
    what: str
    cause: str
    confidence: str
    evidence: str
    tunings: tuple[str, ...]
    advice: str
    shares: tuple[Share, ...]
    alternatives: tuple[str, ...] = ()
    record: tuple[str, ...] = ()


@dataclass(frozen=True)
class TracedCondition:
    """A condition that was traced while it was measured.

    Attributes:
        label: Its name, with the run's if there are several.
        samples: The worst ones that the trace has, the latest first.
        notes: What the trace does not cover, and why.
    """

    label: str
    samples: tuple[LateSample, ...]
    notes: tuple[str, ...]


def traced_conditions(prefix: str, conditions: Sequence[dict[str, Any]]) -> list[TracedCondition]:
    """Return the conditions of a run that were traced.

    Raises:
        BadInput: What stands there is no account of causes.
    """
    found = []
    for account in conditions:
        if "traces" not in account:
            continue
        label = prefix + str(account.get("condition"))
        repetition = account.get("repetition")
        try:
            samples = tuple(LateSample.model_validate(each) for each in account["causes"])
            notes = tuple(str(each) for each in account["trace_notes"])
        except (ValidationError, KeyError, TypeError):
            raise BadInput("tells causes that cannot be read", f"run.json: {label}") from None
        of_several = isinstance(repetition, int) and repetition > 1
        shown = f"{label}, repetition {repetition}" if of_several else label
        found.append(TracedCondition(shown, samples, notes))
    return found


def causes_by_time(conditions: Sequence[dict[str, Any]], cpu: int | None) -> dict[int, str]:
    """Return why samples of a CPU were late, by when they were due; doubtful causes left out.

    Raises:
        BadInput: What stands there is no account of causes.
    """
    try:
        known = [
            _Known.model_validate(each)
            for account in conditions
            for each in account.get("causes", ())
        ]
    except (ValidationError, TypeError):
        raise BadInput("tells causes that cannot be read", "run.json") from None
    return {
        each.t_ns: each.cause for each in known if each.cpu == cpu and each.confidence != "perhaps"
    }
