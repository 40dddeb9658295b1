"""The log lines of stress-ng's `cyclic` stressor: printed figures of each instance."""

import re
from typing import Any

from latenz.importers.sets import check_bounds
from latenz.importers.source import Source
from latenz.model import Reported, SampleSet

NAME = "stress-ng"
_LINE = re.compile(r"stress-ng: \S+: +\[(\d+)\] cyclic: +(.*)")
_SETUP = re.compile(r"sched (\S{1,30}): (\d+) ns delay, (\d+) samples\s*")
_MEAN = re.compile(r"mean: (\d+(?:\.\d+)?) ns, mode: (-?\d+) ns\s*")
_RANGE = re.compile(r"min: (-?\d+) ns, max: (-?\d+) ns, std\.dev\. (\d+(?:\.\d+)?)\s*")
_PERCENTILE = re.compile(r"(\d+\.\d+)%: +(-?\d+) ns\s*")
_FULL = re.compile(r"Note: --cyclic-samples needed to be (\d+) .*")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a log of stress-ng with `cyclic` lines."""
    return re.search(rb"^stress-ng: \S+: +\[\d+\] cyclic: ", head, re.MULTILINE) is not None


def read(source: Source) -> list[SampleSet]:
    """Read the figures of each instance."""
    instances: dict[str, dict[str, Any]] = {}
    for line, content in source.lines():
        if match := _LINE.fullmatch(content):
            known = instances.setdefault(match[1][:20], {"percentiles": []})
            _take_line(source, known, line, match[2])
    return [
        _set(source, number, instances[pid])
        for number, pid in enumerate(instances)
        if "max_ns" in instances[pid] and "mean_ns" in instances[pid]
    ]


def _take_line(source: Source, known: dict[str, Any], line: int, text: str) -> None:
    if match := _SETUP.fullmatch(text):
        known["scheduler"] = match[1]
        known["delay_ns"] = source.count(match[2], line, "the delay")
        known["kept"] = source.count(match[3], line, "the number of samples")
    elif match := _MEAN.fullmatch(text):
        known["mean_ns"] = float(source.exact(match[1], 1, line, "mean"))
        known["mode"] = source.integer(match[2], line, "mode")
    elif match := _RANGE.fullmatch(text):
        known["min_ns"] = source.integer(match[1], line, "min")
        known["max_ns"] = source.integer(match[2], line, "max")
        known["stdev_ns"] = float(source.exact(match[3], 1, line, "std.dev."))
        check_bounds(source, known["min_ns"], known["max_ns"], line, "the figures")
    elif match := _PERCENTILE.fullmatch(text):
        value = source.integer(match[2], line, "a percentile")
        known["percentiles"].append(f"{match[1][:20]} %: {value} ns")
        if match[1] == "50.00":
            known["median_ns"] = float(value)
    elif match := _FULL.fullmatch(text):
        known["needed"] = source.count(match[1], line, "the number of samples needed")
    elif re.match(r"mean:|min:", text):
        raise source.bad("the figures are damaged", line)


def _set(source: Source, number: int, known: dict[str, Any]) -> SampleSet:
    notes = [f"mode {known['mode']} ns", f"percentiles: {', '.join(known['percentiles'])[:500]}"]
    figures = {key: value for key, value in known.items() if key in Reported.model_fields}
    low, median, high = known["min_ns"], known.get("median_ns"), known["max_ns"]
    if median is not None and not float(low) <= median <= float(high):
        raise source.bad(
            f"cyclic{number}: the median {median:.0f} ns is not between the minimum {low} ns"
            f" and the maximum {high} ns"
        )
    if "needed" in known and "kept" in known:
        figures["n"] = known["kept"]
        notes.append(f"only the first {known['kept']} of {known['needed']} samples were kept")
    else:
        notes.append("stress-ng does not print how many samples it took")
    return SampleSet.from_columns(
        source.metadata(
            f"cyclic{number}",
            tool="stress-ng cyclic",
            from_event="timer expiry due",
            to_event="thread runs",
            reported=Reported(**figures),
            notes=tuple(notes),
        )
    )
