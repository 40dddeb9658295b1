"""Opening a trace of any format that Latenz reads."""

import stat
from pathlib import Path

from latenz.errors import BadInput
from latenz.traces import ctf, perf_kvm
from latenz.traces.model import Trace
from latenz.traces.reader import REMEDY, START_BYTES, RecordedTrace

_FOREIGN = {
    b"\x1f\x8b": "is compressed by gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; unpack it first",
    b"\xfd7zXZ": "is compressed by xz; unpack it first",
}


def open_trace(path: Path) -> Trace:
    """Open a trace of any format that Latenz reads.

    Raises:
        BadInput: The file cannot be read, or it is not a trace.
    """
    if ctf.is_ctf(path):
        return ctf.CtfTrace(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise BadInput("is not a regular file", str(path), "save the trace in one first")
        with path.open("rb") as file:
            start = file.read(START_BYTES)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(path), REMEDY) from error
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise BadInput(what, str(path))
    if perf_kvm.is_report(start):
        return perf_kvm.Report(path)
    return RecordedTrace(path)
