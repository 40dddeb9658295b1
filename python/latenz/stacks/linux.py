"""The stacks `linux` and `linux-rt`: Debian's kernels, with cyclictest or our probe on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from latenz.errors import BadInput
from latenz.measuring.settings import EngineSettings, StackSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle
from latenz.settings import CpuList, format_cpu_list
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.images import Flavour, Image
    from latenz.boards.payload import Payload


class _AnyLinuxSettings(StackSettings):
    """What both kernels share."""

    cpus: int = Field(default=1, ge=1, le=4)
    """Cores that Linux gets. One is exact: see docs/linux-boards.md."""
    isolated: CpuList | None = None
    """Cores that the kernel keeps programs and ticks off: isolcpus= and nohz_full=."""
    load_on: Literal["all", "others"] = "all"
    """`all`: the load runs where the scheduler puts it, as published; `others`: on the cores that
    are not measured."""


class LinuxSettings(_AnyLinuxSettings):
    """Debian's stock kernel."""

    kind: Literal["linux"]


class LinuxRtSettings(_AnyLinuxSettings):
    """Debian's kernel with PREEMPT_RT."""

    kind: Literal["linux-rt"]


SettingsT = TypeVar("SettingsT", bound=_AnyLinuxSettings)


class AnyLinux(Stack[SettingsT]):
    """What both kernels share: one thread on each measured core, the load beside it."""

    benches = ("virt", "zcu102", "zcu102-board")
    engines = ("cyclictest", "wakeup")
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all", "stress-ng")
    planned_s = 25
    with_windows = ("virt",)
    flavour: ClassVar["Flavour"]
    _images: dict[str, "Image"]
    _command_line = ""

    @classmethod
    def obstacle(cls, settings: SettingsT, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return that no core is left for the load, where that is so."""
        if settings.load_on == "others" and settings.cpus == 1:
            return Obstacle(
                'load_on = "others" leaves the load no core', "give the stack cpus = 2 or more"
            )
        cores = tuple(range(settings.cpus))
        if settings.isolated and not set(settings.isolated) < set(cores):
            return Obstacle(
                f"{settings.cpus} cores cannot isolate {format_cpu_list(settings.isolated)}",
                f"isolate some of {format_cpu_list(cores)}, and leave one for everything else",
            )
        return None

    @classmethod
    def windows_obstacle(cls, settings: Any, engine: Any, bench: str) -> Obstacle | None:
        """Return why the kernel's windows cannot be recorded, or None if they can."""
        if settings.cpus > 1:
            return Obstacle(
                f"windows are recorded on one core, not on {settings.cpus}: QEMU's plugins cannot"
                " count the instructions of several",
                "give the stack cpus = 1",
            )
        if engine.policy not in ("fifo", "rr"):
            return Obstacle(
                f"windows bound a thread of policy fifo or rr, not of {engine.policy}",
                'give the probe policy = "fifo"',
            )
        return super().windows_obstacle(settings, engine, bench)

    def payload(self) -> "Payload":
        """Return the kernel, a small system, and what to do on the kernel's command line."""
        from latenz.boards import images
        from latenz.boards.payload import Payload
        from latenz.stacks import guest_linux

        job, settings = self.job, self.settings
        command = guest_linux.measuring_command(job, self._measured())
        load = guest_linux.load_command(job.condition.load, self._load_cpus(), beside_probe=True)
        kernel = images.linux(self.flavour)
        initrd = guest_linux.initrd("linux", self.flavour, "latenz-wakeup")
        self._images = {"kernel": kernel, "initrd": initrd}
        zynqmp = job.bench != "virt"
        self._command_line = " ".join(
            [
                f"console={'ttyPS0' if zynqmp else 'ttyAMA0'} quiet panic=-1",
                *self.parameters(),
                guest_linux.kernel_options(
                    measure=" ".join(command),
                    output=guest_linux.output_file(job),
                    load=" ".join(load),
                    settle_us=guest_linux.settle_us(job.condition.load) if load else "",
                    snapshot="yes" if settings.isolated else "",
                ),
            ]
        )
        return Payload(
            kernel=kernel.path,
            cpus=settings.cpus,
            memory_mib=2048 if zynqmp else 1024,
            device_tree=self._device_tree(job.folder) if zynqmp else None,
            initrd=initrd.path,
            command_line=self._command_line,
            tick_us=_TICK_US if settings.cpus > 1 else None,
            boot_limit_s=self._limit_s(),
            limit_s=self._limit_s(),
        )

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return the latencies of each measured core."""
        from latenz.stacks.guest_linux import linux_sets

        settings = self.settings
        sets = linux_sets(
            self.job,
            received,
            self._measured(),
            machine=f"Cortex-A53, {settings.cpus} core{'s' if settings.cpus > 1 else ''}",
            kernel=self._kernel(),
        )
        return [self._placed(each) for each in sets]

    def provenance(self) -> dict[str, Any]:
        """Return packages, hashes and the kernel's command line."""
        made = {name: image.provenance() for name, image in self._images.items()}
        return {**made, "command_line": self._command_line}

    def parameters(self) -> list[str]:
        """Return parameters of the kernel besides those that all need: isolation."""
        cores = format_cpu_list(self.settings.isolated or ())
        return [f"isolcpus={cores} nohz_full={cores} irqaffinity={self._others()}"] if cores else []

    def _others(self) -> str:
        isolated = self.settings.isolated or ()
        return format_cpu_list(tuple(c for c in range(self.settings.cpus) if c not in isolated))

    def _placed(self, sample_set: SampleSet) -> SampleSet:
        """Say what there is to know of the core of a sample set."""
        cpu = sample_set.metadata.cpu
        notes = (*sample_set.metadata.notes, *self._artefacts(cpu))
        if cpu not in (self.settings.isolated or ()):
            return sample_set.with_metadata(notes=notes)
        reason = "isolcpus, nohz_full"
        notes = (*notes, f"CPU {cpu} is isolated: {reason}")
        return sample_set.with_metadata(notes=notes, isolation=reason)

    def _measured(self) -> tuple[int, ...]:
        """Return the cores to measure on."""
        engine = self.job.condition.engine
        assert isinstance(engine, EngineSettings)  # noqa: S101 - simulations run on no board
        available = tuple(range(self.settings.cpus))
        others = self.settings.load_on == "others"
        chosen = engine.cpus or (available[:1] if others else available)
        wrong = [cpu for cpu in chosen if cpu not in available]
        if wrong or (others and chosen == available):
            raise BadInput(
                f"cannot measure on CPU {format_cpu_list(chosen)} of {self.settings.cpus}",
                self.job.condition.name,
                f"choose among {format_cpu_list(available)}"
                + (", and leave one for the load" if others else ""),
            )
        return chosen

    def _load_cpus(self) -> tuple[int, ...] | None:
        if self.settings.load_on == "all":
            return None
        measured = self._measured()
        return tuple(cpu for cpu in range(self.settings.cpus) if cpu not in measured)

    def _device_tree(self, folder: Path) -> Path:
        from latenz.stacks.zynqmp import device_tree

        return device_tree(folder, self.settings.cpus)

    def _kernel(self) -> str:
        from latenz.boards.images import kernel_release

        suffix = " PREEMPT_RT" if self.flavour == "rt" else ""
        return kernel_release(self.flavour) + suffix

    def _artefacts(self, cpu: int | None) -> tuple[str, ...]:
        """Return what of the figures the emulator makes itself."""
        if self.job.bench == "zcu102-board" or self.settings.cpus == 1:
            return ()
        where = "this core" if cpu is None else f"CPU {cpu}"
        return (
            f"{self.settings.cpus} emulated cores take turns of up to {_TICK_US} us: whatever runs"
            f" on the others delays {where}, also where it would not on silicon; compare with the"
            " load spin, or give the stack one core",
        )

    def _limit_s(self) -> int:
        from latenz.stacks.guest_linux import virtual_seconds

        return 60 + 20 * self.settings.cpus * virtual_seconds(self.job.condition)


_TICK_US = 10


class Linux(AnyLinux[LinuxSettings]):
    """Debian's stock kernel, which preempts only where it chooses to."""

    name = "linux"
    settings_type = LinuxSettings
    flavour = "stock"


class LinuxRt(AnyLinux[LinuxRtSettings]):
    """Debian's kernel with PREEMPT_RT."""

    name = "linux-rt"
    settings_type = LinuxRtSettings
    flavour = "rt"
