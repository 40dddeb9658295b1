"""What `latenz tune check` sees of virtual machines: real QEMU processes, domains, and bad ones."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collected_trees import ISOLATED, unpacked
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.tune.catalogue import load
from latenz.tune.check import Check, check, evaluate
from latenz.tune.context import Context
from latenz.tune.qemu import QemuProcess, parse_option, read_processes, size_bytes
from latenz.tune.root import Root
from latenz.tune.snapshot import write_snapshot
from latenz.vm.command import Boot, arguments, command
from latenz.vm.libvirt import domain
from latenz.vm.settings import TUNED, VmSettings

ENTRIES = {entry.id: entry for entry in load()}
QEMU = shutil.which("qemu-system-x86_64")
CPU = max(os.sched_getaffinity(0))
LIMIT_S = 60
"""How long QEMU may take for something on a busy machine."""
OTHERS = os.sched_getaffinity(0) - {CPU}


def see(context: Context, *ids: str) -> dict[str, Check]:
    return {each.id: each for each in check(context, [ENTRIES[id_] for id_ in ids])}


# --- a real process


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Start QEMU with KVM, halted before its first instruction; give the number of the process."""
    if QEMU is None or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        pytest.skip("needs qemu-system-x86_64 and /dev/kvm")
    running = []

    def started(*options: str) -> int:
        always = ("-accel", "kvm", "-S", "-display", "none", "-m", "64M", "-smp", "1")
        process = subprocess.Popen(
            [QEMU, *always, *options], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        running.append(process)
        deadline = time.monotonic() + LIMIT_S
        while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 3:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip("QEMU does not start with KVM here")
            time.sleep(0.05)
        return process.pid

    yield started
    for process in running:
        process.kill()
        process.wait()


def threads(pid: int) -> dict[int, str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(task.name): (task / "comm").read_text().strip() for task in tasks}


def until(seen: Callable[[], bool]) -> bool:
    """Wait for something that QEMU does on its way up."""
    deadline = time.monotonic() + LIMIT_S
    while not seen() and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen()


@pytest.mark.skipif(len(OTHERS) == 0, reason="needs two CPUs")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to use SCHED_FIFO")
def test_threads_of_a_real_qemu_before_and_after(start: Callable[..., int]) -> None:
    pid = start("-name", "guest=tuned,debug-threads=on", "-nodefaults", "-overcommit", "cpu-pm=on")
    assert until(lambda: "CPU 0/KVM" in threads(pid).values())
    ids = ("vcpu-pinning", "vcpu-sched-fifo", "emulator-pinning", "qemu-cpu-pm", "qemu-mem-lock")

    def seen(context: Context) -> dict[str, tuple[str, str]]:
        return {id_: (each.state, each.found or "") for id_, each in see(context, *ids).items()}

    before = seen(Context.of(Root("/"), str(CPU), "kvm-host"))
    assert before["vcpu-pinning"][0] == before["vcpu-sched-fifo"][0] == "wrong"
    assert before["emulator-pinning"][0] == "wrong"
    assert before["qemu-mem-lock"][0] == "wrong"
    assert f"tuned ({pid})" in before["qemu-mem-lock"][1]

    for number, name in threads(pid).items():
        vcpu = name == "CPU 0/KVM"
        os.sched_setaffinity(number, {CPU} if vcpu else OTHERS)
        if vcpu:
            os.sched_setscheduler(number, os.SCHED_FIFO, os.sched_param(1))
    context = Context.of(Root("/"), str(CPU), "kvm-host")
    after = seen(context)
    if [each.pid for each in context.processes] == [pid]:  # nobody else's
        assert {state for id_, (state, _) in after.items() if id_ != "qemu-mem-lock"} == {"ok"}
    assert f"CPU 0/KVM {pid}" not in after["vcpu-pinning"][1]


def test_threads_without_names_are_not_guessed(start: Callable[..., int]) -> None:
    pid = start("-nodefaults", "-name", "guest=nameless,debug-threads=off")
    (found,) = see(Context.of(Root("/"), str(CPU), "kvm-host"), "vcpu-pinning").values()
    if found.state == "unknown":  # else somebody else's is wrong
        assert "debug-threads=on" in found.reason
        assert f"nameless ({pid})" in found.reason
    else:
        assert found.state == "wrong"


def test_locked_memory_of_a_real_qemu(start: Callable[..., int]) -> None:
    pid = start("-name", "guest=locked", "-nodefaults", "-overcommit", "mem-lock=on")
    (process,) = [each for each in read_processes(Root("/")) if each.pid == pid]
    assert process.memory_bytes == 64 << 20

    def locked_kb() -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmLck:")[2].split()[0])

    assert until(lambda: locked_kb() >= 64 << 10)


# --- what QEMU's options mean


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("machine", "q35,accel=kvm", {"type": "q35", "accel": "kvm"}),
        ("machine", "type=q35,kernel_irqchip=split", {"type": "q35", "kernel-irqchip": "split"}),
        (
            "cpu",
            "host,+invtsc,-pmu,migratable=no",
            {"model": "host", "invtsc": "on", "pmu": "off", "migratable": "no"},
        ),
        ("overcommit", "mem-lock=yes,cpu-pm", {"mem-lock": "yes", "cpu-pm": "on"}),
        ("drive", "file=/a,,b.img,if=none", {"file": "/a,b.img", "if": "none"}),
        (
            "netdev",
            '{"type":"tap","id":"n","vhost":true,"fds":[1,2]}',
            {"type": "tap", "id": "n", "vhost": "on"},
        ),
        ("device", '{"driver":"virtio-blk-pci"', {}),
        ("nodefaults", "", {}),
    ],
)
def test_options_are_read_as_qemu_reads_them(name: str, text: str, option: dict[str, str]) -> None:
    assert parse_option(name, text) == option


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("4096", 4 << 30), ("512M", 512 << 20), ("1T", 1 << 40), ("x", 0), ("", 0)],
)
def test_sizes_are_in_mebibytes_without_a_unit(text: str, size: int) -> None:
    assert size_bytes(text, 20) == size


@settings(deadline=None)
@given(st.lists(st.text(max_size=40), max_size=12))
def test_no_command_line_is_too_strange(arguments: list[str]) -> None:
    process = QemuProcess(1, tuple(arguments))
    assert process.memory_bytes > 0
    assert isinstance(process.uses_kvm, bool)
    assert process.name


@pytest.mark.parametrize(
    ("arguments", "kvm"),
    [
        (("-enable-kvm",), True),
        (("-accel", "kvm"), True),
        (("-machine", "q35,accel=kvm:tcg"), True),
        (("-M", "accel=tcg"), False),
        (("-accel", "tcg"), False),
        ((), False),
    ],
)
def test_only_processes_with_kvm_count(arguments: tuple[str, ...], kvm: bool) -> None:
    assert QemuProcess(1, arguments).uses_kvm == kvm


# --- domains, and bad ones


def domain_tree(folder: Path, text: str) -> Context:
    path = folder / "etc/libvirt/qemu/bad.xml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (folder / "proc/1").mkdir(parents=True)
    return Context.of(Root(folder), profile="kvm-host")


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE d [<!ENTITY a "b">]><domain><name>&a;</name></domain>',
        '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><domain><name>&a;</name></domain>',
        "<domain><name>cut off",
        "<network><name>default</name></network>",
        "",
        "\0",
    ],
)
def test_what_is_no_domain_is_told(text: str, tmp_path: Path) -> None:
    (found,) = see(domain_tree(tmp_path, text), "libvirt-locked").values()
    assert found.state == "unknown"
    assert "/etc/libvirt/qemu/bad.xml" in found.reason


def test_a_good_domain_beside_a_bad_one_is_judged(tmp_path: Path) -> None:
    context = domain_tree(tmp_path, "<domain")
    good = tmp_path / "etc/libvirt/qemu/good.xml"
    good.write_text("<domain type='kvm'><name>good</name></domain>")
    (found,) = see(context, "libvirt-locked").values()
    assert found.state == "wrong"
    assert "good" in (found.found or "")


# --- what `latenz vm` starts

BESIDE = frozenset({"guest-virtio-minimal"})
"""Without virtio there is nothing that vhost or an I/O thread could work for."""
ON_COMMAND_LINE = (
    "qemu-mem-lock",
    "qemu-cpu-pm",
    "qemu-hugepages",
    "qemu-cpu-host",
    "qemu-pmu-off",
    "qemu-hint-dedicated",
    "qemu-kvm-pit",
    "qemu-no-hpet",
    "qemu-minimal-devices",
    "qemu-iothread",
    "qemu-vhost",
)
IN_DOMAIN = ("libvirt-locked", "libvirt-no-usb-balloon", "vm-numa-local")


def started_tree(folder: Path, tunings: frozenset[str]) -> Context:
    """Give a machine of two nodes that runs what `latenz vm` would start, and has its domain."""
    boot = Boot(Path("/k"), Path("/i"), "", Path("/c"), "file,path=/r")
    settings = VmSettings(
        tunings=tunings,
        cpus=(2, 3),
        housekeeping=(0, 1),
        node=1,
        disk=Path("/disk"),
        tap="tap0",
        passthrough="0000:00:02.0",
    )
    files = {
        "proc/4711/cmdline": "\0".join(arguments(command(settings, boot))) + "\0",
        "proc/1/task/1/stat": f"1 (systemd) S {' '.join('0' * 49)}\n",
        "proc/1/task/1/status": "Name:\tsystemd\nCpus_allowed_list:\t0-3\n",
        "proc/mounts": "hugetlbfs /dev/hugepages hugetlbfs rw,pagesize=1024M 0 0\n",
        "etc/libvirt/qemu/latenz.xml": domain(settings, boot.kernel, boot.initrd),
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node0/cpulist": "0-1\n",
        "sys/devices/system/node/node1/cpulist": "2-3\n",
        "sys/module/kvm/parameters/enable_pmu": "Y\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Context(Root(folder), frozenset({2, 3}), frozenset(range(4)), "kvm-host")


@pytest.mark.parametrize("id_", [*ON_COMMAND_LINE, *IN_DOMAIN])
def test_a_tuning_of_latenz_vm_is_what_the_check_wants(id_: str, tmp_path: Path) -> None:
    """One tuning, and its check, which reads what was written on its own, changes its mind."""
    seen = [
        evaluate(ENTRIES[id_], started_tree(tmp_path / name, tunings))
        for name, tunings in (("without", BESIDE), ("alone", BESIDE | {id_}), ("all", TUNED))
    ]
    assert [each.state for each in seen] == ["wrong", "ok", "ok"], seen


# --- snapshots


@pytest.fixture(scope="module")
def machine() -> Iterator[Path]:
    """Give a collected machine on which a tuned virtual machine runs, with its domain."""
    with unpacked() as trees:
        folder = trees / "debian12/tuned"
        for name in ("qemu-tuned", "domain-tuned"):
            for path in (trees / "fragments" / name).rglob("*"):
                if path.is_file():
                    to = folder / path.relative_to(trees / "fragments" / name)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    text = path.read_text("utf-8").replace("{iso}", "3").replace("{hk}", "0-2")
                    to.write_text(text.replace("{iso_mask}", "8").replace("{hk_mask}", "7"))
        yield folder


@pytest.fixture(scope="module")
def snapshot(machine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the snapshot of that machine, on which somebody logs in with a password, too."""
    path = tmp_path_factory.mktemp("snapshot") / "machine.tar"
    other = machine / "proc/60001"
    other.mkdir()
    (other / "cmdline").write_bytes(b"login\0--password=hunter2\0")
    write_snapshot(path, machine)
    return path


@pytest.mark.parametrize("profile", ["kvm-host", "guest"])
def test_a_snapshot_says_what_the_machine_says(profile: str, machine: Path, snapshot: Path) -> None:
    said = [
        {each.id: each.to_json() for each in check(context, load())}
        for context in (
            Context.of(Root(machine), ISOLATED["debian12"], profile),
            Context.of(Root(snapshot), ISOLATED["debian12"], profile),
        )
    ]
    assert said[0] == said[1]
    assert {each["state"] for each in said[0].values()} >= {"ok", "wrong", "not applicable"}


def test_a_snapshot_holds_the_arguments_of_qemu_only(snapshot: Path) -> None:
    content = snapshot.read_bytes()
    assert b"mem-lock=on" in content
    assert b"hunter2" not in content
