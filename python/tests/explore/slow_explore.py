"""`latenz explore` that gets slow after three chunks, so that nobody is too late to end it amid."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latenz.analysis.explore import run
from latenz.analysis.explore.evaluate import evaluate
from latenz.cli import main

if TYPE_CHECKING:
    import pyarrow as pa

    from latenz.analysis.explore.space import Choice, Space

QUICK_CANDIDATES = 1_000
CHUNK_S = 3.0


def slowly(
    space: "Space", deadlines_ns: Mapping[str, int], first: int, choices: "Sequence[Choice | None]"
) -> "pa.Table":
    if first > QUICK_CANDIDATES:
        time.sleep(CHUNK_S)
    return evaluate(space, deadlines_ns, first, choices)


if __name__ == "__main__":
    run.evaluate = slowly
    main()
