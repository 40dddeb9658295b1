"""Sample sets: each sample's time stamp is an activation of the source that the set is named by."""

from pathlib import Path

import numpy as np

from latenz.analysis.activations.text import Recorded
from latenz.columns import as_numpy
from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.model import SampleSet
from latenz.system.trace import Times


def read(path: Path) -> Recorded:
    """Read the time stamps of the sets that have any."""
    sets = open_sample_sets(path)
    timed = [each for each in sets if "t_ns" in each.columns and each.form == "samples"]
    warnings = [f"{each.metadata.name} has no time stamps" for each in sets if each not in timed]
    found = {each.metadata.name: _times(each, path) for each in timed}
    for each in timed:
        if missed := _missed(each):
            warnings.append(f"{each.metadata.name} lacks {missed} activations that were skipped")
    return Recorded(
        {name: times for name, times in found.items() if len(times)},
        warnings if timed else [],
        "no sample set in it has time stamps",
    )


def _times(sample_set: SampleSet, path: Path) -> Times:
    parts = [as_numpy(batch.column("t_ns")) for batch in sample_set.batches("t_ns")]
    times: Times = np.concatenate([np.empty(0, np.int64), *parts])
    where = f"{path}: sample set {sample_set.metadata.name}"
    if times.size and int(times[0]) < 0:
        raise BadInput(f"t_ns {times[0]} is negative", f"{where}: row 1", "times begin at 0")
    if (backwards := np.flatnonzero(times[1:] < times[:-1])).size:
        at = int(backwards[0]) + 1
        raise BadInput(
            f"{times[at]} ns comes after {times[at - 1]} ns",
            f"{where}: row {at + 1}",
            "time stamps must not decrease",
        )
    return times


def _missed(sample_set: SampleSet) -> int:
    if "missed" not in sample_set.columns:
        return 0
    columns = (as_numpy(batch.column(0)) for batch in sample_set.batches("missed"))
    return sum(sum(missed[missed != 0].tolist()) for missed in columns)
