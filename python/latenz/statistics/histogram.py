"""HdrHistogram: any number of latencies in bounded memory, readable by the field's tools.

The cells are those of hdrhistogram.org, and so is the text form: the V2 format, which is counts as
zigzag LEB128 with runs of empty cells as negative numbers, compressed by zlib, in base64.
"""

import base64
import binascii
import struct
import zlib
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics.due import Activations

HOUR_NS = 3_600_000_000_000
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
_HEADER = struct.Struct(">iiiiqqd")
_ENVELOPE = struct.Struct(">ii")
_WORD_BYTES = 9  # zigzag LEB128 of 64 bits; the ninth byte holds eight of them
_U64 = (1 << 64) - 1


class Histogram:
    """Latencies counted in cells whose width is at most their value / 10^significant_digits.

    Args:
        highest_ns: Largest latency to be kept; larger ones and negative ones are only counted,
            in `unrecorded`.
        lowest_discernible_ns: Latencies below it need not be told apart.
        significant_digits: Decimal digits kept of every latency, 1 to 5.

    Attributes:
        unrecorded: Latencies that were negative or beyond the range.

    Raises:
        BadInput: There is no histogram of that range and precision.
    """

    def __init__(
        self,
        highest_ns: int = HOUR_NS,
        lowest_discernible_ns: int = 1,
        significant_digits: int = 3,
    ) -> None:
        try:
            self._core = _core.Histogram(lowest_discernible_ns, highest_ns, significant_digits)
        except (ValueError, TypeError):
            raise BadInput(
                f"no histogram reaches from {lowest_discernible_ns} to {highest_ns} ns with"
                f" {significant_digits} significant digits",
                "histogram",
                "1 <= lowest <= highest / 2 < 2^62, and 1 to 5 digits",
            ) from None
        self.highest_ns = highest_ns
        self.lowest_discernible_ns = lowest_discernible_ns
        self.significant_digits = significant_digits
        self.unrecorded = 0

    @classmethod
    def of(cls, sample_set: SampleSet, highest_ns: int = HOUR_NS) -> "Histogram":
        """Count all activations of a sample set as due, skipped ones by how long they waited.

        Those that the set knows only beyond its range, or not at all, do not fit.

        Args:
            sample_set: Samples or a histogram.
            highest_ns: Largest latency to be kept.
        """
        histogram = cls(highest_ns)
        activations = Activations(sample_set)
        for latencies, _, counts in activations:
            histogram.record_counts(latencies, counts)
        histogram.unrecorded += sample_set.metadata.beyond_range + activations.unknown
        return histogram

    @property
    def n(self) -> int:
        """Number of latencies in the cells."""
        return self._core.n

    def record(self, latencies_ns: npt.NDArray[np.int64]) -> None:
        """Count latencies."""
        self.unrecorded += self._core.record(latencies_ns)

    def record_counts(
        self, latencies_ns: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> None:
        """Count each latency as often as `counts` says."""
        self.unrecorded += self._core.record_counts(latencies_ns, counts)

    def merge(self, other: "Histogram") -> None:
        """Add all latencies of another histogram; exact if its layout is the same."""
        self.unrecorded += self._core.merge(other._core) + other.unrecorded

    def cells(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return lowest value (ns), width (ns) and count of each cell that is not empty."""
        counts = self._core.counts
        filled = np.flatnonzero(counts)
        lowest = np.array([self._core.lowest_of(int(cell)) for cell in filled], np.int64)
        width = np.array([self._core.width_at(int(value)) for value in lowest], np.int64)
        return lowest, width, counts[filled].astype(np.int64)

    def quantile_ns(self, probability: str) -> int:
        """Return the lowest value of the cell that holds the ceil(p n)-th smallest latency.

        Args:
            probability: An exact decimal between 0 and 1, such as "0.999".

        Raises:
            BadInput: The histogram is empty.
        """
        if not self.n:
            raise BadInput("the histogram holds no latencies", "histogram", "record some first")
        exact = Fraction(probability) * self.n
        rank = max(1, -(-exact.numerator // exact.denominator))
        return self._core.lowest_of(self._core.cell_of_rank(rank))

    def encode(self) -> str:
        """Return the histogram in HdrHistogram's V2 compressed form, as `.hlog` files hold it."""
        counts = self._core.counts
        used = np.flatnonzero(counts)
        words = _with_zero_runs(counts[: used[-1] + 1 if len(used) else 0])
        payload = b"".join(_zigzag_leb128(word) for word in words)
        plain = (
            _HEADER.pack(
                _COOKIE,
                len(payload),
                0,
                self.significant_digits,
                self.lowest_discernible_ns,
                self.highest_ns,
                1.0,
            )
            + payload
        )
        compressed = zlib.compress(plain)
        envelope = _ENVELOPE.pack(_COMPRESSED_COOKIE, len(compressed))
        return base64.b64encode(envelope + compressed).decode("ascii")

    @classmethod
    def decode(cls, text: str, where: str = "histogram") -> "Histogram":
        """Read a histogram in HdrHistogram's V2 compressed form.

        Args:
            text: Base64 as `encode` gives it.
            where: The file and line it came from, for the error message.

        Raises:
            BadInput: It is no such histogram, is damaged, or is larger than any real one.
        """
        try:
            envelope = base64.b64decode(text, validate=True)
            cookie, length = _ENVELOPE.unpack_from(envelope)
            if cookie != _COMPRESSED_COOKIE or length != len(envelope) - _ENVELOPE.size:
                raise ValueError("another format or a cut end")
            stream = zlib.decompressobj()
            header = stream.decompress(envelope[_ENVELOPE.size :], _HEADER.size)
            cookie, length, shift, digits, lowest, highest, _ = _HEADER.unpack(header)
            if cookie != _COOKIE or shift != 0:
                raise ValueError("another format")
            histogram = cls(highest, lowest, digits)
            counts = histogram._core.counts
            payload = stream.decompress(stream.unconsumed_tail, len(counts) * _WORD_BYTES + 1)
            if not stream.eof or length != len(payload):
                raise ValueError("a cut end, or more counts than cells")
            _fill(counts, payload)
        except (ValueError, struct.error, zlib.error, binascii.Error, BadInput) as error:
            raise BadInput(
                f"is not a whole HdrHistogram V2 ({error})", where, "export it again"
            ) from None
        return histogram


def _with_zero_runs(counts: npt.NDArray[np.uint64]) -> list[int]:
    """Replace each run of k empty cells by -k; a single empty cell too."""
    words: list[int] = []
    for count in counts.tolist():
        if count:
            words.append(count)
        elif words and words[-1] < 0:
            words[-1] -= 1
        else:
            words.append(-1)
    return words


def _zigzag_leb128(word: int) -> bytes:
    rest = ((word << 1) ^ (word >> 63)) & _U64
    encoded = bytearray()
    while rest > 0x7F and len(encoded) < _WORD_BYTES - 1:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _fill(counts: npt.NDArray[np.uint64], payload: bytes) -> None:
    position = cell = 0
    while position < len(payload):
        word, position = _next_word(payload, position)
        if word < 0:
            cell -= word
        else:
            if cell >= len(counts):
                raise ValueError("more counts than cells")
            counts[cell] = word
            cell += 1
    if int(counts.sum(dtype=np.float64)) >= 1 << 62:
        raise ValueError("counts that do not fit in 64 bits")


def _next_word(payload: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(_WORD_BYTES):
        if position == len(payload):
            raise ValueError("a cut end")
        byte = payload[position]
        position += 1
        if place == _WORD_BYTES - 1:
            value |= byte << (7 * place)
            break
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), position
