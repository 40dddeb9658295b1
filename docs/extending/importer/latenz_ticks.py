"""The format `ticks`: after a line `# ticks of 10 ns` one latency in ticks a line."""

import re

from latenz.importers.source import Source
from latenz.model import SampleSet

_FIRST = re.compile(rb"# ticks of (\d{1,9}) ns\n")


def matches(head: bytes) -> bool:
    """Return whether a file that begins like this is of the format."""
    return _FIRST.match(head) is not None


def read(source: Source) -> list[SampleSet]:
    """Read all latencies; a damaged line is told with its place."""
    tick_ns = int(_FIRST.match(source.head())[1])
    values = [
        source.whole(text, tick_ns, line, "a latency")
        for line, text in source.lines()
        if not text.startswith("#")
    ]
    known = source.metadata("ticks", resolution_ns=tick_ns)
    return [SampleSet.from_columns(known, latency_ns=values)]
