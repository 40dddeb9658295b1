"""What a Latencies IP was built with, as its own registers say."""

from dataclasses import dataclass

from latenz.errors import BadInput
from latenz.ip.registers import LATENCIES_IP_FIELDS as FIELDS

POLICIES = ("drop", "restart", "queue")
FEATURES = tuple(name.removeprefix("features_") for name in FIELDS if name.startswith("features_"))
_LETTERS, _MAJOR = 0x4C5A, 1
_WIDTHS = (16, 32, 48)
_MOST_LOG2_DEPTH = 16


@dataclass(frozen=True)
class Configuration:
    """Widths, sizes and features; the defaults are the published configuration.

    Attributes:
        latency_width: Bits of a latency.
        depth: Samples in the memory.
        policy: What an interrupt does while one is measured; None: not known.
        synchroniser_stages: Of both inputs; None: not known.
        bins: Of the histogram; 0 without one.
        sub_bits: Of a log-linear histogram; None for a linear one.
        features: Some of `FEATURES`.
        minor: Minor version of the register map; None: the published one.
    """

    latency_width: int = 16
    depth: int = 512
    policy: str | None = None
    synchroniser_stages: int | None = None
    bins: int = 0
    sub_bits: int | None = None
    features: frozenset[str] = frozenset()
    minor: int | None = None

    @classmethod
    def decode(
        cls, identification: int, configuration: int, features: int, where: str
    ) -> "Configuration":
        """Return what three registers say.

        Raises:
            BadInput: They are not those of a Latencies IP that this program knows.
        """

        def field(name: str) -> int:
            return FIELDS[f"configuration_{name}"].of(configuration)

        letters = FIELDS["identification_letters"].of(identification)
        major = FIELDS["identification_major"].of(identification)
        if (letters, major) != (_LETTERS, _MAJOR):
            raise BadInput(
                f"its identification is {identification:#010x}",
                where,
                f"that of a Latencies IP begins with {_LETTERS << 8 | _MAJOR:#08x}",
            )
        found = frozenset(name for name in FEATURES if FIELDS[f"features_{name}"].of(features))
        width, log2_depth = field("latency_width"), field("log2_depth")
        policy = field("overlap_policy")
        known = width in _WIDTHS and 1 <= log2_depth <= _MOST_LOG2_DEPTH
        if not known or policy >= len(POLICIES):
            raise BadInput(f"its configuration is {configuration:#010x}", where, "is it damaged?")
        histogram = "histogram" in found
        return cls(
            latency_width=width,
            depth=1 << log2_depth,
            policy=POLICIES[policy],
            synchroniser_stages=field("synchroniser_stages"),
            bins=1 << field("log2_bins") if histogram else 0,
            sub_bits=field("sub_bits") if histogram and field("log_linear") else None,
            features=found,
            minor=FIELDS["identification_minor"].of(identification),
        )

    @property
    def extended(self) -> bool:
        """Whether there are registers beyond the published ones."""
        return self.minor is not None

    @property
    def longest(self) -> int:
        """The largest latency that fits in a sample, in cycles."""
        return (1 << self.latency_width) - 1

    @property
    def most_num(self) -> int:
        """Where `num` stops: so many samples or more."""
        return 0xFFFF_FFFF if "wide_num" in self.features else 0xFFFF

    @property
    def region_words(self) -> int:
        """Words from one region of S00 to the next."""
        return max(self.depth, self.bins)

    def bin_of(self, latency: int, shift: int) -> int:
        """Return the bin of the histogram that a latency belongs to; from `bins` on: overflow."""
        if self.sub_bits is None:
            return latency >> shift
        octave = max(0, latency.bit_length() - self.sub_bits)
        if octave == 0:
            return latency
        return (octave << self.sub_bits) + (latency >> octave - 1) - (1 << self.sub_bits)
