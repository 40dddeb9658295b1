import mmap
import os
import uuid
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.icc import open_region

PAGE = mmap.PAGESIZE


@pytest.fixture
def system(tmp_path):
    """A tree as the kernel makes it; each word of a device is its own address."""
    (tmp_path / "dev/shm").mkdir(parents=True)
    addresses = b"".join(at.to_bytes(4, "little") for at in range(0, 4 * PAGE, 4))
    for device in ("mem", "uio7"):
        (tmp_path / "dev" / device).write_bytes(addresses)
    for number, size, offset in ((0, "0x1000", "0x0"), (2, "0x80", "0x40")):
        folder = tmp_path / f"sys/class/uio/uio7/maps/map{number}"
        folder.mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")
        (folder / "offset").write_text(f"{offset}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "size", "first"),
    [
        ("uio:/dev/uio7", 0x1000, 0),
        ("uio:/dev/uio7:0", 0x1000, 0),
        ("uio:/dev/uio7:2", 0x80, 2 * PAGE + 0x40),
        ("mem:0x1040+1K", 1024, 0x1040),
        ("mem:4096+0x100", 256, 4096),
    ],
)
def test_devices_begin_where_they_are_asked_to(system, text, size, first):
    with open_region(text, system) as region:
        assert region.size == size
        assert region.read(0, 4) == first.to_bytes(4, "little")
        assert region.read(size - 4, 4) == (first + size - 4).to_bytes(4, "little")
        with pytest.raises(BadInput, match="not there"):
            region.read(size, 4)
        assert not region.is_removed()


def test_shared_memory_is_found_by_name():
    name = f"latenz-test-{uuid.uuid4().hex}"
    path = Path("/dev/shm", name)
    path.write_bytes(bytes(range(66)))
    try:
        with open_region(f"shm:/{name}") as region:
            assert region.size == 64, "whole words"
            assert region.read(4, 8) == bytes(range(4, 12))
            assert not region.is_removed()
            path.unlink()
            assert region.is_removed()
    finally:
        path.unlink(missing_ok=True)


def test_a_file_that_shrinks_is_no_crash(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    with open_region(str(path)) as region:
        os.truncate(path, 100)
        with pytest.raises(BadInput, match="has it been made smaller"):
            region.read(0, 4096)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no-such-file",
        "shm:",
        "shm:name",
        "shm:/a/b",
        "shm:/..",
        "shm:/no-such-shared-memory",
        "uio:/dev/uio",
        "uio:/dev/uio7:1",
        "uio:/dev/../uio7",
        "uio:uio7",
        "uio:/dev/uio8",
        "mem:0x1000",
        "mem:+4K",
        "mem:-1+4K",
        "mem:0x1001+4K",
        "mem:0x1000+0",
        "mem:0x1000+2",
        "mem:0xFFFFFFFFFFFFFFFC+4K",
        "mem:0x1000+99999999999999999999G",
        "mem:0x1000+64K",  # more than there is
        "/dev/null",
        "/",
        "a\0b",
    ],
)
def test_what_is_no_region_is_one_line(system, text):
    with pytest.raises(BadInput) as refused:
        open_region(text, system)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("number", ["", "64", "0xzz", "0x" + "1" * 17, "0x10 ", "0x0"])
def test_a_uio_device_that_tells_nonsense_is_refused(system, number):
    (system / "sys/class/uio/uio7/maps/map0/size").write_text(number)
    with pytest.raises(BadInput):
        open_region("uio:/dev/uio7", system)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="is not a file"):
        open_region(str(tmp_path / "pipe"))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadInput, match="is empty"):
        open_region(str(tmp_path / "file"))
