"""The stack `amp`: Linux on the A53 cores, our firmware on a real-time core under its supervision.

Linux loads, starts and supervises the firmware as OpenAMP's remoteproc does. This stack sends no
messages between the two: samples come over the real-time core's own serial line.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from latenz.installation import built_file
from latenz.measuring.settings import StackSettings
from latenz.model import SampleSet
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.images import Image
    from latenz.boards.payload import Payload

_FIRST_R5 = 4  # QEMU counts the four A53 first
_LINUX_SENDER = 1
_MARGIN_US = 20_000  # start, and sending


class AmpSettings(StackSettings):
    """Linux and a real-time core."""

    kind: Literal["amp"]
    cpus: int = Field(default=1, ge=1, le=4)
    """A53 cores that Linux gets."""
    tick_us: int = Field(default=10, ge=1, le=1000)
    """Longest turn of an emulated core while others wait, in virtual microseconds."""


class Amp(Stack[AmpSettings]):
    """Linux on A53 cores, firmware on the first R5."""

    name = "amp"
    settings_type = AmpSettings
    benches = ("zcu102",)
    engines = ("interrupt",)
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")
    planned_s = 40
    _images: dict[str, "Image"]
    _command_line = ""

    def payload(self) -> "Payload":
        """Return Linux, with the firmware among its files, and the real-time core's loader."""
        from latenz.boards import images
        from latenz.boards.payload import Load, Payload
        from latenz.stacks import guest_linux
        from latenz.stacks.measured import firmware_settings, measuring_firmware
        from latenz.stacks.zynqmp import device_tree

        job = self.job
        firmware = measuring_firmware(job, "zcu102-r5")
        engine = firmware_settings(job)
        load = guest_linux.load_command(job.condition.load)
        kernel = images.linux("stock")
        initrd = guest_linux.initrd(
            "amp", "stock", "latenz-remote", files={"/firmware.elf": firmware.read_bytes()}
        )
        self._images = {"kernel": kernel, "initrd": initrd}
        options = guest_linux.kernel_options(
            measure_us=engine.samples * engine.period // 1000 + _MARGIN_US,
            load=" ".join(load),
            settle_us=guest_linux.settle_us(job.condition.load) if load else "",
        )
        self._command_line = f"console=ttyPS0 quiet panic=-1 {options}"
        return Payload(
            kernel=kernel.path,
            cpus=self.settings.cpus,
            memory_mib=2048,
            device_tree=device_tree(job.folder, self.settings.cpus),
            initrd=initrd.path,
            command_line=self._command_line,
            loads=(Load(_loader(), cpu=_FIRST_R5),),
            real_time_cores=True,
            uarts=2,
            tick_us=self.settings.tick_us,
            boot_limit_s=240,
            limit_s=600,
        )

    def done(self, received: "Received") -> bool:
        """Return whether Linux has said its last word: after that of the real-time core."""
        return _LINUX_SENDER in received.ended

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return the latencies of the real-time core."""
        from latenz.stacks.measured import firmware_sets

        polled = received.hello is not None and received.hello.get("interrupt") is False
        notes = (*received.notes, *((_POLLED,) if polled else ()), self._artefact())
        sets = firmware_sets(self.job, received, *notes)
        seen = _SEEN_BY_A_LOOP if polled else {}
        return [each.with_metadata(cpu=None, **seen) for each in sets]  # none of the A53

    def provenance(self) -> dict[str, Any]:
        """Return packages, hashes and the kernel's command line."""
        made = {name: image.provenance() for name, image in self._images.items()}
        return {**made, "command_line": self._command_line}

    def _artefact(self) -> str:
        return (
            "the real-time core is not the first of the emulated cores: while Linux is busy, events"
            f" wait for its turn, a share of {self.settings.tick_us} us; on silicon nothing waits"
        )


_POLLED = (
    "QEMU gives the R5 no interrupts: a loop that polls the timer sees the event; on a real ZCU102"
    " the R5 takes the interrupt"
)
_SEEN_BY_A_LOOP = {
    "from_event": "timer counter reaches its interval",
    "to_event": "a loop on the R5 has seen it",
}


def _loader() -> Path:
    return built_file("firmware", "zcu102-r5-loader", "loader.elf")
