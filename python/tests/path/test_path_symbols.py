"""Symbols against nm and objdump, and tables made here to the layout that Xen's and Linux' have."""

import re
import struct
import subprocess
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_guest import Guest, call

from latenz.boards import images
from latenz.boards.firmware import installed
from latenz.errors import BadInput
from latenz.path.symbols import SymbolTable, elf_symbols, embedded_symbols

XEN_START = 0x200000
KNOWN_TO_XEN = (
    *("hyp_traps_vector", "do_trap_irq", "gic_interrupt", "vgic_inject_irq", "do_IRQ"),
    *("leave_hypervisor_to_guest", "domain.c#idle_loop", "credit2.c#csched2_schedule"),
)
KNOWN_TO_LINUX = ("_stext", "vectors", "gic_handle_irq", "schedule", "arch_timer_handler_virt")


@pytest.fixture(scope="module")
def xen():
    return embedded_symbols(images.xen().path)


@pytest.mark.parametrize("board", ["guest", "virt-O0", "mps3-an536-O0"])
def test_elf_symbols_are_those_of_nm(tmp_path, board):
    path = Guest(tmp_path).elf if board == "guest" else installed(board[:-3], "O0")
    theirs: dict[int, set[str]] = {}
    for line in call("aarch64-linux-gnu-nm", "-C", path).splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "TtWw":
            theirs.setdefault(int(address, 16) & ~1, set()).add(name)
    ours = {symbol.address: symbol.name for symbol in elf_symbols(path)}
    assert len(ours) > 5
    for address, name in ours.items():
        assert name in theirs[address]
    assert {address for address, names in theirs.items() if not all("$" in n for n in names)} <= {
        *ours
    }


def test_load_address_moves_all_symbols(tmp_path):
    path = Guest(tmp_path).elf
    for here, there in zip(elf_symbols(path), elf_symbols(path, 0x1000), strict=True):
        assert (there.address - 0x1000, there.end - 0x1000, there.name) == (
            here.address,
            here.end,
            here.name,
        )


def test_xen_knows_its_functions(xen):
    assert all(xen.find(name) for name in KNOWN_TO_XEN)
    assert [each.address for each in xen] == sorted({each.address for each in xen})
    assert all(each.end > each.address for each in xen)


def test_calls_in_xen_as_objdump_sees_them_go_to_symbols(xen):
    """The compiler calls the beginning of functions only, so a wrong table would show at once."""
    listing = call(
        *("aarch64-linux-gnu-objdump", "-D", "-b", "binary", "-m", "aarch64"),
        *(f"--adjust-vma={XEN_START:#x}", f"--start-address={XEN_START:#x}"),
        *(f"--stop-address={xen.find('_etext').address:#x}", images.xen().path),
    )
    targets = {int(each, 16) for each in re.findall(r"\tbl\t0x([0-9a-f]+)\n", listing)}
    starts = {each.address for each in xen}
    assert len(targets) > 800
    assert len(targets - starts) < len(targets) / 200  # data among the code looks like calls


@pytest.fixture(scope="module", params=["stock", "rt"])
def linux(request):
    """Each of the kernels that boards boot, with its symbols."""
    image = images.linux(request.param).path
    return image, embedded_symbols(image)


def calls(image, symbols, name):
    """Return whom a function of Linux calls, by its instructions."""
    function = symbols.find(name)
    offset = function.address - (symbols.find("_stext").address & ~0x1FFFFF)
    with image.open("rb") as file:
        file.seek(offset)
        words = np.frombuffer(file.read(function.end - function.address), "<u4")
    places = np.flatnonzero(words >> 26 == 0b100101)
    distance = (words[places] & 0x3FFFFFF).astype(np.int64) << 38 >> 36
    targets = function.address + 4 * places.astype(np.uint64) + distance.astype(np.uint64)
    return {found.name for each in targets if (found := symbols.at(int(each)))}


def test_calls_in_linux_go_to_symbols(linux):
    image, symbols = linux
    assert all(symbols.find(name) for name in KNOWN_TO_LINUX)
    start, end = symbols.find("_stext").address, symbols.find("_etext").address
    offset = start & 0x1FFFFF  # the image is linked to a multiple of 2 MiB
    with image.open("rb") as file:
        file.seek(offset)
        words = np.frombuffer(file.read(end - start), "<u4")
    calls = np.flatnonzero(words >> 26 == 0b100101)
    distance = (words[calls] & 0x3FFFFFF).astype(np.int64) << 38 >> 36
    targets = np.unique(start + 4 * calls.astype(np.uint64) + distance.astype(np.uint64))
    starts = np.array([each.address for each in symbols], dtype=np.uint64)
    assert len(targets) > 10_000
    assert np.isin(targets, starts).mean() > 0.99


@pytest.mark.parametrize(
    ("caller", "called"),
    [
        ("schedule", "__schedule"),
        ("preempt_schedule_irq", "__schedule"),
        ("hrtimer_wakeup", "wake_up_process"),
        ("el1h_64_irq", "el1h_64_irq_handler"),
        ("do_exit", "do_task_dead"),
        ("schedule_idle", "__schedule"),
        ("wake_up_process", "try_to_wake_up"),
    ],
)
def test_functions_of_linux_call_what_its_sources_say(linux, caller, called):
    """Names that are shifted by a symbol fit all addresses; the call graph tells."""
    image, symbols = linux
    assert called in calls(image, symbols, caller)


def test_what_the_architecture_aligns_is_aligned(linux):
    _, symbols = linux
    assert symbols.find("vectors").address % 2048 == 0
    assert symbols.find("_stext").address % 65536 == 0
    assert symbols.find("_etext").address % 65536 == 0
    assert symbols.find("_etext").address < symbols.find("_sinittext").address


def encoded(symbols, tokens, padding, addresses_of_64_bits):
    """Write a table as the build of Xen does: parts aligned, names in tokens of two bytes."""

    def align(parts):
        parts.append(b"\0" * (-sum(map(len, parts)) % padding))

    codes = {text: code for code, text in enumerate(tokens)}
    names, markers = b"", []
    for number, (_, name) in enumerate(symbols):
        if number % 256 == 0:
            markers.append(len(names))
        code, rest = [], "T" + name
        while rest:
            token = rest[:2] if rest[:2] in codes else rest[:1]
            code.append(codes[token])
            rest = rest[len(token) :]
        names += bytes([len(code), *code])
    table = b"".join(token.encode() + b"\0" for token in tokens)
    offsets, at = [], 0
    for token in tokens:
        offsets.append(at)
        at += len(token) + 1
    width = "Q" if addresses_of_64_bits else "I"
    parts = [b"some code before" * 8]
    for part in (
        struct.pack(f"<{len(symbols)}{width}", *(address for address, _ in symbols)),
        struct.pack("<I", len(symbols)),
        names,
        struct.pack(f"<{len(markers)}I", *markers),
        table,
        struct.pack("<256H", *offsets),
        b"data after",
    ):
        align(parts)
        parts.append(part)
    return b"".join(parts)


LETTERS = "abcdefghijklmnopqrstuvwxyz_.#0123456789T"
PAIRS = [a + b for a in "abcdefgh" for b in "ijklmnopqrstuvwxyz_.#0123456"][: 256 - len(LETTERS)]
NAMES = st.text(LETTERS, min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(st.lists(NAMES, min_size=20, max_size=40), st.integers(7, 20), st.sampled_from([8, 16, 256]))
def test_tables_made_here_are_read_back(tmp_path_factory, names, times, padding):
    numbers = range(times * len(names))
    names = [f"{names[number % len(names)]}{number}" for number in numbers]
    symbols = [(0x200000 + 40 * number + number % 7, name) for number, name in enumerate(names)]
    if len(symbols) <= 256:  # smaller than any image's
        return
    path = tmp_path_factory.mktemp("table") / "image"
    path.write_bytes(encoded(symbols, [*LETTERS, *PAIRS], padding, addresses_of_64_bits=True))
    assert [(each.address, each.name) for each in embedded_symbols(path)] == symbols


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_damaged_images_are_refused_or_read(tmp_path_factory, xen, data):
    """A damaged table gives one line, never a crash; one that is read still ascends."""
    content = bytearray(images.xen().path.read_bytes())
    start = data.draw(st.integers(0x70000, 0x86200))
    size = data.draw(st.integers(1, 5000))
    content[start : start + size] = data.draw(st.binary(min_size=size, max_size=size))
    del content[data.draw(st.integers(0x86000, len(content))) :]
    path = tmp_path_factory.mktemp("damaged") / "image"
    path.write_bytes(content)
    with suppress(BadInput):
        found = [each.address for each in embedded_symbols(path)]
        assert found == sorted(found)


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, bytes(range(256)) * 40, b"\x7fELF"])
def test_what_is_no_image_is_refused(tmp_path, content):
    path = tmp_path / "image"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="holds no symbol table of its own"):
        embedded_symbols(path)
    with pytest.raises(BadInput, match="is not a whole ELF file"):
        elf_symbols(path)


def test_stripped_programs_are_refused(tmp_path):
    elf = Guest(tmp_path).elf
    subprocess.run(["aarch64-linux-gnu-strip", elf], check=True)
    with pytest.raises(BadInput, match="holds no symbols of code"):
        elf_symbols(elf)


def test_a_symbol_ends_at_its_size_or_the_next():
    table = SymbolTable([(100, 0, "a"), (120, 8, "b"), (100, 0, "later"), (160, 0, "c")], 200)
    found = {at: (symbol.name if (symbol := table.at(at)) else None) for at in (99, 100, 119)}
    assert found == {99: None, 100: "a", 119: "a"}
    assert [table.at(at) and table.at(at).name for at in (127, 128, 160, 199, 200)] == [
        *("b", None, "c", "c", None)
    ]
