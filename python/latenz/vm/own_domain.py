"""A user's own libvirt domain with our tunings: what they decide is changed, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from latenz.errors import BadInput
from latenz.settings import format_cpu_list
from latenz.toml_file import small_text
from latenz.vm.choice import chosen
from latenz.vm.command import VCPU_PRIORITY, has_huge_pages, has_locked_memory, host_cpu
from latenz.vm.command import kernel_options as words_of
from latenz.vm.host import made_settings, placed
from latenz.vm.settings import NEEDS_SPARE, TUNED, VmSettings
from latenz.vm.xml_edit import Document, Node, Step

_WANTED = "the XML of a libvirt domain, as virsh dumpxml prints it"
_QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
_MOST_VCPUS = 64
_SWITCHES: dict[str, tuple[tuple[Step, ...], str, str]] = {
    "qemu-hint-dedicated": (("features", "kvm", "hint-dedicated"), "state", "on"),
    "guest-haltpoll": (("features", "kvm", "poll-control"), "state", "on"),
    "qemu-pmu-off": (("features", "pmu"), "state", "off"),
    "qemu-minimal-devices": (("features", "vmport"), "state", "off"),
    "qemu-irqchip-kernel": (("features", "ioapic"), "driver", "kvm"),
    "qemu-kvm-pit": (("clock", ("timer", {"name": "pit"})), "tickpolicy", "discard"),
    "qemu-no-hpet": (("clock", ("timer", {"name": "hpet"})), "present", "no"),
    "guest-tsc-deadline": (("cpu", ("feature", {"name": "tsc-deadline"})), "policy", "require"),
}
"""Tunings that are one attribute of one element."""
_BY_HAND = {
    "guest-rt-kernel": "boot a PREEMPT_RT kernel in it",
    "guest-virtio-minimal": "let its disks and network cards be virtio, and drop what is unused",
    "qemu-iothread": "give its disks an iothread of their own",
    "qemu-vhost": "let its network cards be virtio on a tap or a bridge",
    "vfio-passthrough": "pass through the device that has the deadline",
}


@dataclass
class Tuned:
    """What became of a domain.

    Attributes:
        text: The XML.
        changes: What was changed, each with the tuning that wants it.
        left: What Latenz leaves to the user, each with its tuning.
    """

    text: str
    changes: list[tuple[str, str]] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)


def read_domain(path: Path) -> Document:
    """Read a domain that Latenz can tune.

    Raises:
        BadInput: The file is not a domain of KVM on x86, or has document types, which are refused.
    """
    text = small_text(path, _WANTED)
    if not text.strip():
        raise BadInput("is empty", str(path), "write to another file than the one that is read")
    document = Document(text, str(path))
    root = document.root
    if root.tag != "domain":
        raise BadInput(f"its element is <{root.tag}>, not <domain>", str(path), f"give {_WANTED}")
    if (kind := root.attributes.get("type")) != "kvm":
        what = f"its type is {kind!r}, and what is tuned is KVM"
        raise BadInput(what, str(path), "give a domain of type='kvm'")
    kind_of = document.find("os", "type")
    architecture = kind_of.attributes.get("arch", "x86_64") if kind_of else "x86_64"
    if architecture != "x86_64":
        what = f"its processor is {architecture!r}; the tunings are for x86_64"
        raise BadInput(what, str(path), "give a domain of arch='x86_64'")
    vcpus_of(document, path)
    return document


def vcpus_of(document: Document, path: Path) -> int:
    """Return how many virtual processors a domain has.

    Raises:
        BadInput: That is none, or more than Latenz places.
    """
    node = document.find("vcpu")
    text = node.text.strip() if node else "1"
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_VCPUS):
        what = f"{text!r} is not a number of virtual CPUs"
        raise BadInput(what, f"{path}: domain/vcpu", f"write 1 to {_MOST_VCPUS}")
    return int(text)


def settings_for(
    document: Document,
    path: Path,
    tuned: bool,
    with_: Sequence[str],
    without: Sequence[str],
    cpus: str | None,
) -> VmSettings:
    """Return the tunings of a domain, and the host's CPUs for it.

    Args:
        document: The domain.
        path: Its file.
        tuned: Begin with all tunings that fit together, else with none.
        with_: Ids or layers that are on besides.
        without: Ids or layers that are not.
        cpus: Host CPUs for the vCPUs; None: those that the host isolates, if it has enough.

    Raises:
        BadInput: The tunings contradict each other, or the CPUs are too few.
    """
    count = vcpus_of(document, path)
    tunings = chosen(TUNED if tuned else frozenset[str](), with_, without, None)
    spare = {"vcpu-non-rt-spare"}  # has the domain one? the settings count its vCPUs by that
    tunings = tunings | spare if count > 1 else tunings - spare - set(NEEDS_SPARE)
    return placed(made_settings(vcpus=max(count, 2), tunings=tunings, cpus=cpus))


def tuned_domain(document: Document, settings: VmSettings) -> Tuned:
    """Return a domain with the tunings of a machine that has as many virtual processors."""
    tuner = _Tuner(document, settings)
    for entry, (steps, name, value) in _SWITCHES.items():
        tuner.give(entry, steps, {name: value})
    tuner.memory()
    tuner.placement()
    tuner.processor()
    tuner.devices()
    tuner.power()
    tuner.kernel_words()
    for entry in sorted(settings.tunings & _BY_HAND.keys()):
        tuner.left.append((_BY_HAND[entry], entry))
    return Tuned(document.text, tuner.changes, tuner.left)


class _Tuner:
    def __init__(self, document: Document, settings: VmSettings) -> None:
        self._document = document
        self._settings = settings
        self.changes: list[tuple[str, str]] = []
        self.left: list[tuple[str, str]] = []

    def give(self, entry: str, steps: Iterable[Step], attributes: Mapping[str, str | None]) -> None:
        """Give an element attributes if a tuning is on; what was there already is no change."""
        steps = tuple(steps)
        if not self._settings.on(entry):
            return
        node = self._document.find(*steps)
        present = node is not None
        for name, value in attributes.items():
            node = self._document.put(*steps)
            old = node.attributes.get(name) if present else None
            if node.attributes.get(name) != value:
                self._document.set(node, name, value)
            if old != value:
                self._note(entry, f"{_path(steps)} {name}: {_said(old)} -> {_said(value)}")
        if not attributes and not present:
            self._document.put(*steps)
            self._note(entry, f"{_path(steps)}: made")

    def _drop(self, entry: str, node: Node, path: str) -> None:
        self._document.remove(node)
        self._note(entry, f"{path}: removed")

    def _note(self, entry: str, what: str) -> None:
        if (what, entry) not in self.changes:
            self.changes.append((what, entry))

    def memory(self) -> None:
        """Lock memory, in huge pages, merged with nobody's."""
        if has_huge_pages(self._settings):
            self.give("qemu-hugepages", ("memoryBacking", "hugepages"), {})
        self.give("libvirt-locked", ("memoryBacking", "nosharepages"), {})
        if has_locked_memory(self._settings):
            locks = "qemu-mem-lock" if self._settings.on("qemu-mem-lock") else "libvirt-locked"
            self.give(locks, ("memoryBacking", "locked"), {})

    def placement(self) -> None:
        """Give each vCPU a CPU and a priority, other threads the other CPUs, memory its node."""
        settings = self._settings
        if settings.cpus is None:
            for entry in ("vcpu-pinning", "emulator-pinning", "vm-numa-local"):
                if settings.on(entry):
                    self.left.append(("name the host CPUs: --cpus", entry))
        else:
            for number in range(settings.processors):
                cpu = str(host_cpu(settings, number))
                steps = ("cputune", ("vcpupin", {"vcpu": str(number)}))
                self.give("vcpu-pinning", steps, {"cpuset": cpu})
            node = {"mode": "strict", "nodeset": str(settings.node)}
            self.give("vm-numa-local", ("numatune", "memory"), {**node, "placement": None})
        if settings.cpus is not None and settings.housekeeping:
            cpus = {"cpuset": format_cpu_list(settings.housekeeping)}
            self.give("emulator-pinning", ("cputune", "emulatorpin"), cpus)
        if settings.on("vcpu-sched-fifo"):
            self._priorities()

    def _priorities(self) -> None:
        """Write one element for all vCPUs: libvirt refuses those that overlap."""
        last = self._settings.processors - 1
        vcpus = "0" if last == 0 else f"0-{last}"
        wanted = {"vcpus": vcpus, "scheduler": "fifo", "priority": str(VCPU_PRIORITY)}
        tuning = self._document.find("cputune")
        found = tuning.all("vcpusched") if tuning else []
        if [each.attributes for each in found] == [wanted]:
            return
        while tuning and (others := tuning.all("vcpusched")):
            told = others[0].attributes.get("vcpus", "")
            self._drop("vcpu-sched-fifo", others[0], f"cputune/vcpusched {told}")
            tuning = self._document.find("cputune")
        steps: tuple[Step, ...] = ("cputune", ("vcpusched", {"vcpus": vcpus}))
        self.give("vcpu-sched-fifo", steps, {"scheduler": "fifo", "priority": wanted["priority"]})

    def processor(self) -> None:
        """Hand the host's own processor through, with the time stamp counter."""
        if not self._settings.on("qemu-cpu-host"):
            return
        for child in ("model", "vendor"):
            if node := self._document.find("cpu", child):
                self._drop("qemu-cpu-host", node, f"cpu/{child}")
        kind: dict[str, str | None] = {"mode": "host-passthrough", "check": "none"}
        self.give("qemu-cpu-host", ("cpu",), {**kind, "match": None, "migratable": "off"})
        self.give("qemu-cpu-host", ("cpu", ("feature", {"name": "invtsc"})), {"policy": "require"})

    def devices(self) -> None:
        """Leave out the memory balloon, and USB where nothing hangs on it."""
        entry = "libvirt-no-usb-balloon"
        if not self._settings.on(entry):
            return
        balloon = self._document.find("devices", "memballoon")
        if balloon is None or balloon.attributes.get("model") != "none":
            if balloon is not None:
                self._document.remove(balloon)
            self._document.put("devices", ("memballoon", {"model": "none"}))
            old = None if balloon is None else balloon.attributes.get("model")
            self._note(entry, f"devices/memballoon model: {_said(old)} -> none")
        if self._uses_usb():
            self.left.append(
                ("devices hang on its USB: take them away, then its controllers", entry)
            )
            return
        while (node := self._usb_controller()) is not None:
            told = node.attributes.get("model", "")
            self._drop(entry, node, f"devices/controller usb {told}".rstrip())
        usb = {"type": "usb", "model": "none"}
        self.give(entry, ("devices", ("controller", usb)), {})

    def _usb_controller(self) -> Node | None:
        devices = self._document.find("devices")
        found = devices.all("controller") if devices else []
        kinds = [each for each in found if each.attributes.get("type") == "usb"]
        return next((each for each in kinds if each.attributes.get("model") != "none"), None)

    def _uses_usb(self) -> bool:
        devices = self._document.find("devices")
        return any(
            "usb" in (part.attributes.get("bus"), part.attributes.get("type"))
            for each in (devices.children if devices else ())
            if each.tag != "controller"
            for part in (each, *each.children)
        )

    def power(self) -> None:
        """Let idle vCPUs keep their CPUs; libvirt has no element for it."""
        if not self._settings.on("qemu-cpu-pm"):
            return
        spaces = self._document.root.attributes.items()
        prefix = next(
            (name[6:] for name, value in spaces if name[:6] == "xmlns:" and value == _QEMU), "qemu"
        )
        given = self._document.find(f"{prefix}:commandline")
        if given and any(
            "cpu-pm=on" in each.attributes.get("value", "") for each in given.children
        ):
            return
        if f"xmlns:{prefix}" not in self._document.root.attributes:
            self._document.set(self._document.root, f"xmlns:{prefix}", _QEMU)
        self._document.put(f"{prefix}:commandline")
        for argument in ("-overcommit", "cpu-pm=on"):
            parent = self._document.find(f"{prefix}:commandline")
            if parent is not None:
                self._document.append(parent, f"{prefix}:arg", {"value": argument})
        self._note("qemu-cpu-pm", f"{prefix}:commandline: -overcommit cpu-pm=on added")

    def kernel_words(self) -> None:
        """Add words to the kernel's command line, or say which the guest's boot loader needs."""
        words = [(part.text, part.entries[0]) for part in words_of(self._settings) if part.entries]
        node = self._document.find("os", "cmdline")
        if node is None or node.close is None:
            entries = ", ".join(dict.fromkeys(entry for _, entry in words))
            told = " ".join(word for word, _ in words)
            self.left += [(f"add to the kernel command line in the guest: {told}", entries)] * bool(
                words
            )
            return
        text = node.text
        keys = {word.split("=", 1)[0] for word in text.split()}
        for word, entry in words:
            key = word.split("=", 1)[0]
            if word in text.split():
                continue
            if key in keys and "=" in word:
                self.left.append((f"os/cmdline has its own {key}=; ours is {word}", entry))
                continue
            text = f"{text.rstrip()} {word}"
            self._note(entry, f"os/cmdline: {word} added")
        if text != node.text:
            self._document.write(node, text)


def _path(steps: tuple[Step, ...]) -> str:
    names = [
        each if isinstance(each, str) else " ".join((each[0], *each[1].values())) for each in steps
    ]
    return "/".join(names)


def _said(value: str | None) -> str:
    return "nothing" if value is None else value
