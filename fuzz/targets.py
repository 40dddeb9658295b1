"""Every reader of foreign data, and what it is fed with."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from outcomes import Reader

ROOT = Path(__file__).parent.parent
_DATA = "python/tests/data"
_KIBIBYTE, _MEBIBYTE = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Target:
    """One fuzz target.

    Attributes:
        name: What it is called; also of its folders below `seeds` and `found`.
        reads: What data it takes, for people.
        repeated: How many inputs `make test` feeds it, the same each time; the README says
            how it was chosen.
        readers: Functions below `readers/`, each handed every input; none: it is a program in C++.
        seeds: Files of the tests that it begins with as well, as patterns.
        longest: Bytes of the longest input.
        is_text: Numbers, words and lines are damaged as such, too.
    """

    name: str
    reads: str
    repeated: int
    readers: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    longest: int = 64 * _KIBIBYTE
    is_text: bool = False

    @property
    def language(self) -> str:
        """The language that the readers are written in."""
        return "Python" if self.readers else "C++"

    def functions(self) -> list[Reader]:
        """Return the readers of a target in Python."""
        split = [name.split(".") for name in self.readers]
        return [getattr(import_module(f"readers.{room}"), name) for room, name in split]

    def whole_inputs(self) -> list[Path]:
        """Return what a run begins with."""
        own = sorted((ROOT / "fuzz/seeds" / self.name).glob("*"))
        return own + sorted(path for each in self.seeds for path in ROOT.glob(each))

    def known_inputs(self) -> list[Path]:
        """Return seeds and findings, all of which must be read or refused."""
        return self.whole_inputs() + sorted((ROOT / "fuzz/found" / self.name).glob("*"))


TARGETS = (
    Target("frames", "the result protocol, its checksums right", 150_000, longest=4 * _KIBIBYTE),
    Target(
        "hypervisor-block",
        "the hypervisor's configuration block, its checksum right",
        12_000,
    ),
    Target(
        "icc-channels",
        "memory shared with another processor, as an endpoint",
        90_000,
    ),
    Target(
        "ip-bridge",
        "requests to a board's bridge",
        100_000,
    ),
    Target(
        "remote-program",
        "programs for a real-time core",
        25_000,
    ),
    Target("statistics", "latencies of any value", 5_000, longest=4 * _KIBIBYTE),
    Target("trace-dat", "trace.dat of trace-cmd, versions 6 and 7", 20_000, longest=_MEBIBYTE),
    Target(
        "trace-events",
        "formats of events, pages of the ring buffer",
        30_000,
    ),
    Target("trace-perf", "perf.data of perf record", 20_000, longest=_MEBIBYTE),
    Target(
        "trace-text",
        "text of tracefs, trace-cmd report and perf script",
        3_000,
        seeds=(f"{_DATA}/traces/*.txt", f"{_DATA}/learn/*.txt"),
        longest=_MEBIBYTE,
    ),
    Target(
        "imports",
        "outputs of other measuring tools, and CSV",
        15_000,
        ("measurements.imported", "measurements.forced"),
        (f"{_DATA}/importers/*.txt", f"{_DATA}/importers/*.json", f"{_DATA}/importers/*.raw"),
        is_text=True,
    ),
    Target(
        "waveforms",
        "value change dumps and captures of logic analyzers",
        15_000,
        ("measurements.waveform", "measurements.analyzer", "measurements.edges"),
        is_text=True,
    ),
    Target("parquet", "Parquet files", 45_000, ("measurements.parquet",)),
    Target(
        "histograms",
        "histograms in .hlog, as they are and unpacked",
        50_000,
        ("measurements.histogram", "measurements.packed_histogram"),
    ),
    Target(
        "runs",
        "run folders: run.json, journals, histograms, Parquet",
        36_000,
        ("measurements.run_folder", "measurements.sample_file"),
    ),
    Target(
        "toml",
        "experiments, systems and calibrations",
        13_000,
        ("systems.experiment", "systems.system", "systems.core_calibration"),
        ("experiments/*.toml", "experiments/systems/*.toml"),
        is_text=True,
    ),
    Target(
        "activations",
        "listed arrivals, and recorded ones in CSV, BTF and text of ftrace",
        25_000,
        ("systems.arrivals", "systems.activations"),
        (f"{_DATA}/learn/*.btf", f"{_DATA}/learn/*.txt"),
        is_text=True,
    ),
    Target("snapshots", "snapshots of machines, checksums right", 8_000, ("machines.snapshot",)),
    Target(
        "machine-files",
        "settings and processes of machines, domains of libvirt",
        600,
        ("machines.machine_files", "machines.command_lines"),
        is_text=True,
    ),
    Target(
        "own-domains",
        "domains of libvirt that are tuned",
        4_000,
        ("machines.own_domain",),
        (f"{_DATA}/vm/*.xml",),
        is_text=True,
    ),
    Target(
        "change-journals",
        "journals of changes to a machine, checksums right",
        52_000,
        ("machines.change_journal",),
        is_text=True,
    ),
    Target("console", "what boards send, checksums of frames right", 80_000, ("boards.console",)),
    Target(
        "programs",
        "ELF files, kernel modules and raw images",
        8_000,
        ("boards.program", "boards.image", "boards.library", "boards.kernel_module"),
    ),
    Target("board-answers", "answers of a board's bridge", 15_000, ("boards.board_answers",)),
    Target("shared-memory", "memory of channels, as an onlooker", 150_000, ("boards.channels",)),
    Target(
        "recordings",
        "tables of perf kvm, text of babeltrace2, recorded paths, traces of the hypervisor",
        45_000,
        (
            "recordings.exit_table",
            "recordings.ctf_text",
            "recordings.path_recording",
            "recordings.hypervisor_trace",
            "recordings.hypervisor_statistics",
            "recordings.hypervisor_records",
        ),
        (f"{_DATA}/traces/perf-kvm-stat*.txt",),
    ),
)
