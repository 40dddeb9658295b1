"""200 real kills: SIGKILL at a random moment of applying, and of reverting, plans of machines."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from more_machines import MORE
from test_tune_twelve_machines import as_it_looks
from trees_at_random import apply_all, fingerprint, revert_all
from twelve_machines import MACHINES

from latenz.errors import BadInput
from latenz.tune.places import Place
from latenz.tune.transaction import find

pytestmark = pytest.mark.long
KILLS = 200
ALL = MACHINES | MORE


def killed(action: Callable[[], object], after_s: float) -> bool:
    """Do something in a process of its own, which is killed; return whether it ended before."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    time.sleep(after_s)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


def duration_s(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


@pytest.mark.parametrize("name", ALL)
def test_whenever_it_is_killed_revert_gives_every_byte_back(name: str, tmp_path: Path) -> None:
    root = ALL[name].write(tmp_path / "root")
    before, changes = fingerprint(root), as_it_looks(root).changes
    assert changes
    applying = duration_s(lambda: apply_all(root, changes))
    reverting = duration_s(lambda: revert_all(root))
    assert fingerprint(root) == before
    moments = random.Random(name)
    cut_short = 0
    for number in range(-(-KILLS // len(ALL))):
        if number % 2:
            apply_all(root, changes)
            cut_short += not killed(lambda: revert_all(root), moments.uniform(0, reverting))
        else:
            cut_short += not killed(lambda: apply_all(root, changes), moments.uniform(0, applying))
            if moments.random() < 0.5 and find(Place(root)):
                with suppress(BadInput):
                    apply_all(root, changes)  # finished first, unless it was whole
        revert_all(root)
        assert fingerprint(root) == before, number
    assert cut_short, "no moment was in the middle"
