"""What every test starts from."""

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# numpy's threads only get in each other's way in small tests on a busy machine
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# a job started in the background has SIGINT ignored, and what it starts would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says more about the machine than about what is tested
settings.register_profile("latenz", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("latenz")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker waits for another at the end."""
    longest = {
        item.path
        for item in items
        if item.get_closest_marker("boots") or item.get_closest_marker("proofs")
    }
    items.sort(key=lambda item: item.path not in longest)


@pytest.fixture
def alone() -> Iterator[None]:
    """Wait for other test runs that change the same values."""
    folder = os.open("/proc/sys", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@pytest.fixture
def small_cpuset() -> Iterator[Path]:
    """Where processes are put into a cpuset that has the first CPU alone."""
    top = Path("/sys/fs/cgroup/cpuset")
    group = top / f"latenz-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpuset.mems").write_text("0")
        (group / "cpuset.cpus").write_text(str(min(os.sched_getaffinity(0))))
    except OSError:
        pytest.skip("there is no cpuset to be had here")
    yield group / "cgroup.procs"
    group.rmdir()
