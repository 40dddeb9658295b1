# SPDX-License-Identifier: Apache-2.0
"""Which files are made from which map."""

from pathlib import Path

from . import cpp, html, ipxact, model, python_module, vhdl_block, vhdl_package

MAPS = ("latencies_ip", "random_data_generator", "stream_ring_writer")


def all_of(registers: Path) -> dict[Path, str]:
    """Every generated file with its text. `registers` is the folder of the maps."""
    hdl = registers.parent
    maps = {name: model.read(registers / f"{name}.rdl") for name in MAPS}
    files = {
        hdl.parent / "python/latenz/ip/registers.py": python_module.module(list(maps.values()))
    }
    for name, contents in maps.items():
        rtl = hdl / name / "rtl"
        files[rtl / f"{name}_registers_pkg.vhd"] = vhdl_package.package(contents)
        files[rtl / f"{name}_register_block.vhd"] = vhdl_block.block(contents)
        files[hdl / f"driver/include/latenz/ip/registers/{name}.hpp"] = cpp.header(contents)
        files[registers / f"generated/html/{name}.html"] = html.page(contents)
        files[registers / f"generated/ipxact/{name}.xml"] = ipxact.description(
            registers / f"{name}.rdl"
        )
    return files
