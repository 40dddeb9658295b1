"""What a user names as a board, opened: `sim:`, `unix:`, `tcp:`, `serial:`, `uio:` or `mem:`."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from latenz.durations import parse_frequency
from latenz.errors import BadInput, shown
from latenz.icc.region import DeviceRegion, open_device
from latenz.ip.link import Board, Link, MemoryLink, Place, Ring, SocketLink
from latenz.ip.registers import LATENCIES_IP_OFFSETS as OFFSETS
from latenz.ip.ring import RECORD_BYTES
from latenz.ip.secret import read_secret
from latenz.ip.serial import SerialLink
from latenz.model import TimeBase

FORMS = (
    "sim:latency_bench, unix:PATH, tcp:HOST:PORT, serial:/dev/ttyUSBN, uio:/dev/uioN "
    "or mem:S00+SIZE,S01 as in mem:0xA0000000+4K,0xA0010000"
)
_SCHEMES = ("sim", "unix", "tcp", "serial", "uio", "mem")
_REGISTERS_SIZE = "4K"
_GENERIC = re.compile(r"([a-z][a-z0-9_]{0,60})=([A-Za-z0-9_-]{1,40})")
_MOST_PROPERTY = 256
_Opener = Callable[[str, "Options"], SocketLink | SerialLink | MemoryLink]
_SIZES = {"latency_width_g", "depth_g", "num_width_g"}


@dataclass(frozen=True)
class Options:
    """What a target's own text does not say.

    Attributes:
        seed: Simulated boards: of what the simulated processor draws.
        generics: Simulated boards: of the design, as `NAME=VALUE`.
        clock: Direct access: the frequency of `aclk`, such as "100 MHz".
        extended: Direct access: the IP has additions, so that its identification can be read.
        secret: Bridges: the file with the secret that they share with their clients.
        progress: Show that a simulated board starts.
        system: Where `/dev` and `/sys` are.
    """

    seed: int = 1
    generics: tuple[str, ...] = ()
    clock: str | None = None
    extended: bool = False
    secret: Path | None = None
    progress: bool = False
    system: Path = field(default=Path("/"))


@contextmanager
def open_target(text: str, options: Options | None = None) -> Iterator[Link]:
    """Open the board that a text names; leave it alone afterwards.

    Raises:
        BadInput: The text names none, it is not there, or an option does not fit it.
    """
    options = options or Options()
    scheme, _, rest = text.partition(":")
    if scheme not in _SCHEMES or (not rest and scheme != "sim"):
        raise BadInput(f"{shown(text)} is not a board", "", f"write {FORMS}")
    _check(scheme, options)
    if scheme == "sim":
        with _simulated(text, rest, options) as link:
            yield link
        return
    openers: dict[str, _Opener] = {"unix": _unix, "tcp": _tcp, "serial": _serial}
    opener = openers.get(scheme, _direct)
    with opener(text, options) as link:
        yield link


def _check(scheme: str, options: Options) -> None:
    direct = scheme in ("uio", "mem")
    if (options.clock or options.extended) and not direct:
        raise BadInput("such a board says this itself", "--clock, --extended")
    if options.secret is not None and scheme not in ("tcp", "unix"):
        raise BadInput("only a bridge asks for one", "--secret", "omit it, or name tcp:HOST:PORT")
    if options.generics and scheme != "sim":
        raise BadInput("only a simulated board can be built as one likes", "--generic")


@contextmanager
def _simulated(text: str, design: str, options: Options) -> Iterator[Link]:
    from latenz.ip.simulated import Scenario, simulated_board

    generics = read_generics(options.generics)
    if _SIZES & generics.keys():  # an IP that does not tell them is taken for the published one
        generics.setdefault("identification_g", True)
    with (
        simulated_board(
            design or "latency_bench",
            generics,
            Scenario(seed=options.seed),
            progress=options.progress,
        ) as path,
        SocketLink(text, str(path)) as link,
    ):
        yield link


def read_generics(texts: tuple[str, ...]) -> dict[str, int | bool | str]:
    """Return generics from texts such as `latency_width_g=32` or `counters_g=true`.

    Raises:
        BadInput: A text is no such thing.
    """
    generics: dict[str, int | bool | str] = {}
    for text in texts:
        match = _GENERIC.fullmatch(text)
        if match is None:
            raise BadInput(
                f"{shown(text)} is not a generic", "--generic", "write latency_width_g=32"
            )
        name, value = match.groups()
        if value in ("true", "false"):
            generics[name] = value == "true"
        else:
            generics[name] = int(value) if value.isdecimal() else value
    return generics


def _secret(options: Options) -> bytes | None:
    return None if options.secret is None else read_secret(options.secret)


def _unix(text: str, options: Options) -> SocketLink:
    return SocketLink(text, text.partition(":")[2], _secret(options))


def _tcp(text: str, options: Options) -> SocketLink:
    host, _, port = text.partition(":")[2].rpartition(":")
    if not host or not re.fullmatch(r"\d{1,5}", port) or not 0 < int(port) < 1 << 16:
        raise BadInput(f"{shown(text)} has no host and port", "", "write tcp:zcu102:7421")
    return SocketLink(text, (host.strip("[]"), int(port)), _secret(options))


def _serial(text: str, _options: Options) -> SerialLink:
    return SerialLink(text, Path(text.partition(":")[2]))


def _direct(text: str, options: Options) -> MemoryLink:
    is_uio = text.startswith("uio:")
    told = _Told.of_uio(text, options.system) if is_uio else _Told(_of_memory(text))
    hertz = parse_frequency(options.clock, "--clock") if options.clock else told.hertz
    if options.extended and told.extended is False:
        raise BadInput("the device tree says that it has no additions", text, "omit --extended")
    extended = options.extended or bool(told.extended)
    if hertz is None and not extended:
        raise BadInput(
            "the published IP does not tell its clock", text, "give --clock, such as --clock 100MHz"
        )
    windows = _windows(told.windows, options.system)
    try:
        board = Board(
            board=text,
            time_base=TimeBase.SILICON,
            clock_hz=hertz or _clock_register(windows[1]),
            instances=(told.place(not extended, windows),),
        )
    except (BadInput, ValidationError) as error:
        for window in windows:
            window.close()
        raise BadInput(str(error).splitlines()[0], text) from None
    return MemoryLink(text, board, windows)


def _clock_register(registers: DeviceRegion) -> int:
    return int.from_bytes(registers.read(OFFSETS["clock_frequency_hz"], 4), "little")


def _windows(names: tuple[str, ...], system: Path) -> list[DeviceRegion]:
    windows: list[DeviceRegion] = []
    try:
        for name in names:
            windows.append(open_device(name, system))
    except BaseException:
        for window in windows:
            window.close()
        raise
    return windows


def _of_memory(text: str) -> tuple[str, str]:
    first, _, second = text.partition(":")[2].partition(",")
    if not second or "+" not in first:
        raise BadInput(f"{shown(text)} names no two windows", "", f"write {FORMS}")
    return f"mem:{first}", f"mem:{second}" + ("" if "+" in second else f"+{_REGISTERS_SIZE}")


@dataclass(frozen=True)
class _Told:
    """What the device tree tells of an IP; None where it does not.

    An IP is one device with two maps, named `s00` and `s01`, as hdl/devicetree has it; where a
    ring is behind it there are two more, `ring-writer` and `ring`, whose address is `ring_base`.
    """

    windows: tuple[str, ...]
    name: str = "ip"
    extended: bool | None = None
    hertz: int | None = None
    from_event: str = "irq_in"
    to_event: str = "ack_in"
    ring_base: int | None = None

    @classmethod
    def of_uio(cls, text: str, system: Path) -> "_Told":
        match = re.fullmatch(r"uio:/dev/(uio\d{1,5})", text)
        if match is None:
            raise BadInput(f"{shown(text)} is not a UIO device", "", "write uio:/dev/uio0")
        device = system / "sys/class/uio" / match[1]
        if not device.is_dir():
            raise BadInput(
                "there is no such device", text, "is the overlay loaded? see /sys/class/uio/*/name"
            )
        maps, ring_base = _maps(device)
        windows, node = tuple(f"{text}:{each}" for each in maps), device / "device/of_node"
        kinds = {"latenz,published": False, "latenz,extended": True}
        extended = [kind for name, kind in kinds.items() if (node / name).exists()]
        hertz = _property(node / "latenz,clock-frequency-hz")
        return cls(
            windows,
            name=_text(node / "label") or match[1],
            extended=extended[0] if extended else None,
            hertz=int.from_bytes(hertz, "big") if hertz else None,
            from_event=_text(node / "latenz,from-event") or cls.from_event,
            to_event=_text(node / "latenz,to-event") or cls.to_event,
            ring_base=ring_base,
        )

    def place(self, published: bool, windows: list[DeviceRegion]) -> Place:
        return Place(
            name=self.name,
            s00=0,
            s01=1,
            published=published,
            from_event=self.from_event,
            to_event=self.to_event,
            ring=None if self.ring_base is None else _ring(self.ring_base, windows[3]),
        )


def _ring(base: int, memory: DeviceRegion) -> Ring:
    records = memory.size // RECORD_BYTES
    if records.bit_count() != 1 or records * RECORD_BYTES != memory.size:
        raise BadInput(
            f"{memory.size} bytes are no ring", memory.name, "16 bytes times a power of two"
        )
    return Ring(registers=2, memory=3, base=base, size_log2=records.bit_length() - 1)


def _maps(device: Path) -> tuple[tuple[int, ...], int | None]:
    """Return which maps of a device are S00 and S01, by their names, else the first two.

    Where there is a ring, its writer and the ring follow, and its address is told.
    """
    named = {
        _text(path).lower(): int(path.parent.name[3:])
        for path in device.glob("maps/map*/name")
        if path.parent.name[3:].isdecimal()
    }
    maps = named.get("s00", 0), named.get("s01", 1)
    if not {"ring-writer", "ring"} <= named.keys():
        return maps, None
    folder = device / f"maps/map{named['ring']}"
    try:
        base = sum(int(_text(folder / name), 16) for name in ("addr", "offset"))
    except ValueError:
        raise BadInput("tells no address of the ring", str(folder)) from None
    return (*maps, named["ring-writer"], named["ring"]), base


def _property(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_PROPERTY)
    except OSError:
        return b""


def _text(path: Path) -> str:
    text = _property(path).rstrip(b"\0\n").decode("ascii", "replace")
    return text if text.isprintable() else ""
