"""What may come of foreign data: something consistent, or a refusal of one printable line."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unicodedata import category

from latenz.errors import BadInput
from latenz.model import SampleSet

Reader = Callable[[Path], None]
"""Reads a file; raises `BadInput`, or anything else if that is a finding."""
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
MOST_CHARACTERS = 1000
"""More is not a line that a person reads."""


def outcome(reader: Reader, path: Path) -> bool:
    """Hand a file to a reader; tell whether it was read, and not refused.

    Raises:
        Exception: A finding: anything that leaves the reader but a clear refusal.
    """
    try:
        reader(path)
    except BadInput as refusal:
        check_refusal(refusal)
        return False
    return True


def check_refusal(refusal: BadInput) -> None:
    """Fail unless a refusal is one printable line that names a place."""
    line = str(refusal)
    require(refusal.where != "", f"a refusal names no place: {line!r}")
    require(not _STEERING & set(map(category, line)), f"a refusal steers a terminal: {line!r}")
    require(len(line) <= MOST_CHARACTERS, f"a refusal has {len(line)} characters: {line[:200]!r}")


def check_samples(sample_set: SampleSet) -> None:
    """Fail unless a set keeps the rules of the data model, and its figures fit together."""
    from latenz.statistics import summarize

    for batch in sample_set.batches():
        require(batch.schema.names == list(sample_set.columns), "columns are those announced")
        for column in batch.columns:
            require(str(column.type) == "int64" and not column.null_count, "values are int64")
        if sample_set.form == "histogram":
            require(min(batch.column("count").to_pylist(), default=0) >= 0, "counts")
            require(min(batch.column("width_ns").to_pylist(), default=1) > 0, "widths")
    figures = summarize(sample_set)
    require(figures.n is None or figures.n >= 0, f"there are {figures.n} samples")
    if _states_figures(sample_set):
        return
    step_ns = sample_set.metadata.resolution_ns
    known = [each for each in (figures.min_ns, figures.median_ns, figures.max_ns) if each]
    rises = all(low <= high + step_ns for low, high in pairwise(known))
    require(rises, f"minimum, median and maximum are {known}")


def _states_figures(sample_set: SampleSet) -> bool:
    """Tell whether its figures are stated by metadata alone, which may be anybody's."""
    known = sample_set.metadata
    is_ours = not known.source or known.source.endswith(("read as csv", "read as parquet"))
    return known.reported is not None and is_ours


def require(holds: bool, otherwise: str) -> None:
    """Raise an error, which is a finding, unless something holds."""
    if not holds:
        raise AssertionError(otherwise)
