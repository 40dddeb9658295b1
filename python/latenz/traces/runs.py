"""The causes that the traces of a run tell, condition by condition."""

from pathlib import Path

from latenz.errors import BadInput
from latenz.files import file_in
from latenz.store.run import Run
from latenz.traces.explaining import Explained, explain_in
from latenz.traces.guests import with_guests
from latenz.traces.join import latest


def of_run(path: Path) -> list[tuple[str, Path, Explained]]:
    """Explain each condition of a run that was traced: its label, its trace, and why.

    Raises:
        BadInput: The folder is not a run, or was not traced.
    """
    run = Run.open(path)
    found = []
    for account in run.info.conditions:
        traces = [_file_of(path, str(each)) for each in account.get("traces", ())]
        if traces:
            label = _label(traces[0], str(account["traces"][0]))
            names = account.get("sample_sets", ())
            sets = [each for each in run.sample_sets if each.metadata.name in names]
            guests = [_file_of(path, str(each)) for each in account.get("guest_traces", ())]
            why = with_guests(traces[0], guests, explain_in(traces, latest(sets, 10)))
            found.append((label, traces[0], why))
    if not found:
        raise BadInput("holds no trace", str(path), "record one with latenz run --trace")
    return found


def _label(trace: Path, name: str) -> str:
    """Return the folder of a condition: the first of its trace's name."""
    return Path(name).parts[0] if "/" in name else trace.parent.name


def _file_of(folder: Path, name: str) -> Path:
    """Return a file of a run; names come from `run.json` and must not lead out of it."""
    path = file_in(folder, name)
    if path is None:
        raise BadInput("is not a file of the run", f"{folder}: {name}", "copy the whole run folder")
    return path
