"""Experiment and system files, and recorded activations."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from latenz.analysis.activations import FORMATS, read_activations
from latenz.analysis.learn import learn
from latenz.experiment.schema import Experiment
from latenz.path.calibration import calibration
from latenz.system import Monitor, Periodic, Platform, Slot, Source, System, read_system
from latenz.system.trace import read_arrivals
from outcomes import require

NAMES = ("a", "b", "long name")
_SYSTEM = System(
    Platform(),
    (Slot("P", 1000),),
    tuple(Source(name, "P", 0, 1, Periodic(5), Monitor((5,))) for name in NAMES),
)
_LENGTH = 3


def experiment(path: Path) -> None:
    """Read an experiment file."""
    Experiment.read(path)


def core_calibration(path: Path) -> None:
    """Read a calibration of a processor."""
    calibration(path)


def system(path: Path) -> None:
    """Read a system file; what is read must pass all checks once more."""
    (path.parent / "trace.csv").write_text("source,time_ns\ns,1\nother,1\ns,5\ncan-engine,9\n")
    read = read_system(path)
    again = replace(
        read,
        platform=replace(read.platform),
        slots=tuple(map(replace, read.slots)),
        sources=tuple(replace(each, arrival=replace(each.arrival)) for each in read.sources),
    )
    require(again == read, "a system that was read is a system")


def arrivals(path: Path) -> None:
    """Read listed arrivals; they must be what Python's own reader of CSV finds."""
    found = read_arrivals(path, _SYSTEM)
    if path.read_bytes().startswith(b"PAR1"):
        return
    text = path.read_bytes().decode("utf-8-sig")
    rows = [row for row in csv.reader(re.split(r"[\r\n]+", text)) if row]
    require(rows[0] == ["source", "time_ns"], "there is a header")
    for name, times in zip(NAMES, found, strict=True):
        listed = [_integer(row[1]) for row in rows[1:] if row[0] == name]
        require(times.dtype == np.int64 and times.tolist() == listed, "all times are read")
        require(bool(np.all(np.diff(times) >= 0)), "times ascend")
    require(sum(map(len, found)) == len(rows) - 1, "all rows are read")


def _integer(text: str) -> int:
    if "x" in text.lower():
        return int(text, 16)
    return int(re.sub(r"(?<!\d)0+(?=\d)", "", text))  # Python refuses thousands of zeros


def activations(path: Path) -> None:
    """Read recorded activations, and learn from them; least spans must be those of all windows."""
    recorded = read_activations(path)
    require(recorded.format in FORMATS, "the format is known")
    times_by_source = recorded.times_by_source
    for name, times in times_by_source.items():
        require(times.dtype == np.int64 and times.size > 0 and times[0] >= 0, "times")
        require(bool(np.all(np.diff(times) >= 0)), "times ascend")
        require(name.isprintable(), "names are printable")
    require(all("\n" not in each for each in recorded.warnings), "warnings are lines")
    learned = learn(times_by_source, _LENGTH, 1, allow="0.5")
    for source in learned.sources:
        times = times_by_source[source.name]
        spans = range(1, min(_LENGTH, len(times) - 1) + 1)
        least = tuple(int((times[back:] - times[:-back]).min()) for back in spans)
        require(source.observed_ns == least, "least spans are those of all windows")
