"""Over a link, a machine is found to be what it is found to be from itself."""

import json

from remote_targets import latenz

OF_THE_MOMENT = {"other-load", "virtual-machine"}  # numbers that change meanwhile


def told(*arguments: str) -> dict:
    asked = latenz(*arguments, "--json")
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode in (0, 1), errors
    return json.loads(printed)


def test_doctor_finds_the_same(alone: None):
    there = {each["id"]: each for each in told("doctor", "--on", "local:")["checks"]}
    here = {each["id"]: each for each in told("doctor")["checks"]}
    assert set(here) - set(there) == {
        "bound-events",
        "left-traces",
        "kvm",
        "emulated-boards",
        "packages",
    }
    for name, check in there.items():
        if name not in OF_THE_MOMENT:
            assert check["state"] == here[name]["state"], name
    for name in ("realtime-priority", "memory-lock", "isolation", "preemption", "tool-cyclictest"):
        assert there[name] == here[name]


def test_doctor_knows_the_engines_and_loads_of_a_target():
    there, here = told("doctor", "--on", "local:"), told("doctor")
    able = {what for what in here["can_measure"] if not what.endswith(("(intercore)", "(robot)"))}
    assert set(there["can_measure"]) == able - {"under load disk", "under load kernel-compile"}


def test_tune_checks_the_same(alone: None):
    there, here = told("tune", "check", "--on", "local:"), told("tune", "check")
    assert there["profile"] == here["profile"]
    assert [each["id"] for each in there["checks"]] == [each["id"] for each in here["checks"]]
    differ = [
        (each["id"], each["state"], other["state"])
        for each, other in zip(there["checks"], here["checks"], strict=True)
        if each["state"] != other["state"]
    ]
    # of a device, which is not read over a link
    assert [each for each in differ if each[1] != "unknown"] == []
