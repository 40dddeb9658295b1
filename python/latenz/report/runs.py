"""What a report is made from: run folders and files, opened and given names."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latenz import published
from latenz.files import file_in
from latenz.importers.opening import check_nothing_said, open_sample_sets
from latenz.linux_bound.evidence import observations_of
from latenz.linux_bound.picture import bound_picture
from latenz.linux_bound.windows import WINDOWS_FILE
from latenz.measuring.wakeup_account import ACCOUNT_FILE
from latenz.model import SampleSet
from latenz.path.model import FILE_NAME, PathFile
from latenz.provenance import Origin, origins
from latenz.report import words
from latenz.report.causes import causes_by_time
from latenz.report.collect import Source
from latenz.robot_account import Control, controls
from latenz.store.run import Run, RunInfo
from latenz.terminal import printable_line

_LARGEST_PICTURE = 4 << 20
_MOST_PICTURES = 40
_MOST_BOUNDS = 100


@dataclass(frozen=True)
class ReportedRun:
    """What a report is made from: a run folder, or one file without a run around it.

    Attributes:
        name: How to call it where several runs are reported together.
        sample_sets: Its sample sets.
        info: The content of its `run.json`, if it has one.
    """

    name: str
    sample_sets: Sequence[SampleSet]
    info: RunInfo | None = None
    schedules: Sequence[tuple[str, str | None, bytes]] = ()
    """Pictures of schedules (SVG), each with what it shows and its time base."""
    paths: Sequence[tuple[str, PathFile]] = ()
    """Recorded paths of interrupts, by condition."""
    controls: Sequence[tuple[str, Control]] = ()
    """How well robots were controlled, by condition."""
    wake_up_bounds: bytes | None = None
    """A picture (SVG) of the bounds of Linux' wake-up latency; None without windows."""

    @property
    def origins(self) -> list[Origin]:
        """Where its sample sets come from."""
        return origins(self.sample_sets, self.info)

    def __post_init__(self) -> None:
        """Make the name printable: a file may be called anything."""
        object.__setattr__(self, "name", printable_line(self.name))


def open_sides(a: Path, b: Path, **importing: Any) -> tuple[ReportedRun, ReportedRun]:
    """Open two runs that are compared, as "A" and "B", without published reference values.

    Raises:
        BadInput: A path cannot be read.
    """
    side_a = _open_run(a, "A", reference=False, **importing)
    return side_a, _open_run(b, "B", reference=False, **importing)


def open_runs(paths: Sequence[Path], **importing: Any) -> list[ReportedRun]:
    """Open what is to be reported; a run's published reference values come with it.

    Raises:
        BadInput: A path cannot be read, or a run names published values that do not exist.
    """
    counted = Counter(path.resolve().name for path in paths)
    return [
        _open_run(path, name if counted[name] == 1 else str(path), **importing)
        for path in paths
        for name in [path.resolve().name]
    ]


def _open_run(path: Path, name: str, *, reference: bool = True, **importing: Any) -> ReportedRun:
    if not path.is_dir() or (path / ACCOUNT_FILE).exists():
        return ReportedRun(name, open_sample_sets(path, **importing))
    check_nothing_said(path, importing)
    run = Run.open(path)
    tables = run.info.published if reference else []
    return ReportedRun(
        name,
        [*run.sample_sets, *(one for table in tables for one in published.load(table))],
        run.info,
        _schedules(path, run),
        _paths(path),
        controls(path, [each.metadata.name for each in run.sample_sets]),
        _wake_up_bounds(path),
    )


def _wake_up_bounds(folder: Path) -> bytes | None:
    """Return a picture of what the windows bound that boards left in a run."""
    found = [
        path
        for path in sorted(folder.glob(f"*/{WINDOWS_FILE}"))[:_MOST_BOUNDS]
        if _is_small(folder, path)
    ]
    return bound_picture(observations_of(found)).encode() if found else None


def _schedules(folder: Path, run: Run) -> list[tuple[str, str | None, bytes]]:
    """Return the pictures of schedules in a run, in the order of its sample sets' time bases."""
    bases = {
        each.metadata.name.partition("/")[0]: each.metadata.time_base.value
        for each in run.sample_sets
    }
    ranks = list(words.TIME_BASES)
    found = [
        (_scene(picture.relative_to(folder)), bases.get(picture.parent.name), picture)
        for picture in folder.rglob("schedule*.svg")
        if _is_small(folder, picture)
    ]
    found.sort(key=lambda each: (ranks.index(each[1]) if each[1] else -1, _by_number(each[0])))
    return [(scene, base, file.read_bytes()) for scene, base, file in found[:_MOST_PICTURES]]


def _scene(picture: Path) -> str:
    """Return what a picture is of: its condition, and its system if there are several."""
    system = picture.stem.removeprefix("schedule").removeprefix("-")
    return "/".join(each for each in (picture.parent.as_posix(), system) if each)


def _by_number(text: str) -> list[tuple[str, int]]:
    """Return a key that sorts load-5 before load-10."""
    parts = re.findall(r"([^0-9]*)([0-9]{0,9})", text)
    return [(word, int(number or 0)) for word, number in parts]


def _paths(folder: Path) -> list[tuple[str, PathFile]]:
    """Return the paths of interrupts that boards left in their run."""
    return [
        (found.parent.name, PathFile.load(found))
        for found in sorted(folder.glob(f"*/{FILE_NAME}"))
        if _is_small(folder, found)
    ][:_MOST_PICTURES]


def _is_small(folder: Path, found: Path) -> bool:
    path = file_in(folder, str(found.relative_to(folder)))
    return path is not None and path.stat().st_size <= _LARGEST_PICTURE


def sources_of(runs: Sequence[ReportedRun]) -> list[Source]:
    """Give every set a name that no other set of the report has."""
    taken: Counter[str] = Counter()
    sources = []
    for run in runs:
        of_run = f"{run.name}: " if len(runs) > 1 else ""
        for sample_set in run.sample_sets:
            metadata = sample_set.metadata
            label = of_run + metadata.name
            taken[label] += 1
            if taken[label] > 1:
                label = f"{label} ({taken[label]})"
            group = metadata.condition or metadata.name.rpartition("/")[0]
            known = causes_by_time(run.info.conditions, metadata.cpu) if run.info else {}
            named = of_run + group if group else run.name
            several = run.name if len(runs) > 1 else ""
            sources.append(Source(label, named, sample_set, known, several))
    return sources
