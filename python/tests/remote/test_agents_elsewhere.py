"""The program that is sent to targets, on every kind of processor: the emulator of one runs it."""

import subprocess

import pytest

from latenz.importers.opening import open_sample_sets
from latenz.programs import agent_program

EMULATORS = {"aarch64": "qemu-aarch64", "armhf": "qemu-arm", "riscv64": "qemu-riscv64"}
MOST_BYTES = 768 << 10


@pytest.mark.parametrize("processor", EMULATORS)
def test_it_measures(processor, tmp_path):
    program = agent_program(processor)
    assert program.stat().st_size <= MOST_BYTES

    subprocess.run(
        [
            *(EMULATORS[processor], program, "wakeup", f"--output={tmp_path / 'measured'}"),
            *("--cpus=0", "--interval=10000000", "--duration=500000000", "--policy=other"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )

    (found,) = open_sample_sets(tmp_path / "measured")
    values = [
        value for batch in found.batches() for value in batch.column("latency_ns").to_pylist()
    ]
    assert len(values) > 5  # an emulator on a busy machine misses many, and counts them
    assert min(values) >= 0
