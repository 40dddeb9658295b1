"""What tests of `latenz tune` share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from proofs import EXPERIMENT
from small_machines import debian


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one: thousands of fsync take no time there."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def tree(folder) -> Path:
    root = folder / "root"
    root.mkdir()
    return debian(root)


@pytest.fixture
def experiment(folder) -> Path:
    path = folder / "short.toml"
    path.write_text(EXPERIMENT)
    return path
