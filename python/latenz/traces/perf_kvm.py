"""The table that `perf kvm stat report` prints: counts and times, without the events themselves."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput
from latenz.traces.model import Event, Exits, Summary

_HEADER = re.compile(
    r"^\s*(VM-EXIT|IO Port Access|MMIO Access|Event name)\s+Samples\s+Samples%\s+Time%", re.M
)
_ROW = re.compile(
    r"^\s*(?P<name>\S.*?)\s+(?P<count>\d+)\s+\d+\.\d+%\s+\d+\.\d+%"
    r"\s+(?P<min>\d+\.\d+)us\s+(?P<max>\d+\.\d+)us\s+(?P<mean>\d+\.\d+)us"
    r"(?:\s+\(\s*\+-\s*(?:\d+\.\d+|-?nan)%\s*\))?\s*$"
)
_WHOSE = re.compile(r"^Analyze events for (?P<whose>.*?)(?:, VCPU (?P<vcpu>\d+)|, all VCPUs)?:\s*$")
_TOTAL = re.compile(r"^Total Samples:(?P<samples>\d+), Total events handled time:(?P<us>[\d.]+)us")
_FOOTERS = ("Total Samples:", "Analyze events", "[", "#")


def is_report(start: bytes) -> bool:
    """Is that the start of such a table?"""
    return _HEADER.search(start.decode(errors="replace")) is not None


@dataclass(frozen=True)
class Report:
    """Such a table. It holds no events, so nothing can be asked but the summary."""

    path: Path

    def summary(self, worst: int = 10) -> Summary:  # noqa: ARG002 - as of any trace
        """Read the table; `worst` changes nothing.

        The total of a reason is its count times the printed mean, which has two digits behind
        the point of a microsecond: it is known to count times 5 ns.

        Raises:
            BadInput: The file cannot be read.
        """
        try:
            text = self.path.read_text(errors="replace")
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror}", str(self.path)) from error
        return _Reading().read(text)

    def events(
        self,
        windows: Sequence[tuple[int, int]],  # noqa: ARG002
        most: int | None = None,  # noqa: ARG002
    ) -> Iterator[Event]:
        """Give nothing: the table has no events."""
        return iter(())


class _Reading:
    """One pass over the lines."""

    def __init__(self) -> None:
        self.vcpu = "all"
        self.is_in_table = False
        self.exits: list[Exits] = []
        self.truncated_at: str | None = None
        self.total: re.Match[str] | None = None

    def read(self, text: str) -> Summary:
        offset = 0
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            self._read_line(line, f"line {number} (byte {offset})")
            offset += len(line.encode())
        counted = sum(each.count for each in self.exits)
        notes = [
            "totals are counts times the printed means, exact to "
            f"{max((each.count for each in self.exits), default=0) * 5 / 1000:.3g} us at most"
        ]
        if self.total is None:
            self.truncated_at = self.truncated_at or (
                f"byte {offset}: the line of totals that ends the table is missing"
            )
        elif int(self.total["samples"]) != counted:
            notes.append(f"its last line tells of {self.total['samples']} samples, not {counted}")
        return Summary(
            format="perf kvm stat report",
            events=counted,
            exits=tuple(self.exits),
            truncated_at=self.truncated_at,
            notes=tuple(notes),
        )

    def _read_line(self, line: str, where: str) -> None:
        stripped = line.strip()
        if whose := _WHOSE.match(stripped):
            self.vcpu = whose["vcpu"] or "all"
            self.is_in_table = False
        elif _HEADER.match(line):
            self.is_in_table = True
        elif total := _TOTAL.match(stripped):
            self.total = total
            self.is_in_table = False
        elif not self.is_in_table or not stripped:
            return
        elif row := _ROW.match(line.rstrip("\n")):
            self._add(row)
        elif self.truncated_at is None:
            self.truncated_at = f"{where}: holds no row of the table"

    def _add(self, row: re.Match[str]) -> None:
        count = int(row["count"])
        self.exits.append(
            Exits(
                vcpu=self.vcpu,
                reason=row["name"],
                count=count,
                total_ns=count * _nanoseconds(row["mean"]),
                max_ns=_nanoseconds(row["max"]),
                min_ns=_nanoseconds(row["min"]),
            )
        )


def _nanoseconds(microseconds: str) -> int:
    whole, _, fraction = microseconds.partition(".")
    return int(whole) * 1000 + int(fraction[:3].ljust(3, "0"))
