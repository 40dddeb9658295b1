"""Images against readelf, cpio, depmod and the emulator; real packages from the cache."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latenz.boards import archive, cache, elf, images, packages
from latenz.errors import BadInput

pytestmark = pytest.mark.boots

INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t devtmpfs dev /dev
busybox uname -a
busybox --list
echo end of list
ls /bin
echo end of links
stress-ng --version
cyclictest --help
modprobe dm_crypt
lsmod
poweroff -f
"""
WHOLE = {
    "packages": ["busybox-static", "stress-ng", "rt-tests"],
    "programs": ["/bin/busybox", "/usr/bin/stress-ng", "/usr/bin/cyclictest"],
    "modules": ["xen-privcmd", "dm_crypt", "btrfs"],
}


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def whole():
    return images.initrd("test", INIT, **WHOLE)


@pytest.fixture(scope="module")
def unpacked(whole, tmp_path_factory):
    """The initial RAM disk as cpio unpacks it."""
    folder = tmp_path_factory.mktemp("unpacked")
    with whole.path.open("rb") as file:
        subprocess.run(["cpio", "-i", "--quiet"], stdin=file, cwd=folder, check=True)
    return folder


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache without images, that has the packages fetched so far."""
    with cache.locked("packages"):  # others may be fetching
        place = tmp_path / "cache/latenz/packages"
        shutil.copytree(cache.folder("packages"), place, copy_function=shutil.copy2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/latenz"


def small(**changes):
    wanted = {"packages": ["busybox-static"], "programs": ["/bin/busybox"], **changes}
    return images.initrd("small", INIT, **wanted)


def refused(**changes):
    """The one line that a user reads."""
    with pytest.raises(BadInput) as error:
        small(**changes)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_boot_images_are_what_file_says():
    for image in (images.xen(), images.linux("stock"), images.linux("rt")):
        kind = output("file", "-b", image.path)
        assert kind.startswith("Linux kernel ARM64 boot executable Image, little-endian")


def test_the_configuration_is_that_of_the_kernel():
    stock, rt = (images.kernel_config(kind).path.read_text() for kind in ("stock", "rt"))
    assert "\nCONFIG_PREEMPT_RT=y\n" in rt
    assert "\nCONFIG_PREEMPT_RT=y\n" not in stock
    assert "\nCONFIG_ARM64=y\n" in stock


def test_provenance_names_package_version_and_hash():
    [package] = images.xen().provenance()["packages"]
    assert re.fullmatch(r"xen-hypervisor-[\d.]+-arm64", package["name"])
    assert re.fullmatch(r"[0-9a-f]{64}", package["sha256"])
    assert package["version"]


def test_a_ram_disk_is_small(whole):
    assert whole.path.stat().st_size < 25 << 20


def test_every_library_that_readelf_finds_needed_is_there_and_no_other(unpacked):
    programs = [path for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()]
    there = {path.name for path in programs if ".so" in path.name}
    needed = set()
    for path in programs:
        if path.read_bytes().startswith(b"\x7fELF") and path.suffix != ".ko":
            told = output("readelf", "-W", "-d", "-l", path)
            needed |= set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", told))
            needed |= set(re.findall(r"program interpreter: .*/([^/]+)\]", told))
    assert needed == there
    assert len(there) >= 15


def test_modules_and_their_order_are_those_of_depmod(unpacked):
    release = images.kernel_release("stock")
    folder = unpacked / "lib/modules" / release
    ours = (folder / "modules.dep").read_text()
    subprocess.run(["depmod", "-b", unpacked, release], check=True, capture_output=True)
    theirs = (folder / "modules.dep").read_text()

    def in_sets(text):
        pairs = (line.split(":") for line in text.splitlines())
        return {name: set(needed.split()) for name, needed in pairs}

    assert in_sets(ours) == in_sets(theirs)
    assert len(in_sets(ours)["btrfs.ko"]) >= 4


def test_a_real_kernel_boots_it_and_finds_everything(whole, tmp_path):
    log = tmp_path / "console.log"
    command = [
        *("timeout", "-k", "1", "250", "qemu-system-aarch64", "-M", "virt,gic-version=2"),
        *("-cpu", "cortex-a53", "-m", "256", "-display", "none", "-monitor", "none"),
        *("-nic", "none", "-no-reboot", "-serial", f"file:{log}"),
        *("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
        *("-kernel", images.linux("stock").path, "-initrd", whole.path),
        *("-append", "console=ttyAMA0 quiet panic=-1"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    said = log.read_text()
    assert f"Linux (none) {images.kernel_release('stock')} " in said
    [version] = (package.version for package in whole.packages if package.name == "stress-ng")
    assert f"stress-ng, version {version.split('-')[0]} " in said
    assert "cyclictest V 2." in said
    assert re.search(r"^dm_mod +\d+ +1 dm_crypt", said, re.M)
    applets, links = re.search(
        r"(\[\n.*)\nend of list\n(.*)\nend of links", said.replace("\r", ""), re.S
    ).groups()
    assert sorted(applets.split()) == sorted(links.split())


def test_the_same_inputs_give_the_same_file(whole, own_cache):
    again = images.initrd("test", INIT, **{key: values[::-1] for key, values in WHOLE.items()})
    assert again.path.is_relative_to(own_cache)
    assert again.sha256 == whole.sha256
    assert output("sha256sum", again.path).split()[0] == whole.sha256


def test_any_other_input_gives_another_file(whole, tmp_path):
    given = tmp_path / "given"
    given.write_text("one")
    plain = small()
    seen = {plain.path, small(modules=["xen-privcmd"]).path}
    seen.add(
        images.initrd(
            "small", INIT + "#", packages=["busybox-static"], programs=["/bin/busybox"]
        ).path
    )
    for change in (lambda: None, lambda: given.write_text("two"), lambda: given.chmod(0o755)):
        change()
        seen.add(small(files={"/given": given}).path)
    seen.add(small(files={"/elsewhere": given}).path)
    assert len(seen) == 7


def test_two_processes_at_once_make_one_file(own_cache):
    program = (
        "from latenz.boards import images;"
        "print(images.initrd('both', '#!/bin/sh', packages=['busybox-static'],"
        " programs=['/bin/busybox'], modules=['xen-privcmd']))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)
    ]
    answers = {process.communicate(timeout=600)[0] for process in both}
    assert len(answers) == 1
    assert {process.returncode for process in both} == {0}
    assert not list((own_cache / "images").glob(".*"))


def test_a_damaged_image_is_named_and_made_again(own_cache, capsys):
    image = small()
    image.path.write_bytes(image.path.read_bytes()[:-1])
    assert small() == image
    [line] = capsys.readouterr().err.splitlines()
    assert str(image.path) in line
    assert "is damaged" in line
    assert output("sha256sum", image.path).split()[0] == image.sha256


def test_what_nobody_used_for_a_month_is_deleted(own_cache):
    old, recent = small(), small(modules=["xen-privcmd"])
    record = old.path.with_name(f"{old.path.name}.sha256")
    for path in (old.path, record):
        os.utime(path, (time.time() - 40 * 86_400, path.stat().st_mtime))
    small(files={"/another": b""})
    assert recent.path.exists()
    assert not old.path.exists()
    assert not record.exists()
    assert small() == old


def test_given_files_are_there_as_they_are(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o750)
    image = small(files={"/a/b/program": program, "/etc/text": b"text", "/script": b"#!/bin/sh\n"})
    with image.path.open("rb") as file:
        listed = output("cpio", "-tv", "--quiet", stdin=file)
    modes = {line.split()[-1]: line.split()[0] for line in listed.splitlines() if "->" not in line}
    assert modes["a/b/program"] == modes["script"] == modes["init"] == "-rwxr-xr-x"
    assert modes["etc/text"] == "-rw-r--r--"
    assert modes["a/b"] == "drwxr-xr-x"
    assert re.search(r"^crw------- .* 5, *1 .* dev/console$", listed, re.M)
    assert "bin/sh -> busybox" in listed


def test_a_given_program_gets_its_libraries(unpacked):
    cyclictest = unpacked / "usr/bin/cyclictest"
    image = images.initrd("given", INIT, packages=["libnuma1"], files={"/cyclictest": cyclictest})
    with image.path.open("rb") as file:
        listed = output("cpio", "-t", "--quiet", stdin=file).split()
    assert any(path.endswith("/libnuma.so.1") for path in listed)
    assert "lib/ld-linux-aarch64.so.1" in listed


def test_what_is_nowhere_is_named(tmp_path):
    line = refused(programs=["/bin/nosuch"])
    assert line == "/bin/nosuch: is in none of the packages; the packages are: busybox-static"
    line = refused(modules=["xen_privcmdd"])
    assert line.startswith(
        "xen_privcmdd: is not a module of this kernel; did you mean 'xen_privcmd'?"
    )
    assert "no-such-xyz: is not a package" in refused(packages=["no-such-xyz"])
    line = refused(files={"/x": tmp_path / "absent"})
    assert line == f"{tmp_path}/absent: cannot be read (No such file or directory)"
    assert "is not an absolute path on the board" in refused(files={"../x": b""})
    host = Path("/bin/true")
    assert "/x: is for x64; build it for 64-bit Arm" in refused(files={"/x": host})
    cut = tmp_path / "cut"
    cut.write_bytes(b"\x7fELF")
    small(files={"/x": cut})  # no program: nobody may execute it
    cut.chmod(0o755)
    assert refused(files={"/x": cut}).startswith("/x: is not a whole ELF file")


def test_a_missing_library_is_named(unpacked):
    cyclictest = unpacked / "usr/bin/cyclictest"
    line = refused(files={"/cyclictest": cyclictest})
    assert re.fullmatch(r"/cyclictest: needs \S+, which none of its packages has", line)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_made(own_cache, small_disk):
    (own_cache / "images").symlink_to(small_disk)
    with pytest.raises(BadInput, match=r"^\S+/images/linux-stock-\w+: the disk is full; free"):
        images.linux("stock")
    assert not [path for path in small_disk.iterdir() if path.name.startswith((".", "linux"))]


def made_package(folder, name, kind, target=""):
    """A Debian package with one member, whose name no packager would give it."""
    import io
    import tarfile

    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    with tarfile.open(folder / "data.tar", "w") as data:
        data.addfile(member, io.BytesIO())
    with tarfile.open(folder / "control.tar", "w"):
        pass
    (folder / "debian-binary").write_text("2.0\n")
    parts = ["debian-binary", "control.tar", "data.tar"]
    subprocess.run(["ar", "rc", "made.deb", *parts], cwd=folder, check=True)
    return folder / "made.deb"


@pytest.mark.parametrize("name", ["../outside", "./a/../../outside", "/../outside"])
def test_a_path_that_leaves_its_package_is_refused(tmp_path, name):
    package = made_package(tmp_path, name, b"0")
    with pytest.raises(BadInput, match="holds a path that leaves it"):
        list(archive.members(package, lambda _: True))


def test_links_are_followed_within_the_package_only(tmp_path):
    package = made_package(tmp_path, "./lib/x.so", b"2", "../../../../../etc/passwd")
    files = dict(archive.members(package, lambda _: True))
    assert archive.find(files, "/lib/x.so") is None
    assert archive.find({"/a": archive.Link("b"), "/b": archive.Link("a")}, "/a") is None


def test_a_truncated_package_is_named(tmp_path):
    [package] = packages.fetch(["busybox-static"])
    cut = tmp_path / "cut.deb"
    cut.write_bytes(package.path.read_bytes()[:-5000])
    with pytest.raises(BadInput, match=r"cut.deb: is damaged"):
        list(archive.members(cut, lambda _: True))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_a_damaged_module_is_named(content):
    with pytest.raises(BadInput, match=r"^m.ko: is not a kernel module"):
        elf.module_dependencies(content, "m.ko")


def test_cpio_gives_back_what_was_written(tmp_path):
    nodes = {
        "/z/y/x": archive.Node.file(b"abc"),
        "/empty": archive.Node.file(b""),
        "/four": archive.Node.file(b"four", executable=True),
        "/link": archive.Node.link("z/y"),
        "/q": archive.Node.terminal(5, 1),
    }
    path = tmp_path / "archive"
    archive.write_cpio(path, nodes)
    out = tmp_path / "out"
    out.mkdir()
    with path.open("rb") as file:
        subprocess.run(["cpio", "-i", "--quiet"], stdin=file, cwd=out, check=True)
    assert (out / "z/y/x").read_bytes() == b"abc"
    assert (out / "empty").read_bytes() == b""
    assert (out / "four").stat().st_mode & 0o777 == 0o755
    assert (out / "link").readlink() == Path("z/y")
    assert stat.S_ISCHR((out / "q").stat().st_mode)
    assert (out / "q").stat().st_rdev == 0x501


def test_the_examples_of_the_documentation_run():
    page = (Path(__file__).parents[3] / "docs/images.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(examples) == 2
    for example in examples:
        exec(example, {})
