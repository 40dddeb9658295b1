"""Makes the tables of docs/hypervisor.md from runs of the experiments, the image and one boot.

    ./latenz run experiments/beckert2014-synthetic.toml -o results/figure6
    ./latenz run experiments/beckert2014-ecu.toml -o results/figure7
    ./latenz run experiments/alonso2024.toml -o results/alonso2024
    .venv/bin/python docs/make_hypervisor_tables.py results/figure{6,7} results/alonso2024

Each table stands between <!-- name --> and <!-- /name -->; only that is replaced. Rows of the
static mode and of Xen come from the runs of alonso2024: several, if they were run one by one.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

import monitor_size  # noqa: E402 - a script beside the benchmarks

from latenz import published  # noqa: E402
from latenz.hypervisor.store import stored  # noqa: E402
from latenz.hypervisor.trace import ASKED, HANDLING_MASK, Kind  # noqa: E402
from latenz.model import HANDLINGS  # noqa: E402
from latenz.statistics import Summary, summarize  # noqa: E402
from latenz.store.run import Run  # noqa: E402

IMAGE = ROOT / ".venv" / "firmware" / "hypervisor" / "hypervisor.elf"
IMAGE_FOR_GICV3 = IMAGE.with_name("hypervisor-gicv3.elf")
BOOTED = ROOT / "experiments" / "systems" / "beckert2014-10-percent.toml"
BOOTED_IRQS = 2000
PREFIX = "hypervisor-"

# --- how figures are written


def us(nanoseconds: float | None) -> str:
    """Return microseconds."""
    return "-" if nanoseconds is None else f"{nanoseconds / 1000:,.1f}"


def shares(handled: dict[Any, float] | None) -> str:
    """Return direct / interposed / delayed in per cent; a dash where nothing is told."""
    if not handled:
        return "-"
    return " / ".join(f"{100 * handled.get(handling, 0):.1f}" for handling in HANDLINGS)


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return [f"| {' | '.join(map(str, cells))} |" for cells in lines]


# --- the evaluation


def summaries(run: Run) -> dict[str, Summary]:
    """Return the figures of every sample set of a run, by its name."""
    return {each.metadata.name: summarize(each) for each in run.sample_sets}


def reported_us(run: Run, condition: str) -> str:
    """Return the average that the publication reports for a condition."""
    for name in run.info.published:
        for sample_set in published.load(name):
            reported = sample_set.metadata.reported
            if sample_set.metadata.condition == condition and reported and reported.mean_ns:
                return f"~{reported.mean_ns / 1000:,.0f}"
    return "-"


def compared(system: dict[str, Any]) -> tuple[str, str, str]:
    """Return a system's bound, how many interrupts exceed it, and how many a simulation has too."""
    found = system["compared"]
    [bound_ns] = found["bounds_ns"].values()
    return us(bound_ns), found["exceeding"], f"{found['alike']} of {found['irqs']}"


def evaluation(run: Run) -> list[str]:
    """Figure 6 of the publication: each load, and all together."""
    found, rows = summaries(run), []
    for account in _hosted(run):
        name = account["condition"]
        simulated = name.removeprefix(PREFIX)
        for system in account["systems"]:
            own, other = (found[f"{each}/{system['system']}"] for each in (name, simulated))
            load = f"{system['system'].removeprefix('load-')} %"
            rows.append([simulated, load, *_figures(own), *compared(system), us(other.mean_ns), ""])
        own, other = (found[f"{each}/together"] for each in (name, simulated))
        mean = f"**{us(own.mean_ns)}**"
        _, latest, handled, n = _figures(own)
        together = [mean, latest, handled, n, "", "", "", us(other.mean_ns)]
        rows.append([simulated, "all", *together, reported_us(run, simulated)])
    return table(["condition", "load", *_MEASURED, *_BESIDE], rows)


def learning(run: Run) -> list[str]:
    """Figure 7 of the publication: while learning, which is the same in all, and after it."""
    found, hosted = summaries(run), _hosted(run)
    first = hosted[0]["condition"]
    own, other = (found[f"{each}/learning"] for each in (first, first.removeprefix(PREFIX)))
    said = reported_us(run, "learning")
    rows = [["learning", *_figures(own), "", "", "", us(other.mean_ns), said]]
    for account in hosted:
        name = account["condition"]
        simulated = name.removeprefix(PREFIX)
        [system] = account["systems"]
        own, other = (found[f"{each}/monitored"] for each in (name, simulated))
        beside = [*compared(system), us(other.mean_ns), reported_us(run, simulated)]
        rows.append([simulated, *_figures(own), *beside])
    return table(["condition", *_MEASURED, *_BESIDE], rows)


_MEASURED = ("average", "latest", "shares", "interrupts")
_BESIDE = ("bound", "above it", "handled as simulated", "average, simulated", "average, published")


def _hosted(run: Run) -> list[dict[str, Any]]:
    found = [each for each in run.info.conditions if each["condition"].startswith(PREFIX)]
    if any(each["state"] != "measured" for each in found) or not found:
        raise SystemExit("the run must have every condition hypervisor-*, whole")
    return sorted(found, key=lambda each: _place(run, each["condition"]))


def _place(run: Run, condition: str) -> int:
    names = [each["name"] for each in (run.info.experiment or {})["condition"]]
    return names.index(condition)


def _figures(summary: Summary) -> tuple[str, str, str, str]:
    shown = shares(dict(summary.handled or {}))
    return us(summary.mean_ns), us(summary.max_ns), shown, f"{summary.n or 0:,}"


# --- the image

PARTS: dict[str, str] = {
    "top handler, with monitor and learner inlined": (
        r"Hypervisor::interrupt|Tdma<[\w:]+>::(interrupt|serve|raise\w*|catch_up|arm_arrival_timer)\b"
        r"|SourceMonitor::"
    ),
    "scheduler: slots, queues, decisions": (
        r"Tdma<[\w:]+>::(decide|switch_slot|serve_due_events|visit|present|resume|open"
        r"|end_if_all_is_done|partition_changed|end_bottom_handlers)\b"
        r"|(?<!void )BasicDispatcher<\w+>::(?!begin\b)|SlotCycle::|each_ended"
    ),
    "context switch": r"Vcpu::(save|load)\b|VirtualGic<[\w:]+>::(save|load|flush)\b",
    "guests' accesses: traps, distributor, console, calls": (
        r"serve_guest|serve_call|VirtualConsole::|Vcpu::|VirtualGic<[\w:]+>::"
        r"|Hypervisor::(trap|statistic)\b|Partition::fault|Hypervisor::(partition_changed|error)\b|on_guest"
    ),
}
"""Parts of the code and their functions; a function belongs to the first part that has it."""
REST = "start, checks, telling of results"
VECTORS = "assembly (vectors, entry, guests' loader) and padding"


def sections(image: Path) -> dict[str, int]:
    """Return the bytes of an image's sections that have code or data in the file, and of .bss."""
    with image.open("rb") as file:
        found = {each.name: each["sh_size"] for each in ELFFile(file).iter_sections()}
    return {name: found.get(name, 0) for name in (".text", ".rodata", ".data", ".bss", ".stacks")}


def code_by_part(image: Path) -> dict[str, int]:
    """Return the bytes of code of each part, from the image's symbols."""
    bytes_ = dict.fromkeys([*PARTS, REST], 0)
    listed = subprocess.run(
        ["aarch64-linux-gnu-nm", "--demangle", "--print-size", "--defined-only", str(image)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    functions = {  # several names of one function are one
        start: (int(size, 16), name)
        for start, size, name in re.findall(r"^(\w+) (\w+) [tTwW] (.+)$", listed, re.MULTILINE)
    }
    for size, name in functions.values():
        part = next((p for p, pattern in PARTS.items() if re.search(pattern, name)), REST)
        bytes_[part] += size
    bytes_[VECTORS] = sections(image)[".text"] - sum(bytes_.values())
    return bytes_


def lines_of_code() -> int:
    """Return the lines of the hypervisor's own sources and headers."""
    files = [file for file in (ROOT / "hypervisor" / "src").rglob("*") if file.is_file()]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def in_the_image(path: Path) -> int:
    """Return the bytes of an image that are code or constants."""
    whole = sections(path)
    return whole[".text"] + whole[".rodata"] + whole[".data"]


def size() -> list[str]:
    """What the hypervisor is made of, beside the publication's parts."""
    with tempfile.TemporaryDirectory() as folder:
        alone = monitor_size.measure(monitor_size.TARGETS[0], "-O2", 1, Path(folder))
    parts, whole = code_by_part(IMAGE), sections(IMAGE)
    top, scheduler, *others = parts
    rows: list[Sequence[object]] = [
        ["monitor alone, l = 1", f"{alone['code_bytes']:,}", 272, "272"],
        ["its data, l = 1", f"{alone['data_bytes']:,}", 28, "28"],
        [top, f"{parts[top]:,}", 456, ""],
        [scheduler, f"{parts[scheduler]:,}", 392, ""],
        *([each, f"{parts[each]:,}", "-", ""] for each in others),
        ["image: code and constants", f"{in_the_image(IMAGE):,}", "-", "65,536"],
        ["the same for GICv3", f"{in_the_image(IMAGE_FOR_GICV3):,}", "-", "65,536"],
        [
            "memory set to zero at boot (.bss, stacks)",
            f"{whole['.bss'] + whole['.stacks']:,}",
            "-",
            "",
        ],
        ["lines of source", f"{lines_of_code():,}", "-", "7,950"],
    ]
    return table(["bytes of code", "AArch64, -O2", "published, ARM926EJ-S, -O1", "at most"], rows)


# --- one boot


@dataclass(frozen=True)
class Boot:
    """What one boot told: its sections in instructions, and those of the short way."""

    sections: dict[str, int]
    direct: tuple[int, int]
    """From taking a direct interrupt to the guest's vector: usually, and at most."""


def booted(bench: str) -> Boot:
    """Boot the system with the highest load."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "latenz", "hypervisor", "run", str(BOOTED)]
        command += [
            "--bench",
            bench,
            "--irqs",
            str(BOOTED_IRQS),
            "--seed",
            "1",
            "-o",
            f"{folder}/run",
            "--json",
        ]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        _, measured = stored(Path(folder) / "run")
    records = measured.records
    tops = records[records["kind"] == Kind.TOP_HANDLER]
    direct = tops[(tops["detail"] & HANDLING_MASK) == HANDLINGS.index("direct")]
    short = direct[(direct["detail"] & ASKED) == 0]["duration"].astype(np.int64)
    trap = told["sections_ns"]["trap"]
    return Boot(told["sections_ns"], (int(np.median(short)) + trap, int(short.max()) + trap))


def costs(boot: Boot, with_gicv3: Boot) -> list[str]:
    """Instructions of the hypervisor's own work, beside the publication's."""
    both = (boot.sections, with_gicv3.sections)
    switches = [max(x["context_switch_to"], x["context_switch_from"]) for x in both]

    def taken(key: str) -> list[int]:
        return [each[key] for each in both]

    rows: list[Sequence[object]] = [
        ["a monitor's decision", *taken("monitor"), "128", "128"],
        ["scheduler: choosing an interposed job", *taken("schedule"), "877", "877"],
        ["context switch, the longer to or from an interposed job", *switches, "~5000", "1,500"],
        ["top handler without the monitor", *taken("top"), "-", ""],
        ["slot switch", *taken("slot_switch"), "-", ""],
        ["end of a bottom handler", *taken("bottom_end"), "-", ""],
        ["entering and leaving EL2, besides each of them", *taken("trap"), "-", ""],
    ]
    heading = ["instructions, at most", "GICv2", "GICv3", "published, ARM926EJ-S", "at most"]
    return table(heading, rows)


def direct_path(boot: Boot, with_gicv3: Boot, runs: Iterable[Run]) -> list[str]:
    """What the hypervisor adds before the guest's handler, TDMA and static."""
    rows: list[Sequence[object]] = [
        [label, *(f"{each:,}" for each in found.direct), "its trace"]
        for label, found in (("TDMA, direct", boot), ("TDMA, direct, GICv3", with_gicv3))
    ]
    found = {name: each for run in runs for name, each in summaries(run).items()}
    alone = next((each for name, each in found.items() if name.startswith("standalone-a53/")), None)
    for condition, label in _STATIC.items():
        own = next((x for name, x in found.items() if name.startswith(f"{condition}/")), None)
        if alone and own and alone.median_ns is not None and own.median_ns is not None:
            added = own.median_ns - alone.median_ns
            longest = (own.max_ns or 0) - (alone.max_ns or 0)
            how = "latency less that of the firmware alone on the core"
            rows.append([label, f"{added:,.0f}", f"{longest:,}", how])
    return table(["instructions added", "median", "at most", "how it is known"], rows)


_STATIC = {
    "partitioned": "static, Linux idle beside it",
    "partitioned-stress": "static, stress-ng in the Linux beside it",
    "xen": "Xen, guest polls",
    "xen-wfi": "Xen, guest sleeps (WFI)",
}

# --- the page


def filled(page: str, tables: dict[str, list[str]]) -> str:
    """Return the page with these tables instead of its own."""
    for name, lines in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        if len(re.findall(pattern, page, re.DOTALL)) != 1:
            raise SystemExit(f"the page must have {begin.strip()} ... {end} once")
        text = begin + "\n".join(lines) + "\n" + end
        page = re.sub(pattern, lambda _, text=text: text, page, flags=re.DOTALL)
    return page


def main() -> None:
    """Replace the tables of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure6", type=Path, help="run of experiments/beckert2014-synthetic.toml")
    parser.add_argument("figure7", type=Path, help="run of experiments/beckert2014-ecu.toml")
    parser.add_argument("alonso2024", type=Path, nargs="*", help="runs of that experiment")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(__file__).parent / "hypervisor.md"
    )
    given = parser.parse_args()
    boots = (booted("virt"), booted("virt-gicv3"))
    tables = {
        "evaluation": evaluation(Run.open(given.figure6)),
        "learning": learning(Run.open(given.figure7)),
        "size": size(),
        "costs": costs(*boots),
        "direct-path": direct_path(*boots, map(Run.open, given.alonso2024)),
    }
    given.output.write_text(filled(given.output.read_text("utf-8"), tables), "utf-8")


if __name__ == "__main__":
    main()
