"""Sets of CPUs as the kernel writes them: lists ("0-3,8") and masks ("1,0000000f").

Two writers of one set differ in leading zeros, comma groups and ranges, so that only the sets can
be compared, never their texts.
"""

import re

from latenz.settings import format_cpu_list

CPU_LIMIT = 8192
"""One more than the highest number of a CPU that Linux supports."""
_RANGE = re.compile(r"(\d{1,4}|N)(?:-(\d{1,4}|N)(?::(\d{1,4})/(\d{1,4}))?)?")
_ISOLATION_FLAGS = frozenset({"domain", "managed_irq", "nohz"})
_GROUP_BITS = 32


def parse_list(text: str, last: int = CPU_LIMIT - 1) -> frozenset[int]:
    """Return the CPUs of a list as the kernel reads it.

    Args:
        text: Such as "0-3,8", "0-3 8", "all", "2-N", "0-9:2/4", or empty. `(null)` is what the
            kernel prints for a list that was never given. Flags of `isolcpus=` before the list are
            passed over.
        last: What `N` and `all` stand for: the machine's last CPU.

    Raises:
        ValueError: This is no such list.
    """
    parts = [part for part in re.split(r"[,\s]+", text) if part]
    if len(parts) > CPU_LIMIT + len(_ISOLATION_FLAGS):
        raise ValueError("the list has more parts than Linux has CPUs")
    while parts and parts[0] in _ISOLATION_FLAGS:
        del parts[0]
    if parts == ["(null)"]:
        return frozenset()
    cpus: set[int] = set()
    for part in parts:
        cpus.update(*_ranges(part, last))
    return frozenset(cpus)


def _ranges(part: str, last: int) -> list[range]:
    match = _RANGE.fullmatch("0-N" if part == "all" else part)
    if not match:
        raise ValueError(f"{part[:40]!r} is neither a CPU nor a range of CPUs")
    first, end = (
        last if number == "N" else int(number) for number in (match[1], match[2] or match[1])
    )
    used, group = int(match[3] or 1), int(match[4] or 1)
    if first > end or end >= CPU_LIMIT or not 0 < used <= group:
        raise ValueError(f"{part!r} is not a range of CPUs")
    if used == group:
        return [range(first, end + 1)]
    return [range(first + place, end + 1, group) for place in range(min(used, CPU_LIMIT))]


def parse_mask(text: str) -> frozenset[int]:
    """Return the CPUs of a hexadecimal mask; commas separate groups of 32 bits.

    Raises:
        ValueError: This is no such mask.
    """
    groups = text.strip().lower().removeprefix("0x").split(",")
    if len(groups) > CPU_LIMIT // _GROUP_BITS:
        raise ValueError("the mask has more bits than Linux has CPUs")
    if len(groups) == 1:
        groups = _split(groups[0])
    mask = 0
    for group in groups:
        if not re.fullmatch(r"[0-9a-f]{1,8}", group):
            raise ValueError(f"{group[:40]!r} is not a group of a mask")
        mask = mask << _GROUP_BITS | int(group, 16)
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def _split(digits: str) -> list[str]:
    """Return the groups of a mask that was written without commas."""
    if not 0 < len(digits) <= CPU_LIMIT // 4:
        raise ValueError("is not a mask")
    first = len(digits) % 8
    groups = [digits[at : at + 8] for at in range(first, len(digits), 8)]
    return [digits[:first], *groups] if first else groups


def format_list(cpus: frozenset[int]) -> str:
    """Return a set as the kernel writes it: "0-3,8"."""
    return format_cpu_list(tuple(sorted(cpus)))


def format_mask(cpus: frozenset[int]) -> str:
    """Return a set as a mask in the kernel's form: groups of 32 bits, the first one not padded."""
    mask = sum(1 << cpu for cpu in cpus)
    groups = []
    while mask >> _GROUP_BITS:
        groups.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= _GROUP_BITS
    return ",".join([f"{mask:x}", *reversed(groups)])
