"""Five users whom Latenz is for, each from what they have to what they came for.

The commands are those of the first five who tried it, with README and --help alone. Each step is
held against its exit code and its answer, so that the tests read as transcripts.
"""

import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Latenz

SALEAE = ["Time [s],GOOSE_IN,TRIP_OUT"]
for cycle in range(1, 301):
    SALEAE += [f"{cycle / 1000:.9f},1,0", f"{cycle / 1000 + 0.00025:.9f},1,1"]
    SALEAE += [f"{cycle / 1000 + 0.0005:.9f},0,0"]
ILA = [
    "Sample in Buffer,Sample in Window,TRIGGER,irq,ack",
    "Radix - UNSIGNED,UNSIGNED,UNSIGNED,HEX,HEX",
]
ILA += [f"{n},{n},0,{int(n % 20 >= 5)},{int(n % 20 >= 9)}" for n in range(400)]
CANDUMP = [
    f"({1436509052 + n // 100}.{10000 * (n % 100) + 37 * (n % 7):06}) can0 123#00"
    for n in range(400)
]


def test_a_substation_engineer_judges_files_of_three_instruments(latenz: Latenz, tmp_path: Path):
    (tmp_path / "trip.csv").write_text("\n".join(SALEAE) + "\n")
    (tmp_path / "ila.csv").write_text("\n".join(ILA) + "\n")
    text, json = (
        "DATA/importers/cyclictest-v2.4-hist-smp.txt",
        "DATA/importers/cyclictest-v2.4-hist.json",
    )
    latenz(f"show {text}", 0, "thread0", "microseconds taken, the default of cyclictest")
    latenz("show trip.csv", 2, "--start")
    latenz("show trip.csv --start GOOSE_IN --end TRIP_OUT --deadline P1=3ms@1/min", 3, "250")
    latenz("show ila.csv --start irq --end ack", 2, "--clock-period")
    latenz(
        'import ila.csv --clock-period "10 ns" --start irq --end ack -o ila',
        0,
        "ila: 1 sample set from ila.csv",
    )
    latenz("show ila --deadline 1us", 3, "40 ns")
    latenz("export ila --to csv -o ila.csv", 2, "exists and was not written by Latenz")
    files = f"{text} {json} ila"
    latenz(
        f"report {files} -o all.html --deadline IEC-61850-5-P1=3ms@0 --title Relay", 1, "violated"
    )
    assert "IEC-61850-5-P1" in (tmp_path / "all.html").read_text()
    latenz(f"compare {text} {json}", 3, "matched by their order in the files")
    latenz(f'compare {text} {text} --fail-if "avg > +10%" -o ab.html', 0, "passed")
    assert (tmp_path / "ab.html").stat().st_size > 100_000


def test_a_robotics_engineer_tunes_a_machine_and_her_own_guest(latenz: Latenz, tmp_path: Path):
    tree = tmp_path / "tree"
    for name, text in {
        "sys/devices/system/cpu/online": "0-3\n",
        "proc/sys/vm/stat_interval": "1\n",
        "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    setting = tree / "proc/sys/vm/stat_interval"
    latenz("tune check --root tree --cpus 3", 1, "wrong", "host-stat-interval")
    latenz("tune check --root DOCS", 2, "holds no machine's files")
    latenz(
        "tune check --root tree --why host-stat-interval", 1, "Statistics of memory are gathered"
    )
    latenz("tune plan --root tree --cpus 3", 0, "/proc/sys/vm/stat_interval: 1 -> 10")
    latenz("tune apply --root tree --cpus 3 --yes", 0, "tree takes all back")
    assert setting.read_text().strip() == "10"
    latenz("tune status --root tree", 0, "as applied")
    latenz("tune revert --root tree", 0, "taken back")
    assert setting.read_text() == "1\n"
    latenz(
        "vm xml --domain DATA/vm/own-domain.xml --cpus 1-3", 0, "vcpupin", "all else is as it was"
    )
    latenz("explain DATA/traces/planted/throttled.dat", 0, "fair-server", "host-rt-throttling-off")
    latenz("explain DATA/importers/cyclictest-v2.4.json", 2, "latenz show FILE")


@pytest.mark.boots
def test_a_hypervisor_engineer_goes_from_a_log_to_a_booted_system(latenz: Latenz, tmp_path: Path):
    (tmp_path / "can.log").write_text("\n".join(CANDUMP) + "\n")
    latenz("learn can.log --length 3 --system", 0, "can0", "distances")
    latenz("bound SYSTEM --deadline can-engine=300us", 0, "can-engine: meets 300 µs")
    latenz("bound SYSTEM --deadline can-engine=10us@0", 3, "can-engine")
    latenz("simulate SYSTEM --irqs 500 --picture schedule.svg", 0, "can-engine")
    latenz("check SYSTEM --effort 20", 0, "highest found")
    latenz("explore SYSTEM --deadline can-engine=150us --candidates 200 -o front", 0, "front")
    latenz("hypervisor run SYSTEM --irqs 200 -o booted", 0, "measured on virt", "slot switch")
    latenz("hypervisor trace booted -o booted.json", 0)
    latenz("show booted --deadline can-engine=300us@100/s --for */can-engine", 3, "emulated")
    latenz("report booted --system SYSTEM -o booted.html --deadline 10ms", 3, "report: booted.html")
    assert "bound" in (tmp_path / "booted.html").read_text()


def test_a_firmware_engineer_sees_who_is_there_and_what_differs(latenz: Latenz, tmp_path: Path):
    program = tmp_path / "channels"
    source = ROOT / "python/tests/icc/channels.cpp"
    include = ROOT / "icc/include"
    subprocess.run(["g++", "-std=c++20", f"-I{include}", source, "-o", program], check=True)
    (tmp_path / "region").write_bytes(bytes(65536))
    subprocess.run([program, "fill", tmp_path / "region"], check=True)
    latenz("icc watch region --once --interval 10ms", 0, "mailbox", "closed")
    latenz("icc show region", 0, "joints.angle", "float32[3]", "[1.5, 2.5, -3.5]")
    latenz("icc show /etc/passwd", 2)
    latenz("icc show shm:robot", 2, "shm:/control is one")


@pytest.mark.boots
def test_an_fpga_engineer_reads_tests_and_replays_a_design(latenz: Latenz, tmp_path: Path):
    waves = ["$timescale 1ns $end", "$var wire 1 ! irq $end", '$var wire 1 " ack $end']
    waves += ["$enddefinitions $end", "#0", "0!", '0"']
    for start in range(100, 6100, 300):
        waves += [f"#{start}", "1!", f"#{start + 100}", '1"', f"#{start + 200}", "0!", '0"']
    (tmp_path / "board.vcd").write_text("\n".join(waves) + "\n")
    latenz("ip read sim:latency_bench --samples 40 -o bench", 0, "run folder: bench")
    latenz("ip read sim:latency_bnch -o x", 2, "latency_bench")
    latenz("ip selftest sim:latency_bench --generic self_test_g=true", 0, "right")
    latenz("ip replay board.vcd --start irq --end ack --clock 10ns -o r", 2, "--clock")
    latenz("ip replay board.vcd --start irq --end ack -o replayed", 0, "identical")
    latenz("report bench replayed -o bench.html --deadline 5us", 3, "report: bench.html")
