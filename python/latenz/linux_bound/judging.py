"""What response times say of deadlines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from latenz.durations import format_duration
from latenz.errors import BadInput, closest, shown
from latenz.linux_bound.threads import Response
from latenz.model import Deadline


@dataclass(frozen=True, slots=True)
class ThreadVerdict:
    """What the end of a thread, from where its chain begins, says of a deadline."""

    thread: str
    deadline: Deadline
    verdict: Literal["meets", "not shown"]
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "thread": self.thread,
            "name": self.deadline.name,
            "limit_ns": self.deadline.limit_ns,
            "verdict": self.verdict,
            "sentence": self.sentence,
        }


def judged(
    found: Sequence[Response], deadlines: Sequence[tuple[str, Deadline]], is_open: bool
) -> tuple[ThreadVerdict, ...]:
    """Hold response times against limits.

    Args:
        found: Of all threads.
        deadlines: Each with the thread it is of; empty: of every thread.
        is_open: Whether a condition of the wake-up bound is open: then nothing is shown.

    Raises:
        BadInput: There is no such thread.
    """
    names = [each.thread.name for each in found]
    verdicts = []
    for name, deadline in deadlines:
        if name and name not in names:
            what = f"there is no thread {shown(name)}"
            raise BadInput(what, "--deadline", closest(name, names))
        for each in found:
            if name in ("", each.thread.name):
                verdicts.append(_judged(each, deadline, is_open))
    return tuple(verdicts)


def _judged(found: Response, deadline: Deadline, is_open: bool) -> ThreadVerdict:
    limit, end = format_duration(deadline.limit_ns), found.end_to_end
    if end is None:
        sentence = "no bound was found"
    elif end > deadline.limit_ns:
        sentence = (
            f"{format_duration(end)} is more than {limit}, which does not show that {limit} can be"
            " exceeded"
        )
    elif is_open:
        sentence = f"within {limit} only if the wake-up bound's open conditions can be settled"
    else:
        sentence = f"{format_duration(end)} is within {limit}"
        return ThreadVerdict(found.thread.name, deadline, "meets", sentence)
    return ThreadVerdict(found.thread.name, deadline, "not shown", sentence)
