"""QEMU's command line for a virtual machine, in pieces that say which tuning put them there.

The default machine is what somebody types first, Code 4 of `pamuk2024` without its files: machine
`pc`, one processor of QEMU's default model, an e1000, no word about memory, clocks or power. Every
difference between it and a tuned one is a tuning of the catalogue.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from latenz.programs import turn_arguments
from latenz.vm.settings import VmSettings

PROGRAM = "qemu-system-x86_64"
VCPU_PRIORITY = 1
"""SCHED_FIFO priority of vCPU threads: below the host's own real-time threads that serve them."""
TURN_US = 10
"""Emulated vCPUs take turns of at most this long."""
PORT = "org.latenz.results"
"""Name of the port that the guest sends its results through."""


@dataclass(frozen=True)
class Part:
    """A part of an option's value.

    Attributes:
        text: As it stands there.
        entries: Ids of the tunings that decide on it; empty: it is in every machine.
    """

    text: str
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Piece:
    """An option of QEMU.

    Attributes:
        arguments: As a program is given them.
        parts: What the option's value is made of; of options without a value, the option itself.
    """

    arguments: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """Ids of the tunings that decide on any part of it, in their order."""
        return tuple(dict.fromkeys(entry for part in self.parts for entry in part.entries))


@dataclass(frozen=True)
class Boot:
    """What a machine boots, and where what it says goes.

    Attributes:
        kernel: A bzImage.
        initrd: Its initial RAM disk.
        options: Further words of the kernel's command line.
        console: File that takes what the guest's console says.
        results: QEMU's character device that takes the results, without its id, such as
            "socket,path=/run/results" or "file,path=/run/results.tar.gz".
        monitor: Socket of QEMU's monitor (QMP) that QEMU connects to; None for no monitor.
        paused: Whether the machine waits for the monitor before it starts.
    """

    kernel: Path
    initrd: Path
    options: str
    console: Path
    results: str
    monitor: Path | None = None
    paused: bool = False


@dataclass(frozen=True)
class Step:
    """What is done to QEMU's threads after its start.

    Attributes:
        entry: Id of the tuning.
        text: The command that does it, for people.
    """

    entry: str
    text: str


def command(settings: VmSettings, boot: Boot) -> list[Piece]:
    """Return QEMU's command line.

    Args:
        settings: The machine.
        boot: What it boots.
    """
    pieces = [
        Piece((PROGRAM,), (Part(PROGRAM),)),
        _joined("-name", ",", [Part("latenz,debug-threads=on")]),
        _joined("-machine", ",", _machine(settings)),
        _joined("-cpu", ",", _processor(settings)),
        _joined("-smp", "", [Part(str(settings.processors), ("vcpu-non-rt-spare",))]),
        _joined("-m", "", [Part(f"{settings.memory_mib}M")]),
        *_memory(settings),
        *_global(settings),
        *_clock(settings),
        *_devices(settings),
        *_boot(settings, boot),
    ]
    return [piece for piece in pieces if piece.parts]


def arguments(pieces: Iterable[Piece]) -> list[str]:
    """Return a command line as a program is started with it."""
    return [argument for piece in pieces for argument in piece.arguments]


def steps(settings: VmSettings) -> list[Step]:
    """Return what is to be done to the threads of QEMU, as the run does it."""
    found = []
    for number in range(settings.processors):
        thread = f"TID_OF_VCPU{number}"
        if settings.on("vcpu-pinning") and settings.cpus:
            cpu = host_cpu(settings, number)
            found.append(Step("vcpu-pinning", f"taskset --pid --cpu-list {cpu} {thread}"))
        if settings.on("vcpu-sched-fifo"):
            found.append(Step("vcpu-sched-fifo", f"chrt --fifo --pid {VCPU_PRIORITY} {thread}"))
    if settings.on("emulator-pinning") and settings.housekeeping:
        listed = ",".join(map(str, settings.housekeeping))
        text = f"taskset --pid --cpu-list {listed} TID_OF_EVERY_OTHER_THREAD"
        found.append(Step("emulator-pinning", text))
    return found


def host_cpu(settings: VmSettings, vcpu: int) -> int:
    """Return the host CPU of a vCPU; the last vCPU has the last of the CPUs."""
    cpus = settings.cpus or ()
    return cpus[len(cpus) - settings.processors + vcpu]


def kernel_options(settings: VmSettings) -> list[Part]:
    """Return the words of the guest's kernel command line, without what our programs are told."""
    parts = [Part("console=ttyS0"), Part("quiet"), Part("panic=-1")]
    words = {
        "guest-irqaffinity": [f"irqaffinity={settings.spare_cpus}"],
        "guest-clocksource-tsc": ["clocksource=tsc"],
        "guest-idle-poll": ["idle=poll"],
        "guest-haltpoll": ["cpuidle_haltpoll.force=1"],
        "guest-nmi-watchdog-off": ["nmi_watchdog=0"],
        "guest-no-timer-check": ["no_timer_check"],
        "guest-mitigations": ["mitigations=off"],
        "guest-hugepages": ["transparent_hugepage=never"],
        "guest-rt-throttling-off": ["sysctl.kernel.sched_rt_runtime_us=-1"],
        "guest-skew-tick": ["skew_tick=1"],
        "guest-tsc-reliable": ["tsc=reliable"],
        "guest-isolcpus-nohz-rcu": [
            f"isolcpus=managed_irq,domain,{settings.measured_cpu}",
            f"nohz_full={settings.measured_cpu}",
            f"rcu_nocbs={settings.measured_cpu}",
        ],
    }
    for entry, chosen in words.items():
        parts += [Part(word, (entry,)) for word in chosen if settings.on(entry)]
    return parts


def _joined(option: str, separator: str, parts: list[Part]) -> Piece:
    value = separator.join(part.text for part in parts)
    return Piece((option, value), tuple(parts))


def _chosen(settings: VmSettings, texts: dict[str, str]) -> list[Part]:
    """Return a part for each tuning that is on."""
    return [Part(text, (entry,)) for entry, text in texts.items() if settings.on(entry)]


def _machine(settings: VmSettings) -> list[Part]:
    found = [Part("pc"), Part(f"accel={settings.accelerator}")]
    found += _chosen(
        settings,
        {
            "qemu-no-hpet": "hpet=off",
            "qemu-irqchip-kernel": "kernel-irqchip=on",
            "qemu-minimal-devices": "vmport=off",
            "libvirt-locked": "mem-merge=off",
            "libvirt-no-usb-balloon": "usb=off",
        },
    )
    if _has_own_memory(settings):
        found.append(Part("memory-backend=ram", _OWN_MEMORY))
    return found


def _processor(settings: VmSettings) -> list[Part]:
    host = "host" if settings.accelerator == "kvm" else "max"
    model = host if settings.on("qemu-cpu-host") else "qemu64"  # QEMU's default
    found = [Part(model, ("qemu-cpu-host",))]
    if settings.on("qemu-cpu-host"):
        found += [Part("migratable=off", ("qemu-cpu-host",)), Part("invtsc=on", ("qemu-cpu-host",))]
    return found + _chosen(
        settings,
        {
            "guest-tsc-deadline": "tsc-deadline=on",
            "qemu-pmu-off": "pmu=off",
            "qemu-hint-dedicated": "kvm-hint-dedicated=on",
            "guest-haltpoll": "kvm-poll-control=on",
        },
    )


_HUGE = ("qemu-hugepages", "libvirt-locked")
_LOCKED = ("qemu-mem-lock", "libvirt-locked")
_OWN_MEMORY = (*_HUGE, "vm-numa-local")


def has_huge_pages(settings: VmSettings) -> bool:
    """Tell whether a machine's memory is of huge pages."""
    return any(settings.on(entry) for entry in _HUGE)


def has_locked_memory(settings: VmSettings) -> bool:
    """Tell whether a machine's memory is locked."""
    return any(settings.on(entry) for entry in _LOCKED)


def _has_own_memory(settings: VmSettings) -> bool:
    """Tell whether memory is described by an object of its own."""
    return any(settings.on(entry) for entry in _OWN_MEMORY)


def _memory(settings: VmSettings) -> list[Piece]:
    overcommit = [Part("mem-lock=on", _LOCKED)] if has_locked_memory(settings) else []
    overcommit += _chosen(settings, {"qemu-cpu-pm": "cpu-pm=on"})
    found = _joined("-overcommit", ",", overcommit)
    if not _has_own_memory(settings):
        return [found]
    huge = has_huge_pages(settings)
    kind = "memory-backend-file" if huge else "memory-backend-ram"
    parts = [
        Part(kind, _OWN_MEMORY),
        Part(f"id=ram,size={settings.memory_mib}M", _OWN_MEMORY),
        *([Part(f"mem-path={settings.huge_pages},prealloc=on", _HUGE)] if huge else []),
        *_chosen(
            settings,
            {
                "libvirt-locked": "merge=off",
                "vm-numa-local": f"host-nodes={settings.node},policy=bind",
            },
        ),
    ]
    return [found, _joined("-object", ",", parts)]


def _global(settings: VmSettings) -> list[Piece]:
    texts = {"qemu-kvm-pit": "kvm-pit.lost_tick_policy=discard"}
    return [_joined("-global", "", [part]) for part in _chosen(settings, texts)]


def _clock(settings: VmSettings) -> list[Piece]:
    """Return how an emulated machine counts time: in instructions, always from the same date."""
    if settings.accelerator == "kvm":
        return []
    found = [
        _joined("-icount", "", [Part("shift=0,sleep=off")]),
        _joined("-rtc", "", [Part("base=2026-01-01,clock=vm")]),
    ]
    if settings.processors > 1:
        tick = turn_arguments(TURN_US)
        found.append(Piece(tick, tuple(Part(word, ("vcpu-non-rt-spare",)) for word in tick)))
    return found


def _devices(settings: VmSettings) -> list[Piece]:
    minimal, virtio = ("qemu-minimal-devices",), ("guest-virtio-minimal",)
    tuned = settings.on("guest-virtio-minimal")
    bare = settings.on("qemu-minimal-devices")
    found = [Piece(("-nodefaults",), (Part("-nodefaults", minimal),))] if bare else []
    card = "virtio-net-pci" if tuned else "e1000"
    found += [
        _joined("-netdev", ",", _network(settings)),
        _joined("-device", ",", [Part(card, virtio), Part("netdev=network")]),
    ]
    if settings.disk:
        found += _disk(settings, settings.disk)
    if settings.passthrough and settings.on("vfio-passthrough"):
        text = f"vfio-pci,host={settings.passthrough}"
        found.append(_joined("-device", "", [Part(text, ("vfio-passthrough",))]))
    return found


def _network(settings: VmSettings) -> list[Part]:
    if settings.tap is None:
        return [Part("user,id=network")]
    text = f"tap,id=network,ifname={settings.tap},script=no,downscript=no"
    vhost = settings.on("qemu-vhost") and settings.on("guest-virtio-minimal")  # only for virtio
    both = ("qemu-vhost", "guest-virtio-minimal")
    return [Part(text), *([Part("vhost=on", both)] if vhost else [])]


def _disk(settings: VmSettings, disk: Path) -> list[Piece]:
    virtio = ("guest-virtio-minimal",)
    # absolute, as QEMU runs elsewhere
    drive = _joined("-drive", "", [Part(f"file={disk.absolute()},format=raw,if=none,id=disk")])
    if not settings.on("guest-virtio-minimal"):
        return [drive, _joined("-device", ",", [Part("ide-hd", virtio), Part("drive=disk")])]
    device = [Part("virtio-blk-pci", virtio), Part("drive=disk")]
    if not settings.on("qemu-iothread"):
        return [drive, _joined("-device", ",", device)]
    both = ("qemu-iothread", "guest-virtio-minimal")
    return [
        _joined("-object", "", [Part("iothread,id=io", both)]),
        drive,
        _joined("-device", ",", [*device, Part("iothread=io", both)]),
    ]


def _boot(settings: VmSettings, boot: Boot) -> list[Piece]:
    kernel = Part(str(boot.kernel), ("guest-rt-kernel",))
    options = [*kernel_options(settings), *([Part(boot.options)] if boot.options else [])]
    fixed = [
        ("-initrd", str(boot.initrd)),
        ("-display", "none"),
        ("-monitor", "none"),
        ("-chardev", f"file,id=console,path={boot.console}"),
        ("-serial", "chardev:console"),
        ("-chardev", f"{boot.results},id=results"),
        ("-device", "virtio-serial-pci"),
        ("-device", f"virtserialport,chardev=results,name={PORT}"),
    ]
    if boot.monitor:
        fixed += [("-chardev", f"socket,id=monitor,path={boot.monitor}")]
        fixed += [("-mon", "chardev=monitor,mode=control")]
    flags = ["-no-reboot", *(["-S"] if boot.paused else [])]
    return [
        _joined("-kernel", "", [kernel]),
        *(_joined(option, "", [Part(value)]) for option, value in fixed[:1]),
        _joined("-append", " ", options),
        *(_joined(option, "", [Part(value)]) for option, value in fixed[1:]),
        *(Piece((flag,), (Part(flag),)) for flag in flags),
    ]
