"""Entries of the catalogue: what is looked at, what is wanted there, and what changes it.

An entry is data (a table in a TOML file of `catalogue/`). Only a new kind of probe needs code.

Texts may hold placeholders, see `latenz.tune.context.Context.expand`: `{iso}`, `{hk}` (lists of the
isolated and the housekeeping CPUs), `{iso_mask}`, `{hk_mask}`, `{hk_count}`, `{release}` (of the
kernel), `{domain}` (a flag of isolcpus=, empty where a cpuset partition isolates the CPUs),
`{groups}` (where control group v2 is mounted, without the first slash), and in paths `{iso_cpu}`
(one path for each isolated CPU). Paths may be patterns: `*`, `?`, `[...]` in a name, `**` for any
number of folders.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from latenz.settings import Settings

Layer = Literal["bios", "cmdline", "host", "kvm", "qemu", "libvirt", "guest"]
Profile = Literal["host", "kvm-host", "guest"]
"""`host` measures on the bare machine, `kvm-host` runs virtual machines, `guest` is inside one."""
Effect = Literal["large", "medium", "small", "none"]
"""How much latency the setting is expected to remove; it orders what the user reads."""
State = Literal["ok", "wrong", "unknown", "not applicable"]
Consent = Literal["", "security", "protection", "detection", "memory", "time", "safety", "function"]
"""What is given up; such an entry is applied only if it is named.

`security`: programs or people may do more; `protection`: a task that runs wild stops others;
`detection`: what hangs or breaks is not reported; `memory`: others may run out of it; `time`: a
clock may be wrong unseen; `safety`: heat and damage; `function`: something no longer works.
"""
Cpus = Literal["iso", "hk", "no iso"]
"""The isolated CPUs, the housekeeping CPUs, or none of the isolated ones."""


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} is not an absolute path; begin with / and leave out ..")
    return path


def _one_group(pattern: str) -> str:
    if pattern and re.compile(pattern).groups != 1:
        raise ValueError(f"{pattern!r} has not one group; put what is wanted into ( )")
    return pattern


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


PathText = Annotated[str, AfterValidator(_absolute)]
Paths = Annotated[tuple[PathText, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Regex = Annotated[str, AfterValidator(_one_group)]


class Absent(Settings):
    """What it means that nothing is there to be read, where that does tell something."""

    state: Literal["ok", "wrong", "not applicable"]
    reason: str


class PathProbe(Settings):
    """What stands at some paths."""

    path: Paths
    if_absent: Absent | None = None


class FileProbe(PathProbe):
    """The text of files, stripped; with a regex, each match of its group in them."""

    kind: Literal["file"]
    regex: Regex = ""


class CpusProbe(PathProbe):
    """Sets of CPUs that stand in files."""

    kind: Literal["cpus"]
    regex: Regex = ""
    """Each match of its group; none: the file's whole text."""
    format: Literal["list", "mask"] = "list"
    union: bool = False
    """All that the files list together is one set."""


class SpreadProbe(PathProbe):
    """Greatest minus least of the integers in files, for each isolated CPU."""

    kind: Literal["spread"]


class FolderProbe(PathProbe):
    """The names in folders."""

    kind: Literal["folder"]
    names: str = "*"
    """Only those that match."""


class LinkProbe(PathProbe):
    """The last part of what symbolic links point to, as a driver of a device."""

    kind: Literal["link"]


class CmdlineProbe(Settings):
    """The value of a kernel parameter in /proc/cmdline; "" for one without a value."""

    kind: Literal["cmdline"]
    parameter: str
    same: dict[str, str] = Field(default_factory=dict)
    """Other parameters that do the same, each with the value of this one that it stands for."""
    optional: str = ""
    """Why no such parameter is as good as the right one; empty where it is not."""


class FlagsProbe(Settings):
    """The flags that all CPUs have (`flags`, on Arm `Features`) in /proc/cpuinfo."""

    kind: Literal["flags"]


class ServiceProbe(Settings):
    """Units that are active or enabled: each is one value, "active, enabled" or the like."""

    kind: Literal["service"]
    units: tuple[str, ...]
    """With their suffix, as irqbalance.service; patterns."""


class TasksProbe(Settings):
    """Threads."""

    kind: Literal["tasks"]
    names: tuple[str, ...] = ("*",)
    """Patterns of the thread's name (comm)."""
    except_names: tuple[str, ...] = ()
    of: Literal["user", "kernel", "any"] = "any"
    bound: bool | None = None
    """Only kernel threads that the kernel keeps where they are; False: only the others."""
    policies: tuple[str, ...] = ()
    """Only of these, named as `ps` does: TS, FF, RR, B, IDL, DLN. None: any."""
    except_policies: tuple[str, ...] = ()
    on_iso: bool = False
    """Only those that may run on an isolated CPU."""
    only_iso: bool = False
    """Only those that may run on nothing but isolated CPUs."""
    show: Literal["affinity", "policy", "priority", "name"] = "affinity"


class IrqsProbe(Settings):
    """The CPUs that device interrupts go to: the effective ones, else the allowed ones."""

    kind: Literal["irqs"]
    names: tuple[str, ...] = ("*",)


class IdleProbe(Settings):
    """Exit latencies, in microseconds, of the idle states that isolated CPUs may enter."""

    kind: Literal["idle"]


class ConfigProbe(Settings):
    """An option of the running kernel's configuration: y, m, n (not set), or its value."""

    kind: Literal["config"]
    option: str = Field(pattern="^CONFIG_[A-Z0-9_]+$")
    if_absent: Absent | None = None
    """What it means that there is no configuration to be read."""


class TextProbe(Settings):
    """What a program or device told; see `latenz.tune.outputs` for the names."""

    kind: Literal["text"]
    name: str
    regex: Regex
    """Each match of its group is a value."""


class ManualProbe(Settings):
    """What no program can read: a person must look."""

    kind: Literal["manual"]


class QemuProbe(Settings):
    """What running QEMU processes that use KVM are told, by one option of their command lines."""

    kind: Literal["qemu"]
    option: str
    """Without its dash."""
    key: str = ""
    """The value is that of this key; none: "given" if the option is."""
    of: tuple[str, ...] = ()
    """Patterns of the option's first value, as a device's driver: only those, each one a value."""
    otherwise: str
    """The value if nothing is said: what QEMU does then."""


class QemuMemoryProbe(Settings):
    """The guest's memory in QEMU processes."""

    kind: Literal["qemu-memory"]
    show: Literal["locked", "huge", "page"]
    """"all" if it is locked, or if it is of huge pages; or the size of its pages: 4K, 2M, 1G."""


class QemuThreadsProbe(Settings):
    """The threads of QEMU processes."""

    kind: Literal["qemu-threads"]
    which: Literal["vcpu", "other"]
    show: Literal["affinity", "pinning", "policy", "priority"]
    """`pinning`: "one isolated CPU" if it has one of its own, else what it has."""


class PassthroughProbe(Settings):
    """The drivers of the PCI devices that QEMU or libvirt's domains hand to guests."""

    kind: Literal["passthrough"]


class PartitionProbe(Settings):
    """The CPUs of isolated cpuset partitions (cgroup v2)."""

    kind: Literal["partition"]


class StealProbe(Settings):
    """Time that the host took from the isolated CPUs since boot, in clock ticks."""

    kind: Literal["steal"]


class DomainProbe(Settings):
    """What the definitions of libvirt's domains say; "not given" for one that says nothing."""

    kind: Literal["domain"]
    path: str
    """As of `xml.etree`: ./memoryBacking/locked; each element is a value."""
    attribute: str = ""
    """The value is this attribute; none: the element's text, or "given" if it has none."""


Probe = Annotated[
    FileProbe
    | CpusProbe
    | SpreadProbe
    | FolderProbe
    | LinkProbe
    | CmdlineProbe
    | FlagsProbe
    | ServiceProbe
    | TasksProbe
    | IrqsProbe
    | IdleProbe
    | ConfigProbe
    | TextProbe
    | ManualProbe
    | QemuProbe
    | QemuMemoryProbe
    | QemuThreadsProbe
    | PassthroughProbe
    | PartitionProbe
    | StealProbe
    | DomainProbe,
    Field(discriminator="kind"),
]


class Wanted(Settings):
    """What a probe should find: everything given here, in every value that it finds."""

    equals: str | None = None
    one_of: tuple[str, ...] = ()
    """Patterns."""
    at_least: int | str | None = None
    """An integer, or a text with placeholders."""
    at_most: int | str | None = None
    contains: str | None = None
    lacks: tuple[str, ...] = ()
    """None of these words."""
    flags: tuple[str, ...] = ()
    """All of these words."""
    same_cpus: Cpus | None = None
    """Of the CPUs that are online, exactly these; "no iso": none of the isolated ones."""
    covers: Literal["iso", "hk"] | None = None
    within: Literal["iso", "hk"] | None = None
    absent: bool = False
    """There is no value."""
    present: bool = False
    """There is a value, whichever."""
    any: bool = False
    """One right value is enough."""

    @model_validator(mode="after")
    def _wants_something(self) -> "Wanted":
        if not self.model_fields_set - {"any"}:
            raise ValueError("nothing is wanted; give for example equals")
        return self


class Condition(Settings):
    """A probe and what is wanted of it; or several such, all or any of which must hold."""

    probe: Probe | None = None
    wanted: Wanted | None = None
    all: tuple["Condition", ...] = ()
    any: tuple["Condition", ...] = ()

    @model_validator(mode="after")
    def _is_one(self) -> "Condition":
        alone = self.probe is not None and (
            self.wanted is not None or isinstance(self.probe, ManualProbe)
        )
        if [alone, bool(self.all), bool(self.any)].count(True) != 1:
            raise ValueError("is not a condition; give probe and wanted, or all, or any")
        return self


class Applicability(Condition):
    """A condition without which an entry does not apply; entries name it in `when`."""

    otherwise: str
    """Why such an entry does not apply where this does not hold."""


class Beside(Settings):
    """Files to write to, chosen by the integer in a file beside them."""

    file: str = Field(pattern="^[A-Za-z0-9_]+$")
    above: int


class Write(Settings):
    """Write a value into each file that the path matches."""

    write: PathText
    value: str
    beside: Beside | None = None
    fits_pages: PathText | None = None
    """A file with a number of pages that must fit into the memory that is available."""


class Service(Settings):
    """Now: stop the unit. At boot: disable it."""

    service: str


class Restart(Settings):
    """Let a unit that runs read its settings anew."""

    restart: str


class Partition(Settings):
    """Isolate CPUs by a cpuset partition, in which the units of latenz.slice run."""

    partition: str


class Affinity(Settings):
    """Let the threads whose names (comm) match the pattern run on these CPUs only."""

    affinity: str
    cpus: str
    of: Literal["user", "kernel", "any"] = "any"


class Policy(Settings):
    """Give the threads whose names match the pattern this policy and priority."""

    policy: Literal["fifo", "rr", "other"]
    priority: int = Field(ge=0, le=99)
    threads: str


class Sysctl(Settings):
    """Set a sysctl at each boot."""

    sysctl: str = Field(pattern=r"^[a-z0-9_.-]+$")
    value: str


class CmdlineToken(Settings):
    """Add one or more tokens to the kernel command line, in the place of those of their name."""

    cmdline: str


class ModuleOption(Settings):
    """Give a module an option when it is loaded."""

    modprobe: str = Field(pattern=r"^[a-z0-9_]+$")
    option: str = Field(pattern=r"^[a-z0-9_]+$")
    value: str


class SysfsWrite(Settings):
    """Write a value into each file that the path matches, at each boot."""

    sysfs: PathText
    value: str
    beside: Beside | None = None


class File(Settings):
    """Put a file of our own in place."""

    file: PathText
    content: str


class CpuAffinity(Settings):
    """Let the service manager, and thus all services, run on these CPUs only."""

    cpuaffinity: str


def _first_key(value: Any) -> str:
    if isinstance(value, dict):
        return str(next(iter(value), ""))
    return next(iter(type(value).model_fields), "")


NowAction = Annotated[
    Annotated[Write, Tag("write")]
    | Annotated[Service, Tag("service")]
    | Annotated[Restart, Tag("restart")]
    | Annotated[Partition, Tag("partition")]
    | Annotated[Affinity, Tag("affinity")]
    | Annotated[Policy, Tag("policy")],
    Discriminator(_first_key),
]
"""What takes effect at once. The first key of its table tells which kind it is."""

BootAction = Annotated[
    Annotated[Sysctl, Tag("sysctl")]
    | Annotated[CmdlineToken, Tag("cmdline")]
    | Annotated[ModuleOption, Tag("modprobe")]
    | Annotated[SysfsWrite, Tag("sysfs")]
    | Annotated[Service, Tag("service")]
    | Annotated[File, Tag("file")]
    | Annotated[CpuAffinity, Tag("cpuaffinity")]
    | Annotated[Partition, Tag("partition")]
    | Annotated[Affinity, Tag("affinity")]
    | Annotated[Policy, Tag("policy")],
    Discriminator(_first_key),
]
"""What lasts; of threads, only those of the kernel.

The first key of its table tells which kind it is.
"""


class Entry(Condition):
    """One setting that decides about latency."""

    id: str = Field(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str
    """What should be so, on one line."""
    profiles: tuple[Profile, ...] = Field(min_length=1)
    when: tuple[str, ...] = ()
    """Names of conditions without which it does not apply."""
    needs: tuple[str, ...] = ()
    """Names of conditions without which its changes would be of no use: it is told then."""
    effect: Effect
    consent: Consent = ""
    outcome: Condition | None = None
    """Where the setting shows: a parameter on the kernel command line may be without effect."""
    now: tuple[NowAction, ...] = ()
    boot: tuple[BootAction, ...] = ()
    revert: str = ""
    why: str
    risk: str
    source: str
    linux: str = ""
    """The versions of Linux that have what it looks at, such as "since 6.2"."""
    correction: str = ""
    """What the publication says differently, and why it is not so."""
    advice: str = ""
    """What only a person can do."""
    besides: str = ""
    """What a person has to do besides what is changed."""
    supersedes: tuple[str, ...] = ()
    """Ids of entries that reach the same at more cost: with this one, they are applied by name
    only."""
    conflicts: tuple[str, ...] = ()
    """Ids of entries that undo this one, or that it undoes; it holds in both directions."""
    layer: Layer = "host"
    """Set from the name of its file."""


class LayerFile(Settings):
    """A file of the catalogue."""

    entry: tuple[Entry, ...]


class ConditionsFile(Settings):
    """The file of conditions that entries name."""

    condition: dict[str, Applicability]
