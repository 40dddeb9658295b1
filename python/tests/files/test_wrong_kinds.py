"""A file given to the wrong command: the line says what it is and which command reads it."""

import bz2
import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT / "python/tests/data"
SYSTEM = ROOT / "experiments/systems/can-gateway.toml"
EXPERIMENT = ROOT / "experiments/quick.toml"


def refused(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "latenz", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", SYSTEM), "it is a system file: latenz bound"),
        (("show", SYSTEM), "it is a system file: latenz bound"),
        (("bound", EXPERIMENT), "it is an experiment file: latenz run"),
        (("show", EXPERIMENT), "it is an experiment file: latenz run"),
        (("show", ROOT / "docs/schedule.svg"), "it is a page or picture"),
        (("show", "/bin/true"), "it is a program"),
    ],
)
def test_files_of_ours_name_their_command(arguments: tuple[object, ...], told: str) -> None:
    assert told in refused(*arguments)


def test_a_trace_is_for_explain_and_a_measurement_for_show(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"  # as tracefs' file trace prints it
    trace.write_text(
        "# tracer: nop\n#\n"
        "          <idle>-0       [001] d..2.   100.000001: sched_switch: prev_comm=swapper/1\n"
    )
    assert "latenz explain FILE" in refused("show", trace)
    measured = tmp_path / "latencies.csv"
    measured.write_text("latency_us\n1\n2\n")
    assert "it is output of csv: latenz show FILE" in refused("explain", measured)


def test_a_slip_of_the_pen_hides_that_its_key_is_missing(tmp_path: Path) -> None:
    lines = SYSTEM.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("length ="))
    lines[at] = lines[at].replace("length", "lenght")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("\n".join([*lines, "[[slot]]", 'partition = "P1"', ""]))
    told = refused("bound", wrong)
    assert f"wrong.toml:{at + 1}: " in told
    assert "did you mean 'length'?" in told
    assert told.count("'length' is missing") == 1  # of the slot that has neither


def test_every_mistake_stands_in_the_line(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[platform]\nslot_swich = "1 us"\n[[slot]]\npartition = 7\nlength = "6 mm"\n')
    told = refused("bound", wrong)
    assert "wrong.toml:2: platform.slot_swich: unknown key" in told
    assert "line 4: slot[1].partition" in told
    assert "line 5: slot[1].length" in told


def test_what_is_compressed_is_read(tmp_path: Path) -> None:
    import pyarrow as pa

    content = b"latency_us\n" + b"".join(b"%d\n" % i for i in range(1, 2001))
    plain = tmp_path / "l.csv"
    plain.write_bytes(content)
    packed = {
        "gz": gzip.compress(content),
        "xz": lzma.compress(content),
        "bz2": bz2.compress(content),
        "zst": pa.compress(content, codec="zstd", asbytes=True),
    }
    wanted = shown(plain)
    for ending, data in packed.items():
        path = tmp_path / f"l.csv.{ending}"
        path.write_bytes(data)
        assert shown(path) == wanted, ending
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(packed["gz"][:-200])
    assert "cut off" in refused("show", cut)


def shown(path: Path) -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "latenz", "show", path, "--json"], capture_output=True, check=True
    ).stdout
