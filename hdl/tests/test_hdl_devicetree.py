"""Device tree overlays: dtc takes them without a word, and they say what the Vivado scripts say."""

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from vivado_scripts import evaluate

FOLDER = Path(__file__).parents[1] / "devicetree"
OVERLAYS = sorted(path.stem for path in FOLDER.glob("*.dtso"))
TREE = "/"

# What the overlays need of a board's own tree, as Linux's zynqmp.dtsi names it.
BASE = """
/dts-v1/;
/ {
    #address-cells = <2>;
    #size-cells = <2>;
    fpga_full: fpga-region { #address-cells = <2>; #size-cells = <2>; };
    gic: interrupt-controller@f9010000 {
        reg = <0x0 0xf9010000 0x0 0x10000>;
        interrupt-controller;
        #address-cells = <0>;
        #interrupt-cells = <3>;
    };
    zynqmp_clk: clock-controller { #clock-cells = <1>; };
};
"""


class Node(NamedTuple):
    windows: list[tuple[int, int]]  # address, bytes
    interrupt: int


def run(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> dict[str, Path]:
    """Each overlay applied to a board's tree."""
    folder = tmp_path_factory.mktemp("devicetree")
    (folder / "base.dts").write_text(BASE)
    run("dtc", "-@", "-O", "dtb", "-o", folder / "base.dtb", folder / "base.dts")
    for name in OVERLAYS:
        overlay, applied = folder / f"{name}.dtbo", folder / f"{name}.dtb"
        # As the kernel's build calls it, but that every warning is wanted.
        run("dtc", "-@", "-I", "dts", "-O", "dtb", "-o", overlay, FOLDER / f"{name}.dtso")
        run("fdtoverlay", "-i", folder / "base.dtb", "-o", applied, overlay)
    return {name: folder / f"{name}.dtb" for name in OVERLAYS}


def cells(tree: Path, node: str, name: str) -> list[int]:
    return [int(word, 16) for word in run("fdtget", "-t", "x", tree, node, name).split()]


def properties(tree: Path, node: str) -> set[str]:
    return set(run("fdtget", "-p", tree, node).split())


def uio_nodes(tree: Path) -> dict[str, Node]:
    found = {}
    for name in run("fdtget", "-l", tree, TREE).split():
        path = f"/{name}"
        known = properties(tree, path)
        if "compatible" not in known:
            continue
        if run("fdtget", tree, path, "compatible").strip() != "generic-uio":
            continue
        reg = cells(tree, path, "reg")
        windows = []
        for high, low, size_high, size_low in zip(*[iter(reg)] * 4, strict=True):
            assert (high, size_high) == (0, 0)
            windows.append((low, size_low))
        shared, interrupt, trigger = cells(tree, path, "interrupts")
        assert (shared, trigger) == (0, 4)  # shared peripheral, level high
        assert cells(tree, path, "interrupt-parent") == cells(
            tree, "/interrupt-controller@f9010000", "phandle"
        )
        if len(windows) > 1:
            assert run("fdtget", tree, path, "reg-names").split() == ["s00", "s01"]
        assert name.partition("@")[2] == f"{windows[0][0]:x}"
        found[name.partition("@")[0]] = Node(windows, interrupt)
    return found


def board_and_variant(name: str) -> tuple[str, str]:
    board, _, variant = name.partition("-")
    return board, variant


def test_there_is_an_overlay_for_each_board_and_variant():
    boards = evaluate("set latenz::boards", "build.tcl").split()
    variants = evaluate("dict keys $latenz::variants").split()
    assert sorted(f"{board}-{variant}" for board in boards for variant in variants) == OVERLAYS


@pytest.mark.parametrize("name", OVERLAYS)
def test_addresses_are_those_of_the_block_design(trees, name):
    _, variant = board_and_variant(name)
    listed = evaluate(
        f"join [latenz::address_map [latenz::generics_of {variant}]] \\n"
    ).splitlines()
    slaves = {}
    for line in listed:
        slave, address, size = line.split()
        slaves[slave.removesuffix("_axi")] = (int(address, 16), int(size))
    assert len(slaves) == 5
    assert {key: node.windows for key, node in uio_nodes(trees[name]).items()} == {
        "latencies-ip-t1": [slaves["t1_s00"], slaves["t1_s01"]],
        "latencies-ip-t2": [slaves["t2_s00"], slaves["t2_s01"]],
        "latenz-random-data-generator": [slaves["generator"]],
    }


@pytest.mark.parametrize("name", OVERLAYS)
def test_windows_do_not_overlap_and_are_whole_pages(trees, name):
    windows = sorted(window for node in uio_nodes(trees[name]).values() for window in node.windows)
    for address, size in windows:
        assert address % 0x1000 == size % 0x1000 == 0
    for (address, size), (following, _) in itertools.pairwise(windows):
        assert address + size <= following


@pytest.mark.parametrize("name", OVERLAYS)
def test_interrupts_are_where_the_block_design_connects_them(trees, name):
    _, variant = board_and_variant(name)
    order = evaluate("set latenz::interrupts").split()
    kind = "alarm" if variant == "published" else "interrupt"
    wanted = {
        "latenz-random-data-generator": 89 + order.index("pl_ps_irq"),
        "latencies-ip-t1": 89 + order.index(f"t1_{kind}"),
        "latencies-ip-t2": 89 + order.index(f"t2_{kind}"),
    }
    assert {key: node.interrupt for key, node in uio_nodes(trees[name]).items()} == wanted


@pytest.mark.parametrize("name", OVERLAYS)
def test_clock_and_variant_are_told_to_software(trees, name):
    board, variant = board_and_variant(name)
    clock_hz = int(evaluate("set latenz::board::clock_hz", f"{board}.tcl"))
    tree = trees[name]
    assert cells(tree, "/latencies-ip-clock", "assigned-clock-rates") == [clock_hz]
    for node in ("/latencies-ip-t1@a0000000", "/latencies-ip-t2@a0020000"):
        assert cells(tree, node, "latenz,clock-frequency-hz") == [clock_hz]
        others = {"latenz,published", "latenz,extended"} - {f"latenz,{variant}"}
        assert f"latenz,{variant}" in properties(tree, node)
        assert not others & properties(tree, node)


def test_the_compilers_silence_means_something(tmp_path):
    """It speaks of a window whose size is forgotten."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    source = tmp_path / "copy/latency-bench.dtsi"
    source.write_text(source.read_text().replace("0xa0010000 0x0 0x1000", "0xa0010000 0x0"))
    done = subprocess.run(
        ["dtc", "-@", "-O", "dtb", "-o", tmp_path / "x", tmp_path / "copy/zcu102-published.dtso"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "Warning" in done.stderr
