"""Where things lie: nothing over anything else, no block shared between guests."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_systems import systems

from latenz.errors import BadInput
from latenz.hypervisor.build import build
from latenz.hypervisor.image import Image, Segment, read_image, write_image
from latenz.hypervisor.memory import MemoryPlan
from latenz.system import write_system

BLOCK = 1 << 21
sizes = st.integers(0, 1 << 28)


@settings(deadline=None)
@given(st.lists(sizes, max_size=12))
def test_regions_share_no_block(wanted):
    plan = MemoryPlan()
    room = (0x8000_0000 - 0x4040_0000) // BLOCK
    for number, size in enumerate(wanted):
        room -= max(1, -(-size // BLOCK))
        if room < 0:
            with pytest.raises(BadInput, match="does not fit into the board's 1024 MiB"):
                plan.place(str(number), size)
            break
        assert plan.place(str(number), size).size >= size
    blocks = [range(each.begin // BLOCK, -(-each.end // BLOCK)) for each in plan.regions]
    assert len({block for own in blocks for block in own}) == sum(map(len, blocks))
    assert all(each.begin >= 0x4020_0000 and each.end <= 0x8000_0000 for each in plan.regions)
    assert all(each.begin % BLOCK == 0 for each in plan.regions)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(system=systems())
def test_segments_lie_in_their_regions(tmp_path, system):
    write_system(system, tmp_path / "system.toml")
    built = build(tmp_path / "system.toml", irqs=20)
    built.write(tmp_path / "image.elf")
    regions = {each.name: each for each in built.regions}
    assert [each.begin for each in built.regions] == sorted(each.begin for each in built.regions)
    for name in (*system.partitions, *(each.name for each in system.hosted)):
        assert f"the memory of {name}" in regions
        assert f"the guest of {name}" in regions
    with (tmp_path / "image.elf").open("rb") as file:
        elf = ELFFile(file)
        assert elf.get_machine_arch() == "AArch64"
        assert (elf.elfclass, elf.little_endian, elf.header.e_type) == (64, True, "ET_EXEC")
        assert elf.header.e_entry == 0x4020_0000
        last = 0
        for segment in elf.iter_segments():
            head = segment.header
            assert head.p_type == "PT_LOAD"
            assert head.p_paddr >= last
            assert head.p_filesz <= head.p_memsz
            assert len(segment.data()) == head.p_filesz
            last = head.p_paddr + head.p_memsz
            around = [
                each.name
                for each in built.regions
                if each.begin <= head.p_paddr and last <= -(-each.end // BLOCK) * BLOCK
            ]
            assert len(around) == 1
            assert not around[0].startswith(("the memory", "the trace", "the shared"))


segments = st.lists(
    st.tuples(st.integers(1, 1 << 20), st.binary(max_size=6000), st.integers(0, 9000)), max_size=7
)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), segments)
def test_written_images_read_back(tmp_path_factory, entry, given_segments):
    end = 0
    made = []
    for gap, content, more in given_segments:
        made.append(Segment(end + gap, content, len(content) + more))
        end += gap + len(content) + more
    path = tmp_path_factory.mktemp("image") / "image.elf"
    write_image(Image(entry, tuple(reversed(made))), path)
    assert read_image(path) == Image(entry, tuple(made))


def test_places_that_cannot_be_written_are_told(tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        write_image(Image(0, ()), tmp_path / "none" / "image.elf")
    with pytest.raises(BadInput, match="is not a whole ELF file"):
        read_image(Path(__file__))
