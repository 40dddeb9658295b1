"""The generics of the Latencies IP and what can be told from them: its features and registers."""

from dataclasses import asdict, dataclass, replace

POLICIES = ("drop", "restart", "queue")


@dataclass(frozen=True)
class Configuration:
    """The generics, each with its default and named as in the VHDL without `_g`."""

    latency_width: int = 16
    depth: int = 512
    num_width: int = 16
    synchroniser_stages: int = 2
    overlap_policy: str = "drop"
    queue_depth: int = 16
    clock_frequency_hz: int = 100_000_000
    identification: bool = False
    counters: bool = False
    watchdog: bool = False
    time_stamp: bool = False
    shared_time: bool = False
    snapshot: bool = False
    sums: bool = False
    histogram: bool = False
    stream: bool = False
    freeze: bool = False
    self_test: bool = False
    histogram_bins: int = 1024
    histogram_kind: str = "linear"
    histogram_sub_bits: int = 4
    channel: int = 0

    @property
    def latency_max(self) -> int:
        """All ones: the largest latency that can be told, and `min` before the first sample."""
        return (1 << self.latency_width) - 1

    @property
    def log_linear(self) -> bool:
        """Bins grow with the latency, 2**histogram_sub_bits of them each time it doubles."""
        return self.histogram_kind == "log-linear"

    @property
    def extended(self) -> bool:
        """Whether any addition to the published IP is on."""
        return any(value is True for value in asdict(self).values())

    @property
    def region_bytes(self) -> int:
        """Distance of two regions of the memory window."""
        bins = self.histogram_bins if self.histogram else 0
        return 4 * max(self.depth, bins)

    def generics(self) -> list[str]:
        """The generics that are not the default, as options of GHDL."""
        defaults = asdict(Configuration())
        return [
            f"-g{name}_g={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in asdict(self).items()
            if value != defaults[name]
        ]


PUBLISHED = Configuration(synchroniser_stages=0)

# Every addition but the two halves of the memory, which change where samples are; small enough that
# the memories fill in a short test.
FULL = Configuration(
    latency_width=32,
    depth=64,
    num_width=32,
    synchroniser_stages=2,
    queue_depth=4,
    identification=True,
    counters=True,
    watchdog=True,
    time_stamp=True,
    snapshot=True,
    sums=True,
    histogram=True,
    stream=True,
    self_test=True,
    histogram_bins=128,
    histogram_kind="log-linear",
    histogram_sub_bits=3,
    channel=5,
)


# Every addition.
HALVES = replace(FULL, freeze=True)


def full(policy: str) -> Configuration:
    """As `FULL`, with an overlap policy."""
    return replace(FULL, overlap_policy=policy)
