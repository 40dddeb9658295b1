"""How often the intervals of fitted tails hold the truth, over processes whose truth is known.

Run by `make bench`, or alone: `python bench/tails.py [DRAWS [PROCESS...]]`. Each draw is fitted as
a user's samples would be. A draw that is refused is neither right nor wrong, and counted apart.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from latenz.statistics import TailFit, fit_tail

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests/statistics"))
from known_tails import PERIOD_NS, PROCESSES, Process, drawn, truths

DRAWS = 200


def coverage(process: Process, draws: int) -> dict[str, object]:
    """Fit draws; for each question, which share of the fits holds, is above or below the truth."""
    asked = truths(process)
    outcomes: Counter[tuple[str, str]] = Counter()
    refused: Counter[str] = Counter()
    indices = []
    for seed in range(draws):
        tail = fit_tail(drawn(process, seed))
        if not isinstance(tail, TailFit):
            refused[tail.reason.partition(":")[0]] += 1
            continue
        indices.append(tail.extremal_index)
        for name, (in_time, m, truth) in asked.items():
            level = tail.largest_in(m * PERIOD_NS) if in_time else tail.return_level(m)
            side = "above" if level.lower > truth else "below" if level.upper < truth else "holds"
            outcomes[name, side] += 1
    fits = draws - refused.total()
    return {
        "fits": fits,
        "refused": dict(refused),
        "extremal_index": round(float(np.mean(indices)), 3) if indices else None,
        **{
            name: {
                side: round(outcomes[name, side] / fits, 3) for side in ("holds", "below", "above")
            }
            for name in asked
            if fits
        },
    }


def run(draws: int = DRAWS, names: list[str] | None = None) -> dict[str, object]:
    """Measure the coverage of 95 % intervals; shares of the draws that were fitted."""
    return {name: coverage(PROCESSES[name], draws) for name in names or PROCESSES}


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(run(int(given[0]) if given else DRAWS, given[1:]), indent=1))
