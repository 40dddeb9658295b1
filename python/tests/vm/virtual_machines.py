"""Virtual machines for the tests: settings as hypothesis draws them, and QEMU before it runs."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

from hypothesis import strategies as st

from latenz.vm.command import Boot, arguments, command
from latenz.vm.settings import EXPRESSED, VmSettings

SPARE = {"guest-isolcpus-nohz-rcu", "guest-irqaffinity"}


def with_spare(tunings):
    """What needs another vCPU gets it."""
    needs = frozenset(tunings) & SPARE
    return frozenset(tunings) | ({"vcpu-non-rt-spare"} if needs else frozenset())


tunings = st.frozensets(st.sampled_from(sorted(EXPRESSED))).map(with_spare)
settings = st.builds(
    VmSettings,
    accelerator=st.sampled_from(["kvm", "tcg"]),
    vcpus=st.integers(2, 5),
    memory_mib=st.integers(128, 2048).map(lambda half: 2 * half),
    tunings=tunings,
    cpus=st.sampled_from([None, "3-7", (1, 3, 5, 7, 9)]),
    housekeeping=st.sampled_from([None, "0-2,8"]),
    node=st.integers(0, 3),
    disk=st.sampled_from([None, Path("/var/lib/disk.raw")]),
    tap=st.sampled_from([None, "tap0"]),
    passthrough=st.sampled_from([None, "0000:03:00.1"]),
)


def boot(folder=Path("/tmp")):
    """Boot what need not be a system."""
    return Boot(
        Path("/nowhere/vmlinuz"), Path("/nowhere/initrd"), "", folder / "console.log", "null"
    )


@contextlib.contextmanager
def paused(machine, folder, **files):
    """QEMU before the guest's first instruction, as our command line starts it; a QMP session."""
    chosen = Boot(**{**boot(folder).__dict__, **files})
    line = arguments(command(machine, chosen))
    if machine.accelerator == "kvm" and machine.on("qemu-cpu-host"):
        # A nested KVM may offer a register that it then refuses; the rest is as it stands.
        line[line.index("-cpu") + 1] += ",arch-capabilities=off"
    with subprocess.Popen(
        [*line, "-S", "-qmp", "stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "errors").open("wb"),
        text=True,
    ) as qemu:

        def ask(what, **given):
            qemu.stdin.write(json.dumps({"execute": what, "arguments": given}) + "\n")
            qemu.stdin.flush()
            for answer in map(json.loads, qemu.stdout):
                if "return" in answer or "error" in answer:
                    return answer.get("return", answer.get("error"))
            raise AssertionError((folder / "errors").read_text())

        try:
            ask("qmp_capabilities")
            ask.pid = qemu.pid
            yield ask
        finally:
            qemu.kill()


def kvm_there():
    return os.access("/dev/kvm", os.R_OK | os.W_OK)
