"""A virtual machine as libvirt describes it: a domain with the same tunings.

What libvirt adds to a domain by itself stands there as it adds it, so that the default domain is
libvirt's, as the default command is QEMU's. libvirt has no element for the management of power by
the guest (cpu-pm): that one is passed to QEMU as it is.
"""

from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from latenz.settings import format_cpu_list
from latenz.vm.command import (
    PORT,
    VCPU_PRIORITY,
    has_huge_pages,
    has_locked_memory,
    host_cpu,
    kernel_options,
)
from latenz.vm.settings import VmSettings

EMULATOR = "/usr/bin/qemu-system-x86_64"
_QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"


def domain(settings: VmSettings, kernel: Path, initrd: Path, options: str = "") -> str:
    """Return the XML of a domain.

    Args:
        settings: The machine.
        kernel: What it boots.
        initrd: Its initial RAM disk.
        options: Further words of the kernel's command line.
    """
    kind = "kvm" if settings.accelerator == "kvm" else "qemu"
    root = Element("domain", {"type": kind})
    if settings.on("qemu-cpu-pm"):
        root.set("xmlns:qemu", _QEMU)
    _text(root, "name", "latenz")
    _text(root, "memory", str(settings.memory_mib), unit="MiB")
    _backing(root, settings)
    _text(root, "vcpu", str(settings.processors), placement="static")
    if settings.disk and settings.on("qemu-iothread"):
        _text(root, "iothreads", "1")
    _tuning(root, settings)
    _boot(root, settings, kernel, initrd, options)
    _features(root, settings)
    _processor(root, settings)
    _clock(root, settings)
    _text(root, "on_poweroff", "destroy")
    _text(root, "on_reboot", "destroy")
    _text(root, "on_crash", "destroy")
    _devices(root, settings)
    if settings.on("qemu-cpu-pm"):
        passed = SubElement(root, "qemu:commandline")
        for argument in ("-overcommit", "cpu-pm=on"):
            SubElement(passed, "qemu:arg", value=argument)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _text(parent: Element, name: str, content: str, **attributes: str) -> Element:
    element = SubElement(parent, name, attributes)
    element.text = content
    return element


def _backing(root: Element, settings: VmSettings) -> None:
    huge, locked = has_huge_pages(settings), has_locked_memory(settings)
    if not (huge or locked):
        return
    backing = SubElement(root, "memoryBacking")
    if huge:
        SubElement(backing, "hugepages")
    if settings.on("libvirt-locked"):
        SubElement(backing, "nosharepages")
    if locked:
        SubElement(backing, "locked")


def _tuning(root: Element, settings: VmSettings) -> None:
    tuning = Element("cputune")
    vcpus = range(settings.processors)
    if settings.on("vcpu-pinning") and settings.cpus:
        for number in vcpus:
            cpu = str(host_cpu(settings, number))
            SubElement(tuning, "vcpupin", vcpu=str(number), cpuset=cpu)
    if settings.on("emulator-pinning") and settings.housekeeping:
        listed = format_cpu_list(settings.housekeeping)
        SubElement(tuning, "emulatorpin", cpuset=listed)
        if settings.disk and settings.on("qemu-iothread"):
            SubElement(tuning, "iothreadpin", iothread="1", cpuset=listed)
    for number in vcpus if settings.on("vcpu-sched-fifo") else ():
        policy = {"scheduler": "fifo", "priority": str(VCPU_PRIORITY)}
        SubElement(tuning, "vcpusched", {"vcpus": str(number), **policy})
    if len(tuning):
        root.append(tuning)
    if settings.on("vm-numa-local"):
        memory = SubElement(root, "numatune")
        SubElement(memory, "memory", mode="strict", nodeset=str(settings.node))


def _boot(root: Element, settings: VmSettings, kernel: Path, initrd: Path, options: str) -> None:
    boot = SubElement(root, "os")
    _text(boot, "type", "hvm", arch="x86_64", machine="pc")
    _text(boot, "kernel", str(kernel))
    _text(boot, "initrd", str(initrd))
    words = [part.text for part in kernel_options(settings)]
    _text(boot, "cmdline", " ".join([*words, *([options] if options else [])]))


def _features(root: Element, settings: VmSettings) -> None:
    features = SubElement(root, "features")
    SubElement(features, "acpi")
    SubElement(features, "apic")
    known = Element("kvm")
    if settings.on("qemu-hint-dedicated"):
        SubElement(known, "hint-dedicated", state="on")
    if settings.on("guest-haltpoll"):
        SubElement(known, "poll-control", state="on")
    if len(known):
        features.append(known)
    if settings.on("qemu-pmu-off"):
        SubElement(features, "pmu", state="off")
    if settings.on("qemu-minimal-devices"):
        SubElement(features, "vmport", state="off")
    if settings.on("qemu-irqchip-kernel"):
        SubElement(features, "ioapic", driver="kvm")


def _processor(root: Element, settings: VmSettings) -> None:
    if not settings.on("qemu-cpu-host"):
        model = Element("cpu", mode="custom", match="exact", check="none")
        _text(model, "model", "qemu64", fallback="forbid")
    elif settings.accelerator == "kvm":
        model = Element("cpu", mode="host-passthrough", check="none", migratable="off")
        SubElement(model, "feature", policy="require", name="invtsc")
    else:
        model = Element("cpu", mode="maximum", check="none", migratable="off")
    if settings.on("guest-tsc-deadline"):
        SubElement(model, "feature", policy="require", name="tsc-deadline")
    root.append(model)


def _clock(root: Element, settings: VmSettings) -> None:
    clock = SubElement(root, "clock", offset="utc")
    if settings.on("qemu-kvm-pit"):
        SubElement(clock, "timer", name="pit", tickpolicy="discard")
    if settings.on("qemu-no-hpet"):
        SubElement(clock, "timer", name="hpet", present="no")


def _devices(root: Element, settings: VmSettings) -> None:
    devices = SubElement(root, "devices")
    _text(devices, "emulator", EMULATOR)
    if settings.disk:
        _disk(devices, settings)
    bare = settings.on("libvirt-no-usb-balloon")
    SubElement(devices, "controller", type="usb", model="none" if bare else "piix3-uhci")
    SubElement(devices, "controller", type="virtio-serial")
    _network(devices, settings)
    serial = SubElement(devices, "serial", type="pty")
    SubElement(serial, "target", type="isa-serial", port="0")
    results = SubElement(devices, "channel", type="unix")
    SubElement(results, "target", type="virtio", name=PORT)
    if not settings.on("qemu-minimal-devices"):
        video = SubElement(devices, "video")
        SubElement(video, "model", type="vga")
    if settings.passthrough and settings.on("vfio-passthrough"):
        _passthrough(devices, settings.passthrough)
    SubElement(devices, "memballoon", model="none" if bare else "virtio")


def _disk(devices: Element, settings: VmSettings) -> None:
    virtio = settings.on("guest-virtio-minimal")
    disk = SubElement(devices, "disk", type="file", device="disk")
    driver = SubElement(disk, "driver", name="qemu", type="raw")
    if virtio and settings.on("qemu-iothread"):
        driver.set("iothread", "1")
    SubElement(disk, "source", file=str(settings.disk))
    bus, name = ("virtio", "vda") if virtio else ("ide", "hda")
    SubElement(disk, "target", dev=name, bus=bus)


def _network(devices: Element, settings: VmSettings) -> None:
    virtio = settings.on("guest-virtio-minimal")
    if settings.tap is None:
        card = SubElement(devices, "interface", type="user")
    else:
        card = SubElement(devices, "interface", type="ethernet")
        SubElement(card, "target", dev=settings.tap, managed="no")
    SubElement(card, "model", type="virtio" if virtio else "e1000")
    if settings.tap is not None and virtio:
        SubElement(card, "driver", name="vhost" if settings.on("qemu-vhost") else "qemu")


def _passthrough(devices: Element, address: str) -> None:
    part, bus, rest = address.split(":")
    slot, function = rest.split(".")
    device = SubElement(devices, "hostdev", mode="subsystem", type="pci", managed="yes")
    source = SubElement(device, "source")
    SubElement(
        source,
        "address",
        domain=f"0x{part}",
        bus=f"0x{bus}",
        slot=f"0x{slot}",
        function=f"0x{function}",
    )
