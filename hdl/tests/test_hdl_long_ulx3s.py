"""`latenz ip` reads what runs on a ULX3S through a real terminal; the design is simulated."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_hdl_ulx3s import SIMULATED

from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.ip.serial import SerialLink
from latenz.model import SampleSet
from synthesis import flow, ulx3s
from verification.passing import GENERICS
from verification.ulx3s_bench.answers import drawn

ROOT = Path(__file__).parents[2]
CYCLE_NS = 10


@pytest.mark.long
@pytest.mark.proofs
def test_one_command_makes_a_bit_stream_that_is_fast_enough(tmp_path: Path) -> None:
    """For the FPGA that is named, in what ecpunpack reads of it; another size is refused."""
    bits = ulx3s.build(output=tmp_path)
    clocks = ulx3s.clocks(tmp_path).values()
    assert any(round(needed, 1) == ulx3s.CLOCK_MHZ for _, needed in clocks), "periods are whole ps"
    assert all(reached >= needed for reached, needed in clocks)
    flow.run("yowasp-ecpunpack", "--input", bits.name, "--textcfg", "read.config", cwd=tmp_path)
    assert ".device LFE5U-85F" in (tmp_path / "read.config").read_text()
    with pytest.raises(BadInput, match="no ULX3S with an LFE5U-99F"):
        ulx3s.build("99", tmp_path)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a terminal with the simulated board behind it."""
    from designs import run

    folder = tmp_path_factory.mktemp("ulx3s")
    named = folder / "terminal"
    generics = " ".join(f"{name}={value}" for name, value in SIMULATED.items())
    environment = {
        GENERICS: generics,
        "LATENZ_TERMINAL": str(named),
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
    }
    module = "verification.ulx3s_bench.terminal"
    board = threading.Thread(
        target=run, args=("ulx3s_bench", module, SIMULATED, folder, environment), daemon=True
    )
    board.start()
    while not named.exists():
        assert board.is_alive(), (folder / "log").read_text()
        time.sleep(0.02)
    yield named.read_text()
    named.unlink()
    board.join()


def cycles(samples: SampleSet) -> list[int]:
    values = [each for batch in samples.batches("latency_ns") for each in batch.column(0)]
    return [each.as_py() // CYCLE_NS for each in values]


def latenz(*arguments: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.boots
def test_latencies_come_over_the_line_to_the_cycle(terminal: str, tmp_path: Path) -> None:
    """What was drawn, one after the other; the figures that the IP has itself agree."""
    run = tmp_path / "run"
    latenz("ip", "read", f"serial:{terminal}", "--samples", "25", "-o", run)
    (samples,) = open_sample_sets(run)
    found, expected = cycles(samples), drawn()[:4000]
    assert len(found) >= 25
    assert any(expected[i : i + len(found)] == found for i in range(len(expected)))
    assert samples.metadata.time_base == "simulated"  # a terminal is not a board's serial port


@pytest.mark.long
@pytest.mark.boots
def test_the_boards_self_test_comes_over_the_line(terminal: str) -> None:
    assert "latencies_ip" in latenz("ip", "selftest", f"serial:{terminal}")


@pytest.mark.long
@pytest.mark.boots
def test_one_program_at_a_time(terminal: str) -> None:
    link = SerialLink("serial:here", Path(terminal))
    try:
        said = latenz("ip", "watch", f"serial:{terminal}", code=2)
        assert "another program uses it" in said
        assert link.read(1, 0x20)[0] >> 16 == 0x4C5A
        with pytest.raises(BadInput, match="SLVERR at 0xf00"):
            link.read(1, 0xF00)
        with pytest.raises(BadInput, match="DECERR at 0x10000"):
            link.read(1, 0x10000)
        with pytest.raises(BadInput, match="SLVERR"):
            link.write(0, 0, 1)
    finally:
        link.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("serial:", "is not a board"),
        ("serial:/dev/ttyLATENZ", "cannot be opened: No such file"),
        ("serial:/dev/null", "is not a serial device"),
        (f"serial:{os.fspath(ROOT)}", "cannot be opened: Is a directory"),
        (f"serial:{os.fspath(ROOT)}/README.md", "is not a serial device"),
    ],
)
def test_what_is_no_line_is_told(target: str, said: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = latenz("ip", "read", target, "--samples", "1", "-o", run, code=2)
    assert said in told
    assert "Traceback" not in told
    assert not run.exists()


def test_something_else_on_the_line_is_told() -> None:
    """A terminal that echoes, as a login would, is not a bridge."""
    import pty

    leader, follower = pty.openpty()
    name = os.ttyname(follower)

    def echo() -> None:
        while content := os.read(leader, 64):
            if b"\x00stop" in content:
                return
            os.write(leader, content)

    other = threading.Thread(target=echo)
    other.start()
    try:
        with pytest.raises(BadInput, match=r"came damaged|status|no Latencies IP"):
            SerialLink("serial:echo", Path(name))
    finally:
        os.write(follower, b"\x00stop")
        other.join()
        os.close(leader)
        os.close(follower)
