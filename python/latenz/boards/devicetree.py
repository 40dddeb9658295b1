"""Device trees for Xen: what a board has, and what Xen is to start from which place in memory."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from latenz.boards.payload import Load
from latenz.errors import BadInput
from latenz.installation import clone

_ALIGNMENT = 2 << 20  # of Xen's own mappings, and what an arm64 Image asks for


@dataclass(frozen=True)
class Memory:
    """Where a board's memory lies.

    Attributes:
        start: Its first address.
        size_mib: Its size in one piece.
    """

    start: int
    size_mib: int

    @property
    def end(self) -> int:
        """The address behind the last one."""
        return self.start + (self.size_mib << 20)


@dataclass(frozen=True)
class Module:
    """A file that lies in memory for Xen.

    Attributes:
        kind: `kernel`, `ramdisk`, or `tree`: what is passed through to a domain.
        load: The file and its address.
        arguments: Command line of a kernel.
    """

    kind: str
    load: Load
    arguments: str = ""


@dataclass(frozen=True)
class Domain:
    """A domain that Xen starts itself, beside Dom0.

    Attributes:
        memory_mib: What it gets.
        modules: Its kernel, and what else it needs.
        vcpus: Its virtual CPUs.
    """

    memory_mib: int
    modules: tuple[Module, ...]
    vcpus: int = 1


def placed(files: Iterable[Path], memory: Memory, offset_mib: int = 256) -> list[Load]:
    """Return places for files, one after the other, that do not overlap.

    Args:
        files: In the order of their addresses.
        memory: Where they must lie.
        offset_mib: How much memory before them stays free, for Xen itself.

    Raises:
        BadInput: They do not fit.
    """
    address = memory.start + (offset_mib << 20)
    loads = []
    for path in files:
        loads.append(Load(path, address))
        address += -(-path.stat().st_size // _ALIGNMENT) * _ALIGNMENT
    if address > memory.end:
        needed = (address - memory.start) >> 20
        raise BadInput(
            f"the images need {needed} MiB of the board's {memory.size_mib}", str(loads[-1].path)
        )
    return loads


def xen_tree(
    board: str,
    folder: Path,
    *,
    arguments: str,
    dom0: Iterable[Module],
    domains: Iterable[Domain],
    logic: bool = False,
) -> Path:
    """Write the tree for Xen on a board into a folder, as source and compiled.

    Args:
        board: `virt` or `zcu102`.
        folder: Takes `xen.dts` and `xen.dtb`.
        arguments: Xen's own command line.
        dom0: Kernel, with its command line, and RAM disk of the first domain.
        domains: The domains beside it.
        logic: Whether a domain gets what is in the board's programmable logic.

    Returns:
        The compiled tree.

    Raises:
        BadInput: The compiler of device trees is missing, or refuses the tree.
    """
    dom0 = tuple(dom0)
    kernel_arguments = next(module.arguments for module in dom0 if module.kind == "kernel")
    lines = [
        "#address-cells = <2>;",
        "#size-cells = <2>;",
        "stdout-path = &uart;",
        f"xen,xen-bootargs = {_string(arguments)};",
        f"xen,dom0-bootargs = {_string(kernel_arguments)};",
    ]
    for module in dom0:
        lines += _module(module)
    for number, domain in enumerate(domains, start=1):
        lines += _domain(number, domain)
    chosen = f"\n\tchosen {{\n{_indented(lines)}\t}};"
    source = template(f"xen-{board}").replace("@CHOSEN@", chosen)
    source = source.replace("/* @LOGIC@ */", template(f"xen-{board}-logic-host") if logic else "")
    (folder / "xen.dts").write_text(source)
    return compiled(source, folder / "xen.dtb")


def passthrough_tree(board: str, folder: Path, *, logic: bool = False) -> Path:
    """Write the tree of what the DomU on a board gets for its own, and return it compiled.

    That is a timer, or with `logic` what is in programmable logic and a timer that asks it.
    """
    name = f"xen-{board}-{'logic' if logic else 'timer'}"
    return compiled(template(name), folder / f"{name}.dtb")


def template(name: str) -> str:
    """Return a tree of `boards/trees`, as source."""
    return resources.files("latenz.boards").joinpath("trees", f"{name}.dts").read_text()


def compiled(source: str, target: Path) -> Path:
    """Compile a tree; warnings count as errors.

    Raises:
        BadInput: The compiler of device trees is missing, or refuses the tree.
    """
    command = ["dtc", "-I", "dts", "-O", "dtb", "-o", str(target), "-"]
    try:
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        remedy = "run setup/ensure boards" if clone() else "apt-get install device-tree-compiler"
        raise BadInput("is not installed", "dtc", remedy) from None
    if done.returncode != 0 or done.stderr:
        raise BadInput(f"dtc refuses it: {done.stderr.strip()}", str(target))
    return target


def _domain(number: int, domain: Domain) -> list[str]:
    modules = [line for module in domain.modules for line in _module(module)]
    return [
        f"domU{number} {{",
        '\tcompatible = "xen,domain";',
        "\t#address-cells = <2>;",
        "\t#size-cells = <2>;",
        f"\tmemory = <0x0 {domain.memory_mib << 10:#x}>; /* KiB */",
        f"\tcpus = <{domain.vcpus}>;",
        "\tvpl011;",
        *(f"\t{line}" for line in modules),
        "};",
    ]


def _module(module: Module) -> list[str]:
    address = module.load.address
    if address is None:
        raise BadInput("has no address", str(module.load.path))
    kind = "device-tree" if module.kind == "tree" else module.kind
    size = module.load.path.stat().st_size
    arguments = [f"\tbootargs = {_string(module.arguments)};"] if module.arguments else []
    return [
        f"module@{address:x} {{",
        f'\tcompatible = "multiboot,{kind}", "multiboot,module";',
        f"\treg = <{address >> 32:#x} {address & 0xFFFF_FFFF:#x} 0x0 {size:#x}>;",
        *arguments,
        "};",
    ]


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _indented(lines: Iterable[str]) -> str:
    return "".join(f"\t\t{line}\n" for line in lines)
