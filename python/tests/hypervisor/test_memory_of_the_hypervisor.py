"""The memory of the hypervisor, as its own translation has it, and what it cleans for guests."""

import pytest
from debugger import Debugger, emulator_of, symbols
from elftools.elf.elffile import ELFFile
from small_guests import assembled

from latenz.hypervisor.build import build
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import ensure_built

pytestmark = pytest.mark.boots

PAGE = 4096
STACKS, STACK_DISTANCE = 8, 0x4000
SYSTEM = """
[[slot]]
partition = "one"
length = "1 ms"
[[slot]]
partition = "two"
length = "1 ms"
[[source]]
name = "timer"
partition = "two"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
[[partition]]
name = "one"
guest = "{guest}"
[[shared]]
name = "between"
size = "64 KiB"
partitions = ["one", "two"]
address = 0x70000000
"""


@pytest.fixture
def built(tmp_path):
    ensure_built()
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(guest=assembled(tmp_path, "    report x0")))
    made = build(path, irqs=5)
    made.write(tmp_path / "image.elf")
    return made


@pytest.fixture
def debugger(tmp_path, built):
    ensure_built()
    command = emulator_of(tmp_path / "image.elf", tmp_path / "console")
    with Debugger(command, tmp_path) as started:
        yield started


def test_below_each_stack_is_a_page_that_is_not_there(debugger):
    known = symbols()
    debugger.stop_at(known["resume_guest"])
    debugger.go_on()
    begin = known["stacks"]
    for number in range(STACKS):
        guard = begin + number * STACK_DISTANCE
        assert not debugger.can_read(guard)
        assert not debugger.can_read(guard + PAGE - 4)
        assert debugger.can_read(guard + PAGE)
        assert debugger.can_read(guard + STACK_DISTANCE - 4)
    assert begin + PAGE < debugger.stack() <= begin + STACK_DISTANCE


def test_guests_memory_is_not_there_either(debugger, built):
    debugger.stop_at(symbols()["resume_guest"])
    debugger.go_on()
    for region in built.regions:
        own = region.name in ("hypervisor", "configuration", "the list of arrivals", "the trace")
        assert debugger.can_read(region.begin) == own, region.name


def test_what_guests_read_past_the_caches_is_cleaned_first(debugger, built):
    """Images and shared memory, whole; pages of the hypervisor's own for each partition."""
    known = symbols()
    debugger.stop_at(known["clean_memory"])
    debugger.stop_at(known["resume_guest"])
    cleaned = []
    while True:
        debugger.go_on()
        if debugger.place() != known["clean_memory"]:
            break
        cleaned.append((debugger.register(0), debugger.register(1)))
    regions = [each for each in built.regions if "guest of" in each.name or "shared" in each.name]
    assert len(regions) >= 3
    for each in regions:
        assert any(begin <= each.begin and each.end <= end for begin, end in cleaned), each.name
    with installed("hypervisor.elf").open("rb") as file:
        data = ELFFile(file).get_section_by_name(".bss").header
    pages = [
        begin
        for begin, end in cleaned
        if data.sh_addr <= begin < data.sh_addr + data.sh_size and end - begin == PAGE
    ]
    assert len(set(pages)) == 4, "of two partitions what they are told, and what they tell"
    assert all(begin % 64 == 0 for begin, _ in cleaned)
