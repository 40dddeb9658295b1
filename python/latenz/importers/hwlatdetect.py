"""Output of hwlatdetect: gaps found while a kernel thread did nothing but read the clock.

`inner` is the gap between its two time stamps, `outer` the one between two rounds.
"""

import re
from dataclasses import dataclass, field

from latenz.importers.sets import Spool
from latenz.importers.source import Source
from latenz.model import Metadata, Reported, SampleSet

NAME = "hwlatdetect"
_US = 1000
_SAMPLE = re.compile(
    r"ts: *(\d+\.\d{1,9}), *inner: *(\d+), *outer: *(\d+)(?:, *cpu: *(\d+))?(?:, *\w+: *\d+)*\s*"
)
_RECORDED = re.compile(r"Samples recorded: *(\d+)\s*")
_MAXIMUM = re.compile(r"Max Latency: *(?:(\d+)us|Below threshold)\s*")
_THRESHOLD = re.compile(r"\s*Latency threshold: *(\S{1,30})\s*")
_EVENTS = {
    "inner": ("first time stamp", "second time stamp"),
    "outer": ("second time stamp", "next first time stamp"),
}


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of hwlatdetect."""
    return re.search(rb"^hwlatdetect:|^ts: *\d+\.\d+, *inner: *\d+", head, re.MULTILINE) is not None


@dataclass
class _Result:
    spools: dict[tuple[str, int | None], Spool] = field(default_factory=dict)
    listed: int = 0
    recorded: int | None = None
    maximum: int | None = None
    threshold: str = "the threshold"


def read(source: Source) -> list[SampleSet]:
    """Read the gaps, one set for each kind and CPU."""
    result = _Result()
    for line, content in source.lines():
        _take_line(source, result, line, content)
    if not result.listed and not result.recorded:
        raise source.bad(f"holds no sample: nothing exceeded {result.threshold}")
    if not result.listed:
        return [_summary(source, result)]
    notes: tuple[str, ...] = ()
    if result.recorded not in (None, result.listed):
        counts = f"{result.listed} of {result.recorded} samples"
        notes = (f"lists {counts}, the largest of which is {result.maximum} ns",)
    return [
        spool.sample_set(_described(source, kind, cpu, notes))
        for (kind, cpu), spool in result.spools.items()
    ]


def _take_line(source: Source, result: _Result, line: int, content: str) -> None:
    if match := _SAMPLE.fullmatch(content):
        result.listed += 1
        cpu = source.count(match[4], line, "the CPU") if match[4] else None
        t_ns = source.whole(match[1], 1_000_000_000, line, "ts")
        for kind, group in (("inner", 2), ("outer", 3)):
            spool = result.spools.setdefault((kind, cpu), Spool("t_ns", "latency_ns"))
            spool.append(t_ns, source.whole(match[group], _US, line, kind))
    elif match := _RECORDED.fullmatch(content):
        result.recorded = source.count(match[1], line, "the number of samples")
    elif match := _MAXIMUM.fullmatch(content):
        result.maximum = source.whole(match[1], _US, line, "the maximum") if match[1] else None
    elif match := _THRESHOLD.fullmatch(content):
        result.threshold = f"the threshold of {match[1]}"
    elif content.startswith("ts:"):
        raise source.bad("the sample is damaged", line)


def _described(source: Source, kind: str, cpu: int | None, notes: tuple[str, ...]) -> Metadata:
    return source.metadata(
        kind if cpu is None else f"cpu{cpu}/{kind}",
        cpu=cpu,
        tool=NAME,
        from_event=_EVENTS[kind][0],
        to_event=_EVENTS[kind][1],
        resolution_ns=_US,
        notes=notes,
    )


def _summary(source: Source, result: _Result) -> SampleSet:
    return SampleSet.from_columns(
        source.metadata(
            "gaps",
            tool=NAME,
            from_event="time stamp",
            to_event="next time stamp",
            resolution_ns=_US,
            reported=Reported(n=result.recorded, max_ns=result.maximum),
            notes=("the samples themselves are not in the file",),
        )
    )
