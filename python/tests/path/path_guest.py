"""Builds the program in guest/ and runs it in QEMU, alone or as Xen's only guest."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from latenz.boards import images
from latenz.programs import plugin_arguments

SOURCE = Path(__file__).parent / "guest"
TICK_NS = 16
SAMPLES = 20
EMULATOR = [
    *("qemu-system-aarch64", "-cpu", "cortex-a53", "-nodefaults", "-display", "none"),
    *("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
    *plugin_arguments("latenz-exact-wait"),
]
CHOSEN = """chosen {
  #address-cells = <2>; #size-cells = <2>; stdout-path = "/pl011@9000000";
  xen,xen-bootargs = "console=dtuart dtuart=/pl011@9000000 bootscrub=0";
  domU1 {
    compatible = "xen,domain"; #address-cells = <2>; #size-cells = <2>;
    memory = <0x0 0x4000>; cpus = <1>; vpl011;
    module@58000000 {
      compatible = "multiboot,kernel", "multiboot,module"; reg = <0x0 0x58000000 0x0 0x10000>;
    };
  };
};"""


def call(*command, **options):
    done = subprocess.run(command, check=True, capture_output=True, timeout=600, **options)
    return done.stdout.decode()


class Guest:
    """One variant of the program.

    Args:
        folder: Takes what is built.
        xen: Whether Xen is below it.
        wfi: Whether it sleeps until its interrupt.
        cpus: How many CPUs there are; Xen starts them all, the guest has one.
    """

    def __init__(self, folder, xen=False, wfi=False, cpus=1):
        self.folder, self.xen, self.cpus = folder, xen, cpus
        base = "0x40000000" if xen else "0x40100000"
        self.elf = folder / "guest.elf"
        call(
            *("aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-Wl,--build-id=none"),
            *(
                "-Wl,--no-warn-rwx-segments",
                f"-Wl,--defsym=base={base}",
            ),
            *("-DXEN",) * xen,
            *("-DWFI",) * wfi,
            *(f"-Wl,-T,{SOURCE / 'guest.ld'}", SOURCE / "guest.S", "-o", self.elf),
        )

    def run(self, *arguments):
        """Run it to its end; return its latencies in ticks and all output up to the last one."""
        console = self.folder / "console"
        console.unlink(missing_ok=True)
        command = [*EMULATOR, *self._machine(), "-serial", f"file:{console}", *arguments]
        emulator = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            limit = time.monotonic() + 120
            while time.monotonic() < limit and emulator.poll() is None:
                time.sleep(0.05)
                if self.xen and len(self._latencies(console)) == SAMPLES:
                    break  # Xen stays when its guest has gone
        finally:
            emulator.kill()
            errors = emulator.communicate()[1].decode()
        found = self._latencies(console)
        assert len(found) == SAMPLES, errors
        # What Xen says of the end may or may not have come.
        return [int(each[1], 16) for each in found], console.read_bytes()[: found[-1].end(1)]

    def _latencies(self, console):
        text = console.read_bytes() if console.exists() else b""
        return list(re.finditer(rb"(?m)^(?:\(XEN\) DOM1: )?(\w{16})\s", text))

    def _machine(self):
        if not self.xen:
            return ["-M", "virt,gic-version=2", "-m", "128", "-kernel", self.elf]
        machine = ["-M", "virt,gic-version=2,virtualization=on", "-m", "512"]
        machine += ["-smp", str(self.cpus)]
        image, tree = self.folder / "guest.bin", self.folder / "tree"
        call("aarch64-linux-gnu-objcopy", "-O", "binary", self.elf, image)
        call(*EMULATOR, machine[0], f"{machine[1]},dumpdtb={tree}.base", *machine[2:])
        source = call("dtc", "-q", "-I", "dtb", "-O", "dts", f"{tree}.base")
        chosen = re.compile(r"chosen \{.*?\};", re.DOTALL)
        Path(f"{tree}.dts").write_text(chosen.sub(CHOSEN, source, count=1))
        call("dtc", "-q", "-I", "dts", "-O", "dtb", "-o", f"{tree}.dtb", f"{tree}.dts")
        loader = f"loader,file={image},addr=0x58000000,force-raw=on"
        return [*machine, "-kernel", images.xen().path, "-dtb", f"{tree}.dtb", "-device", loader]


def needed_programs():
    """Return those without which nothing can be tried."""
    programs = ("qemu-system-aarch64", "aarch64-linux-gnu-gcc", "dtc")
    return [name for name in programs if shutil.which(name, path=os.environ["PATH"]) is None]
