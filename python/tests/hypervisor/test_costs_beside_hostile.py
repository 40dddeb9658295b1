"""Costs beside a hostile guest end, too, where another guest waits for the one that it replaces."""

import pytest
from small_guests import assembled

from latenz.cli import main
from latenz.hypervisor.run import ensure_built

pytestmark = pytest.mark.boots

SYSTEM = """
[[slot]]
partition = "server"
length = "500 us"
[[slot]]
partition = "client"
length = "500 us"
[[source]]
name = "request"
partition = "server"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
monitor = {{ distances = ["1 ms"] }}
[[source]]
name = "answer"
partition = "client"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
[[partition]]
name = "server"
guest = "{server}"
memory = "2 MiB"
[[partition]]
name = "client"
guest = "{client}"
memory = "2 MiB"
[[shared]]
name = "state"
size = "4 KiB"
address = 0x70000000
partitions = ["server", "client"]
"""
READY = """
    mov     w0, #1
    movk    w0, #0xC600, lsl #16
    hvc     #0
0:  b       0b
"""


def test_costs_tell_who_is_waited_for(tmp_path, monkeypatch, capsys):
    ensure_built()
    texts = {
        "server": f"mov x1, #0x70000000\n mov w2, #1\n str w2, [x1]\n{READY}",
        "client": f"mov x1, #0x70000000\n1: ldr w2, [x1]\n cbz w2, 1b\n{READY}",
    }
    guests = {}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        guests[name] = assembled(tmp_path / name, text)
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(**guests))
    monkeypatch.setattr("latenz.hypervisor.run._BOOT_S", 20)
    monkeypatch.setattr("latenz.hypervisor.run._WALL_S_A_SECOND", 1)
    arguments = ["hypervisor", "costs", str(path), "--irqs", "20", "--json"]
    monkeypatch.setattr("sys.argv", ["latenz", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    [line] = [line for line in told.err.splitlines() if "hostile" in line]
    assert "in place of server: nothing measured was received in 21 s" in line
    assert "guests that wait for server" in line
