"""`latenz tune irqs|tasks|topology`, held against lsirq, ps and lscpu of util-linux and procps."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from latenz.tune.interrupts import read_interrupts, since
from latenz.tune.root import Root
from latenz.tune.tasks import read_threads, worked_between
from latenz.tune.topology import advice, read_topology
from latenz.tune.topology_picture import svg

LIVE = Root(Path("/"))
LIMIT_S = 60
"""How long something may take on a busy machine."""


def latenz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", "tune", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def hybrid(root: Path) -> None:
    """Write what the kernel would tell of six performance and eight efficiency cores.

    So is the publication's i7-13800H with SMT off: pairs of L2 caches for each four small cores.
    """
    base = "sys/devices/system/cpu"
    known = dict.fromkeys((f"{base}/online", f"{base}/possible", f"{base}/present"), "0-13")
    known |= {"sys/devices/cpu_core/cpus": "0-5", "sys/devices/cpu_atom/cpus": "6-13"}
    known |= {f"{base}/isolated": "4", "sys/devices/system/node/node0/cpulist": "0-13"}
    known |= {"sys/devices/system/node/node0/cpumap": "3fff", f"{base}/kernel_max": "8191"}
    model = "vendor_id\t: GenuineIntel\nmodel name\t: 13th Gen Intel(R) Core(TM) i7-13800H"
    known["proc/cpuinfo"] = "".join(f"processor\t: {cpu}\n{model}\n\n" for cpu in range(14))
    for cpu in range(14):
        cluster = f"{cpu}" if cpu < 6 else "6-9" if cpu < 10 else "10-13"
        mask = f"{1 << cpu:x}" if cpu < 6 else f"{0xF << (6 if cpu < 10 else 10):x}"
        known |= {
            f"{base}/cpu{cpu}/topology/{name}": value
            for name, value in {
                "physical_package_id": "0",
                "core_id": str(cpu * 4),
                "thread_siblings_list": str(cpu),
                "thread_siblings": f"{1 << cpu:x}",
                "core_siblings": "3fff",
                "core_siblings_list": "0-13",
            }.items()
        }
        known[f"{base}/cpu{cpu}/online"] = "1"
        for index, level, kind, size, shared, shared_mask in (
            (0, 1, "Data", "48K", str(cpu), f"{1 << cpu:x}"),
            (1, 2, "Unified", "2048K", cluster, mask),
            (2, 3, "Unified", "24576K", "0-13", "3fff"),
        ):
            folder = f"{base}/cpu{cpu}/cache/index{index}"
            known |= {
                f"{folder}/level": str(level),
                f"{folder}/type": kind,
                f"{folder}/size": size,
                f"{folder}/shared_cpu_list": shared,
                f"{folder}/shared_cpu_map": shared_mask,
                f"{folder}/id": str(cpu),
            }
    write(root, known)


def lscpu(root: Path) -> list[dict[str, str]]:
    answer = subprocess.run(
        ["lscpu", "--sysroot", root, "--extended=CPU,CORE,SOCKET,NODE,CACHE", "--json"],
        capture_output=True,
        check=True,
    )
    return json.loads(answer.stdout)["cpus"]


def alike(values: dict[int, object]) -> set[frozenset[int]]:
    """Return the groups of CPUs that have the same value."""
    return {frozenset(c for c in values if values[c] == each) for each in values.values()}


@pytest.mark.parametrize("tree", ["live", "hybrid"])
def test_cores_nodes_and_caches_are_those_of_lscpu(tree: str, tmp_path: Path) -> None:
    root = Path("/") if tree == "live" else tmp_path
    if tree == "hybrid":
        hybrid(tmp_path)
    found = read_topology(Root(root))
    theirs = {each["cpu"]: each for each in lscpu(root)}
    assert {cpu.number for cpu in found.cpus} == set(theirs)
    assert set(found.cores) == alike({cpu: each["core"] for cpu, each in theirs.items()})
    assert {frozenset(cpu.number for cpu in cpus) for cpus in found.nodes.values()} == alike(
        {cpu: each["node"] for cpu, each in theirs.items()}
    )
    (columns,) = {key for each in theirs.values() for key in each if key.startswith("l1")}
    for column, name in enumerate(columns.split(":")):
        groups = alike({cpu: each[columns].split(":")[column] for cpu, each in theirs.items()})
        kind = {"d": "Data", "i": "Instruction"}.get(name[2:], "Unified")
        ours = {c.cpus for c in found.caches if c.level == int(name[1]) and c.kind == kind}
        assert ours == groups


def test_unlike_cores_are_told_apart_and_advised_on(tmp_path: Path) -> None:
    hybrid(tmp_path)
    found = read_topology(Root(tmp_path))
    assert [cpu.kind for cpu in found.cpus] == ["performance"] * 6 + ["efficiency"] * 8
    assert (found.isolated, found.boot_cpu) == ({4}, 0)
    assert found.shared_with(frozenset({6}), 2) == {7, 8, 9}
    said = " ".join(advice(found))
    assert "CPUs 6-13 are efficiency cores" in said
    assert "leave CPU 0" in said


def test_the_picture_holds_every_cpu_once_inside_its_caches(tmp_path: Path) -> None:
    hybrid(tmp_path)
    drawn = ET.fromstring(svg(read_topology(Root(tmp_path))))
    names = "{http://www.w3.org/2000/svg}"
    texts = [each.text or "" for each in drawn.iter(f"{names}text")]
    assert [text for text in texts if text.startswith("CPU ")] == [f"CPU {n}" for n in range(14)]
    assert texts.count("L2 2 MiB") == 8
    assert texts.count("L3 24 MiB") == 1
    edges = []
    for each in drawn.iter(f"{names}rect"):
        x, y, width, height = (int(each.get(key, "0")) for key in ("x", "y", "width", "height"))
        edges.append((each.get("class", ""), x, y, x + width, y + height))
    cpus = [box for box in edges if box[0].startswith("cpu")]
    assert len(cpus) == 14
    assert len([box for box in cpus if "isolated" in box[0]]) == 1
    outer = next(box for box in edges if box[0] == "node")
    for box in cpus:  # inside the node, and beside all other CPUs
        assert outer[1] < box[1] < box[3] < outer[3]
        assert outer[2] < box[2] < box[4] < outer[4]
        assert all(box[1] >= other[3] or other[1] >= box[3] for other in cpus if other is not box)


def test_interrupts_are_those_of_lsirq() -> None:
    before = {each.id: sum(each.counts.values()) for each in read_interrupts(LIVE)}
    listed = subprocess.run(["lsirq", "--json"], capture_output=True, check=True)
    after = {each.id: sum(each.counts.values()) for each in read_interrupts(LIVE)}
    theirs = {each["irq"]: each["total"] for each in json.loads(listed.stdout)["interrupts"]}
    steady = before.keys() & after.keys()  # one may be used for the first time meanwhile
    assert steady
    assert steady <= set(theirs) - {"ERR", "MIS"} <= before.keys() | after.keys()
    for name in steady:
        assert before[name] <= theirs[name] <= after[name]


def test_interrupts_are_counted_where_and_while_they_happen() -> None:
    before = read_interrupts(LIVE)
    cpu = max(os.sched_getaffinity(0))
    subprocess.run(["taskset", "-c", str(cpu), "sleep", "0.2"], check=True)
    counted = since(before, read_interrupts(LIVE))
    assert counted["LOC"][cpu] > 0
    assert all(count >= 0 for each in counted.values() for count in each.values())


def test_the_effective_affinity_decides_and_what_cannot_move_says_why(tmp_path: Path) -> None:
    rows = [
        "           CPU0       CPU1       CPU2",
        "   0:         44          0          0   IO-APIC    2-edge      timer",
        "  24:          5          0          7   PCI-MSI 512000-edge      nvme0q1",
        "  25:          1          1          1   PCI-MSI 512001-edge      eth0-rx",
        "  26:          0          0          0   PCI-MSI 512002-edge      eth0-tx",
        " NMI:          0          3          0   Non-maskable interrupts",
        " ERR:          0",
    ]
    write(tmp_path, {"proc/interrupts": "\n".join(rows)})
    write(
        tmp_path,
        {
            "proc/irq/24/smp_affinity_list": "0-2",
            "proc/irq/24/effective_affinity_list": "2",
            "sys/kernel/debug/irq/irqs/24": "handler: x\ndstate: 0x1\n  IRQD_AFFINITY_MANAGED",
            "proc/irq/25/smp_affinity_list": "0-2",
            "proc/irq/25/effective_affinity_list": "0",
            "sys/kernel/debug/irq/irqs/25": "dstate: 0x1\n  IRQD_ACTIVATED",
            "proc/irq/26/smp_affinity_list": "1-2",
            "sys/devices/system/cpu/online": "0-2",
        },
    )
    found = {each.id: each for each in read_interrupts(Root(tmp_path))}
    assert set(found) == {"0", "24", "25", "26", "NMI"}
    assert {name for name, each in found.items() if each.reaches(frozenset({2}))} == {"24", "26"}
    assert {name: each.movable for name, each in found.items()} == {
        "0": "no",
        "24": "no",
        "25": "yes",
        "26": "maybe",
        "NMI": "no",
    }
    assert "managed" in found["24"].why
    assert found["24"].entries == ("cmdline-managed-irq",)
    answer = latenz("irqs", "--root", str(tmp_path), "--cpus", "2", "--json")
    told = json.loads(answer.stdout)["interrupts"]
    assert [(each["id"], each["counts"]) for each in told] == [("24", {"2": 7}), ("26", {"2": 0})]


def test_names_of_a_machine_are_texts_that_nothing_obeys(tmp_path: Path) -> None:
    """Anybody can name a thread; a driver names an interrupt."""
    evil = "a\x1b[31m[/x]"
    rows = f"      CPU0  CPU1\n 24:    5     7   PCI-MSI 512-edge   {evil}"
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2]
    write(
        tmp_path,
        {
            "sys/devices/system/cpu/online": "0-1",
            "proc/interrupts": rows,
            "proc/9/task/9/stat": f"9 ({evil}){stat}",
            "proc/9/task/9/status": "Cpus_allowed_list:\t0-1",
        },
    )
    for verb in ("irqs", "tasks"):
        answer = latenz(verb, "--root", str(tmp_path), "--all")
        assert answer.returncode == 0, answer.stderr
        assert "\x1b" not in answer.stdout
        assert r"a\x1b" in answer.stdout


def ps() -> dict[int, tuple[str, str, str, str]]:
    columns = "lwp=,policy=,nice=,rtprio=,comm="
    answer = subprocess.run(["ps", "axHo", columns], capture_output=True, text=True, check=True)
    rows = (line.split(maxsplit=4) for line in answer.stdout.splitlines())
    return {int(row[0]): (row[1], row[2], row[3], row[4]) for row in rows if len(row) == 5}


def test_threads_are_those_of_ps() -> None:
    """The kernel's workers are named after their work, which changes and comes back meanwhile.

    Such a thread differs now and then; what we read wrongly differs each time.
    """
    nice = subprocess.Popen(["nice", "-n", "5", "sleep", "600"])
    try:
        give_up = time.monotonic() + LIMIT_S
        while ps().get(nice.pid, ("",) * 4)[3] != "sleep":
            assert time.monotonic() < give_up
            time.sleep(0.05)
        steady, unlike = compared_with_ps()
        assert {os.getpid(), nice.pid} <= steady
        for _ in range(9):
            if not unlike:
                break
            _, again = compared_with_ps()
            unlike = {tid: again[tid] for tid in unlike.keys() & again.keys()}
        assert not unlike
    finally:
        nice.kill()
        nice.wait()


def compared_with_ps() -> tuple[set[int], dict[int, object]]:
    """Return the threads of which ps says the same before and after us, and those unlike ours."""
    before, ours, after = ps(), {each.tid: each for each in read_threads(LIVE)}, ps()
    steady = {tid for tid in before if before[tid] == after.get(tid)}
    shown = dict.fromkeys(steady)
    for tid in steady & set(ours):
        each = ours[tid]
        nice = str(each.nice) if each.policy in ("TS", "B") else "-"  # as ps has it
        priority = "-" if each.policy == "TS" else str(each.priority or 0)
        shown[tid] = (each.policy, nice, priority, each.name)
    return steady, {tid: (shown[tid], before[tid]) for tid in steady if shown[tid] != before[tid]}


def test_what_runs_on_a_cpu_is_named_with_what_it_ran() -> None:
    cpu = max(os.sched_getaffinity(0))
    program = "print(flush=True)\nwhile True: pass"
    command = ["taskset", "-c", str(cpu), sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as busy:
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            before = read_threads(LIVE)
            give_up = time.monotonic() + LIMIT_S
            while not worked_between(before, after := read_threads(LIVE))[busy.pid]:
                assert time.monotonic() < give_up
                time.sleep(0.1)
        finally:
            busy.kill()
    (found,) = [each for each in after if each.tid == busy.pid]
    assert found.touches(frozenset({cpu}))
    assert (found.allowed, found.movable, found.kernel) == ({cpu}, "yes", False)
    assert worked_between(before, after)[busy.pid] > 0


def test_threads_that_the_kernel_binds_cannot_be_moved() -> None:
    bound = [each for each in read_threads(LIVE) if each.name.startswith("migration/")]
    assert {each.tid for each in bound} == {
        tid for tid, row in ps().items() if row[3].startswith("migration/")
    }
    for each in bound:
        assert (each.kernel, each.movable, each.policy) == (True, "no", "FF")
        with pytest.raises(OSError, match="Invalid argument"):
            os.sched_setaffinity(each.tid, each.allowed)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["irqs", "--cpus", "x"], "--cpus: 'x' is not a list of CPUs"),
        (["irqs", "--cpus", "4000"], "CPU 4000 is not online"),
        (["tasks", "--root", "/nowhere"], "/nowhere"),
        (["irqs", "--during", "0"], "too short or too long"),
        (["topology", "-o", "/nowhere/x.svg"], "/nowhere/x.svg: cannot be written"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], told: str) -> None:
    answer = latenz(*arguments)
    assert answer.returncode == 2
    assert told in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_files_cannot_be_watched(tmp_path: Path) -> None:
    hybrid(tmp_path)
    write(tmp_path, {"proc/interrupts": "  CPU0\n 1:  3 x"})
    answer = latenz("irqs", "--root", str(tmp_path), "--during", "1s")
    assert (answer.returncode, "nothing happens in files" in answer.stderr) == (2, True)
