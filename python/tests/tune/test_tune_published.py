"""Nothing that `pamuk2024` sets is missing in the catalogue, and its mistakes are told.

data/tune/pamuk2024.toml lists what the publication names, copied from it.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from collected_trees import DATA

from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.model import CmdlineProbe, CmdlineToken, Condition, Entry, ServiceProbe, Write
from latenz.tune.root import Root

ENTRIES = {entry.id: entry for entry in load()}
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads((DATA / "pamuk2024.toml").read_text("utf-8"))
SECTIONS = PUBLISHED["section"]
CPU = "4"
"""The one that the publication isolates, of 14: 0 to 13 as in its Code 9."""


def conditions(condition: Condition | None) -> Iterator[Condition]:
    """Give all conditions that have a probe."""
    if condition is None:
        return
    if condition.probe is not None:
        yield condition
    for each in (*condition.all, *condition.any):
        yield from conditions(each)


def parameters(entry: Entry) -> set[str]:
    """Return the kernel parameters that an entry looks at or gives."""
    looked_at = {
        each.probe.parameter for each in conditions(entry) if isinstance(each.probe, CmdlineProbe)
    }
    given = [each.cmdline for each in entry.boot if isinstance(each, CmdlineToken)]
    return looked_at | {word.partition("=")[0] for text in given for word in text.split()}


def paths(entry: Entry) -> set[str]:
    """Return the files that an entry looks at."""
    return {
        path
        for each in (*conditions(entry), *conditions(entry.outcome))
        for path in getattr(each.probe, "path", ())
    }


def test_the_list_is_the_whole_publication() -> None:
    assert len(PUBLISHED["table4"]) == 5
    assert len(PUBLISHED["code6"]) == 27
    assert [f"5.3.{number}" for number in range(1, 10)] == [
        number for number in SECTIONS if number.startswith("5.3")
    ]
    assert [f"5.4.{number}" for number in range(1, 5)] == [
        number for number in SECTIONS if number.startswith("5.4")
    ]
    assert len(PUBLISHED["table5"]) == 3


@pytest.mark.parametrize("option", PUBLISHED["table4"])
def test_table_4(option: str) -> None:
    for id_ in PUBLISHED["table4"][option]:
        assert ENTRIES[id_].layer == "bios"
        assert "Table 4" in ENTRIES[id_].source


@pytest.mark.parametrize("token", PUBLISHED["code6"])
def test_code_6(token: str) -> None:
    name = token.partition("=")[0]
    for id_ in PUBLISHED["code6"][token]:
        assert ENTRIES[id_].layer == "cmdline"
        assert name in parameters(ENTRIES[id_])
        assert "Code 6" in ENTRIES[id_].source


@pytest.mark.parametrize("number", SECTIONS)
def test_sections(number: str) -> None:
    section = SECTIONS[number]
    assert section["entries"]
    for id_ in section["entries"]:
        assert id_ in ENTRIES
    first = ENTRIES[section["entries"][0]]
    if "path" in section:
        assert any(Path(section["path"]).match(path.lstrip("/")) for path in paths(first))
    if "value" in section:
        written = {each.value for each in first.now if isinstance(each, Write)}
        assert section["value"] in written


@pytest.mark.parametrize("service", PUBLISHED["table5"])
def test_table_5(service: str) -> None:
    for id_ in PUBLISHED["table5"][service]:
        units = [
            each.probe.units
            for each in conditions(ENTRIES[id_])
            if isinstance(each.probe, ServiceProbe)
        ]
        assert any(service in each for each in units)


@pytest.mark.parametrize("mistake", PUBLISHED["corrected"])
def test_its_mistakes_are_told(mistake: str) -> None:
    assert ENTRIES[PUBLISHED["corrected"][mistake]].correction


@pytest.fixture(scope="module")
def as_printed(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Give a machine of 14 CPUs whose command line is Code 6 as it is printed."""
    folder = tmp_path_factory.mktemp("as-printed")
    flags = "hypervisor pdpe1gb cat_l3 constant_tsc nonstop_tsc vmx hwp"
    files = {
        "proc/cmdline": " ".join(PUBLISHED["code6"]),
        "proc/cpuinfo": f"vendor_id\t: GenuineIntel\nflags\t\t: {flags}\n",
        "proc/irq/default_smp_affinity": "0001\n",
        "sys/devices/system/cpu/online": "0-13\n",
        "sys/devices/system/cpu/isolated": f"{CPU}\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Context.of(Root(folder), profile="kvm-host")


def test_what_it_isolates_is_seen(as_printed: Context) -> None:
    assert as_printed.isolated == {int(CPU)}
    (found,) = check(as_printed, [ENTRIES["cmdline-isolcpus"]])
    assert found.state == "ok"


@pytest.mark.parametrize(
    "id_",
    ["cmdline-bogus-cstate-tokens", "cmdline-rdt-l3cat", "cmdline-irqaffinity"],
)
def test_code_6_as_printed_is_wrong_where_it_is(id_: str, as_printed: Context) -> None:
    (found,) = check(as_printed, [ENTRIES[id_]])
    assert found.state == "wrong"


@pytest.mark.parametrize(
    "id_",
    ["cmdline-audit-off", "cmdline-idle-poll", "cmdline-nohz-on", "cmdline-skew-tick"],
)
def test_code_6_as_printed_is_right_elsewhere(id_: str, as_printed: Context) -> None:
    (found,) = check(as_printed, [ENTRIES[id_]])
    assert found.state == "ok"
