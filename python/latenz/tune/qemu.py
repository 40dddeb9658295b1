"""Running QEMU processes that use KVM, and what their command lines say.

QEMU takes options as `-option a=b,c` or as JSON, several names for one thing, and many words for
yes and no; here each of them looks the same.
"""

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from latenz.tune.root import Root

if TYPE_CHECKING:
    from latenz.tune.tasks import Thread

Option = dict[str, str]
"""The keys of one option with their values."""
VCPU_NAME = "CPU */KVM"
"""Pattern of the name of a vCPU's thread, if QEMU gives its threads names."""
_PROGRAM = re.compile(r"qemu-system-[a-z0-9_]+|qemu-kvm|kvm")
_OTHER_NAMES = {"M": "machine", "nic": "netdev"}
_FIRST_KEY = {
    "accel": "accel",
    "cpu": "model",
    "device": "driver",
    "m": "size",
    "machine": "type",
    "name": "guest",
    "netdev": "type",
    "object": "qom-type",
}
"""The key that the first word of an option's value belongs to."""
_YES, _NO = ("on", "yes", "true", "y"), ("off", "no", "false", "n")
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SHIFTS = {"K": 10, "M": 20, "G": 30, "T": 40}
_DEFAULT_MEMORY_BYTES = 128 << 20


@dataclass(frozen=True)
class QemuProcess:
    """A QEMU process that uses KVM.

    Attributes:
        pid: Its number.
        arguments: Its command line, without the program.
    """

    pid: int
    arguments: tuple[str, ...]

    @cached_property
    def options(self) -> tuple[tuple[str, Option], ...]:
        """All options in their order: their names without dashes, and what they say."""
        found = []
        for at, argument in enumerate(self.arguments):
            # A value may begin with a dash only as "-" itself, which is not an option.
            if not re.fullmatch(r"--?[A-Za-z].*", argument):
                continue
            name = argument.lstrip("-")
            name = _OTHER_NAMES.get(name, name)
            following = self.arguments[at + 1] if at + 1 < len(self.arguments) else "-"
            value = "" if following.startswith("-") else following
            found.append((name, parse_option(name, value)))
        return tuple(found)

    @property
    def name(self) -> str:
        """The guest's name, or else the number of the process."""
        names = [option["guest"] for option in self.given("name") if "guest" in option]
        return f"{names[-1]} ({self.pid})" if names else f"QEMU {self.pid}"

    @property
    def uses_kvm(self) -> bool:
        """Whether KVM runs the guest's code."""
        wanted = [option.get("accel", "") for option in self.given("accel")]
        wanted += [option.get("accel", "") for option in self.given("machine")]
        return any("kvm" in each.split(":") for each in wanted) or bool(self.given("enable-kvm"))

    def given(self, name: str) -> list[Option]:
        """Return what each option of a name says."""
        return [option for known, option in self.options if known == name]

    @property
    def memory_bytes(self) -> int:
        """How much memory the guest has."""
        sizes = [size_bytes(option.get("size", ""), 20) for option in self.given("m")]
        return next((size for size in reversed(sizes) if size), _DEFAULT_MEMORY_BYTES)

    def vcpus(self, threads: "tuple[Thread, ...]") -> "list[Thread]":
        """Return the threads of its vCPUs; none if QEMU gives its threads no names."""
        own = (each for each in threads if each.pid == self.pid)
        return [each for each in own if fnmatchcase(each.name, VCPU_NAME)]


def parse_option(name: str, text: str) -> Option:
    """Return the keys and values of an option's text, however it is written.

    `_` in keys is the same as `-`; `+x` and a lone `x` are `x=on`; `-x` is `x=off`.
    """
    if text.startswith("{"):
        return _from_json(text)
    found: Option = {}
    # Two commas stand for one that belongs to the value.
    for at, part in enumerate(text.replace(",,", "\0").split(",")):
        key, equals, value = part.replace("\0", ",").partition("=")
        if not equals and at == 0 and name in _FIRST_KEY:
            key, value = _FIRST_KEY[name], key
        elif not equals:
            key, value = key.lstrip("+-"), "off" if key.startswith("-") else "on"
        if key:
            found[key.replace("_", "-")] = value
    return found


def _from_json(text: str) -> Option:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    plain = data.items() if isinstance(data, dict) else ()
    found: Option = {}
    for key, value in plain:
        if isinstance(value, bool):
            found[key.replace("_", "-")] = "on" if value else "off"
        elif isinstance(value, str | int):
            found[key.replace("_", "-")] = str(value)
    return found


def word(value: str) -> str:
    """Return a value with one word for yes (on) and one for no (off)."""
    if value in _YES:
        return "on"
    return "off" if value in _NO else value


def size_bytes(text: str, shift: int = 0) -> int:
    """Return a size such as 4G in bytes; one without a unit is shifted left; 0 if it is none."""
    match = _SIZE.fullmatch(text)
    return int(match[1]) << _SHIFTS.get(match[2].upper(), shift) if match else 0


def read_processes(root: Root) -> tuple[QemuProcess, ...]:
    """Return the QEMU processes that use KVM, by number."""
    found = []
    for pid in sorted(int(name) for name in root.names("/proc") if name.isdecimal()):
        words = (root.read(f"/proc/{pid}/cmdline") or "").rstrip("\0").split("\0")
        program = words[0].rpartition("/")[2]
        if not _PROGRAM.fullmatch(program):
            continue
        process = QemuProcess(pid, tuple(words[1:]))
        if process.uses_kvm or program in ("kvm", "qemu-kvm"):
            found.append(process)
    return tuple(found)
