"""The catalogue: that it is complete and well formed; sets of CPUs against an independent model."""

import re
import runpy
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.tune.catalogue import chosen, load, load_all
from latenz.tune.context import Context, NotKnown
from latenz.tune.cpus import CPU_LIMIT, format_list, format_mask, parse_list, parse_mask
from latenz.tune.model import Layer, SysfsWrite, Write
from latenz.tune.root import Root
from latenz.tune.show import described
from latenz.tune.targets import targets

IDS = Path(__file__).parents[1] / "data/tune_ids/ids.txt"
ENTRIES = {entry.id: entry for entry in load()}
CPU_SETS = st.frozensets(st.integers(0, 300), max_size=40)


def test_every_entry_of_the_list_is_there_in_its_layer() -> None:
    wanted = dict(reversed(line.split()) for line in IDS.read_text("utf-8").splitlines())
    assert len(wanted) == 132
    assert {id_: ENTRIES[id_].layer for id_ in wanted if id_ in ENTRIES} == wanted


def test_layers_come_in_their_order() -> None:
    order = [get_args(Layer).index(entry.layer) for entry in load()]
    assert order == sorted(order)


@pytest.mark.parametrize("entry", load(), ids=lambda entry: str(entry.id))
def test_an_entry_says_what_people_need(entry):
    for text in (entry.why, entry.risk, entry.source):
        assert text
        assert text.strip() == text
    for text in (entry.why, entry.risk, entry.advice, entry.correction):
        assert text == "" or text.endswith(".")
    assert 10 < len(entry.title) <= 100
    assert "\n" not in entry.title
    assert not entry.title.endswith(".")
    assert bool(entry.now or entry.boot) <= bool(entry.revert)


def test_what_gives_up_security_needs_consent() -> None:
    tokens = re.compile(r"mitigations|spectre|audit=0|nx_huge_pages")
    for entry in load():
        if any(tokens.search(described(action)) for action in (*entry.now, *entry.boot)):
            assert entry.consent == "security", entry.id


@pytest.mark.parametrize("entry", load(), ids=lambda entry: str(entry.id))
def test_an_entry_tells_for_which_kernels_it_holds(entry):
    """`all` is every release since 6.1, the oldest that Latenz knows."""
    assert re.match(r"all\b|since \d+\.\d+", entry.linux)


@pytest.mark.parametrize(
    ("consent", "tokens"),
    [
        ("detection", r"watchdog|nosoftlockup|stall_suppress|hung_task|check_interval|ignore_ce"),
        ("protection", r"rt_runtime"),
        ("memory", r"ksm/run|swappiness"),
        ("time", r"tsc=|=tsc|current_clocksource"),
    ],
)
def test_what_gives_up_anything_needs_consent(consent: str, tokens: str) -> None:
    concerned = [
        entry
        for entry in load()
        if re.search(tokens, " ".join(map(described, (*entry.now, *entry.boot))))
    ]
    assert concerned
    assert {entry.id: entry.consent for entry in concerned} == {
        entry.id: consent for entry in concerned
    }


def test_changes_are_made_of_what_the_machine_has(tmp_path: Path) -> None:
    """Each placeholder of every action is known, on a machine on which all are."""
    tree = machine(tmp_path)
    context = Context(Root(tree), frozenset({4}), frozenset(range(6)), "kvm-host")
    for entry in load():
        for action in (*entry.now, *entry.boot):
            text = described(action, context).replace("cpu{iso_cpu}", "")
            assert "{" not in text, entry.id


def machine(folder: Path) -> Path:
    """Write a small tree."""
    files = {
        "proc/sys/kernel/osrelease": "6.1.0\n",
        "sys/devices/system/cpu/online": "0-5\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state0/latency": "0\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state0/disable": "0\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state1/latency": "2\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state1/disable": "0\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state2/latency": "133\n",
        "sys/devices/system/cpu/cpu4/cpuidle/state2/disable": "0\n",
        "sys/devices/system/cpu/cpu5/cpuidle/state2/latency": "133\n",
        "sys/devices/system/cpu/cpu5/cpuidle/state2/disable": "0\n",
        "proc/irq/1/smp_affinity_list": "0-5\n",
        "proc/irq/25/smp_affinity_list": "0-5\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_writes_go_to_the_files_that_are_meant(tmp_path: Path) -> None:
    context = Context(Root(machine(tmp_path)), frozenset({4}), frozenset(range(6)), "host")
    (idle,) = ENTRIES["host-cpuidle-state-disable"].now
    assert isinstance(idle, Write)
    disable = "/sys/devices/system/cpu/cpu4/cpuidle/state2/disable"
    assert targets(idle, context) == [(disable, "1")]
    (irqs,) = ENTRIES["host-irq-affinity"].boot
    assert isinstance(irqs, SysfsWrite)
    files = [f"/proc/irq/{number}/smp_affinity_list" for number in (1, 25)]
    assert targets(irqs, context) == [(file, "0-3,5") for file in files]
    with pytest.raises(NotKnown, match="give --cpus"):
        targets(idle, Context(context.root, frozenset(), context.online, "host"))


def test_an_unknown_id_is_told_with_the_nearest_one() -> None:
    with pytest.raises(BadInput, match="did you mean 'host-ksm-off'"):
        chosen(("host-ksm-of",), "--only")


ENTRY = """
[[entry]]
id = "a-b"
title = "Something is so"
profiles = ["host"]
effect = "small"
why = "x"
risk = "x"
source = "x"
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ENTRY, "host.toml:2: entry[1]: is not a condition; give probe and wanted, or all, or any"),
        (
            ENTRY + 'probe = { kind = "file", path = "etc/passwd" }\nwanted = { absent = true }',
            "'etc/passwd' is not an absolute path",
        ),
        (
            ENTRY + 'probe = { kind = "file", path = "/a/../b" }\nwanted = { absent = true }',
            "'/a/../b' is not an absolute path",
        ),
        (
            ENTRY + 'probe = { kind = "file", path = "/a", regex = "x" }\nwanted = { equals = "" }',
            "'x' has not one group",
        ),
        (
            ENTRY + 'probe = { kind = "fiel", path = "/a" }\nwanted = { equals = "" }',
            "host.toml:10: entry[1].probe.kind: 'fiel' is not a known kind; did you mean 'file'?",
        ),
        (ENTRY + 'probe = { kind = "manual" }\nwhen = ["intle"]', "'intle' is not a condition"),
        (ENTRY + 'probe = { kind = "manual" }\nsupersedes = ["a-c"]', "'a-c' is not an entry"),
        (
            ENTRY + 'probe = { kind = "manual" }\nconflicts = ["a-b"]',
            "a-b, conflicts: names itself",
        ),
        (ENTRY + 'probe = { kind = "manual" }\nnow = [{ wriet = "/a" }]', "entry[1].now[1]"),
        (
            ENTRY + 'probe = { kind = "manual" }\n' + ENTRY,
            "host.toml:12: entry[2]: is not a condition",
        ),
        (
            ENTRY + 'probe = { kind = "manual" }\n' + ENTRY + 'probe = { kind = "manual" }',
            "host.toml:13: entry[2].id: 'a-b' is taken",
        ),
        (
            ENTRY + 'probe = { kind = "file", path = "/a" }\nwanted = { any = true }',
            "nothing is wanted",
        ),
    ],
)
def test_a_damaged_catalogue_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "host.toml").write_text(text)
    with pytest.raises(BadInput) as mistake:
        load_all(tmp_path)
    assert told in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_a_layer_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "kvm.toml").write_text(ENTRY + 'probe = { kind = "manual" }')
    (entry,) = load_all(tmp_path).entries
    assert (entry.id, entry.layer) == ("a-b", "kvm")


def rendered_mask(cpus: frozenset[int], groups: int, padded: bool) -> str:
    """Write a mask digit by digit, with as many groups of 32 bits as wanted."""
    digits = []
    for nibble in reversed(range(groups * 8)):
        digits.append(
            "0123456789abcdef"[sum(1 << bit for bit in range(4) if nibble * 4 + bit in cpus)]
        )
    parts = ["".join(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    text = ",".join(parts)
    return text if padded else text.lstrip("0,") or "0"


@settings(deadline=None)
@given(CPU_SETS, st.integers(0, 3), st.booleans())
def test_masks_are_sets_however_they_are_written(
    cpus: frozenset[int], more: int, padded: bool
) -> None:
    groups = max(cpus, default=0) // 32 + 1 + more
    text = rendered_mask(cpus, groups, padded)
    assert parse_mask(text) == cpus
    assert parse_mask(text.upper() + "\n") == cpus
    assert parse_mask("0x" + rendered_mask(cpus, groups, True).replace(",", "")) == cpus


@settings(deadline=None)
@given(CPU_SETS)
def test_masks_are_written_as_the_kernel_reads_them(cpus: frozenset[int]) -> None:
    text = format_mask(cpus)
    assert parse_mask(text) == cpus
    assert int(text.replace(",", ""), 16) == sum(2**cpu for cpu in cpus)
    assert all(len(group) == 8 for group in text.split(",")[1:])


def test_the_masks_of_a_known_confusion_are_equal() -> None:
    # https://github.com/redhat-performance/tuned/issues/98
    assert parse_mask("000c00,f000c00f") == parse_mask("00000c00,f000c00f")


RANGES = st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(1, 5), st.integers(1, 9))


@settings(deadline=None)
@given(st.lists(RANGES, max_size=6), st.sampled_from([",", " ", ", "]))
def test_lists_are_sets(ranges: list[tuple[int, int, int, int]], between: str) -> None:
    texts, wanted = [], set()
    for first, more, used, group in ranges:
        if used > group:
            texts.append(str(first))
            wanted.add(first)
            continue
        texts.append(f"{first}-{first + more}:{used}/{group}")
        for at in range(more + 1):  # as Linux bitmap_parselist: used of each group
            if at % group < used:
                wanted.add(first + at)
    assert parse_list(between.join(texts)) == wanted
    assert parse_list(format_list(frozenset(wanted))) == wanted


@pytest.mark.parametrize(
    ("text", "last", "wanted"),
    [
        ("", 7, set()),
        ("1,,2 ,", 7, {1, 2}),
        ("(null)\n", 7, set()),
        ("all", 3, {0, 1, 2, 3}),
        ("6-N", 7, {6, 7}),
        ("N", 7, {7}),
        ("managed_irq,domain,4", 7, {4}),
        ("nohz,2-3", 7, {2, 3}),
        ("domain", 7, set()),
    ],
)
def test_words_in_lists(text: str, last: int, wanted: set[int]) -> None:
    assert parse_list(text, last) == wanted


@pytest.mark.parametrize(
    "text", ["x", "3-1", "1-", "-1", "0x3", "1:2", "0-3:0/2", "0-3:3/2", f"0-{CPU_LIMIT}"]
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a range|neither a CPU"):
        parse_list(text)


@pytest.mark.parametrize("text", ["", ",", "g", "1,123456789", "-1", "1," * 300, "f" * 5000])
def test_what_is_no_mask(text: str) -> None:
    with pytest.raises(ValueError, match="mask"):
        parse_mask(text)


@settings(deadline=None)
@given(st.text(alphabet="0123456789-,:/ N abcdefx", max_size=30))
def test_any_text_is_a_set_or_a_mistake(text: str) -> None:
    for parse in (parse_list, parse_mask):
        with suppress(ValueError):
            assert all(0 <= cpu < CPU_LIMIT for cpu in parse(text))


def test_the_page_of_the_catalogue_is_made_from_it() -> None:
    docs = Path(__file__).parents[3] / "docs"
    made = runpy.run_path(str(docs / "make_tune_tables.py"))["page"]()
    same = (docs / "tune-catalogue.md").read_text("utf-8") == made
    assert same, "run docs/make_tune_tables.py > docs/tune-catalogue.md"
