"""Carries out an exploration: chunks to workers, their tables to files, the best ones out of them.

Each chunk's table is a file as soon as it is computed. What comes next depends on nothing but the
plan and these tables, so that an exploration that was killed goes on as if it had not been.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from latenz.analysis.explore.evaluate import evaluate
from latenz.analysis.explore.plan import ARRIVALS, Plan, has_plan
from latenz.analysis.explore.result import (
    CANDIDATES,
    MOST_SYSTEMS,
    Best,
    Exploration,
    merge,
    read_result,
)
from latenz.analysis.explore.search import Search
from latenz.analysis.explore.space import Choice, Space
from latenz.analysis.explore.words import changes, summary
from latenz.analysis.explore.workers import DaskWorkers, Job, LocalWorkers, Workers, hand_out
from latenz.errors import BadInput
from latenz.files import OwnFolder, lock_file, replacing, scratch_place
from latenz.system import write_system

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNKS = "chunks"


def explore(
    plan: Plan,
    folder: Path | None = None,
    *,
    scheduler: str | None = None,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> Exploration:
    """Find monitors and slots with which all deadlines hold.

    The results are the same whoever computes them. Called again with the same plan and folder, it
    goes on where it was interrupted. In a script, call it under `if __name__ == "__main__":`, as
    its processes import the script.

    Args:
        plan: What to find.
        folder: Where to keep the results: `candidates.parquet`, `front.html`, `system-1.toml` and
            so on; None: nowhere.
        scheduler: The address of a Dask scheduler, instead of processes on this machine.
        processes: How many of these; None: one for each CPU.
        progress: Told how many candidates are done.

    Raises:
        BadInput: The folder holds something else, or the workers cannot be used.
    """
    from latenz.analysis.explore.page import write_page

    with ExitStack() as stack:
        is_kept = folder is not None
        if folder is None:
            place = tempfile.TemporaryDirectory(prefix="latenz-", dir=scratch_place())
            folder = Path(stack.enter_context(place))
        folder = stack.enter_context(_claimed(plan, folder))
        if not (folder / CANDIDATES).exists():
            workers = DaskWorkers(scheduler) if scheduler else LocalWorkers(processes)
            stack.callback(workers.close)
            _Exploring(plan, folder / _CHUNKS, workers, progress).run()
        shutil.rmtree(folder / _CHUNKS, ignore_errors=True)
        found = read_result(plan, folder / CANDIDATES)
        if is_kept:
            _write_systems(found, folder)
            write_page(found, folder / "front.html")
        return found


@contextmanager
def _claimed(plan: Plan, given: Path) -> Iterator[Path]:
    """Hold a folder for this plan; no other exploration works there meanwhile.

    Returns:
        What to write by.
    """
    own = OwnFolder(given)
    folder = own.path
    with lock_file(folder / ".lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput("another exploration works there", str(folder), "wait for it") from None
        if has_plan(folder):
            plan.check_same(folder)
        elif any(not each.name.startswith((".", "system.")) for each in folder.iterdir()):
            raise BadInput("is not empty", str(folder), "name a new folder with -o")
        else:
            plan.save(folder)
        yield folder


class _Exploring:
    """One exploration at work; numbers chunks and candidates in the order of the search."""

    def __init__(
        self, plan: Plan, folder: Path, workers: Workers, progress: Callable[[int], None]
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._workers = workers
        self._progress = progress
        self._space = Space(plan.system, plan.shares)
        self._search = Search(self._space, plan.candidates, plan.seed)
        self._best = Best(plan.objectives)
        self._chunks = 0
        self._next = 0  # candidate
        self._done = 0

    def run(self) -> None:
        """Evaluate round after round until nothing is left; write all candidates into one file."""
        self._folder.mkdir(exist_ok=True)
        self._evaluate(iter([[None]]))
        self._evaluate(self._search.first_round())
        while self._evaluate(self._search.next_round(self._best.seeds())):
            pass
        merge(
            [self._path(chunk) for chunk in range(self._chunks)],
            self._plan.objectives,
            self._folder.parent / CANDIDATES,
        )

    def _evaluate(self, chunks: Iterator[Sequence[Choice | None]]) -> bool:
        """Evaluate a round; tell whether there was anything to do."""
        before = self._chunks
        hand_out(self._workers, self._missing(chunks), self._finish)
        return self._chunks > before

    def _missing(self, chunks: Iterator[Sequence[Choice | None]]) -> Iterator[Job]:
        """Give the chunks that no file holds; take in those that one does."""
        for choices in chunks:
            chunk, first = self._chunks, self._next
            self._chunks, self._next = chunk + 1, first + len(choices)
            kept = _read(self._path(chunk), range(first, self._next))
            if kept is None:
                yield chunk, evaluate, (self._space, self._plan.deadlines_ns, first, choices)
            else:
                self._take_in(kept)

    def _finish(self, chunk: int, table: "pa.Table") -> None:
        from pyarrow import parquet

        with replacing(self._path(chunk)) as partial:
            parquet.write_table(table, partial, compression="zstd")
        self._take_in(table)

    def _take_in(self, table: "pa.Table") -> None:
        self._best.add(table)
        self._done += table.num_rows
        self._progress(self._done)

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:06}.parquet"


def _read(path: Path, numbers: range) -> "pa.Table | None":
    """Read a chunk; None if there is none, or what was written before the power failed."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException):
        return None
    sound = "candidate" in table.column_names
    return table if sound and table["candidate"].to_pylist() == list(numbers) else None


def _write_systems(found: Exploration, folder: Path) -> None:
    """Write the systems of the front as system-1.toml and so on, the best first."""
    most = found.front[:MOST_SYSTEMS]
    for rank, each in enumerate(most, 1):
        lines = [
            f"Found by latenz explore: system {rank} of {len(found.front)} on the Pareto front.",
            summary(found.plan, each),
            *changes(found.given.system, each.system),
        ]
        path = folder / f"system-{rank}.toml"
        write_system(each.system, path, "\n".join(lines), ARRIVALS)
