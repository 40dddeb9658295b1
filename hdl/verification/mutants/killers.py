"""Which tests judge the mutants of a file, the ones that are quick to find something first.

They are the suites as they are, of whole modules on the configurations that CI runs; no test is
here because of a mutant.
"""

from dataclasses import dataclass
from pathlib import Path

from verification.latencies_ip.runner import Result, simulate
from verification.latencies_ip.suite import CONFIGURATIONS

Generics = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Killer:
    """One simulation.

    Attributes:
        module: With the tests.
        ip: Configuration of latencies_ip, one of the suite's.
        top: The entity that is simulated.
        generics: Of an entity that is not latencies_ip.
    """

    module: str
    ip: str = "published"
    top: str = "latencies_ip"
    generics: Generics = ()

    @property
    def name(self) -> str:
        """For tables and folders."""
        part = self.module.removeprefix("verification.").removesuffix(".cases")
        told = [self.ip] if self.top == "latencies_ip" else [value for _, value in self.generics]
        return "-".join([part.removeprefix("latencies_ip."), *told])

    def run(
        self, work: Path | None, folder: str, longest_ns: int, program: Path | None = None
    ) -> Result:
        """Simulate until the first test that fails."""
        return simulate(
            self.module,
            CONFIGURATIONS[self.ip],
            name=folder,
            work=work,
            top=self.top,
            generics=dict(self.generics),
            stop_at_failure=True,
            longest_ns=longest_ns,
            program=program,
        )


def _ip(*runs: str) -> tuple[Killer, ...]:
    pairs = (run.split("/") for run in runs)
    return tuple(Killer(f"verification.latencies_ip.{module}", ip) for module, ip in pairs)


def _part(top: str, *generics: dict[str, str], ip: str = "published") -> tuple[Killer, ...]:
    module = f"verification.{top}.cases"
    return tuple(Killer(module, ip, top, tuple(each.items())) for each in generics)


def _random(top: str, *generics: dict[str, str]) -> tuple[Killer, ...]:
    """The random traffic of a part by itself."""
    module = f"verification.random_parts.{top}"
    return tuple(Killer(module, top=top, generics=tuple(each.items())) for each in generics)


_WIDE = _ip("wide_values/wide_queue")
_DEEP = _ip("deep/deep")
_ADDITIONS = _ip("additions/full_queue", "additions/halves", "additions/linear", "additions/wide")
_CORE = _ip(
    "corner_cases/published",
    "corner_cases/full_drop",
    "corner_cases/full_restart",
    "corner_cases/wide",
    "random_traffic/published",
)
_QUEUE = _ip("corner_cases/queue_of_two", "corner_cases/full_queue", "random_traffic/full_queue")
_AXI = _ip("axi_cases/published", "axi_cases/halves", "axi_cases/wide")
_GENERATOR = _part(
    "random_data_generator",
    {"words_g": "16", "fifo_depth_g": "64", "synchroniser_stages_g": "0"},
    {"words_g": "1", "fifo_depth_g": "2", "synchroniser_stages_g": "2"},
    {"words_g": "8", "fifo_depth_g": "8", "synchroniser_stages_g": "3"},
)
_REGISTER = _part(
    "linear_feedback_register", {"width_g": "8"}, {"width_g": "16"}, {"width_g": "32"}
)
_HISTOGRAM = _part(
    "latency_histogram",
    {"bins_g": "64"},
    {"bins_g": "8", "latency_width_g": "48"},
    {"bins_g": "64", "kind_g": "log-linear", "sub_bits_g": "2"},
    {"bins_g": "128", "kind_g": "log-linear", "latency_width_g": "48", "sub_bits_g": "1"},
    {"bins_g": "8", "count_bits_g": "5"},
)
_EXTENDED = {
    "latency_width_g": "32",
    "counters_g": "true",
    "time_stamp_g": "true",
    "snapshot_g": "true",
    "sums_g": "true",
}
_BENCH = _part(
    "latency_bench",
    {"words_g": "16", "synchroniser_stages_g": "0"},
    {"words_g": "4", "synchroniser_stages_g": "2"} | _EXTENDED,
    {"words_g": "1", "synchroniser_stages_g": "3", "overlap_policy_g": "queue"} | _EXTENDED,
)
_CHANNELS = _part(
    "latencies_ip_channels",
    {"channels_g": "3"},
    {"channels_g": "3", "chained_g": "true", "synchroniser_stages_g": "2"},
    {"channels_g": "2", "chained_g": "true"},
    {"channels_g": "3", "chained_g": "true", "synchroniser_stages_g": "3"},
    {"channels_g": "16"},
    ip="channels",
)
_WRAPPED = _part(
    "latency_stream",
    {"channel_g": "165", "synchroniser_stages_g": "0"},
    {
        "channel_g": "3",
        "latency_width_g": "32",
        "depth_g": "64",
        "synchroniser_stages_g": "2",
        "overlap_policy_g": "queue",
        "clock_frequency_hz_g": "125000000",
        **{
            f"{name}_g": "true"
            for name in ("watchdog", "snapshot", "sums", "histogram", "self_test")
        },
    },
)
_RING = _part("stream_ring_writer", {})
_STREAM = _part("sample_stream", {"channel_g": "165"})
_BRIDGE = _part("uart_axi_bridge", {"cycles_per_bit_g": "10", "silence_bits_g": "64"})
_ULX3S = _part(
    "ulx3s_bench",
    {"cycles_per_bit_g": "8", "stimulus_bits_g": "9", "depth_g": "64", "bins_g": "64"},
)
_SELF_TEST = _part("self_test", {})
_RANDOM_RING = _random("ring_writer", {})
_RANDOM_MERGER = _random("stream_merger", {"inputs_g": "3"}, {"inputs_g": "16"})
_RANDOM_SELECTOR = _random(
    "axi_lite_selector", {"channels_g": "3"}, {"channels_g": "1", "window_bits_g": "4"}
)
_RANDOM_GENERATOR = _random(
    "random_data_generator",
    {"words_g": "4", "fifo_depth_g": "8", "synchroniser_stages_g": "0"},
    {"words_g": "1", "fifo_depth_g": "4", "synchroniser_stages_g": "3"},
)
_STREAMED = {"depth_g": "16", "stream_g": "true", "time_stamp_g": "true"}
_RANDOM_CHANNELS = _random(
    "latencies_ip_channels",
    _STREAMED | {"channels_g": "3", "synchroniser_stages_g": "0"},
    _STREAMED | {"channels_g": "2", "chained_g": "true", "synchroniser_stages_g": "2"},
)
_RANDOM_BRIDGE = _random("uart_axi_bridge", {"cycles_per_bit_g": "10", "silence_bits_g": "32"})

KILLERS: dict[str, tuple[Killer, ...]] = {
    "latencies_pkg": (*_CORE[:2], *_DEEP, *_WIDE, *_ADDITIONS, *_HISTOGRAM[:4], *_AXI[:2]),
    "latencies_ip_register_block": (*_AXI, *_WIDE, *_ADDITIONS, *_CORE),
    "input_edge": (*_CORE, *_GENERATOR, *_ADDITIONS),
    "latency_counter": (*_CORE, *_DEEP, *_ADDITIONS),
    "start_queue": (*_QUEUE, *_WIDE, *_ADDITIONS[:1]),
    "latency_statistics": (*_CORE, *_WIDE, *_ADDITIONS),
    "sample_memory": (*_CORE, *_ADDITIONS, *_WIDE),
    "latencies_core": (*_CORE, *_QUEUE, *_ADDITIONS, *_WIDE),
    "sample_window": (*_AXI, *_DEEP, *_WIDE, *_ADDITIONS, *_CORE),
    "sample_placement": (*_ADDITIONS, *_ip("random_traffic/halves"), *_CORE, *_WIDE),
    "event_counter": (*_WIDE, *_CORE[1:4]),
    "latency_sums": (*_WIDE, *_ADDITIONS, *_CORE[1:4], *_QUEUE[:1]),
    "latency_histogram": (*_HISTOGRAM, *_ADDITIONS),
    "sample_stream": (*_STREAM, *_WIDE, *_ADDITIONS),
    "self_test": (*_SELF_TEST, *_ADDITIONS, *_WIDE),
    "latencies_ip": (*_WIDE, *_DEEP, *_ADDITIONS, *_CORE, *_AXI, *_QUEUE),
    "random_data_generator_register_block": (*_GENERATOR, *_RANDOM_GENERATOR, *_BENCH),
    "linear_feedback_register": (*_REGISTER, *_GENERATOR[:1]),
    "word_fifo": (*_RANDOM_GENERATOR, *_GENERATOR, *_BENCH[:1]),
    "random_data_generator": (*_RANDOM_GENERATOR, *_GENERATOR, *_BENCH),
    "latency_bench": _BENCH,
    "stream_ring_writer_register_block": _RING,
    "ring_writer": (*_RANDOM_RING, *_RING),
    "stream_ring_writer": _RING,
    "latency_stream": _WRAPPED,
    "axi_lite_selector": (*_RANDOM_SELECTOR, *_CHANNELS),
    "stream_merger": (*_RANDOM_MERGER, *_CHANNELS),
    "synchroniser": (*_CHANNELS[1:], *_RANDOM_CHANNELS[1:]),
    "latencies_ip_channels": (*_RANDOM_CHANNELS, *_CHANNELS),
    "uart_receiver": (*_RANDOM_BRIDGE, *_BRIDGE),
    "uart_transmitter": (*_RANDOM_BRIDGE, *_BRIDGE),
    "uart_axi_bridge": (*_RANDOM_BRIDGE, *_BRIDGE),
    "ulx3s_bench": _ULX3S,
}

_ALL = {
    f"{name}_g": "true"
    for name in (
        *("identification", "counters", "watchdog", "time_stamp", "snapshot", "sums"),
        *("histogram", "stream", "freeze", "self_test"),
    )
}
_SIZES: tuple[dict[str, str], ...] = (
    {},
    _ALL,
    _ALL | {"latency_width_g": "48", "num_width_g": "32", "overlap_policy_g": "queue"},
    _ALL | {"depth_g": "2048", "histogram_kind_g": "log-linear", "overlap_policy_g": "restart"},
)
OFFERED = {
    top: tuple(Killer("", "published", top, tuple(each.items())) for each in sizes)
    for top, sizes in {
        "latencies_ip": _SIZES,
        "random_data_generator": ({},),
        "latency_histogram": ({}, {"kind_g": "log-linear"}),
        "latency_bench": ({},),
        "stream_ring_writer": ({},),
        "latency_stream": ({},),
        "latencies_ip_channels": ({},),
        "uart_axi_bridge": ({},),
        "ulx3s_bench": ({},),
    }.items()
}
"""Configurations of each top at full size: a mutant that the suites' small ones do not show is only
one without a difference if it is the same circuit in these, too."""
