"""What our own probe, latenz-wakeup, leaves: a folder with its account, journals and histograms.

Recognised are the account, `probe.json`, which stands for its whole folder, and each journal or
histogram alone, of which less is known.
"""

from pathlib import Path

from latenz.files import file_in
from latenz.importers.source import Source
from latenz.measuring.wakeup_account import ACCOUNT_FILE, WakeupAccount
from latenz.model import SampleSet
from latenz.store.journal import MAGIC, open_journal
from latenz.store.run import open_histogram, open_recording

NAME = "latenz-wakeup"
_ACCOUNT = b'"program": "latenz-wakeup"'
_HISTOGRAM = b'"sum_ns": '
_BEGINS = 4096  # bytes, of which both stand in the first hundred


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this was written by the probe."""
    begin = head[:_BEGINS]
    return begin.startswith(MAGIC) or (
        begin.startswith(b'{"version": 1, ') and (_ACCOUNT in begin or _HISTOGRAM in begin)
    )


def account_in(path: Path) -> Path | None:
    """Return the account of a folder that the probe has recorded into; None if it is none."""
    return file_in(path, ACCOUNT_FILE) if path.is_dir() else None


def read(source: Source) -> list[SampleSet]:
    """Return the sample sets of a folder, a journal or a histogram.

    Raises:
        BadInput: It is damaged, or nothing was recorded.
    """
    path, head = source.path, source.head()[:_BEGINS]
    if head.startswith(MAGIC):
        return [_described(source, open_journal(path))]
    if _ACCOUNT in head:
        return _folder(source, path.parent)
    named = source.metadata(path.parent.name or path.stem, tool=NAME)
    found = open_histogram(path, named)
    return [] if found is None else [found]


def _folder(source: Source, folder: Path) -> list[SampleSet]:
    account = WakeupAccount.of(folder)
    names = [thread.folder for thread in account.threads]
    if len(set(names)) != len(names):
        raise source.bad("two threads have recorded into the same folder")
    found = []
    for name in names:
        for file in ("samples.journal", "histogram.json", "peaks.journal"):
            file_in(folder, f"{name}/{file}")  # nothing outside is opened by what comes
        known = source.metadata(name, **account.alone(name))
        recorded = open_recording(folder / name, known)
        if recorded is not None:
            found.append(recorded)
    return found


def _described(source: Source, sample_set: SampleSet) -> SampleSet:
    time_base = source.options.time_base
    return sample_set.with_metadata(time_base=time_base) if time_base else sample_set
