"""Logs of CAN: `candump -l` (and `-ta`) of can-utils, and Vector's ASCII logging files (.asc).

Each frame is an activation. Sources are identifiers on a channel, such as `can0 123`; with the
event `channel`, all frames of a channel are one source. Error frames are no activations: they are
left out, and counted.
"""

import re
from fractions import Fraction

from latenz.analysis.activations.text import Collected, Recorded, nanoseconds, read_lines
from latenz.errors import BadInput, shown
from latenz.importers.source import Source

NAME = "can"
IDENTIFIER, CHANNEL = "id", "channel"
_SECOND_NS = 10**9
_ERROR_FLAG = 0x2000_0000  # CAN_ERR_FLAG of linux/can.h, in identifiers of eight digits
_ID = r"[0-9A-Fa-f]{1,8}"
_LOGGED = re.compile(rf"\((\d{{1,12}}\.\d{{1,9}})\)\s+(\S{{1,16}})\s+({_ID})#\S*(?:\s+[RT])?\s*")
_SHOWN = re.compile(
    rf"\s*\((\d{{1,12}}\.\d{{1,9}})\)\s+(\S{{1,16}})\s+(?:[RT]X\s+\S+\s+)?({_ID})\s+\[\d+\].*"
)
_TIME = r"\s*(\d{1,12}\.\d{1,9})\s+"
_CLASSIC = re.compile(rf"{_TIME}(\d{{1,3}})\s+({_ID})(x?)\s+(?:Rx|Tx|TxRq)\s+[dr]\b.*", re.I)
_FD = re.compile(rf"{_TIME}CANFD\s+(\d{{1,3}})\s+(?:Rx|Tx|TxRq)\s+({_ID})(x?)\s.*", re.I)
_ERROR = re.compile(rf"{_TIME}(?:CANFD\s+)?\d{{1,3}}\s+(?:Rx\s+|Tx\s+)?ErrorFrame\b.*", re.I)
_EVENT = re.compile(_TIME + r"\S.*")
_BASE = re.compile(r"base\s+(?:hex|dec)\s+timestamps\s+(absolute|relative)\s*", re.I)
_HEAD_LOG = re.compile(rf"\s*\(\d{{1,12}}\.\d{{1,9}}\)\s+\S{{1,16}}\s+(?:{_ID}#|.*\[\d+\])")
_HEAD_ASC = re.compile(r"^base\s+(?:hex|dec)\s+timestamps\s", re.I | re.M)


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a log of CAN."""
    text = head[:4096].decode("utf-8", errors="replace").lstrip("\ufeff")
    return _HEAD_LOG.match(text.lstrip()) is not None or _HEAD_ASC.search(text) is not None


def read(source: Source, event: str) -> Recorded:
    """Read the activations.

    Args:
        source: The file.
        event: `id`: an identifier on a channel is a source; `channel`: a channel is.
    """
    if event not in (IDENTIFIER, CHANNEL):
        raise BadInput(f"{shown(event)} is not an event of CAN", "--event", "write id or channel")
    log = _Log(source, event == CHANNEL)
    warnings = read_lines(source, log.take)
    if log.errors:
        warnings.append(f"{log.errors} error frames are no activations and were left out")
    if log.rounded:
        warnings.append("time stamps finer than 1 ns were rounded down")
    return Recorded(log.found.by_source(), warnings, "give a log with at least one frame")


class _Log:
    def __init__(self, source: Source, by_channel: bool) -> None:
        self.source = source
        self.by_channel = by_channel
        self.found = Collected()
        self.errors = 0
        self.rounded = False
        self._vector: bool | None = None
        self._relative = False
        self._now_ns = 0

    def take(self, line: int, content: str) -> None:
        """Take a line of either kind of file."""
        content = content.removeprefix("\ufeff")
        if not content.strip():
            return
        if self._vector is None:
            self._vector = not content.lstrip().startswith("(")
        (self._take_vector if self._vector else self._take_candump)(line, content)

    def _take_candump(self, line: int, content: str) -> None:
        match = _LOGGED.fullmatch(content) or _SHOWN.fullmatch(content)
        if match is None:
            raise self.source.bad(
                f"{shown(content[:60])} is not a frame",
                line,
                "as in: (1436509052.249713) can0 123#11",
            )
        time_ns = self._time(match[1], line)
        if len(match[3]) == 8 and int(match[3], 16) & _ERROR_FLAG:
            self.errors += 1
        else:
            self._add(match[2], match[3], time_ns)

    def _take_vector(self, line: int, content: str) -> None:
        if match := _BASE.fullmatch(content):
            self._relative = match[1].lower() == "relative"
        elif match := _CLASSIC.fullmatch(content) or _FD.fullmatch(content):
            time_ns = self._moment(match[1], line)
            self._add(f"can{match[2]}", match[3] + match[4], time_ns)
        elif match := _ERROR.fullmatch(content):
            self._moment(match[1], line)
            self.errors += 1
        elif match := _EVENT.fullmatch(content):  # statistics, triggers, other buses
            self._moment(match[1], line)

    def _moment(self, text: str, line: int) -> int:
        """Return a time of Vector's, which may count from the event before."""
        time_ns = self._time(text, line)
        self._now_ns = self._now_ns + time_ns if self._relative else time_ns
        return self._now_ns

    def _time(self, text: str, line: int) -> int:
        time_ns, exact = nanoseconds(self.source, text, Fraction(_SECOND_NS), line)
        self.rounded |= not exact
        return time_ns

    def _add(self, channel: str, identifier: str, time_ns: int) -> None:
        name = channel if self.by_channel else f"{channel} {identifier.upper().rstrip('X')}"
        self.found.add(name, time_ns)
