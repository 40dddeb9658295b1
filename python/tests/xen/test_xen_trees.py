"""The trees for Xen compile without a warning and say where everything lies."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.boards import devicetree
from latenz.boards.payload import Load
from latenz.errors import BadInput

MIB = 1 << 20
VIRT = devicetree.Memory(0x4000_0000, 2048)
NAMES = ("xen-virt", "xen-zcu102", "xen-zcu102-timer")
AWKWARD = 'console=hvc0 latenz.load="stress-ng --cpu 4" back\\slash   '


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def get(tree: Path, node: str, what: str, how: str = "s") -> list[str]:
    """Ask fdtget, which is not ours, for a property."""
    command = ["fdtget", "-t", how, tree, node, what]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def nodes(tree: Path, node: str) -> list[str]:
    command = ["fdtget", "-l", tree, node]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture
def tree(tmp_path):
    """A tree for Xen on each board, with a DomU."""

    def make(board: str) -> Path:
        start = 0x4000_0000 if board == "virt" else 0
        files = [sparse(tmp_path / name, size) for name, size in (("k", 3 * MIB + 1), ("g", 77))]
        loads = devicetree.placed(files, devicetree.Memory(start, 2048))
        return devicetree.xen_tree(
            board,
            tmp_path,
            arguments="console=dtuart",
            dom0=[devicetree.Module("kernel", loads[0], AWKWARD)],
            domains=[devicetree.Domain(16, (devicetree.Module("kernel", loads[1]),))],
        )

    return make


@pytest.mark.parametrize("name", NAMES)
def test_templates_compile_without_warnings(name, tmp_path):
    source = devicetree.template(name).replace("@CHOSEN@", "")
    compiled = devicetree.compiled(source, tmp_path / "tree.dtb")
    assert compiled.read_bytes()[:4] == bytes.fromhex("d00dfeed")


@pytest.mark.parametrize("board", ["virt", "zcu102"])
def test_a_tree_tells_xen_what_lies_where(board, tree):
    built = tree(board)
    modules = [name for name in nodes(built, "/chosen") if name.startswith("module@")]
    assert len(modules) == 1
    address, size = (int(x, 16) for x in get(built, f"/chosen/{modules[0]}", "reg", "x")[1::2])
    assert f"module@{address:x}" == modules[0]
    assert size == 3 * MIB + 1
    guest = next(name for name in nodes(built, "/chosen/domU1") if name.startswith("module@"))
    start, length = (int(x, 16) for x in get(built, f"/chosen/domU1/{guest}", "reg", "x")[1::2])
    assert start >= address + size
    assert length == 77
    assert get(built, "/chosen/domU1", "memory", "u") == ["0", str(16 * 1024)]
    console = get(built, "/chosen", "stdout-path")[0]
    assert "serial@" in console
    assert get(built, console, "compatible")


def test_a_command_line_arrives_as_it_is(tree):
    command = ["fdtget", tree("virt"), "/chosen", "xen,dom0-bootargs"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == AWKWARD + "\n"


@pytest.mark.parametrize("board", ["virt", "zcu102"])
def test_nothing_in_a_tree_differs_from_run_to_run(board, tree):
    first = tree(board).read_bytes()
    assert tree(board).read_bytes() == first
    for seed in (b"rng-seed", b"kaslr-seed", b"pl031"):
        assert seed not in first


def test_the_timer_is_the_one_the_board_gives_away(tmp_path, tree):
    partial = devicetree.passthrough_tree("zcu102", tmp_path)
    path = get(partial, "/passthrough/timer@ff110000", "xen,path")[0]
    board = tree("zcu102")
    for what in ("reg", "interrupts"):
        found = get(partial, "/passthrough/timer@ff110000", what, "x")
        assert found == get(board, path, what, "x")
    assert get(partial, "/gic", "phandle", "x") == ["fde8"]


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(0, 40 * MIB), min_size=1, max_size=6))
def test_files_never_overlap_and_are_aligned(sizes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    files = [sparse(folder / str(i), size) for i, size in enumerate(sizes)]
    loads = devicetree.placed(files, VIRT)
    ends = VIRT.start + 256 * MIB
    for load, size in zip(loads, sizes, strict=True):
        assert load.address is not None
        assert load.address % (2 * MIB) == 0
        assert load.address >= ends
        ends = load.address + size
    assert ends <= VIRT.end


def test_files_beyond_memory_are_refused(tmp_path):
    files = [sparse(tmp_path / name, 300 * MIB) for name in "abcdef"]
    with pytest.raises(BadInput, match="need 2056 MiB of the board's 2048"):
        devicetree.placed(files, VIRT)


def test_what_dtc_says_is_passed_on(tmp_path):
    with pytest.raises(BadInput, match=r"dtc refuses it: .*syntax error"):
        devicetree.compiled("/dts-v1/; / { nonsense", tmp_path / "tree.dtb")
    with pytest.raises(BadInput, match=r"dtc refuses it: .*unit name"):
        devicetree.compiled("/dts-v1/; / { a@1 { }; };", tmp_path / "tree.dtb")


def test_a_module_without_a_place_is_refused(tmp_path):
    file = sparse(tmp_path / "k", 1)
    with pytest.raises(BadInput, match="has no address"):
        devicetree.xen_tree(
            "virt",
            tmp_path,
            arguments="",
            dom0=[devicetree.Module("kernel", Load(file), "")],
            domains=[],
        )
