"""What an exploration found: the Pareto front, as candidates and as system files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.analysis.explore.evaluate import COLUMNS, OBJECTIVES, Objective
from latenz.analysis.explore.plan import Plan
from latenz.analysis.explore.search import best_of_each, pareto_front
from latenz.analysis.explore.space import Space
from latenz.errors import BadInput
from latenz.files import replacing
from latenz.system import Monitor, Slot, System

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

CANDIDATES = "candidates.parquet"
MOST_SYSTEMS = 100
"""So many systems of a front are written as files."""
_CLOSEST = 20
_KINDS = 40


@dataclass(frozen=True, slots=True)
class Candidate:
    """A system that was tried, and what it comes to.

    Attributes:
        number: 0 for the given system.
        system: With its monitors and slots.
        bounds_ns: The latency bound of each source; None where there is none.
        interference: The largest share of its slots that a partition may lose; None if nothing
            limits it.
        switches_per_s: Slot switches per second.
        latency: The largest ratio of a bound to its deadline; None if a source has no bound.
        reason: Why it does not meet all deadlines; None if it does.
    """

    number: int
    system: System
    bounds_ns: Mapping[str, int | None]
    interference: float | None
    switches_per_s: float
    latency: float | None
    reason: str | None

    def value(self, objective: Objective) -> float | None:
        """Return what is minimised."""
        values = (self.interference, self.switches_per_s, self.latency)
        return values[OBJECTIVES.index(objective)]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was found.

    Attributes:
        plan: What was asked.
        possible: How many candidates there are.
        evaluated: How many were evaluated, the given system besides.
        feasible: How many meet all deadlines.
        reasons: How many do not for each reason, the most frequent first.
        given: The system as it was given.
        front: Those that no other one beats in all objectives, the best in the first one first;
            of equal ones the one that changes least.
        closest: Of all bounded candidates the one with the smallest ratio of a bound to its
            deadline; None if none is bounded.
    """

    plan: Plan
    possible: int
    evaluated: int
    feasible: int
    reasons: Mapping[str, int]
    given: Candidate
    front: tuple[Candidate, ...]
    closest: Candidate | None


class Best:
    """The best candidates of those that were added, in whatever order."""

    def __init__(self, objectives: Sequence[Objective]) -> None:
        import numpy as np

        self._columns = [OBJECTIVES.index(name) for name in objectives]
        self._front = self._kinds = self._closest = np.empty((0, _WIDTH))
        self._new: list[npt.NDArray[np.float64]] = []

    def add(self, table: "pa.Table") -> None:
        """Take in some candidates."""
        import numpy as np

        values, feasible = figures(table)
        self._new.append(values[feasible])
        rows = np.vstack([self._front, values[feasible]])
        self._front = rows[pareto_front(rows[:, self._columns], rows)]
        bounded = np.vstack([self._closest, values[~np.isnan(values[:, _LATENCY])]])
        order = np.lexsort((bounded[:, -1], bounded[:, _LATENCY]))
        self._closest = bounded[order[:_CLOSEST]]

    def seeds(self) -> list[int]:
        """Return the numbers of those to look around: the front, and the best of other kinds.

        Of a kind are those that switch slots equally often: what is best for one cycle is seldom
        one step from what is best for another. While none is feasible, those closest to meeting
        all deadlines are taken. What was added since the last call is taken together, so that its
        order is of no consequence.
        """
        import numpy as np

        rows = np.vstack([self._kinds, *self._new])
        self._new = []
        self._kinds = rows[best_of_each(rows[:, self._columns], rows, rows[:, _SWITCHES])]
        best = np.vstack([self._front, self._kinds[:_KINDS]])
        return [int(number) for number in (best if len(best) else self._closest)[:, -1]]

    @property
    def front(self) -> list[int]:
        """The numbers of the Pareto front, best first."""
        return [int(number) for number in self._front[:, -1]]

    @property
    def closest(self) -> int | None:
        """The number of the candidate with the smallest ratio of a bound to its deadline."""
        return int(self._closest[0, -1]) if len(self._closest) else None


_LATENCY = OBJECTIVES.index("latency")
_SWITCHES = OBJECTIVES.index("switches")
_WIDTH = len(OBJECTIVES) + 2


def figures(table: "pa.Table") -> "tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]":
    """Return objectives, changes and number of each candidate, and whether it is feasible."""
    import numpy as np

    names = [*(COLUMNS[name] for name in OBJECTIVES), "changes", "candidate"]
    columns = [table[name].to_numpy().astype(np.float64) for name in names]
    return np.column_stack(columns), table["feasible"].to_numpy()


def merge(chunks: Sequence[Path], objectives: Sequence[Objective], path: Path) -> None:
    """Write all candidates into one file, with their rank on the Pareto front."""
    import pyarrow as pa
    from pyarrow import parquet

    best = Best(objectives)
    for chunk in chunks:
        best.add(parquet.read_table(chunk, partitioning=None))
    ranks = {number: rank + 1 for rank, number in enumerate(best.front)}
    rank_field = pa.field("front_rank", pa.int64())
    schema = parquet.read_schema(chunks[0]).append(rank_field)
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for chunk in chunks:
            table = parquet.read_table(chunk, partitioning=None)
            rank = [ranks.get(number) for number in table["candidate"].to_pylist()]
            writer.write_table(table.append_column(rank_field, pa.array(rank, pa.int64())))


def read_result(plan: Plan, path: Path) -> Exploration:
    """Read what an exploration found.

    Raises:
        BadInput: The file is damaged.
    """
    import pyarrow as pa
    from pyarrow import compute, parquet

    try:
        narrow = ["candidate", *COLUMNS.values(), "changes", "feasible", "reason", "front_rank"]
        table = parquet.read_table(path, columns=narrow, partitioning=None)
        best = Best(plan.objectives)
        best.add(table)
        tried = table.slice(1)  # without the given system
        reasons = compute.value_counts(tried["reason"].drop_null())
        counted = {each["values"]: each["counts"] for each in reasons.to_pylist()}
        wanted = [0, *best.front, *([best.closest] if best.closest is not None else [])]
        filters = [("candidate", "in", set(wanted))]
        rows = parquet.read_table(path, filters=filters, partitioning=None).to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        what = f"is damaged ({str(error).splitlines()[0][:200]})"
        raise BadInput(what, str(path), "begin anew in another folder") from None
    found = {row["candidate"]: _candidate(plan.system, row) for row in rows}
    return Exploration(
        plan,
        Space(plan.system, plan.shares).count,
        tried.num_rows,
        compute.sum(tried["feasible"]).as_py(),
        dict(sorted(counted.items(), key=lambda each: (-each[1], each[0]))),
        found[0],
        tuple(found[number] for number in best.front),
        None if best.closest is None else found[best.closest],
    )


def _candidate(given: System, row: dict[str, Any]) -> Candidate:
    slots = tuple(map(Slot, row["slot_partition"], row["slot_length_ns"]))
    sources = []
    for source in given.sources:
        distances = row[f"monitor_ns:{source.name}"]
        monitor = None if distances is None else Monitor(tuple(distances))
        sources.append(replace(source, monitor=monitor))
    return Candidate(
        row["candidate"],
        replace(given, slots=slots, sources=tuple(sources)),
        {source.name: row[f"bound_ns:{source.name}"] for source in given.sources},
        row[COLUMNS["interference"]],
        row[COLUMNS["switches"]],
        row[COLUMNS["latency"]],
        row["reason"],
    )
