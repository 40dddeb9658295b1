"""What boards and guests boot: Xen, Linux, initial RAM disks, made from Debian packages and kept.

The same inputs give the same file. Nothing is compressed: unpacking would be the board's time.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from latenz.boards import archive, cache, elf
from latenz.boards.archive import Link, Member, Node
from latenz.boards.packages import Architecture, Package, fetch, fetch_current, suffix
from latenz.errors import BadInput, closest
from latenz.unpacking import unpack

Flavour = Literal["stock", "rt", "cloud"]

_METAPACKAGES: dict[Flavour, str] = {
    "stock": "linux-image-",
    "rt": "linux-image-rt-",
    "cloud": "linux-image-cloud-",
}
_TRIPLETS: dict[Architecture, str] = {
    "arm64": "aarch64-linux-gnu",
    "amd64": "x86_64-linux-gnu",
    "armhf": "arm-linux-gnueabihf",
}
_METAPACKAGE_SUFFIXES: dict[Architecture, str] = {"armhf": "armmp"}  # others: their own names
_XZ = b"\xfd7zXZ\0"
_LARGEST_UNPACKED = 1 << 29  # of a kernel or a module
_SETUP = 0x250  # bytes of a bzImage up to the place of its payload
_BUSYBOX = "/bin/busybox"
_APPLETS = re.compile(rb"\0\[\0\[\[\0((?:[a-z0-9][a-z0-9_.-]*\0){50,})\0")
_FIXED_NODES = {
    "/dev/console": Node.terminal(5, 1),
    "/dev/null": Node.terminal(1, 3),
    **{f"/{name}": Node.folder() for name in ("proc", "run", "sys", "tmp")},
}
_MADE_BY = 1  # of everything made here; raise it when the same inputs give something else


@dataclass(frozen=True)
class Image:
    """Something a board boots.

    Attributes:
        path: The file in the cache.
        sha256: Of the file.
        packages: What it was made from.
    """

    path: Path
    sha256: str
    packages: tuple[Package, ...]

    def provenance(self) -> dict[str, Any]:
        """Return what a run keeps of it: its hash, and the packages it was made from."""
        made_from = [package.provenance() for package in self.packages]
        return {"sha256": self.sha256, "packages": made_from}


def xen() -> Image:
    """Return this release's Xen for arm64, as the first core starts it.

    Raises:
        BadInput: It cannot be fetched, or the cache cannot be written.
    """
    package = fetch_current("xen-system-arm64", "xen-hypervisor-")
    return _boot_image("xen", package, re.compile(r"/boot/xen-[\d.]+-arm64(\.gz)?"))


def linux(flavour: Flavour, architecture: Architecture = "arm64") -> Image:
    """Return this release's Linux, stock or with PREEMPT_RT, as a boot loader starts it.

    Args:
        flavour: Which kernel.
        architecture: Which processors it is for: an Image for arm64, a zImage for armhf; for amd64
            the ELF file in Debian's bzImage, or that as it is if it was packed in another way than
            by xz.

    Raises:
        BadInput: It cannot be fetched, or the cache cannot be written.
    """
    name = f"linux-{flavour}{suffix(architecture)}"
    path = re.compile(r"/boot/vmlinuz-.+")
    return _boot_image(name, _kernel(flavour, architecture), path, architecture)


def kernel_config(flavour: Flavour, architecture: Architecture = "arm64") -> Image:
    """Return the configuration that Debian built the kernel with."""
    package = _kernel(flavour, architecture)

    def make(partial: Path) -> None:
        partial.write_bytes(_only(package, re.compile(r"/boot/config-.+"))[1])

    return _made(f"linux-{flavour}{suffix(architecture)}.config", (package,), {}, make)


def kernel_release(flavour: Flavour, architecture: Architecture = "arm64") -> str:
    """Return the kernel's own name for its version, as `uname -r` gives it where it runs."""
    return _kernel(flavour, architecture).name.removeprefix("linux-image-")


def initrd(
    name: str,
    init: str,
    *,
    packages: Iterable[str] = (),
    programs: Iterable[str] = (),
    modules: Iterable[str] = (),
    files: Mapping[str, Path | bytes] | None = None,
    kernel: Flavour = "stock",
    architecture: Architecture = "arm64",
) -> Image:
    """Return an initial RAM disk: a whole small system for a board or a guest.

    It holds what is named and what that needs, nothing else: programs with their shared libraries,
    kernel modules with theirs (and a `modules.dep`, so that `modprobe` finds them), a link for each
    of busybox's applets where `/bin/busybox` is among the programs, and a few device nodes.

    Args:
        name: What it is called; begins the file's name.
        init: The script that Linux starts first, as text with its `#!` line.
        packages: Debian packages that have the programs.
        programs: Absolute paths of programs in the packages.
        modules: Kernel modules by name; those built into the kernel are left out. What a module
            needs without using its symbols (a "soft" dependency) must be named too.
        files: More files by their path on the board: content, or a file here. Files that may be
            executed here, and scripts, may be there; programs among them get their libraries.
        kernel: Which kernel the modules are for.
        architecture: Which processors all of it is for.

    Raises:
        BadInput: Something named, or something it needs, is nowhere; or as for `fetch`.
    """
    programs = sorted(set(programs))
    modules = sorted({module.replace("-", "_") for module in modules})
    given = {path: _given(path, source) for path, source in sorted((files or {}).items())}
    packages = list(packages)
    fetched: tuple[Package, ...] = ()
    if packages:
        fetched += tuple(fetch(packages, dependencies=True, architecture=architecture))
    if modules:
        fetched += (_kernel(kernel, architecture),)
    inputs = {
        "init": init,
        "programs": programs,
        "modules": modules,
        "files": {path: [node.mode, cache.digest(node.content)] for path, node in given.items()},
    }

    def make(partial: Path) -> None:
        nodes = {**_FIXED_NODES, "/init": Node.file(init.encode(), executable=True)}
        nodes.update(_programs(fetched, programs, given, architecture))
        nodes.update(given)
        if modules:
            nodes.update(_modules(kernel, modules, architecture))
        archive.write_cpio(partial, nodes)

    return _made(f"{name}.cpio", fetched, inputs, make)


def _made(name: str, packages: tuple[Package, ...], inputs: Any, make: cache.Make) -> Image:
    """Return what is made from packages and other inputs, kept in the cache."""
    from_packages = [package.provenance() for package in packages]
    path, sha256 = cache.made(name, [_MADE_BY, name, from_packages, inputs], make)
    return Image(path, sha256, packages)


def _kernel(flavour: Flavour, architecture: Architecture) -> Package:
    metapackage = _METAPACKAGES[flavour] + _METAPACKAGE_SUFFIXES.get(architecture, architecture)
    return fetch_current(metapackage, "linux-image-", architecture=architecture)


def _bootable(content: bytes, architecture: Architecture) -> bytes | None:
    """Return a kernel as it is started without unpacking itself; None for no kernel."""
    if architecture == "arm64":  # an Image: Linux's documentation, arm64/booting
        plain = unpack(content, _LARGEST_UNPACKED, "the kernel")
        return plain if plain[0x38:0x3C] == b"ARMd" else None
    if architecture == "armhf":  # a zImage, which unpacks itself: arch/arm/boot/compressed
        return content if content[0x24:0x28] == b"\x18\x28\x6f\x01" else None
    # A bzImage: Linux's documentation, arch/x86/boot. What it unpacks is an ELF file, which QEMU
    # starts by its PVH entry.
    if len(content) < _SETUP or content[0x202:0x206] != b"HdrS":
        return None
    [offset, length] = struct.unpack_from("<II", content, 0x248)
    begin = (content[0x1F1] + 1) * 512 + offset
    payload = content[begin : begin + length]
    return unpack(payload, _LARGEST_UNPACKED, "the kernel") if payload[:6] == _XZ else content


def _boot_image(
    name: str, package: Package, path: re.Pattern[str], architecture: Architecture = "arm64"
) -> Image:
    def make(partial: Path) -> None:
        found, content = _only(package, path)
        bootable = _bootable(content, architecture)
        if bootable is None:
            raise BadInput(f"{found} is not a kernel for {architecture}", str(package.path))
        partial.write_bytes(bootable)

    return _made(name, (package,), {}, make)


def _only(package: Package, path: re.Pattern[str]) -> tuple[str, bytes]:
    """Return the first file of a package whose path matches."""
    for found, content in archive.members(package.path, lambda p: bool(path.fullmatch(p))):
        if isinstance(content, bytes):
            return found, content
    raise BadInput(f"has no {path.pattern}", str(package.path))


def _given(path: str, source: Path | bytes) -> Node:
    if not path.startswith("/") or ".." in path.split("/"):
        raise BadInput("is not an absolute path on the board", path)
    if isinstance(source, bytes):
        return Node.file(source, executable=source.startswith(b"#!"))
    try:
        executable = source.stat().st_mode & 0o111 != 0
        return Node.file(source.read_bytes(), executable=executable)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(source)) from None


def _programs(
    packages: tuple[Package, ...],
    programs: Iterable[str],
    given: Mapping[str, Node],
    architecture: Architecture,
) -> dict[str, Node]:
    """Return programs, the shared libraries that these and given programs need, and applets."""
    available = _contents(packages, frozenset(programs))
    nodes: dict[str, Node] = {}
    waiting: list[tuple[str, bytes]] = []
    for path in programs:
        found = archive.find(available, path)
        if found is None:
            names = ", ".join(package.name for package in packages) or "none"
            raise BadInput("is in none of the packages", path, f"the packages are: {names}")
        nodes[path] = Node.file(found[1], executable=True)
        waiting.append((path, found[1]))
    waiting += [(path, node.content) for path, node in given.items() if node.mode & 0o111]
    while waiting:
        path, content = waiting.pop()
        if not elf.is_elf(content):
            continue
        for library, code in _libraries(path, content, available, architecture):
            if library not in nodes:
                nodes[library] = Node.file(code, executable=True)
                waiting.append((library, code))
    if _BUSYBOX in nodes:
        links = {f"/bin/{applet}": Node.link("busybox") for applet in _applets(nodes[_BUSYBOX])}
        nodes = {**links, **nodes}
    return nodes


def _contents(packages: tuple[Package, ...], programs: frozenset[str]) -> dict[str, Member]:
    """Read from the packages the programs and all that may be a shared library, with all links."""
    folders = ("/lib/", "/usr/lib/", "/lib64/", "/usr/lib64/")

    def wanted(path: str) -> bool:
        return path in programs or (path.startswith(folders) and ".so" in path)

    return {
        path: member
        for package in packages
        if not package.name.startswith("linux-image-")
        for path, member in archive.members(package.path, wanted)
    }


def _libraries(
    path: str, content: bytes, available: Mapping[str, Member], architecture: Architecture
) -> Iterable[tuple[str, bytes]]:
    """Yield where a program finds what it needs to start, and the content of each."""
    needs = elf.needs(content, path, architecture)
    triplet = _TRIPLETS[architecture]
    folders = (*needs.folders, f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib", "/usr/lib")
    if needs.interpreter is not None:
        yield needs.interpreter, _found(needs.interpreter, needs.interpreter, path, available)
    for library in needs.libraries:
        candidates = [f"{folder}/{library}" for folder in folders]
        place = next((c for c in candidates if archive.find(available, c)), candidates[0])
        yield place, _found(library, place, path, available)


def _found(library: str, place: str, path: str, available: Mapping[str, Member]) -> bytes:
    if found := archive.find(available, place):
        return found[1]
    raise BadInput(f"needs {library}, which none of its packages has", path)


def _applets(busybox: Node) -> list[str]:
    """Return the names of busybox's applets, from the table in the program itself."""
    table = _APPLETS.search(busybox.content)
    if table is None:
        raise BadInput("has no table of applets where it was expected", _BUSYBOX)
    return ["[", "[[", *table[1].decode().rstrip("\0").split("\0")]


def _modules(
    flavour: Flavour, wanted: Iterable[str], architecture: Architecture
) -> dict[str, Node]:
    """Return kernel modules, those that they need, and `modules.dep`."""
    kernel = _kernel(flavour, architecture)
    index = _module_index(flavour, architecture)
    chosen: dict[str, None] = {}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in chosen or name in index["builtin"]:
            continue
        if name not in index["modules"]:
            raise BadInput("is not a module of this kernel", name, closest(name, index["modules"]))
        chosen[name] = None
        waiting += index["modules"][name]["needs"]
    paths = {index["modules"][name]["path"]: name for name in chosen}
    contents = archive.members(kernel.path, paths.__contains__)
    nodes: dict[str, Node] = {}
    lines: list[str] = []
    root = f"/lib/modules/{kernel_release(flavour, architecture)}"
    for path, content in contents:
        place = f"{root}/{paths[path]}.ko"
        nodes[place] = Node.file(_plain_module(path, content))
        needed = _in_load_order(paths[path], index)
        lines.append(f"{paths[path]}.ko: {' '.join(f'{name}.ko' for name in needed)}".rstrip())
    nodes[f"{root}/modules.dep"] = Node.file(("\n".join(sorted(lines)) + "\n").encode())
    return nodes


def _in_load_order(name: str, index: Mapping[str, Any]) -> list[str]:
    """Return all modules that one needs, as `modules.dep` lists them: the last is loaded first."""
    order: dict[str, None] = {}

    def visit(needed: str) -> None:
        for deeper in index["modules"].get(needed, {}).get("needs", ()):
            visit(deeper)
        order[needed] = None

    visit(name)
    del order[name]
    return list(reversed(order))


def _module_index(flavour: Flavour, architecture: Architecture) -> dict[str, Any]:
    """Return all modules of a kernel: where each lies and what it needs, and those built in."""
    kernel = _kernel(flavour, architecture)

    def make(partial: Path) -> None:
        modules: dict[str, Any] = {}
        built_in: list[str] = []
        for path, content in archive.members(
            kernel.path, lambda p: p.endswith((".ko", ".ko.xz", "/modules.builtin"))
        ):
            if path.endswith("/modules.builtin"):
                built_in = [
                    _module_name(line) for line in _plain_module(path, content).decode().split()
                ]
                continue
            plain = _plain_module(path, content)
            needed = [_module_name(need) for need in elf.module_dependencies(plain, path)]
            modules[_module_name(path)] = {"path": path, "needs": needed}
        partial.write_text(json.dumps({"modules": modules, "builtin": built_in}))

    index = _made(f"linux-{flavour}{suffix(architecture)}.modules", (kernel,), {}, make)
    answer: dict[str, Any] = json.loads(index.path.read_bytes())
    return answer


def _module_name(path: str) -> str:
    """Return a module's name as the kernel says it."""
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")


def _plain_module(path: str, content: Member) -> bytes:
    if isinstance(content, Link):
        raise BadInput("is a link, not a module", path)
    return unpack(content, _LARGEST_UNPACKED, path)
