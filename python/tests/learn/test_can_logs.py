"""Logs of CAN as sources of activations: candump's and Vector's tell the same."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from latenz.analysis.activations import read_activations
from latenz.errors import BadInput

CANDUMP = """(1436509052.249713) vcan0 044#2A366C2BBA
(1436509052.449847) vcan0 0F6#7ADFE07BD2
(1436509052.650004) vcan0 044#C3406B09F4C88036
(1436509052.700000) can1 18EBFF00#R
(1436509052.800000) vcan0 20000004#0001000000000000
(1436509052.900000) can1 18EBFF00##11122334455667788
"""
"""Lines of candump's documentation; a request, an error frame, a frame of CAN FD."""
VECTOR = """date Fri Jul 10 08:17:32.249 am 2015
base hex  timestamps absolute
internal events logged
// version 8.5.0
Begin Triggerblock Fri Jul 10 08:17:32.249 am 2015
   0.000000 Start of measurement
   0.015991 CAN 1 Status:chip status error passive - TxErr: 132 RxErr: 0
   0.015991 2  18EBFF00x       Rx   d 8 A0 0F A6 60 3B D1 40 1F  Length = 0 BitCount = 141
   1.015991 1  Statistic: D 0 R 0 XD 0 XR 0 E 0 O 0 B 0.00%
   2.501000 1  ErrorFrame
   3.000000 1  C4E  Rx   d 1 01
  30.005021 CANFD   2 Rx         300                                   1 0 8  8 01 02 03 04
End TriggerBlock
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "log"
    path.write_text(text, encoding="utf-8")
    return path


def test_candump(tmp_path: Path) -> None:
    found = read_activations(written(tmp_path, CANDUMP))
    zero = found.from_zero()
    assert found.format == "can"
    assert {name: times.tolist() for name, times in zero.items()} == {
        "vcan0 044": [0, 400_291_000],
        "vcan0 0F6": [200_134_000],
        "can1 18EBFF00": [450_287_000, 650_287_000],
    }
    assert found.warnings == ("1 error frames are no activations and were left out",)


def test_vectors_ascii_log(tmp_path: Path) -> None:
    found = read_activations(written(tmp_path, VECTOR))
    assert {name: times.tolist() for name, times in found.times_by_source.items()} == {
        "can2 18EBFF00": [15_991_000],
        "can1 C4E": [3_000_000_000],
        "can2 300": [30_005_021_000],
    }
    assert found.warnings == ("1 error frames are no activations and were left out",)


def test_relative_times_count_every_event(tmp_path: Path) -> None:
    text = VECTOR.replace("absolute", "relative")
    found = read_activations(written(tmp_path, text)).times_by_source
    assert found["can1 C4E"].tolist() == [
        sum((15_991_000, 15_991_000, 1_015_991_000, 2_501_000_000, 3_000_000_000))
    ]


def test_a_channel_as_one_source(tmp_path: Path) -> None:
    found = read_activations(written(tmp_path, CANDUMP), event="channel").times_by_source
    assert {name: len(times) for name, times in found.items()} == {"vcan0": 3, "can1": 2}


def test_both_kinds_of_log_tell_the_same(tmp_path: Path) -> None:
    chosen = random.Random(3)
    time_us, log, asc, expected = 0, [], ["base hex  timestamps absolute"], {}
    for _ in range(500):
        time_us += chosen.randrange(1, 5000)
        name = chosen.choice(["123", "7FF", "1ABCDEF0"])
        stamp = f"{time_us // 10**6}.{time_us % 10**6:06}"
        expected.setdefault(f"can1 {name}", []).append(time_us * 1000)
        log.append(f"({stamp}) can1 {name}#0011")
        asc.append(f"   {stamp} 1  {name}{'x' * (len(name) == 8)}  Rx   d 2 00 11")
    for lines in (log, asc):
        found = read_activations(written(tmp_path, "\n".join(lines) + "\n")).times_by_source
        assert {name: np.asarray(times).tolist() for name, times in found.items()} == expected


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    found = read_activations(written(tmp_path, CANDUMP[: CANDUMP.rindex(" can1") + 3]))
    assert len(found.times_by_source["can1 18EBFF00"]) == 1
    assert any("cut off" in each for each in found.warnings)


def test_mistakes(tmp_path: Path) -> None:
    broken = CANDUMP.replace("0F6#", "0F6 ")
    with pytest.raises(BadInput, match="is not a frame"):
        read_activations(written(tmp_path, broken))
    with pytest.raises(BadInput, match="not an event of CAN"):
        read_activations(written(tmp_path, CANDUMP), event="irq")
    with pytest.raises(BadInput, match="holds no activation"):
        read_activations(written(tmp_path, "base hex  timestamps absolute\n"))


def test_learn_takes_a_log(tmp_path: Path) -> None:
    lines = [f"({i // 100}.{i % 100:02}0000) can0 123#00" for i in range(200)]
    path = written(tmp_path, "\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "latenz", "learn", path, "--length", "2"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "can0 123" in done.stdout
