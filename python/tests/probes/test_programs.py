import os

import pytest

from latenz.errors import BadInput
from latenz.programs import probe_program


@pytest.mark.parametrize("name", ["latenz-wakeup", "latenz-memory-load"])
def test_programs_are_installed_and_executable(name: str) -> None:
    assert os.access(probe_program(name), os.X_OK)


@pytest.mark.parametrize("name", ["absent", "../_core.abi3.so", ""])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not installed"):
        probe_program(name)
