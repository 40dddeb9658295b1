"""The text summary of rteval: printed figures for the system and for each core.

Its median is not taken over: rteval computes it with odd and even counts the wrong way round, and
prints 0.0us for a set whose minimum is 2us.
"""

import re

from latenz.importers.sets import check_bounds
from latenz.importers.source import Source
from latenz.model import Reported, SampleSet

NAME = "rteval"
_US = 1000
_BLOCK = re.compile(r"\s*(?:(System):|CPU core +(\d+)\s+Priority: +(\d+))\s*")
_FIGURE = re.compile(
    r"\s*(Samples|Mean|Median|Mode|Range|Min|Max|Mean Absolute Dev|Std\.dev): +"
    r"(-?\d+(?:\.\d+)?)(us)?\s*"
)


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a summary of rteval."""
    return (
        re.search(rb"^[ \t]*Mean Absolute Dev:", head, re.MULTILINE) is not None
        and re.search(rb"^[ \t]*Statistics:", head, re.MULTILINE) is not None
    )


def read(source: Source) -> list[SampleSet]:
    """Read one set of figures for the system and for each core."""
    blocks: dict[str, dict[str, str]] = {}
    cpus: dict[str, int] = {}
    first_line: dict[str, int] = {}
    name = ""
    for line, content in source.lines():
        if match := _BLOCK.fullmatch(content):
            name = "system" if match[1] else f"cpu{source.count(match[2], line, 'the core')}"
            if name in blocks:
                raise source.bad(f"a second block for {name}", line, "import one at a time")
            blocks[name], first_line[name] = {}, line
            if match[2]:
                cpus[name] = int(match[2])
        elif name and (match := _FIGURE.fullmatch(content)):
            if match[1] in blocks[name]:
                raise source.bad(f"{match[1]} comes twice in {name}", line)
            blocks[name][match[1]] = match[2]
    return [
        _set(source, name, cpus.get(name), first_line[name], figures)
        for name, figures in blocks.items()
        if figures
    ]


def _set(
    source: Source, name: str, cpu: int | None, line: int, printed: dict[str, str]
) -> SampleSet:
    for wanted in ("Samples", "Mean", "Min", "Max"):
        if wanted not in printed:
            raise source.bad(f"{name}: {wanted} is missing", line, "the summary is cut")
    n = source.count(printed["Samples"], line, "Samples")
    low, high = (source.whole(printed[key], _US, line, key) for key in ("Min", "Max"))
    check_bounds(source, low, high, line, name)
    deviation = printed.get("Std.dev")
    reported = Reported(
        n=n,
        min_ns=low,
        max_ns=high,
        mean_ns=float(source.exact(printed["Mean"], _US, line, "Mean")),
        stdev_ns=float(source.exact(deviation, _US, line, "Std.dev")) if deviation else None,
    )
    notes = ["the median rteval prints is not taken over: its computation is wrong"]
    if name == "system":
        notes.append("all cores together: the cores' own sets hold the same samples")
    return SampleSet.from_columns(
        source.metadata(
            name,
            cpu=cpu,
            tool=NAME,
            from_event="timer expiry due",
            to_event="thread runs",
            resolution_ns=_US,
            reported=reported if n else Reported(n=0),
            notes=tuple(notes),
        )
    )
