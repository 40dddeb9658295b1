"""Memory that the system file shares: who is named sees it, nobody else."""

import numpy as np
import pytest

from latenz.hypervisor.build import build
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.trace import Kind

pytestmark = pytest.mark.boots

SYSTEM = """
[[slot]]
partition = "writer"
length = "500 us"
[[slot]]
partition = "reader"
length = "500 us"
[[slot]]
partition = "stranger"
length = "500 us"
[[source]]
name = "timer"
partition = "writer"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
[[partition]]
name = "writer"
guest = "{guest}"
[[partition]]
name = "reader"
guest = "{guest}"
[[partition]]
name = "stranger"
guest = "{guest}"
[[shared]]
name = "mailbox"
size = "4 KiB"
partitions = ["writer", "reader"]
address = 0x70000000
"""


def progress(records, number):
    found = records[(records["kind"] == Kind.PROGRESS) & (records["partition"] == number)]
    return found["value"].astype(np.int64) + (found["detail"].astype(np.int64) << 32)


def test_one_writes_another_reads_through_channels_and_a_third_is_stopped_when_it_looks(tmp_path):
    ensure_built()
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(guest=installed("guests/mailbox.bin")))
    brought = boot(build(path, irqs=30), "virt")
    run = brought.measured
    wrote, reader_progress = progress(run.records, 0), progress(run.records, 1)
    seen, letters = reader_progress & 0xFFFFFFFF, reader_progress >> 32
    assert len(wrote) == len(seen) > 30
    # The writer's slot may end before it has reported the newest block, or amid the next one.
    assert set((seen - wrote).tolist()) <= {0, 1}
    assert (np.diff(seen) > 20).all(), "it goes on in each slot"
    assert (np.diff(letters) == 1).all(), (
        "one letter each cycle, since the reader takes it in its slot"
    )
    writer, reader, stranger = run.statistics.partitions
    assert (writer.state, reader.state) == ("running", "running")
    assert (stranger.state, stranger.faults, stranger.progress) == ("stopped", 1, 0)
    assert any("stranger: " in line and "0x70000000" in line for line in brought.console)
