"""Output of jitterdebugger: results in JSON, the file of every sample (`-s`), verbose text.

Its histogram drops what lies beyond it; `count` keeps it, so the difference is `beyond_range`.
A file of samples holds records of 28 bytes, little endian: u32 CPU, i64 seconds, i64 nanoseconds
of CLOCK_MONOTONIC, u64 latency; their unit stands only in the JSON file of the same run, so
microseconds are taken (as without `-N`) unless the user states it.
"""

import re
import struct

from latenz.importers.sets import Spool, beyond_from, cells_set, check_bounds, json_cells
from latenz.importers.source import INT64_MAX, Source, is_json
from latenz.model import Metadata, Reported, SampleSet

NAME = "jitterdebugger"
_RECORD = struct.Struct("<IqqQ")
_SECOND = 1_000_000_000
_MOST_CPUS = 1 << 16
_MOST_SECONDS = 1 << 32
_STATUS = re.compile(
    r"T: *(\d+) \( *(\d+)\) A: *(\d+) C: *(\d+) Min: *(\d+) Avg: *(\d+(?:\.\d+)?) Max: *(\d+)\s*"
)
_UNIT_TAKEN = "the file does not print its unit; microseconds taken, as without -N"


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of jitterdebugger."""
    if is_json(head):
        return re.search(rb'"cpu"\s*:\s*\{', head) is not None and b'"version"' in head
    if re.search(rb"^T: *\d+ \( *\d+\) A: *\d+ C:", head, re.MULTILINE):
        return True
    return _are_records(head)


def _are_records(head: bytes) -> bool:
    records = list(_RECORD.iter_unpack(head[: len(head) // 28 * 28][: 28 * 64]))
    return any(s for _, s, _, _ in records) and all(
        cpu < _MOST_CPUS and 0 <= s < _MOST_SECONDS and 0 <= ns < _SECOND and value < 1 << 40
        for cpu, s, ns, value in records
    )


def read(source: Source) -> list[SampleSet]:
    """Read one set for each CPU."""
    head = source.head()
    if is_json(head):
        return _read_json(source)
    if b"\0" in head[:28]:
        return _read_records(source)
    return _read_status(source)


def _described(source: Source, cpu: int, unit_ns: int, *notes: str) -> Metadata:
    return source.metadata(
        f"cpu{cpu}",
        cpu=cpu,
        tool=NAME,
        from_event="timer expiry due",
        to_event="thread runs",
        resolution_ns=unit_ns,
        notes=notes,
    )


def _read_json(source: Source) -> list[SampleSet]:
    document = source.document()
    if (version := document.integer("version")) not in (2, 3):
        raise document.bad("version", f"is {version}; known are 2 and 3")
    system = document.inner("sysinfo") if "sysinfo" in document.values else None
    unit_ns = 1000
    if system and "resolution_in_ns" in system.values:
        unit_ns = system.integer("resolution_in_ns")
        if unit_ns not in (1, 1000):
            raise system.bad("resolution_in_ns", f"is {unit_ns}; known are 1 and 1000")
    kernel = None
    if system:
        words = [word for key in ("release", "version") if (word := system.text(key))]
        kernel = " ".join(words) or None
    sets = []
    for cpu, fields in document.inner("cpu").inners():
        n = fields.count("count")
        known = _described(source, source.count(cpu, None, fields.place), unit_ns)
        known = known.model_copy(
            update={"kernel": kernel, "machine": system.text("machine") if system else None}
        )
        if n == 0:
            known = known.model_copy(update={"reported": Reported(n=0)})
            sets.append(SampleSet.from_columns(known))
            continue
        cells = json_cells(fields.inner("histogram"), unit_ns)
        beyond = n - sum(cells.values())
        if beyond < 0:
            raise fields.bad("count", f"is {n}, but the histogram holds {n - beyond} samples")
        low, high = fields.ns("min", unit_ns), fields.ns("max", unit_ns)
        check_bounds(source, low, high, None, fields.place)
        changes = {
            "beyond_range": beyond,
            "beyond_range_from_ns": beyond_from(cells, max(cells, default=0) + unit_ns, low)
            if beyond
            else None,
            "reported": Reported(
                n=n, min_ns=low, max_ns=high, mean_ns=fields.mean_ns("avg", unit_ns)
            ),
        }
        sets.append(cells_set(known.model_copy(update=changes), cells, unit_ns))
    return sets


def _read_records(source: Source) -> list[SampleSet]:
    unit_ns = source.options.unit_ns or 1000
    spools: dict[int, Spool] = {}
    number = 0
    with source.path.open("rb") as file:
        while chunk := file.read(_RECORD.size << 12):
            cut = len(chunk) % _RECORD.size
            for cpu, second, nanosecond, value in _RECORD.iter_unpack(chunk[: len(chunk) - cut]):
                number += 1
                if (
                    cpu >= _MOST_CPUS
                    or not 0 <= second < _MOST_SECONDS
                    or not 0 <= nanosecond < _SECOND
                    or value * unit_ns > INT64_MAX
                ):
                    raise source.bad(f"record {number} is damaged")
                spool = spools.setdefault(cpu, Spool("t_ns", "latency_ns"))
                spool.append(second * _SECOND + nanosecond, value * unit_ns)
    notes = [] if source.options.unit_ns else [_UNIT_TAKEN]
    if source.path.stat().st_size % _RECORD.size:
        notes.append("the last record is cut and was left out")
    return [
        spool.sample_set(_described(source, cpu, unit_ns, *notes))
        for cpu, spool in sorted(spools.items())
    ]


def _read_status(source: Source) -> list[SampleSet]:
    unit_ns = source.options.unit_ns or 1000
    notes = () if source.options.unit_ns else (_UNIT_TAKEN,)
    sets: dict[int, SampleSet] = {}
    for line, content in source.lines():
        match = _STATUS.fullmatch(content)
        if match is None:
            if content.startswith("T:"):
                raise source.bad("the status line is damaged", line)
            continue
        n, cpu = source.count(match[4], line, "C"), source.count(match[3], line, "A")
        low, high = (source.whole(match[g], unit_ns, line, "a latency") for g in (5, 7))
        if n:
            check_bounds(source, low, high, line, "the status line")
        mean = float(source.exact(match[6], unit_ns, line, "Avg"))
        figures = Reported(n=n, mean_ns=mean, min_ns=low, max_ns=high) if n else Reported(n=0)
        known = _described(source, cpu, unit_ns, *notes)
        changes = {"reported": figures}
        sets[cpu] = SampleSet.from_columns(known.model_copy(update=changes))
    return [sets[cpu] for cpu in sorted(sets)]
