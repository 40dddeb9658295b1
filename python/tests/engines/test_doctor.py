"""What doctor says, compared with what this machine does when one tries."""

import json
import os
import subprocess
import sys

import pytest


def doctor(*prefix):
    command = [*prefix, sys.executable, "-m", "latenz", "doctor", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def here():
    return doctor()


def state_of(diagnosis, name):
    [check] = [check for check in diagnosis["checks"] if check["id"] == name]
    return check["state"]


def test_every_check_says_what_follows(here):
    ids = [check["id"] for check in here["checks"]]
    assert len(set(ids)) == len(ids)
    for check in here["checks"]:
        assert set(check) == {"id", "state", "found", "consequence", "fix"}
        assert check["state"] in ("ok", "limited", "missing")
        assert check["found"]
        assert bool(check["consequence"]) == (check["state"] != "ok")
        assert not (check["fix"] and check["state"] == "ok")


def test_what_cannot_be_measured_says_why(here):
    for each in here["cannot_measure"]:
        assert set(each) == {"what", "why", "fix"}
        assert each["what"]
        assert each["why"]


@pytest.mark.parametrize(
    ("program", "check"), [("cyclictest", "tool-cyclictest"), ("stress-ng", "tool-stress-ng")]
)
def test_tools_are_those_that_start(here, program, check):
    found = subprocess.run(["which", program], capture_output=True).returncode == 0
    assert (state_of(here, check) == "ok") == found


def test_real_time_priority_is_what_chrt_gets(here):
    granted = subprocess.run(["chrt", "-f", "99", "true"], capture_output=True).returncode == 0
    assert (state_of(here, "realtime-priority") == "ok") == granted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give privileges away")
def test_without_privileges(here):
    # still the owner of the checkout, which others may not be able to read
    poor = doctor("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    assert state_of(poor, "realtime-priority") == "missing"
    assert any("cyclictest" in each["what"] for each in poor["cannot_measure"])
    assert not any("cyclictest" in what for what in poor["can_measure"])
    [priority] = [each for each in poor["checks"] if each["id"] == "realtime-priority"]
    assert "SYS_NICE" in priority["fix"]  # being root already, it is not sent to become root
