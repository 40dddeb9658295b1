"""firmware/src/bench_latency.cpp: built for both cores of a ZCU102, and run where no logic is.

QEMU's ZCU102 has no programmable logic, so what can run here is the way to saying so. The handler
and the series are tested on the host (hdl/driver/tests/bench_test.cpp).
"""

import re
import subprocess
from pathlib import Path

import pytest
from vivado_scripts import HDL, evaluate

from latenz._core import EndFrame, FrameReader, TextFrame

pytestmark = pytest.mark.proofs

ROOT = HDL.parent
SOURCE = ROOT / "firmware/src/bench_latency.cpp"
# As the others: code, constants and parameters without the samples' store.
MOST_BYTES = 16_384
IMAGES = {"firmware-a53": "bench_latency-zcu102-O2", "firmware-r5": "bench_latency-zcu102-r5-O2"}


@pytest.fixture(scope="module", params=IMAGES)
def built(request, tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    name = IMAGES[request.param]
    for command in (["-S", ROOT, "--preset", request.param, "-B", folder],
                    ["--build", folder, "--target", name]):  # fmt: skip
        subprocess.run(["cmake", *command], check=True, capture_output=True, timeout=600)
    return request.param, folder / "firmware" / f"{name}.elf"


def test_it_is_small_and_needs_no_library(built):
    _, image = built
    size = image.with_suffix(".bin").stat().st_size
    assert 4_000 < size < MOST_BYTES
    undefined = subprocess.run(
        ["aarch64-linux-gnu-nm", "--undefined-only", image],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert undefined.stdout == ""


@pytest.mark.parametrize("built", ["firmware-a53"], indirect=True)
def test_without_logic_it_says_so(built):
    """On the A53 only: QEMU's R5 needs an A53 beside it, and the program is the same."""
    _, image = built
    command = ["qemu-system-aarch64", "-M", "xlnx-zcu102", "-m", "1024", "-audio", "none"]
    command += ["-display", "none", "-monitor", "none", "-nic", "none", "-serial", "stdio"]
    with subprocess.Popen(
        [*command, "-kernel", image], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as machine:
        reader, heard = FrameReader(), []
        try:
            while not any(isinstance(frame, EndFrame) for frame in heard):
                line = machine.stdout.readline()
                assert line, "the machine has ended"
                heard += reader.feed(line)
        finally:
            machine.kill()
    said = [frame.text for frame in heard if isinstance(frame, TextFrame)]
    assert '"program": "bench_latency"' in said[0]
    assert said[1:] == ["no Latencies IP answers; load the logic first"]


def test_its_addresses_are_those_of_the_block_design():
    text = SOURCE.read_text()
    base = int(re.search(r"logic = (0x[0-9A-F']+);", text)[1].replace("'", ""), 16)
    assert base == int(evaluate("set latenz::base"), 16)
    flat = evaluate("set latenz::slaves").split()
    slaves = {name: int(at, 16) for name, at in zip(flat[::2], flat[1::2], strict=True)}
    within = int(re.search(r"Registers\(logic \+ offset \+ (0x[0-9A-F']+)\)", text)[1]
                 .replace("'", ""), 16)  # fmt: skip
    second = int(re.search(r"latencies_ip\((0x[0-9A-F']+)\)", text)[1].replace("'", ""), 16)
    generator = int(
        re.search(r"Registers\(logic \+ (0x[0-9A-F']+)\)", text)[1].replace("'", ""), 16
    )
    assert slaves == {
        "t1_s00_axi": 0,
        "t1_s01_axi": within,
        "t2_s00_axi": second,
        "t2_s01_axi": second + within,
        "generator_axi": generator,
    }
    interrupts = evaluate("set latenz::interrupts").split()
    shared = int(re.search(r"logic_interrupt = 32 \+ (\d+);", text)[1])
    assert shared == 89 + interrupts.index("pl_ps_irq")
