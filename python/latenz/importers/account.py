"""What the JSON of rt-tests tells of a measurement: by which command, when, on which machine.

All programs of rt-tests write the same fields around their figures (`rt_init` and
`rt_write_json` of their `rt-utils.c`).
"""

from datetime import UTC
from email.utils import parsedate_to_datetime

from latenz.importers.source import Fields
from latenz.model import MOST_OF_LINE


def account(document: Fields) -> dict[str, str | None]:
    """Return what the document says of its measurement, as metadata: None where it is silent."""
    return {
        "tool_version": document.text("rt_test_version:") or document.text("rt_test_version"),
        "command": command_line(document)[:MOST_OF_LINE] or None,
        "measured": _moment(document.text("start_time")),
        **_system(document),
    }


def command_line(document: Fields) -> str:
    """Return the command line, empty where it is not told."""
    return document.text("cmdline:") or document.text("cmdline") or ""


def _system(document: Fields) -> dict[str, str | None]:
    if "sysinfo" not in document.values:
        return {}
    system = document.inner("sysinfo")
    kernel = " ".join(part for key in ("release", "version") if (part := system.text(key)))
    real_time = "realtime" in system.values and system.integer("realtime") == 1
    if real_time and "PREEMPT_RT" not in kernel:
        kernel = f"{kernel} PREEMPT_RT".strip()
    return {"machine": system.text("machine"), "kernel": kernel or None}


def _moment(told: str | None) -> str | None:
    """Return a time as rt-tests print it (RFC 2822) in ISO 8601; other text as it is."""
    if not told:
        return None
    try:
        moment = parsedate_to_datetime(told)
    except (ValueError, TypeError, IndexError, OverflowError):
        return told[:MOST_OF_LINE]
    try:
        return moment.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return told[:MOST_OF_LINE]
