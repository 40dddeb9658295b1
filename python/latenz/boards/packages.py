"""Debian packages for boards and guests: resolved, fetched and verified by apt, installed nowhere.

apt gets directories of its own in the cache and an empty list of installed packages; its mirror
and its way into the network are those of this machine, its keys Debian's. Nothing here needs root.
What was fetched is kept with the versions it was resolved to: the same names give the same files
without network, until they are a week old and the network answers. A file that was damaged since
is noticed and fetched again; who can write the cache could change the record with it.
"""

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from latenz.boards import apt_sources, cache
from latenz.errors import BadInput, shown

Architecture = Literal["arm64", "amd64", "armhf"]
"""Debian's names of the processors that packages are for: boards have arm64, guests amd64; armhf is
what targets of 32 bits are tested with."""
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_OLD_AFTER_S = 7 * 86_400


@dataclass(frozen=True)
class Package:
    """A fetched package.

    Attributes:
        name: As Debian calls it.
        version: Debian's version.
        architecture: One of `Architecture`, or "all".
        sha256: Of the file, as the signed package list has it.
        path: The `.deb` file in the cache.
    """

    name: str
    version: str
    architecture: str
    sha256: str
    path: Path

    def provenance(self) -> dict[str, str]:
        """Return what a run keeps of it: name, version, architecture and hash."""
        return {key: value for key, value in asdict(self).items() if key != "path"}


class _Unreachable(BadInput):
    """The network does not give what is wanted; what is cached may still do."""


class _Vanished(BadInput):
    """The mirror no longer has what the package lists name: they are too old."""


@dataclass(frozen=True)
class _Wanted:
    """What is to be resolved: packages alone, with all they need, or one that one depends on."""

    names: tuple[str, ...]
    architecture: Architecture
    dependencies: bool = False
    member: str = ""  # prefix of the name of the package that stands for the metapackage


@dataclass(frozen=True)
class _Entry:
    """A package as the signed lists describe it."""

    name: str
    version: str
    architecture: str
    sha256: str
    size: int

    def package(self) -> Package:
        version = self.version.replace(":", "%3a")
        file = f"{self.name}_{version}_{self.architecture}.deb"
        path = cache.folder("packages") / file
        return Package(self.name, self.version, self.architecture, self.sha256, path)


def fetch(
    names: Iterable[str],
    *,
    dependencies: bool = False,
    refresh: bool = False,
    architecture: Architecture = "arm64",
) -> list[Package]:
    """Return Debian's packages of these names, in the release's current version.

    Args:
        names: Package names.
        dependencies: Also return all packages that these need (not those recommended), in order
            of their names.
        refresh: Ask the mirror for newer versions even if the cached ones are not old.
        architecture: Which processors they are for.

    Raises:
        BadInput: A package is unknown, or is not cached and the network does not give it, or the
            mirror has none for these processors, or the cache cannot be written.
    """
    return _fetch(_Wanted(tuple(sorted(set(names))), architecture, dependencies), refresh)


def fetch_current(
    metapackage: str,
    prefix: str,
    *,
    refresh: bool = False,
    architecture: Architecture = "arm64",
) -> Package:
    """Return the package that a metapackage stands for in this release.

    Args:
        metapackage: Such as "linux-image-arm64".
        prefix: What the name of the wanted one begins with, a digit following.
        refresh: As for `fetch`.
        architecture: As for `fetch`.

    Raises:
        BadInput: As for `fetch`; or the metapackage depends on no such package.
    """
    [package] = _fetch(_Wanted((metapackage,), architecture, member=prefix), refresh)
    return package


def _fetch(wanted: _Wanted, refresh: bool) -> list[Package]:
    for name in wanted.names:
        if not _NAME.fullmatch(name):
            raise BadInput("is not a name of a package", shown(name))
    with cache.locked("packages"):
        cached = _read_record(wanted)
        if cached is not None and not refresh and not _is_old(_record(wanted)):
            with suppress(_Vanished):
                return _downloaded(cached, wanted.architecture)
            refresh = True
        try:
            return _renewed(wanted, refresh)
        except _Unreachable as error:
            if cached is None:
                raise
            cache.say(f"{error.where} {error.what}; going on with cached {', '.join(wanted.names)}")
            os.utime(_record(wanted))  # ask again in a week, not in every condition
            return _downloaded(cached, wanted.architecture)


def _renewed(wanted: _Wanted, refresh: bool) -> list[Package]:
    """Resolve anew, download, and keep the record."""
    apt = _Apt(wanted.architecture)
    if refresh or apt.lists_are_old():
        apt.update()
    try:
        entries = _resolve(wanted, apt)
        packages = _downloaded(entries, wanted.architecture)
    except _Vanished:
        apt.update()
        entries = _resolve(wanted, apt)
        packages = _downloaded(entries, wanted.architecture)
    with cache.appearing(_record(wanted)) as partial:
        record = {"names": wanted.names, "entries": [asdict(entry) for entry in entries]}
        partial.write_text(json.dumps(record, indent=1))
    return packages


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _OLD_AFTER_S
    except FileNotFoundError:
        return True


def _record(wanted: _Wanted) -> Path:
    """Where the entries that a wish was resolved to are kept."""
    parts = (apt_sources.release(), *wanted.names)
    place = cache.folder("packages", "resolved" + suffix(wanted.architecture))
    kind = wanted.member or ("with-dependencies" if wanted.dependencies else "alone")
    return place / f"{'+'.join(parts)[:180]}={kind}.json"


def suffix(architecture: Architecture) -> str:
    """Return what tells names of an architecture's files from those of boards."""
    return "" if architecture == "arm64" else f"-{architecture}"


def _read_record(wanted: _Wanted) -> list[_Entry] | None:
    try:
        record = json.loads(_record(wanted).read_bytes())
        if record["names"] == list(wanted.names):
            return [_Entry(**entry) for entry in record["entries"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        cache.say(f"{_record(wanted)}: is damaged; resolved again")
    return None


def _resolve(wanted: _Wanted, apt: "_Apt") -> list[_Entry]:
    if wanted.member:
        return apt.entries([apt.member(wanted.names[0], wanted.member)])
    if wanted.dependencies:
        return apt.entries(apt.closure(wanted.names))
    return apt.entries(wanted.names)


def _downloaded(entries: list[_Entry], architecture: Architecture) -> list[Package]:
    """Download what is missing or damaged; return all."""
    missing = [entry for entry in entries if not _intact(entry.package())]
    if missing:
        _Apt(architecture).download(missing)
        cache.forget_unused(cache.folder("packages"))
    return [entry.package() for entry in entries]


def _intact(package: Package) -> bool:
    if not package.path.exists():
        return False
    with cache.explaining(package.path):
        if cache.sha256(package.path) == package.sha256:
            cache.used(package.path)
            return True
    cache.say(f"{package.path}: is damaged (its hash is not the signed one); fetched again")
    return False


class _Apt:
    """apt with directories of its own in the cache."""

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture
        self.folder = cache.folder("apt" + suffix(architecture))
        self._config = self.folder / "apt.conf"
        with cache.explaining(self.folder):
            for part in ("lists/partial", "state", "cache/archives/partial", "sources.d"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            (self.folder / "status").touch()
            self._updated = self.folder / "updated"
            self._write_config(self._own_settings() + apt_sources.network_settings())

    def _write_config(self, text: str) -> None:
        """Write apt's configuration, which may hold a proxy's password, for our eyes only."""
        self.folder.chmod(0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._config, flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text)

    def _own_settings(self) -> str:
        settings = {
            # No package that nobody has signed, whatever this machine's own apt accepts.
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowWeakRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
            "APT::Architecture": self.architecture,
            "APT::Architectures::": self.architecture,
            "APT::Update::Error-Mode": "any",
            "Acquire::Languages": "none",
            "Acquire::Retries": 1,
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": self.folder / "sources.d",
            "Dir::State": self.folder / "state",
            "Dir::State::Lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
        }
        return "".join(f'{name} "{value}";\n' for name, value in settings.items())

    def lists_are_old(self) -> bool:
        """Tell whether the package lists are absent or a week old."""
        return _is_old(self._updated)

    def update(self) -> None:
        """Fetch the package lists of the mirror that this machine uses."""
        repositories = apt_sources.repositories()
        sources = "\n".join(repository.stanza() for repository in repositories)
        (self.folder / "sources.d/latenz.sources").write_text(sources)
        self._run("apt-get", "-q", "update")
        if not any((self.folder / "lists").glob(f"*_binary-{self.architecture}_Packages*")):
            uris = ", ".join(sorted({repository.uri for repository in repositories}))
            raise _none_at(uris, self.architecture)
        self._updated.touch()
        for weakness in apt_sources.weaknesses():
            cache.say(f"this machine's apt is not strict: {weakness}; see docs/images.md")

    def closure(self, names: Iterable[str]) -> list[str]:
        """Return `name=version` of these packages and of all that they need."""
        plan = self._run(
            "apt-get", "--simulate", "--no-install-recommends", "-q", "install", *names
        )
        found = re.findall(r"^Inst (\S+) \((\S+) ", plan, re.M)
        return sorted(f"{name.split(':')[0]}={version}" for name, version in found)

    def member(self, metapackage: str, prefix: str) -> str:
        """Return the name of the one package that a metapackage stands for."""
        answer = self._run("apt-cache", "show", "--no-all-versions", metapackage)
        [fields, *_] = _stanzas(answer)
        named = re.findall(
            rf"(?:^|[,\s])({re.escape(prefix)}\d[a-z0-9+.-]*)", fields.get("Depends", "")
        )
        if not named:
            raise BadInput(f"depends on no package {prefix}...", metapackage)
        return str(named[0])

    def entries(self, names: Iterable[str]) -> list[_Entry]:
        """Return the lists' entries of packages, given as `name` or `name=version`."""
        answer = self._run("apt-cache", "show", "--no-all-versions", *names)
        found = {
            (fields["Package"], fields["Version"]): _Entry(
                fields["Package"],
                fields["Version"],
                fields["Architecture"],
                fields["SHA256"],
                int(fields["Size"]),
            )
            for fields in _stanzas(answer)
        }
        known = {name for name, _ in found}
        for name in names:
            if name.partition("=")[0] not in known:
                raise _unknown(name, self.architecture)
        return list(found.values())

    def download(self, entries: list[_Entry]) -> None:
        """Download packages into the cache; apt verifies each against the signed lists."""
        if mib := sum(entry.size for entry in entries) >> 20:
            others = f" and {len(entries) - 1} more" if entries[1:] else ""
            cache.say(f"fetching {entries[0].name}{others}, {mib} MiB")
        place = cache.folder("packages")
        with (
            cache.explaining(place),
            tempfile.TemporaryDirectory(prefix=".fetching-", dir=place) as folder,
        ):
            names = [f"{entry.name}={entry.version}" for entry in entries]
            self._run("apt-get", "-q", "download", *names, folder=Path(folder))
            for entry in entries:
                package = entry.package()
                fetched = Path(folder, package.path.name)
                if not fetched.exists() or cache.sha256(fetched) != entry.sha256:
                    raise _Vanished("is not what the package lists say", package.name)
                fetched.replace(package.path)

    def _run(self, *command: str, folder: Path | None = None) -> str:
        """Run a program of apt in a folder."""
        place = folder or self.folder
        environment = {**os.environ, "APT_CONFIG": str(self._config), "LC_ALL": "C"}
        answer = subprocess.run(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise _failure(command, answer.stderr, place, self.architecture)
        return answer.stdout


def _failure(
    command: tuple[str, ...], errors: str, folder: Path, architecture: Architecture
) -> BadInput:
    """Return what went wrong in apt as one clear line."""
    lines = re.findall(r"^[EN]: (.*)", errors, re.M) or [errors.strip()]
    text = " ".join(lines)
    if "No packages found" in text:
        return _unknown(command[-1], architecture)
    if unknown := re.search(
        r"Unable to locate package (\S+)|Package (\S+) has no installation candidate"
        r"|Can't select candidate version from package (\S+) as",
        text,
    ):
        return _unknown(unknown[1] or unknown[2] or unknown[3], architecture)
    if unsigned := re.search(r"The repository '(\S+) .*' is (?:not signed|no longer signed)", text):
        remedy = "set apt up with a mirror that has Debian's signatures"
        return BadInput("is not signed by Debian", unsigned[1], remedy)
    if "No space left on device" in text or "have enough free space" in text:
        return cache.unwritable(folder, full=True, reason="")
    if vanished := re.search(r"Version \S+ for \S+ was not found", text):
        return _Vanished(vanished[0], "the package lists")
    if failed := re.search(r"Failed to fetch (\S+) +(.*?)(?: \[IP: [^]]*\])?$", lines[0]):
        return _fetch_failure(failed[1], failed[2], architecture)
    return BadInput(text, " ".join(command[:3]))


def _none_at(address: str, architecture: Architecture) -> BadInput:
    return BadInput(f"has no {architecture} packages", address, "set apt up with a full mirror")


def _fetch_failure(address: str, reason: str, architecture: Architecture) -> BadInput:
    if reason.startswith("404") and f"/binary-{architecture}/" in address:
        return _none_at(address, architecture)
    if re.match(r"404|Hash Sum mismatch|File has unexpected size", reason):
        error = _Vanished if address.endswith(".deb") else _Unreachable
        remedy = "the mirror may be renewing itself: try again later, or set apt up with another"
        return error(f"is not what the package lists say ({reason})", address, remedy)
    return _Unreachable(
        f"cannot be fetched ({reason})", address, "connect to the network, try again"
    )


def _unknown(name: str, architecture: Architecture) -> BadInput:
    what = f"is not a package of Debian {apt_sources.release()} for {architecture}"
    return BadInput(what, name, f"apt-cache search {name} may know what it is called now")


def _stanzas(text: str) -> list[dict[str, str]]:
    """Return the fields of each paragraph of a Debian control file; first lines only."""
    return [
        dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", paragraph, re.M))
        for paragraph in text.strip().split("\n\n")
    ]
