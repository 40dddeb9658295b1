"""Activations as somebody recorded them: when each source was activated, from many trace formats.

The format is recognised by the content; a name overrules that. Every reader gives ascending times
in nanoseconds by source, or one line of `BadInput` with the line that is wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from latenz import importers
from latenz.analysis.activations import btf, can, ftrace, samples
from latenz.analysis.activations.text import Recorded
from latenz.errors import BadInput, closest, shown
from latenz.importers.source import HEAD_BYTES, Options, Source
from latenz.store.journal import MAGIC as JOURNAL
from latenz.system.trace import COLUMNS, Times, read_times

FORMATS = ("csv", "btf", "ftrace", "can", "samples")
"""`csv`: rows of source and time_ns, also as Parquet. `btf`: Best Trace Format. `ftrace`: events of
the Linux kernel as text of tracefs, trace-cmd or perf. `can`: logs of candump and Vector's .asc.
`samples`: sample sets with time stamps."""

_HELP = (
    "give CSV with source,time_ns, BTF, ftrace, trace-cmd or perf text, CAN logs, or sample sets"
)


@dataclass(frozen=True, slots=True)
class Activations:
    """What a trace shows.

    Attributes:
        format: One of `FORMATS`.
        times_by_source: When each source was activated, nanoseconds, ascending.
        warnings: What the trace lacks: lost events, time stamps that were rounded.
    """

    format: str
    times_by_source: dict[str, Times]
    warnings: tuple[str, ...] = ()

    def from_zero(self) -> dict[str, Times]:
        """Return the same times counted from the first of all activations."""
        begin_ns = min(int(times[0]) for times in self.times_by_source.values())
        return {name: times - begin_ns for name, times in self.times_by_source.items()}


def read_activations(
    path: Path,
    format_name: str | None = None,
    *,
    event: str | None = None,
    sources: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Activations:
    """Read when sources were activated.

    Args:
        path: A file, or the folder of a run.
        format_name: One of `FORMATS`; found out from the content, if None.
        event: Which event counts as an activation, in formats with several kinds.
        sources: Only these; all, if empty.
        progress: Called now and then with the number of bytes read so far.

    Raises:
        BadInput: The file cannot be read, is of no known format, is damaged or not sorted, or
            holds no activation of a source that was asked for.
    """
    if not (path.is_dir() or path.is_file()):
        what = "is not a regular file" if path.exists() else "there is no such file or folder"
        raise BadInput(what, str(path), _HELP)
    name = format_name or ("samples" if path.is_dir() else _recognise(path))
    if name not in FORMATS:
        raise BadInput(f"{name!r} is not a format", "--format", closest(name, FORMATS))
    if event is not None and name not in ("btf", "ftrace", "can"):
        raise BadInput(f"{event!r} cannot be chosen", "--event", f"{name} holds nothing else")
    try:
        recorded = _read(Source(path, name, Options(), progress), event)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", str(path)) from None
    if not recorded.times_by_source:
        raise BadInput("holds no activation", str(path), recorded.advice)
    if wrong := [each for each in recorded.times_by_source if not (each and each.isprintable())]:
        raise BadInput(
            f"{shown(wrong[0])} is not a name", str(path), "sources have printable names"
        )
    return Activations(
        name, _chosen(recorded.times_by_source, sources, path), tuple(recorded.warnings)
    )


def _read(source: Source, event: str | None) -> Recorded:
    if source.format_name == "btf":
        return btf.read(source, event)
    if source.format_name == "ftrace":
        return ftrace.read(source, event or ftrace.IRQ)
    if source.format_name == "can":
        return can.read(source, event or can.IDENTIFIER)
    if source.format_name == "samples":
        return samples.read(source.path)
    found = read_times(source.path)
    return Recorded({name: times for name, times in found.items() if len(times)}, [])


def _recognise(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", str(path)) from None
    if not head.strip():
        raise BadInput("the file is empty", str(path))
    if _is_csv(head, path):
        return "csv"
    for name, matches in (
        ("btf", btf.matches),
        ("can", can.matches),
        ("ftrace", ftrace.matches),
    ):
        if matches(head):
            return name
    if head.startswith(JOURNAL) or _is_importable(head):
        return "samples"
    raise BadInput("is not a trace that Latenz reads", str(path), _HELP)


def _is_importable(head: bytes) -> bool:
    try:
        importers.recognise(head, "")
    except BadInput:
        return False
    return True


def _is_csv(head: bytes, path: Path) -> bool:
    """Tell whether a file is CSV that begins with a column of sources, or Parquet with both."""
    if not head.startswith(b"PAR1"):
        [first, *_] = [*head.removeprefix(b"\xef\xbb\xbf").splitlines(), b""]
        return first.split(b",")[0].strip(b' "') == COLUMNS[0].encode()
    import pyarrow.parquet as pq

    from latenz.store.parquet import DAMAGES

    try:
        return set(COLUMNS) <= set(pq.read_schema(path).names)
    except DAMAGES:
        return False


def _chosen(found: dict[str, Times], sources: Sequence[str], path: Path) -> dict[str, Times]:
    for name in sources:
        if name not in found:
            raise BadInput(f"{name!r} is not in {path}", "--source", closest(name, found))
    return {name: times for name, times in found.items() if not sources or name in sources}
