"""Run folders: `run.json`, and a folder with `samples.parquet` for each sample set.

A run is readable at any moment of its recording and after any kill: `run.json` names every
sample set before its recording starts, and what was recorded so far lies in a journal (or in a
histogram that is replaced as a whole) until it is turned into Parquet.
"""

import json
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from latenz.errors import BadInput, as_called, first_mistake
from latenz.files import OwnFolder, file_in, replacing
from latenz.model import Count, Form, Line, Metadata, Nanoseconds, Reported, SampleSet
from latenz.store.journal import Journal, journal_sample_set
from latenz.store.parquet import open_parquet, write_parquet

Status = Literal["running", "complete", "interrupted", "failed"]
State = Literal["recording", "complete", "empty"]
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=@-]+")


class SetEntry(BaseModel):
    """One sample set as `run.json` lists it; `folder` is relative to the run folder."""

    model_config = ConfigDict(extra="forbid")
    folder: str
    form: Form = "samples"
    state: State
    metadata: Metadata

    @field_validator("metadata")
    @classmethod
    def _fits_together(cls, metadata: Metadata) -> Metadata:
        told = metadata.reported
        extremes = (told.min_ns, told.max_ns) if told else ()
        known = [each for each in extremes if each is not None]
        if known != sorted(known):
            raise ValueError("the minimum is above the maximum")
        return metadata


class RunInfo(BaseModel):
    """The content of `run.json`."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[1] = 1
    created: str
    status: Status = "running"
    command: list[Line] = Field(default_factory=list)
    title: Line | None = None
    """How reports call the run; None: by its experiment or its folder."""
    experiment: dict[str, Any] | None = None
    seed: int | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
    conditions: list[dict[str, Any]] = Field(default_factory=list)
    """What happened in each condition: times, engine and stressor accounts, why not measured."""
    condition_order: list[Line] = Field(default_factory=list)
    """Conditions as the experiment lists them; they are measured in random order."""
    published: list[str] = Field(default_factory=list)
    notes: list[Line] = Field(default_factory=list)
    sample_sets: list[SetEntry] = Field(default_factory=list)

    @property
    def imported(self) -> bool:
        """Nothing was measured into this run: `latenz import` wrote it."""
        return self.command[1:2] == ["import"]


class RunWriter:
    """Writes a run folder; `run.json` is replaced as a whole at every change.

    Args:
        folder: Where to write; made if absent.
        info: What is known at the start, the defaults of `RunInfo` otherwise.

    Attributes:
        folder: Where to write what belongs to the run: `folder` as given, or what holds it where
            another user could exchange that (`OwnFolder`).
        info: What `run.json` will hold.
        lock: Held while it is changed: several targets may be measured at once.

    Raises:
        BadInput: The folder exists and is not empty, is another user's, or cannot be written.
    """

    def __init__(self, folder: Path, **info: Any) -> None:
        self.lock = threading.RLock()
        self._own = OwnFolder(folder)
        self.folder = self._own.path
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self.info = RunInfo(**{"created": created, **info})
        try:
            occupied = any(self.folder.iterdir())
        except OSError as error:
            raise BadInput(f"cannot be written ({error.strerror})", str(folder)) from None
        if occupied:
            raise BadInput("exists and is not empty", str(folder), "name a new folder with -o")
        self.save()

    def begin(self, metadata: Metadata) -> Path:
        """Announce a set that will be recorded; return the folder to record it in."""
        with self.lock:
            entry = SetEntry(
                folder=self._free_folder(metadata.name), state="recording", metadata=metadata
            )
            path = self.folder / entry.folder
            path.mkdir(parents=True, exist_ok=True)
            self.info.sample_sets.append(entry)
            self.save()
            return path

    def finish(self, name: str, **changes: object) -> SampleSet | None:
        """Turn what was recorded for a set into Parquet; None if there was nothing.

        Args:
            name: The set's name, as given to `begin`.
            changes: Metadata that became known during the recording, such as `worst`.
        """
        with self.lock:
            entry = self._entry(name)
            entry.metadata = Metadata.model_validate({**entry.metadata.model_dump(), **changes})
            recorded = _open_entry(self.folder, entry)
            if recorded is None:
                entry.state = "empty"
                self.save()
                return None
            self._store(entry, recorded)
            return open_parquet(self.folder / entry.folder / "samples.parquet", entry.metadata)

    def add(self, sample_set: SampleSet) -> None:
        """Store a whole sample set."""
        with self.lock:
            folder = self._free_folder(sample_set.metadata.name)
            entry = SetEntry(
                folder=folder, form=sample_set.form, state="recording", metadata=sample_set.metadata
            )
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
            self.info.sample_sets.append(entry)
            self._store(entry, sample_set)

    def close(self, status: Status = "complete") -> None:
        """Write the run's final status."""
        with self.lock:
            self.info.status = status
            self.save()

    def save(self) -> None:
        """Replace `run.json` by the present state, whole or not at all."""
        with (
            self.lock,
            replacing(self.folder / "run.json", renewable=False) as partial,
            partial.open("w", encoding="utf-8") as file,
        ):
            file.write(as_called(self.info.model_dump_json(indent=1), _in_json) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _store(self, entry: SetEntry, sample_set: SampleSet) -> None:
        folder = self.folder / entry.folder
        entry.metadata, entry.form = sample_set.metadata, sample_set.form
        if sample_set.form != "summary":
            write_parquet(sample_set, folder / "samples.parquet")
        if sample_set.peaks is not None:
            write_parquet(sample_set.peaks, folder / "peaks.parquet")
        entry.state = "complete"
        self.save()
        for leftover in ("samples.journal", "histogram.json", "peaks.journal"):
            (folder / leftover).unlink(missing_ok=True)

    def _entry(self, name: str) -> SetEntry:
        return next(entry for entry in self.info.sample_sets if entry.metadata.name == name)

    def _free_folder(self, name: str) -> str:
        """A folder for a name that may come from a file: safe, readable, unlike all others."""
        parts = [_UNSAFE.sub("-", part).strip(".-")[:80] for part in name.split("/")]
        wanted = "/".join(part for part in parts if part) or "samples"
        taken = {entry.folder for entry in self.info.sample_sets}
        candidates = (wanted if i == 1 else f"{wanted}-{i}" for i in range(1, len(taken) + 2))
        return next(folder for folder in candidates if folder not in taken)


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class Run:
    """A run folder, opened for reading.

    Attributes:
        path: The folder.
        info: The content of `run.json`.
        sample_sets: Those that hold at least one sample (or a printed figure), in the order of
            the experiment's conditions, then as recorded.
    """

    def __init__(self, path: Path, info: RunInfo, sample_sets: list[SampleSet]) -> None:
        self.path = path
        self.info = info
        self.sample_sets = sample_sets

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Open a run folder, also one that is still being written or whose writer was killed."""
        info = _read_info(path)
        rank = {condition: i for i, condition in enumerate(info.condition_order)}
        entries = sorted(
            info.sample_sets, key=lambda entry: rank.get(entry.metadata.condition or "", len(rank))
        )
        opened = [_open_entry(path, entry) for entry in entries]
        return cls(path, info, [sample_set for sample_set in opened if sample_set is not None])


def info_of(path: Path) -> RunInfo | None:
    """Return the `run.json` of a run folder; None if the path is none."""
    if not path.is_dir() or file_in(path, "run.json") is None:
        return None
    return _read_info(path)


def unfinished(path: Path) -> str:
    """Return what is missing of a run that did not end by itself, in words; empty otherwise."""
    info = info_of(path)
    if info is None:
        return ""
    if info.status == "complete":
        return ""
    asked = (info.experiment or {}).get("repetitions")
    repetitions = asked if isinstance(asked, int) else 1
    measured = [
        each.get("condition") for each in info.conditions if each.get("state") == "measured"
    ]
    missing = [each for each in info.condition_order if measured.count(each) < repetitions]
    told = f"{info.status}: this run was not recorded to its end"
    return f"{told}; not whole: {', '.join(missing)}" if missing else told


def _read_info(folder: Path) -> RunInfo:
    path = file_in(folder, "run.json")
    if path is None:
        raise BadInput(
            "is not a run folder: it has no run.json",
            str(folder),
            "give one that `latenz run` wrote, or the files in it",
        )
    try:
        return RunInfo.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except ValidationError as error:
        raise BadInput(first_mistake(error), str(path)) from None


def _open_entry(run: Path, entry: SetEntry) -> SampleSet | None:
    """Open a set in whatever form it has reached; None if nothing was recorded yet."""
    if "\0" in entry.folder:
        raise BadInput(f"folder {entry.folder!r} is not a name", str(run / "run.json"))
    folder = (run / entry.folder).resolve()
    if not folder.is_relative_to(run.resolve()):
        raise BadInput(f"folder {entry.folder!r} leaves the run", str(run / "run.json"))
    if entry.state == "empty":
        return None
    if entry.form == "summary" and entry.state == "complete":
        return SampleSet.from_columns(entry.metadata)
    if samples := file_in(run, f"{entry.folder}/samples.parquet"):
        sample_set = open_parquet(samples, entry.metadata)
        if peaks := file_in(run, f"{entry.folder}/peaks.parquet"):
            sample_set.peaks = open_parquet(peaks, entry.metadata)
        return sample_set
    recorded = open_recording(folder, entry.metadata)
    if recorded is None and entry.state == "complete":
        raise BadInput("samples.parquet is missing", str(folder))
    return recorded


def open_recording(folder: Path, metadata: Metadata) -> SampleSet | None:
    """Open what the probe has recorded into a folder; None if there is nothing.

    Raises:
        BadInput: It is damaged.
    """
    if journal := file_in(folder, "samples.journal"):
        return _open_samples(journal, metadata)
    if histogram := file_in(folder, "histogram.json"):
        return open_histogram(histogram, metadata)
    return None


def _open_samples(path: Path, metadata: Metadata) -> SampleSet | None:
    journal = Journal(path)
    if journal.count() == 0:
        return None
    if journal.damaged_bytes:
        lost = f"{journal.damaged_bytes} damaged bytes at the end of the journal were left out"
        metadata = metadata.model_copy(update={"notes": (*metadata.notes, lost)})
    if journal.period_ns and metadata.period_ns is None:
        metadata = metadata.model_copy(update={"period_ns": journal.period_ns})
    return journal_sample_set(path, metadata)


class _RecordedHistogram(BaseModel):
    """`histogram.json`, which the probe replaces as a whole while it records."""

    version: Literal[1]
    cpu: Count | None
    period_ns: Count
    n: Count
    sum_ns: int
    min_ns: Nanoseconds
    max_ns: Nanoseconds
    max_t_ns: Nanoseconds
    missed: Count
    cells: list[tuple[Nanoseconds, Count, Count]]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        counts = [count for _, _, count in self.cells]
        if any(width < 1 or max(abs(low), width) >= 1 << 62 for low, width, _ in self.cells):
            raise ValueError("a cell lies nowhere")
        if min(counts, default=0) < 0 or not (self.n == 0 or 0 < sum(counts) <= self.n < 1 << 62):
            raise ValueError("its counts are not those of its samples")
        if self.n and not self.min_ns * self.n <= self.sum_ns <= self.max_ns * self.n:
            raise ValueError("its sum, minimum and maximum are not of the same samples")
        filled = [(low, low + width) for low, width, count in self.cells if count]
        if filled and not min(filled)[0] <= self.min_ns < min(filled)[1]:
            raise ValueError("its minimum lies in no cell")
        if filled and self.max_ns < max(filled)[0]:
            raise ValueError("its maximum lies below its cells")
        if sum(counts) == self.n and filled and self.max_ns >= max(filled)[1]:
            raise ValueError("its maximum lies in no cell")
        return self


def open_histogram(path: Path, metadata: Metadata) -> SampleSet | None:
    """Open a histogram of the probe; None if nothing is in it.

    Raises:
        BadInput: It is damaged.
    """
    try:
        recorded = _RecordedHistogram.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"is damaged ({str(error).splitlines()[0]})", str(path)) from None
    if recorded.n == 0:
        return None
    known = metadata.model_copy(
        update={
            "period_ns": recorded.period_ns or None,
            "missed_periods": recorded.missed if recorded.period_ns else None,
            "reported": Reported(
                n=recorded.n,
                mean_ns=recorded.sum_ns / recorded.n,
                min_ns=recorded.min_ns,
                max_ns=recorded.max_ns,
            ),
        }
    )
    lowest, width, count = zip(*recorded.cells, strict=True)
    sample_set = SampleSet.from_columns(known, latency_ns=lowest, width_ns=width, count=count)
    if peaks := file_in(path.parent, "peaks.journal"):
        sample_set.peaks = journal_sample_set(peaks, known)
    return sample_set
