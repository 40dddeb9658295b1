"""A hang is virtual time that hardly passes while the emulator works, not while it is held up.

In place of the emulator, shells that work, wait, and write beats.
"""

import subprocess
import time

import pytest

from latenz.vm.heartbeat import Heartbeat

pytestmark = pytest.mark.boots

BOOT_STEPS = 500_000
BEAT = "echo >>beats; "
WORK = "while :; do :; done"
LIMIT_S = 100


def steps(count: int) -> str:
    return f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); done; "


BOOT = steps(BOOT_STEPS)


@pytest.fixture
def host(tmp_path):
    running = []

    def start(script: str) -> Heartbeat:
        (tmp_path / "beats").touch()
        process = subprocess.Popen(["sh", "-c", script], cwd=tmp_path)
        running.append(process)
        (tmp_path / "pid").write_text(f"{process.pid}\n")
        return Heartbeat(tmp_path / "beats", tmp_path / "pid")

    yield start
    for process in running:
        process.kill()
        process.wait()


def is_lost_within(followed: Heartbeat, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if followed.is_lost():
            return True
        time.sleep(0.001)
    return False


def test_one_that_works_and_beats_no_more_is_lost(host):
    assert is_lost_within(host(BOOT + BEAT + WORK), LIMIT_S)


def test_one_that_beats_ten_times_more_slowly_is_lost(host):
    """As measured of QEMU 10.0.2: five beats in the time of three boots."""
    slowly = "while :; do " + steps(BOOT_STEPS * 6 // 10) + BEAT + "done"
    assert is_lost_within(host(BOOT + slowly), LIMIT_S)


def test_one_that_beats_as_it_should_is_not(host):
    steadily = "while :; do " + steps(BOOT_STEPS * 6 // 100) + BEAT + "done"
    assert not is_lost_within(host(BOOT + steadily), 6)


def test_one_that_is_held_up_is_not(host):
    assert not is_lost_within(host(BOOT + BEAT + "exec sleep 100"), 4)


def test_one_that_boots_has_no_beats_yet(host):
    assert not is_lost_within(host(WORK), 2)


def test_one_that_has_not_begun_or_has_ended_is_not(tmp_path):
    assert not Heartbeat(tmp_path / "beats", tmp_path / "pid").is_lost()
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / "beats").write_text("\n")
    (tmp_path / "pid").write_text(str(ended.pid))
    assert not Heartbeat(tmp_path / "beats", tmp_path / "pid").is_lost()
