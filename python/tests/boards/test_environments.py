"""Benches are labgrid environments: each is accepted by labgrid itself, mistakes are one line."""

import pytest

from latenz.benches import BENCHES
from latenz.benches.board import Board
from latenz.boards.environment import board_in
from latenz.boards.places import ENVIRONMENTS
from latenz.errors import BadInput

BOARDS = [name for name, bench in BENCHES.items() if issubclass(bench, Board)]


@pytest.mark.parametrize("name", [each for each in BOARDS if each != "zcu102-board"])
def test_every_emulated_board_is_an_environment(name):
    with board_in(ENVIRONMENTS / f"{name}.yaml") as (_target, driver):
        assert driver.identity()["qemu"].startswith("1")


def test_real_board_has_all_the_drivers_it_needs(tmp_path):
    """labgrid resolves resources, drivers and their bindings; the hardware itself is not there."""
    with board_in(ENVIRONMENTS / "zcu102-board.yaml") as (target, driver):
        bound = {type(each).__name__ for each in target.drivers}
        assert bound == {
            "SerialDriver",
            "NetworkPowerDriver",
            "TFTPProviderDriver",
            "UBootDriver",
            "LatenzBoardDriver",
        }
        assert type(driver).__name__ == "LatenzBoardDriver"


def test_own_environment_goes_before_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    bench = BENCHES["virt"]()
    assert bench.environment() == ENVIRONMENTS / "virt.yaml"
    own = tmp_path / "latenz" / "virt.yaml"
    own.parent.mkdir()
    own.write_text((ENVIRONMENTS / "virt.yaml").read_text())
    assert bench.environment() == own


@pytest.mark.parametrize(
    "text",
    [
        "",
        "targets: [",
        "targets: {}\n",
        "targets: {main: {drivers: {NoSuchDriver: {}}}}\n",
        "targets: {main: {drivers: {LatenzEmulatorDriver: {}}}}\nimports: [latenz.boards.driver]\n",
        "targets: {main: {drivers: {}}}\nimports: [latenz.boards.driver]\n",
    ],
)
def test_mistakes_in_an_environment_are_one_line(tmp_path, text):
    path = tmp_path / "virt.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as mistake, board_in(path):
        pass
    assert str(mistake.value).startswith(f"{path}: ")
    assert "\n" not in str(mistake.value)
