"""Where latencies come from, in words: which file or run, by what, where and when measured.

What is not known is said to be unknown, never taken from another file of the same report.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from latenz.durations import format_duration
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.run import RunInfo

UNKNOWN = "not known"


@dataclass(frozen=True)
class Origin:
    """What is known of sample sets that were measured together; UNKNOWN where nothing is.

    Attributes:
        sets: Their names.
        source: The file that they were read from; `this run` if they were measured into it.
        tool: What measured, with its version.
        command: How it was called.
        machine: The processor or board.
        kernel: What ran on it.
        measured: When.
        imported: When the file was imported; empty if it was not.
        settings: Interval and priority, where known.
        clock: Which clock was read.
    """

    sets: tuple[str, ...]
    source: str
    tool: str
    command: str
    machine: str
    kernel: str
    measured: str
    imported: str
    settings: str
    clock: str

    def to_json(self) -> dict[str, object]:
        """Return what is known of the measurement as plain values, None for what is not.

        It is the same for a file and for the run that it was imported into.
        """
        plain = {key: None if value == UNKNOWN else value for key, value in asdict(self).items()}
        del plain["imported"]
        return {**plain, "sets": list(self.sets)}


def origins(sample_sets: Iterable[SampleSet], info: RunInfo | None = None) -> list[Origin]:
    """Return where sample sets come from: one for those of which the same is known.

    Args:
        sample_sets: Of one run or file. Published values are left out: their tables name them.
        info: The run's `run.json`, if it has one.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for each in sample_sets:
        if each.metadata.time_base is not TimeBase.PUBLISHED:
            found.setdefault(_told(each.metadata, info), []).append(each.metadata.name)
    return [Origin(tuple(names), *told) for told, names in found.items()]


def all_of(values: Sequence[str]) -> str:
    """Return different values as one text, and of how many origins nothing is known."""
    known = list(dict.fromkeys(value for value in values if value not in ("", UNKNOWN)))
    silent = values.count(UNKNOWN)
    if not known:
        return UNKNOWN if silent else ""
    missing = f"; {UNKNOWN} for {silent} of {len(values)} sources" if silent else ""
    return ", ".join(known) + missing


def moment(timestamp: str) -> str:
    """Return a time stamp as people read it; text that is none stays as it is."""
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        return timestamp
    if len(timestamp) <= len("2026-11-23"):
        return timestamp
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def in_words(origin: Origin) -> str:
    """Return an origin as one line of text."""
    parts = [
        origin.source,
        f"by {origin.tool}" + (f" ({origin.command})" if origin.command != UNKNOWN else ""),
        *(f"{what} {value}" for what, value in _labelled(origin)),
        origin.settings,
        f"imported {origin.imported}" if origin.imported else "",
        origin.clock,
    ]
    return "; ".join(part for part in parts if part)


def _labelled(origin: Origin) -> list[tuple[str, str]]:
    told = (("machine", origin.machine), ("kernel", origin.kernel), ("measured", origin.measured))
    known = [each for each in told if each[1] != UNKNOWN]
    silent = [what if what != "measured" else "when" for what, value in told if value == UNKNOWN]
    return [*known, *([(f"{UNKNOWN}:", ", ".join(silent))] if silent else [])]


def _told(metadata: Metadata, info: RunInfo | None) -> tuple[str, ...]:
    here = info is not None and metadata.source is None and not info.imported
    created = moment(info.created) if info else ""
    measured = moment(metadata.measured) if metadata.measured else created if here else UNKNOWN
    command = metadata.command or (" ".join(info.command) if here and info else "")
    tool = f"{metadata.tool} {metadata.tool_version or ''}".strip()
    return (
        metadata.source or ("this run" if here else UNKNOWN),
        UNKNOWN if tool == "unknown" else tool,
        command or UNKNOWN,
        metadata.machine or UNKNOWN,
        metadata.kernel or UNKNOWN,
        measured,
        created if info and not here else "",
        _settings(metadata),
        _clock(metadata, info),
    )


def _settings(metadata: Metadata) -> str:
    period = f"every {format_duration(metadata.period_ns)}" if metadata.period_ns else ""
    priority = f"priority {metadata.priority}" if metadata.priority is not None else ""
    return ", ".join(part for part in (period, priority) if part)


def _clock(metadata: Metadata, info: RunInfo | None) -> str:
    """Say what is known of the clock beyond the time base."""
    if metadata.time_base is not TimeBase.SILICON:
        return ""
    if metadata.time_base_assumed:
        return "time base taken as silicon: the file does not tell"
    host = info.environment.get(metadata.bench or "") if info else None
    kernel = host.get("kernel") if isinstance(host, dict) else None
    under = kernel.get("virtualization") if isinstance(kernel, dict) else None
    return f"clock of a virtual machine ({under})" if isinstance(under, str) and under else ""
