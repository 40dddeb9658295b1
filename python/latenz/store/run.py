"""Run folders: `run.json`, and a folder with `samples.parquet` for each sample set.

A run is readable at any moment of its recording and after any kill: `run.json` names every
sample set before its recording starts, and what was recorded so far lies in a journal (or in a
histogram that is replaced as a whole) until it is turned into Parquet.
"""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.model import Form, Metadata, Reported, SampleSet
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


class RunInfo(BaseModel):
    """The content of `run.json`."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[1] = 1
    created: str
    status: Status = "running"
    command: list[str] = Field(default_factory=list)
    experiment: dict[str, Any] | None = None
    seed: int | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
    conditions: list[dict[str, Any]] = Field(default_factory=list)
    """What happened in each condition: times, engine and stressor accounts, why not measured."""
    condition_order: list[str] = Field(default_factory=list)
    """Conditions as the experiment lists them; they are measured in random order."""
    published: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    sample_sets: list[SetEntry] = Field(default_factory=list)


class RunWriter:
    """Writes a run folder; `run.json` is replaced as a whole at every change.

    Args:
        folder: Where to write; made if absent.
        info: What is known at the start, the defaults of `RunInfo` otherwise.

    Raises:
        BadInput: The folder exists and is not empty, or cannot be written.
    """

    def __init__(self, folder: Path, **info: Any) -> None:
        self.folder = folder
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self.info = RunInfo(**{"created": created, **info})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            occupied = any(folder.iterdir())
        except OSError as error:
            raise BadInput(f"cannot be written ({error.strerror})", str(folder)) from None
        if occupied:
            raise BadInput("exists and is not empty", str(folder), "name a new folder with -o")
        self.save()

    def begin(self, metadata: Metadata) -> Path:
        """Announce a set that will be recorded; return the folder to record it in."""
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
        folder = self._free_folder(sample_set.metadata.name)
        entry = SetEntry(
            folder=folder, form=sample_set.form, state="recording", metadata=sample_set.metadata
        )
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self.info.sample_sets.append(entry)
        self._store(entry, sample_set)

    def close(self, status: Status = "complete") -> None:
        """Write the run's final status."""
        self.info.status = status
        self.save()

    def save(self) -> None:
        """Replace `run.json` by the present state, whole or not at all."""
        path = self.folder / "run.json"
        partial = path.with_suffix(".json.partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(self.info.model_dump_json(indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise BadInput(f"cannot be written ({error.strerror})", str(path)) from None

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
        info = _read_info(path / "run.json")
        rank = {condition: i for i, condition in enumerate(info.condition_order)}
        entries = sorted(
            info.sample_sets, key=lambda entry: rank.get(entry.metadata.condition or "", len(rank))
        )
        opened = [_open_entry(path, entry) for entry in entries]
        return cls(path, info, [sample_set for sample_set in opened if sample_set is not None])


def _read_info(path: Path) -> RunInfo:
    try:
        return RunInfo.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(
            "is not a run folder: it has no run.json",
            str(path.parent),
            "give one that `latenz run` wrote",
        ) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInput(f"is wrong at {place}: {first['msg']}", str(path)) from None


def _open_entry(run: Path, entry: SetEntry) -> SampleSet | None:
    """Open a set in whatever form it has reached; None if nothing was recorded yet."""
    folder = (run / entry.folder).resolve()
    if not folder.is_relative_to(run.resolve()):
        raise BadInput(f"folder {entry.folder!r} leaves the run", str(run / "run.json"))
    if entry.state == "empty":
        return None
    if entry.form == "summary" and entry.state == "complete":
        return SampleSet.from_columns(entry.metadata)
    if (folder / "samples.parquet").exists():
        sample_set = open_parquet(folder / "samples.parquet", entry.metadata)
        if (folder / "peaks.parquet").exists():
            sample_set.peaks = open_parquet(folder / "peaks.parquet", entry.metadata)
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
    if (folder / "samples.journal").exists():
        return _open_samples(folder / "samples.journal", metadata)
    if (folder / "histogram.json").exists():
        return _open_histogram(folder, metadata)
    return None


def _open_samples(path: Path, metadata: Metadata) -> SampleSet | None:
    journal = Journal(path)
    n = sum(len(frame) for frame in journal.frames())
    if n == 0:
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
    cpu: int
    period_ns: int
    n: int
    sum_ns: int
    min_ns: int
    max_ns: int
    max_t_ns: int
    missed: int
    cells: list[tuple[int, int, int]]


def _open_histogram(folder: Path, metadata: Metadata) -> SampleSet | None:
    path = folder / "histogram.json"
    try:
        recorded = _RecordedHistogram.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError) as error:
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
    if (folder / "peaks.journal").exists():
        sample_set.peaks = journal_sample_set(folder / "peaks.journal", known)
    return sample_set
