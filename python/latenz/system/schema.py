"""System files: what may stand in them, and the systems they describe."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StrictBool

from latenz.errors import BadInput, shown
from latenz.settings import Settings, Size, Time
from latenz.system import arrivals, contents, hosting, trace
from latenz.system.channels import Channel
from latenz.system.contents import LatencyFrom, Mode
from latenz.system.fields import BadField
from latenz.system.hosting import OnFault
from latenz.system.model import System
from latenz.toml_file import Place, TomlFile, read_toml

BuiltT = TypeVar("BuiltT")
Recorded = dict[str, dict[str, trace.Times]]
"""Arrival times by trace file and source."""


class PlatformSettings(Settings):
    """What the hypervisor itself costs."""

    slot_switch: Time = 0
    """Paid at the start of every slot."""
    monitor: Time = 0
    """C_Mon: what the monitor adds to a top handler."""
    schedule: Time = 0
    """C_sched: paid once by each interposed bottom handler."""
    context_switch: Time = 0
    """C_ctx: paid twice by each interposed bottom handler."""
    limit: Time = 0
    """C_lim: paid whenever a source that exceeds its event model is masked."""


class PolicySettings(Settings):
    """How interrupts are handled, and what counts as their latency."""

    mode: Mode = "plain"
    latency_from: LatencyFrom = "arrival"


class SlotSettings(Settings):
    """One slot of the TDMA cycle of its partition's processor."""

    partition: str
    length: Time


class PeriodicSettings(Settings):
    """Arrivals once a period."""

    kind: Literal["periodic"]
    period: Time
    jitter: Time = 0
    min_distance: Time = 0


class DistancesSettings(Settings):
    """Arrivals that keep minimum distances."""

    kind: Literal["distances"]
    distances: tuple[Time, ...]
    """delta-minus(2), delta-minus(3), ..."""


class TraceSettings(Settings):
    """Recorded arrivals."""

    kind: Literal["trace"]
    file: str
    """A trace, CSV or Parquet; relative to the system file."""
    length: int
    """How many minimum distances to observe in it."""


class ExponentialSettings(Settings):
    """Random arrivals, for simulation only."""

    kind: Literal["exponential"]
    mean: Time
    min_distance: Time = 0
    seed: int = 0


ArrivalSettings = Annotated[
    PeriodicSettings | DistancesSettings | TraceSettings | ExponentialSettings,
    Field(discriminator="kind"),
]


class MonitorSettings(Settings):
    """What must lie between interrupts for them to be interposed in foreign slots."""

    distances: tuple[Time, ...]
    """delta-minus(2), delta-minus(3), ..."""


class LearnSettings(Settings):
    """A learning phase at the hypervisor."""

    events: int
    """How many interrupts of the source to learn from."""
    length: int
    """How many minimum distances to learn."""


class SourceSettings(Settings):
    """A source of interrupts."""

    name: str
    partition: str
    top: Time
    """C_TH: the worst case of the top handler."""
    bottom: Time
    """C_BH: the worst case of the bottom handler."""
    arrival: ArrivalSettings
    monitor: MonitorSettings | None = None
    """None: never interposed."""
    interrupt: int | None = None
    """Its number at the guest under the hypervisor; None: 64 for the first source, then 65."""
    learn: LearnSettings | None = None
    """What the hypervisor learns before it switches the monitor on."""
    top_sums: tuple[Time, ...] | None = None
    """The longest that 1, 2, 3, ... consecutive top handlers take together, the first being `top`;
    None: each may take `top`."""


class DeviceSettings(Settings):
    """Registers of a device that a guest has for itself."""

    physical: Size
    """Physical address; the guest sees it there."""
    size: Size
    """A multiple of 4 KiB."""
    interrupts: tuple[int, ...] = ()
    """Numbers of its interrupts at the interrupt controller, 32 to 1019."""
    edge: StrictBool = False
    """Whether each is a rising edge of its line; else it lasts as long as the line's level."""


class PartitionSettings(Settings):
    """What the hypervisor puts into a partition."""

    name: str
    """Of the partition: one that owns slots, or one that has a processor for itself."""
    guest: str = "worker"
    """A program of Latenz, worker or victim, or the path of a raw binary or an ELF file."""
    memory: Size = 4 * hosting.BLOCK
    """A multiple of 2 MiB."""
    cpu: int = 0
    """The processor, 0 to 3; partitions with slots share theirs by them."""
    on_fault: OnFault = "stop"
    """What becomes of a guest that does what it may not do."""
    restarts: int = 10
    """With on_fault = "restart": after so many faults it is stopped all the same."""
    restart_window: Time = 0
    """The restarts are those of any such time; 0: those of the whole run."""
    watchdog: Time = 0
    """How long its progress may stay the same, looked at when its slots begin; 0: for ever."""
    on_watchdog: OnFault | None = None
    """What becomes of a guest whose watchdog expires; without it, what `on_fault` says."""
    devices: tuple[DeviceSettings, ...] = ()
    """Devices that the guest has for itself."""


class SharedSettings(Settings):
    """Memory that several partitions may read and write."""

    name: str
    size: Size
    """A multiple of 4 KiB."""
    partitions: tuple[str, ...]
    """Who sees it."""
    address: Size
    """Where they all see it."""


class ChannelSettings(Settings):
    """A way from one partition to another: memory that only they see, and a doorbell."""

    name: str
    sender: str = Field(alias="from")
    """The partition that rings."""
    receiver: str = Field(alias="to")
    """The partition whose source the doorbell is."""
    size: Size
    """Of the memory, a multiple of 4 KiB."""
    address: Size
    """Where both see it."""
    doorbell: str
    """Name of the source that the sender's calls raise."""


class SystemFile(Settings):
    """A system file."""

    platform: PlatformSettings = PlatformSettings()
    policy: PolicySettings = PolicySettings()
    slot: tuple[SlotSettings, ...] = ()
    source: tuple[SourceSettings, ...] = ()
    partition: tuple[PartitionSettings, ...] = ()
    shared: tuple[SharedSettings, ...] = ()
    channel: tuple[ChannelSettings, ...] = ()


def read_system(path: Path) -> System:
    """Read a system file.

    Args:
        path: A TOML file; traces that it names are relative to its folder.

    Raises:
        BadInput: The file, or a trace that it names, cannot be read or has a mistake; the place is
            file, line and key.
    """
    return read_system_file(path)[0]


def read_system_file(path: Path) -> tuple[System, TomlFile[SystemFile]]:
    """Read a system file, and keep the file, which knows the line of everything in it.

    Raises:
        BadInput: As `read_system`.
    """
    text = read_toml(path, SystemFile, "a system file")
    return _system(text), text


def _system(text: TomlFile[SystemFile]) -> System:
    file = text.content
    platform, policy = file.platform, file.policy
    costs = _built(
        text,
        ("platform",),
        contents.Platform,
        platform.slot_switch,
        platform.monitor,
        platform.schedule,
        platform.context_switch,
        platform.limit,
    )
    slots = tuple(
        _built(text, ("slot", at), contents.Slot, slot.partition, slot.length)
        for at, slot in enumerate(file.slot)
    )
    recorded = _recorded(text)
    sources = tuple(_source(text, at, recorded) for at in range(len(file.source)))
    hosted = tuple(_partition(text, at) for at in range(len(file.partition)))
    shared = tuple(
        _built(text, ("shared", at), hosting.SharedMemory, *dict(memory).values())
        for at, memory in enumerate(file.shared)
    )
    channels = tuple(
        _built(text, ("channel", at), Channel, *dict(channel).values())
        for at, channel in enumerate(file.channel)
    )
    policies = (policy.mode, policy.latency_from)
    return _built(text, (), System, costs, slots, sources, *policies, hosted, shared, channels)


def _partition(text: TomlFile[SystemFile], at: int) -> hosting.Partition:
    wanted = text.content.partition[at]
    place: Place = ("partition", at)
    devices = tuple(
        _built(text, (*place, "devices", number), hosting.Device, *dict(device).values())
        for number, device in enumerate(wanted.devices)
    )
    guest = wanted.guest
    if guest and guest.isprintable() and guest not in hosting.PROGRAMS:
        guest = os.path.normpath((text.path.parent / guest).absolute())
    return _built(
        text,
        place,
        hosting.Partition,
        wanted.name,
        guest,
        wanted.memory,
        wanted.cpu,
        wanted.on_fault,
        devices,
        wanted.restarts,
        wanted.restart_window,
        wanted.watchdog,
        wanted.on_watchdog,
    )


def _source(text: TomlFile[SystemFile], at: int, recorded: Recorded) -> contents.Source:
    wanted = text.content.source[at]
    place: Place = ("source", at)
    monitor = None
    if wanted.monitor is not None:
        monitor = _built(text, (*place, "monitor"), arrivals.Monitor, wanted.monitor.distances)
    learning = None
    if wanted.learn is not None:
        counts = (wanted.learn.events, wanted.learn.length)
        learning = _built(text, (*place, "learn"), hosting.Learning, *counts)
    return _built(
        text,
        place,
        contents.Source,
        wanted.name,
        wanted.partition,
        wanted.top,
        wanted.bottom,
        _arrival(text, (*place, "arrival"), wanted, recorded),
        monitor,
        wanted.interrupt,
        learning,
        wanted.top_sums,
    )


def _arrival(
    text: TomlFile[SystemFile], place: Place, source: SourceSettings, recorded: Recorded
) -> arrivals.Arrival:
    match source.arrival:
        case PeriodicSettings(period=period, jitter=jitter, min_distance=distance):
            return _built(text, place, arrivals.Periodic, period, jitter, distance)
        case DistancesSettings(distances=distances):
            return _built(text, place, arrivals.Distances, distances)
        case TraceSettings(file=file, length=length):
            times = recorded[file][source.name]
            return _built(text, place, arrivals.RecordedTrace, times, length)
        case ExponentialSettings(mean=mean, min_distance=distance, seed=seed):
            return _built(text, place, arrivals.Exponential, mean, distance, seed)


def _recorded(text: TomlFile[SystemFile]) -> Recorded:
    """Read every trace that a file names, once, for the sources that replay it."""
    places: dict[str, dict[str, Place]] = {}
    for at, source in enumerate(text.content.source):
        if isinstance(source.arrival, TraceSettings):
            place: Place = ("source", at, "arrival", "file")
            places.setdefault(source.arrival.file, {})[source.name] = place
    found: Recorded = {}
    for file, places_of in places.items():
        path = text.path.parent / file
        if not trace.is_trace(path):
            where = text.where(next(iter(places_of.values())))
            raise BadInput(f"there is no file {shown(str(path))}", where, "name a trace")
        found[file] = trace.read_times(path, places_of)
        for name, place in places_of.items():
            if not len(found[file][name]):
                raise BadInput(
                    f"{shown(file)} has no arrival of {shown(name)}",
                    text.where(place),
                    "sources of the trace and of the system must have the same names",
                )
    return found


def _built(
    text: TomlFile[SystemFile], place: Place, build: Callable[..., BuiltT], *arguments: object
) -> BuiltT:
    """Build a part of a system; tell its mistakes by their place in the file."""
    try:
        return build(*arguments)
    except BadField as mistake:
        where = text.where((*place, *map(_key, mistake.place)))
        raise BadInput(mistake.what, where, mistake.remedy) from None


def _key(attribute: str | int) -> str | int:
    """Return the key of an attribute: without its unit, one table of many in the singular."""
    if isinstance(attribute, int):
        return attribute
    singular = {
        "slots": "slot",
        "sources": "source",
        "times_ns": "file",
        "hosted": "partition",
        "learning": "learn",
        "channels": "channel",
        "sender": "from",
        "receiver": "to",
    }
    return singular.get(attribute, attribute.removesuffix("_ns"))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of system files, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **SystemFile.model_json_schema(),
        "title": "Latenz system",
    }
