"""Measurement data files of the ASAM (MDF 3 and 4), read by asammdf, an optional extra.

With `--start` and `--end` latencies run from an edge of one channel to an edge of another, each
with the times of its own group; a level is 0 or anything else, before conversion. Without them
each channel in a unit of time is a sample set. Times are floating-point seconds in such files
and are rounded to whole nanoseconds.
"""

import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latenz.importers.pairing import Pairing
from latenz.importers.sets import Spool
from latenz.importers.signals import chosen
from latenz.importers.source import INT64_MAX, Source
from latenz.installation import add_python
from latenz.model import SampleSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

NAME = "mdf"
_SECOND_NS = 10**9
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _SECOND_NS}
_NOTE = "times are floating-point seconds in the file, rounded to whole nanoseconds"
_LONGEST_ANSWER = 1 << 28


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a measurement data file."""
    return head.startswith((b"MDF     ", b"UnFinMF "))


def read(source: Source) -> list[SampleSet]:
    """Read latencies from edge to edge, or every channel in a unit of time."""
    with _File(source) as file:
        if source.options.start or source.options.end:
            return [_between_edges(file)]
        found = [each for name in file.channels if (each := _latencies(file, name)) is not None]
        if not found:
            names = ", ".join([*file.channels][:10])[:300]
            raise source.bad(
                "no channel is in a unit of time", remedy=f"name two by --start and --end: {names}"
            )
        return found


class _File:
    """A file, read by a process of its own, which a damaged one can end.

    Attributes:
        channels: Group, index and unit by name; where several have one name, with their group.
        known: What the file tells of itself.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._process = subprocess.Popen(
            [sys.executable, "-I", Path(__file__).with_name("mdf_reader.py"), source.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "_File":
        try:
            about = self._answer()
        except BaseException:
            self.__exit__()
            raise
        named = [(name, (group, index, unit)) for name, group, index, unit in about["channels"]]
        count = Counter(name for name, _ in named)
        self.channels = {
            name if count[name] == 1 else f"{place[0]}/{name}": place for name, place in named
        }
        self.known = {"tool": f"MDF {about['version']}"[:80], "measured": about["measured"]}
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline(_LONGEST_ANSWER)  # type: ignore[union-attr]
        answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        if answer.get("missing"):
            raise self.source.bad(
                "reading it needs asammdf, which is not installed",
                remedy=f"run {add_python('mdf')}",
            )
        if not answer or "trouble" in answer:
            reason = answer.get("trouble", "asammdf cannot read it")
            raise self.source.bad(f"is damaged ({reason})", remedy="record or export it anew")
        return answer

    def channel(self, name: str, raw: bool) -> "tuple[Times, NDArray[Any]] | None":
        """Return times in nanoseconds and samples of a channel; None if it holds no numbers."""
        group, index, _ = self.channels[name]
        pipe = self._process
        try:
            pipe.stdin.write(json.dumps([group, index, raw]).encode() + b"\n")  # type: ignore[union-attr]
            pipe.stdin.flush()  # type: ignore[union-attr]
        except BrokenPipeError:
            pass  # _answer tells
        sizes = self._answer()["bytes"]
        packed = [pipe.stdout.read(size) for size in sizes]  # type: ignore[union-attr]
        if [len(each) for each in packed] != sizes:
            raise self.source.bad("is damaged (asammdf cannot read it)")
        if not packed:
            return None
        seconds, samples = (np.load(io.BytesIO(each), allow_pickle=False) for each in packed)
        if len(seconds) != len(samples):
            raise self.source.bad(f"{name} has {len(seconds)} times for {len(samples)} samples")
        return self._times(name, seconds), samples

    def _times(self, name: str, seconds: "NDArray[np.float64]") -> "Times":
        ns = np.rint(seconds * _SECOND_NS)
        if not (np.abs(ns) < INT64_MAX).all():
            raise self.source.bad(f"a time of {name} does not fit in 64 bits of nanoseconds")
        whole: Times = ns.astype(np.int64)
        if (np.diff(whole) < 0).any():
            raise self.source.bad(f"the times of {name} go back", remedy="the file is damaged")
        return whole


def _latencies(file: _File, name: str) -> SampleSet | None:
    """Return the samples of a channel in a unit of time; None if it is none."""
    source, unit_ns = file.source, _UNITS.get(file.channels[name][2].strip())
    if unit_ns is None or (found := file.channel(name, raw=False)) is None:
        return None
    times, samples = found
    if samples.dtype.kind == "f":
        values = list(np.rint(samples.astype(np.float64) * unit_ns))
    else:
        values = [int(each) * unit_ns for each in samples]
    if not all(abs(each) < INT64_MAX for each in values):  # nor is what is not a number
        raise source.bad(f"a value of {name} does not fit in 64 bits of nanoseconds")
    spool = Spool("t_ns", "latency_ns")
    for at, value in zip(times, values, strict=True):
        spool.append(int(at), int(value))
    known = source.metadata(name.replace("/", "."), notes=(_NOTE,), **file.known)
    return spool.sample_set(known)


def _between_edges(file: _File) -> SampleSet:
    source, names = file.source, list(file.channels)
    ends = chosen(source.options, names, names, str(source.path))
    edges = [_edges(file, names[index], falling) for index, falling in ends]
    pairing = Pairing(source.options.overlap)
    spool = Spool("t_ns", "latency_ns")
    starts, stops = (dict(zip(*np.unique(each, return_counts=True), strict=True)) for each in edges)
    for at in np.union1d(*edges):
        for begin, end in pairing.edges(int(at), int(starts.get(at, 0)), int(stops.get(at, 0))):
            spool.append(begin, end - begin)
    first, second = (names[index] for index, _ in ends)
    if not spool.rows:
        raise source.bad(f"holds no latency from {first} to {second}")
    metadata = source.metadata(
        f"{first} to {second}".replace("/", "."),
        from_event=source.options.start,
        to_event=source.options.end,
        overlaps=pairing.overlaps,
        orphan_ends=pairing.orphan_ends,
        open_at_end=pairing.open_at_end,
        notes=(_NOTE,),
        **file.known,
    )
    return spool.sample_set(metadata)


def _edges(file: _File, name: str, falling: bool) -> "Times":
    """Return when a channel's level changes in the wanted direction."""
    found = file.channel(name, raw=True)
    if found is None:
        raise file.source.bad(f"{name} holds no levels", remedy="name a channel of numbers")
    times, samples = found
    high = (samples != 0) != falling
    edges: Times = times[1:][high[1:] & ~high[:-1]]
    return edges
