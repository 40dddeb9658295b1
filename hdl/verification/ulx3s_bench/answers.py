# SPDX-License-Identifier: Apache-2.0
"""What the simulated surroundings of the design answer."""

import random

SEED, LEAST, SPREAD, MOST = 23, 3, 90, 100_000


def drawn() -> list[int]:
    """Return the latency of each answer, in cycles."""
    chance = random.Random(SEED)
    return [LEAST + chance.randrange(SPREAD) for _ in range(MOST)]
