"""The cache is ours alone, wherever it is told to be."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from latenz.boards import cache
from latenz.errors import BadInput

IS_ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "deep/cache"))
    return tmp_path / "deep/cache/latenz"


def test_nobody_else_can_look_into_it(place):
    assert cache.folder("images") == place / "images"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    place.chmod(0o755)  # as older versions made it
    cache.folder("images")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_one_that_another_user_made_is_refused(place):
    place.mkdir(parents=True)
    if IS_ROOT:
        os.chown(place, NOBODY, NOBODY)
        with pytest.raises(BadInput, match=r"belongs to user nobody; set XDG_CACHE_HOME"):
            cache._keep_private(place)
        assert cache.location() != place
        return
    place.rmdir()
    place.symlink_to("/usr")
    assert cache.location() == place
    with pytest.raises(BadInput):
        cache.folder("images")


def test_root_does_not_use_the_cache_of_whoever_called_it(place, capsys):
    """As with `sudo -E`."""
    place.parent.mkdir(parents=True)
    if IS_ROOT:
        os.chown(place.parents[1], NOBODY, NOBODY)
        own = Path(pwd.getpwuid(0).pw_dir) / ".cache/latenz"
        assert cache.location() == cache.location() == own
        told = f"latenz: {place} is in the hands of another user: the cache is {own}\n"
        assert capsys.readouterr().err == told
        assert not place.exists()
    else:
        place.parents[1].chmod(0o777)
        assert cache.location() == place


def test_a_lock_is_not_opened_through_a_link(place, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (cache.folder("locks") / "name").symlink_to(victim)
    with pytest.raises(BadInput, match="cannot be written"), cache.locked("name"):
        raise AssertionError("never reached")
    assert victim.read_text() == "as it was"
