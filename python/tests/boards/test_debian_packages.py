"""Packages are fetched from a mirror that is served here: real ones, with Debian's signatures."""

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from latenz.boards import apt_sources, packages
from latenz.errors import BadInput

NAME = "busybox-static"


@pytest.fixture(scope="session")
def real():
    """The package lists and a package, from Debian through this machine's own mirror."""
    [package] = packages.fetch([NAME])
    lists = package.path.parents[1] / "apt/lists"
    if not any(lists.glob("*Packages*")):
        [package] = packages.fetch([NAME], refresh=True)
    return package, lists


class Mirror:
    """A mirror over HTTP with the release's main suite for arm64, and one package.

    `content` is served; each test gets it anew.
    """

    def __init__(self, folder, real):
        self.whole = folder / "whole"
        self.content = folder / "content"
        self.requests = []
        package, lists = real
        suite = Path("dists", apt_sources.release())
        self.index = self.content / suite / "main/binary-arm64/Packages"
        index = self.whole / suite / "main/binary-arm64/Packages"
        index.parent.mkdir(parents=True)
        [signed] = lists.glob(f"*_dists_{apt_sources.release()}_InRelease")
        shutil.copy(signed, self.whole / suite / "InRelease")
        [listed] = lists.glob(f"*_dists_{apt_sources.release()}_main_binary-arm64_Packages*")
        with index.open("wb") as file:
            subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", listed], stdout=file, check=True)
        paragraph = re.search(rf"^Package: {NAME}\n(.+\n)+", index.read_text(), re.M)[0]
        pool = re.search("^Filename: (.*)", paragraph, re.M)[1]
        (self.whole / pool).parent.mkdir(parents=True)
        shutil.copy(package.path, self.whole / pool)
        self.package = self.content / pool
        requests = self.requests

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, *_):
                requests.append(self.requestline)

            def log_message(self, *_):
                pass

        handler = partial(Handler, directory=self.content)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever).start()

    def renew(self):
        shutil.rmtree(self.content, ignore_errors=True)
        shutil.copytree(self.whole, self.content)
        self.requests.clear()

    def downloads(self):
        return sum(request.endswith(".deb HTTP/1.1") for request in self.requests)


@pytest.fixture(scope="module")
def served(real, tmp_path_factory):
    mirror = Mirror(tmp_path_factory.mktemp("mirror"), real)
    yield mirror
    mirror.server.shutdown()
    mirror.server.server_close()


@pytest.fixture(scope="module")
def listed(served, tmp_path_factory):
    """A cache whose package lists are those of the mirror."""
    folder = tmp_path_factory.mktemp("listed")
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_up_apt(served, folder, monkeypatch)
        packages.fetch([NAME])
    shutil.rmtree(folder / "cache/latenz/packages")
    return folder / "cache"


def set_up_apt(mirror, folder, monkeypatch):
    """Set this machine's apt up with the mirror, and the cache in `folder`."""
    mirror.renew()
    sources = folder / "sources.d"
    sources.mkdir()
    (sources / "own.sources").write_text(
        f"Types: deb\nURIs: {mirror.address}\nSuites: {apt_sources.release()}\nComponents: main\n"
    )
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": sources,
        "Acquire::http::Proxy": "DIRECT",
        "Acquire::CompressionTypes::Order::": "uncompressed",
    }
    config = folder / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    monkeypatch.setenv("APT_CONFIG", str(config))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.fixture
def mirror(served, tmp_path, monkeypatch):
    """A mirror that this machine's apt is set up with, and an empty cache."""
    set_up_apt(served, tmp_path, monkeypatch)
    return served


@pytest.fixture
def known(mirror, listed, tmp_path):
    """The mirror, and a cache that has its lists and no packages."""
    shutil.copytree(listed, tmp_path / "cache")
    return mirror


def cut_off(tmp_path):
    """Send what goes to the network to where nobody listens."""
    config = tmp_path / "apt.conf"
    config.write_text(config.read_text().replace('"DIRECT"', '"http://127.0.0.1:9"'))


def refused(name=NAME, **options):
    """The one line that a user reads."""
    with pytest.raises(BadInput) as error:
        packages.fetch([name], **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_package_is_what_dpkg_and_sha256sum_say(known):
    [package] = packages.fetch([NAME])
    told = subprocess.run(
        ["dpkg-deb", "--field", package.path, "Package", "Version", "Architecture"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == (
        f"Package: {package.name}\nVersion: {package.version}\n"
        f"Architecture: {package.architecture}\n"
    )
    summed = subprocess.run(["sha256sum", package.path], capture_output=True, text=True, check=True)
    assert summed.stdout.split()[0] == package.sha256


def test_the_second_time_needs_no_network(known):
    first = packages.fetch([NAME])
    assert known.downloads() == 1
    known.requests.clear()
    assert packages.fetch([NAME]) == first
    assert known.requests == []


def test_old_ones_are_kept_when_the_network_is_gone(known, tmp_path, capsys):
    first = packages.fetch([NAME])
    cut_off(tmp_path)
    long_ago = time.time() - 30 * 86_400
    cache = tmp_path / "cache/latenz"
    for path in (cache / "apt/updated", *cache.glob("packages/resolved/*")):
        os.utime(path, (long_ago, long_ago))
    assert packages.fetch([NAME]) == first
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(f"cannot be fetched .*Could not connect.*; going on with cached {NAME}$", line)
    assert packages.fetch([NAME]) == first
    assert capsys.readouterr().err == ""


def test_a_damaged_package_is_named_and_fetched_again(known, tmp_path, capsys):
    [package] = packages.fetch([NAME])
    content = bytearray(package.path.read_bytes())
    content[len(content) // 2] ^= 1
    package.path.write_bytes(content)
    assert packages.fetch([NAME]) == [package]
    assert hashlib.sha256(package.path.read_bytes()).hexdigest() == package.sha256
    [line] = capsys.readouterr().err.splitlines()
    assert str(package.path) in line
    assert "is damaged" in line


def test_a_version_that_the_mirror_replaced_is_resolved_anew(known, tmp_path):
    [package] = packages.fetch([NAME])
    [record] = (tmp_path / "cache/latenz/packages/resolved").iterdir()
    old = json.loads(record.read_text())
    old["entries"][0] |= {"version": "1:0.1-1", "sha256": "0" * 64}
    record.write_text(json.dumps(old))
    assert packages.fetch([NAME]) == [package]


@pytest.mark.parametrize("damage", ["[", "{}", '{"names": ["busybox-static"], "entries": [{}]}'])
def test_a_damaged_record_is_named_and_made_again(known, tmp_path, capsys, damage):
    first = packages.fetch([NAME])
    [record] = (tmp_path / "cache/latenz/packages/resolved").iterdir()
    record.write_text(damage)
    assert packages.fetch([NAME]) == first
    assert f"{record}: is damaged" in capsys.readouterr().err


def test_a_package_that_is_gone_from_the_mirror_is_named(known):
    known.package.unlink()
    assert "(404 File not found)" in refused()
    assert any("InRelease" in request for request in known.requests)  # lists were renewed


def test_a_package_that_somebody_changed_is_never_taken(known, tmp_path):
    content = bytearray(known.package.read_bytes())
    content[len(content) // 2] ^= 1
    known.package.write_bytes(content)
    assert "is not what the package lists say (Hash Sum mismatch)" in refused()
    assert not list((tmp_path / "cache/latenz/packages").glob("*.deb"))


def test_lists_that_somebody_changed_are_never_taken(mirror):
    with mirror.index.open("a") as index:
        index.write("\nPackage: of-somebody-else\n")
    assert "File has unexpected size" in refused("of-somebody-else")


@pytest.mark.parametrize("dependencies", [False, True])
def test_an_unknown_package_is_named(known, dependencies):
    line = refused("no-such-package-xyz", dependencies=dependencies)
    assert line.startswith(
        f"no-such-package-xyz: is not a package of Debian {apt_sources.release()}"
    )


@pytest.mark.parametrize("name", ["", "-o", "a b", "../etc/passwd", "x=1", "Ü"])
def test_what_is_no_package_name_reaches_no_program(known, name):
    assert "is not a name of a package" in refused(name)
    assert known.requests == []


def test_no_network_and_nothing_cached_is_one_line(mirror, tmp_path):
    cut_off(tmp_path)
    line = refused()
    assert line.startswith(mirror.address)
    assert line.endswith("connect to the network, try again")


def test_a_mirror_without_arm64_is_named(mirror):
    mirror.index.unlink()
    line = refused()
    assert line.startswith(mirror.address)
    assert line.endswith("has no arm64 packages; set apt up with a full mirror")


def test_a_machine_without_debian_sources_is_told_so(mirror, tmp_path):
    (tmp_path / "sources.d/own.sources").unlink()
    assert "apt: knows no source of Debian" in refused()


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_line(mirror, small_disk):
    line = refused()
    assert line.startswith(f"{small_disk}/latenz/")
    assert "the disk is full; free some space, or set XDG_CACHE_HOME" in line


def test_two_at_once_fetch_once(mirror):
    program = f"from latenz.boards import packages; print(packages.fetch([{NAME!r}]))"
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)
    ]
    first, second = (process.communicate(timeout=600)[0] for process in both)
    assert first == second != b""
    assert mirror.downloads() == 1


PRIVATELY = """
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""


def test_this_machines_own_apt_is_left_alone(mirror, tmp_path):
    """On copies that nobody else sees: the machine may renew its own lists at any time."""
    (tmp_path / "own").mkdir()
    shutil.copytree("/etc/apt", tmp_path / "own/etc")
    for name in ("lists", "cache"):
        (tmp_path / "own" / name).mkdir()
    own = {"etc": "/etc/apt", "lists": "/var/lib/apt/lists", "cache": "/var/cache/apt"}
    mounts = [str(word) for name, place in own.items() for word in (tmp_path / "own" / name, place)]
    program = f"from latenz.boards import packages; print(packages.fetch([{NAME!r}]))"

    def files():
        return {(path, path.stat().st_mtime_ns) for path in (tmp_path / "own").rglob("*")}

    before = files()
    command = ["unshare", "--mount", "sh", "-ec", PRIVATELY, "sh", *mounts, "--"]
    done = subprocess.run([*command, sys.executable, "-c", program], capture_output=True, text=True)
    assert f"name={NAME!r}" in done.stdout, done.stderr
    assert files() == before


CARELESS = {
    "Acquire::AllowInsecureRepositories": "true",
    "Acquire::AllowWeakRepositories": "true",
    "Acquire::AllowDowngradeToInsecureRepositories": "true",
    "APT::Get::AllowUnauthenticated": "true",
    "Acquire::https::Verify-Peer": "false",
    "Acquire::https::Verify-Host::mirror.example.org": "no",
    "Acquire::https::Proxy": "http://user:s3cret@127.0.0.1:9/",
    "Acquire::https::CaInfo": "/etc/ssl/certs/ca-certificates.crt",
}


def add_settings(folder, settings):
    with (folder / "apt.conf").open("a") as config:
        config.writelines(f'{name} "{value}";\n' for name, value in settings.items())


def serve_unsigned(mirror, index_too):
    """Serve the suite's lists without a signature, or with one by somebody else's key."""
    suite = mirror.content / "dists" / apt_sources.release()
    signed = (suite / "InRelease").read_text()
    body = signed.partition("\n\n")[2].partition("-----BEGIN PGP SIGNATURE")[0]
    if index_too:
        with mirror.index.open("a") as index:
            index.write("\nPackage: of-somebody-else\n")
        body = body.partition("MD5Sum:")[0]
    (suite / "InRelease").unlink()
    (suite / "Release").write_text(body)


@pytest.mark.parametrize("index_too", [False, True])
@pytest.mark.parametrize("form", ["one-line", "deb822"])
def test_a_mirror_without_signature_gives_nothing_whatever_apt_accepts(
    mirror, tmp_path, index_too, form
):
    add_settings(tmp_path, CARELESS)
    sources = tmp_path / "sources.d"
    if form == "one-line":
        (sources / "own.sources").unlink()
        line = f"deb [trusted=yes] {mirror.address} {apt_sources.release()} main\n"
        (sources / "own.list").write_text(line)
    else:
        with (sources / "own.sources").open("a") as file:
            file.write("Trusted: yes\nAllow-Insecure: yes\n")
    serve_unsigned(mirror, index_too)
    line = refused()
    assert line.startswith(f"{mirror.address[:-1]}: is not signed by Debian; set apt up"), line
    assert not list((tmp_path / "cache/latenz/packages").glob("*.deb"))


def test_apts_configuration_is_kept_from_others_and_takes_over_the_way_only(mirror, tmp_path):
    add_settings(tmp_path, CARELESS)
    folder = tmp_path / "cache/latenz/apt"
    folder.mkdir(parents=True)
    (folder / "apt.conf").touch(0o644)
    packages.fetch([NAME])
    text = (folder / "apt.conf").read_text()
    assert (folder / "apt.conf").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    taken = [line for line in text.splitlines() if "https" in line]
    assert taken == [
        'Acquire::https::Proxy "http://user:s3cret@127.0.0.1:9/";',
        'Acquire::https::CaInfo "/etc/ssl/certs/ca-certificates.crt";',
    ]
    careless = [line for line in text.splitlines() if "Allow" in line]
    assert len(careless) == 4
    assert all(line.endswith('"false";') for line in careless)


def test_what_apt_accepts_beyond_signatures_is_told(mirror, tmp_path, capsys):
    before = apt_sources.weaknesses()
    add_settings(tmp_path, CARELESS)
    (tmp_path / "sources.d/other.list").write_text(
        f"# deb [trusted=yes] {mirror.address} x main\n"
        f"deb [arch=amd64 trusted=yes] {mirror.address} y main\n"
    )
    told = [each for each in apt_sources.weaknesses() if each not in before]
    assert len(told) == 7
    assert [each for each in told if each.startswith(str(tmp_path))] == [
        f"{tmp_path}/sources.d/other.list: trusted accepts unsigned packages"
    ]
    assert "Acquire::https::Verify-Peer does not check who answers" in told
    assert not any("s3cret" in each for each in told)
    assert apt_sources.account()["not_strict"] == [*apt_sources.weaknesses()]
    (tmp_path / "sources.d/other.list").unlink()
    packages.fetch([NAME])
    lines = capsys.readouterr().err.splitlines()
    assert sum("this machine's apt is not strict" in each for each in lines) == 6 + len(before)


def test_without_debians_keys_nothing_is_fetched(mirror, tmp_path, monkeypatch):
    monkeypatch.setattr(apt_sources, "KEYRING", tmp_path / "absent.gpg")
    assert refused() == (
        f"{tmp_path}/absent.gpg: Debian's keys are missing; apt-get install debian-archive-keyring"
    )
    assert not list((tmp_path / "cache/latenz").rglob("*.deb"))
