"""Where a target is, as people write it, and how a command is run there."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from latenz.errors import BadInput, shown

SSH_COMMAND = "LATENZ_SSH_COMMAND"
"""Environment variable: the ssh program with its arguments."""
_KINDS = "ssh://[USER@]HOST[:PORT], labgrid:PLACE, podman:NAME, docker:NAME or local:"
_WHERE = "--on"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,20})?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]{0,63}\$?")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_LABGRID = "labgrid-client"
# A link that is dead is given up after 15 s. Nobody is asked for anything: it may run for days.
_SSH_OPTIONS = (
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    "-oClearAllForwardings=yes",
)


@dataclass(frozen=True)
class TargetUrl:
    """A target, and how to get there.

    Attributes:
        text: As it was written.
        scheme: `ssh`, `labgrid`, `podman`, `docker` or `local`.
        name: The host, place or container; empty for `local:`.
        user: Who to be there; empty: whoever ssh makes of us.
        port: None: whatever ssh takes.
        sudo: Measure as root by sudo, which must not ask for a password.
    """

    text: str
    scheme: str
    name: str = ""
    user: str = ""
    port: int | None = None
    sudo: bool = False

    @classmethod
    def parse(cls, text: str, where: str = _WHERE) -> "TargetUrl":
        """Read a target.

        Args:
            text: Such as `ssh://root@board:2222` or `podman:robot`.
            where: The option or place in a file that it comes from, for messages.

        Raises:
            BadInput: It is none.
        """
        scheme, colon, rest = text.partition(":")
        read = _READERS.get(scheme) if colon else None
        if read is None:
            raise BadInput(f"{shown(text)} is not a target", where, f"write {_KINDS}")
        return read(text, rest, where)

    def command(self, script: str) -> list[str]:
        """Return the command that runs a line of shell there, with our standard streams.

        Raises:
            BadInput: The program that gets there is not installed.
        """
        if self.scheme == "ssh":
            # Quoted for the login shell, which may be another than sh.
            return [*_ssh(), *self._ssh_words(), f"{self._shell()} -c {shlex.quote(script)}"]
        if self.scheme == "local":
            return ["/bin/sh", "-c", script]
        if self.scheme == "labgrid":
            # As one word, which labgrid's client hands to ssh as it is.
            return [_labgrid(self.text), "-p", self.name, "ssh", f"sh -c {shlex.quote(script)}"]
        if shutil.which(self.scheme) is None:
            raise BadInput(f"{self.scheme} is not installed", self.text, "install it")
        return [self.scheme, "exec", "-i", self.name, "/bin/sh", "-c", script]

    def _ssh_words(self) -> list[str]:
        host = f"{self.user}@{self.name}" if self.user else self.name
        return [*_SSH_OPTIONS, *([] if self.port is None else ["-p", str(self.port)]), host]

    def _shell(self) -> str:
        return "sudo -n sh" if self.sudo else "sh"


def _ssh() -> list[str]:
    """Return the user's ssh with its arguments."""
    given = os.environ.get(SSH_COMMAND, "ssh")
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise BadInput(f"cannot be split into words ({error})", SSH_COMMAND) from None
    if not words or shutil.which(words[0]) is None:
        program = words[0] if words else given
        if SSH_COMMAND in os.environ:
            raise BadInput(f"{shown(program)} is not a program that can be run", SSH_COMMAND)
        raise BadInput("ssh is not installed", _WHERE, "apt-get install openssh-client")
    return words


def _labgrid(where: str) -> str:
    """Return labgrid's client: the user's own, or the one beside this Python."""
    program = shutil.which(_LABGRID) or shutil.which(
        _LABGRID, path=str(Path(sys.executable).parent)
    )
    if program is None:
        raise BadInput(f"{_LABGRID} is not installed", where, "pip install labgrid")
    return program


def _ssh_url(text: str, rest: str, where: str) -> TargetUrl:
    wrong = "write ssh://[USER@]HOST[:PORT]"
    if not rest.startswith("//") or any(each.isspace() or ord(each) < 33 for each in text):
        raise BadInput(f"{shown(text)} is not a target", where, wrong)
    try:
        url = urlsplit(text)
        host, user, port = url.hostname or "", url.username or "", url.port
    except ValueError:
        raise BadInput(f"{shown(text)} has no such host or port", where, wrong) from None
    if url.password is not None:
        remedy = "leave it out; Latenz never handles passwords: ssh-copy-id puts a key there"
        raise BadInput("a target's password stands in a URL", where, remedy)
    # urlsplit makes small letters of it; names in ssh's configuration tell them apart
    written = re.search(re.escape(host), url.netloc.rpartition("@")[2], re.IGNORECASE)
    host = written[0] if host and written else host
    if not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)) or port == 0:
        raise BadInput(f"{shown(text)} names no host that can be", where, wrong)
    if url.path not in ("", "/") or url.fragment or url.query not in ("", "sudo"):
        remedy = f"{wrong}, and ?sudo after it to measure as root by sudo"
        raise BadInput(f"{shown(text)} says more than where the target is", where, remedy)
    return TargetUrl(text, "ssh", host, user, port, url.query == "sudo")


def _container(text: str, rest: str, where: str) -> TargetUrl:
    scheme = text.partition(":")[0]
    if not _CONTAINER.fullmatch(rest):
        raise BadInput(f"{shown(text)} names no container", where, f"write {scheme}:NAME")
    return TargetUrl(text, scheme, rest)


def _place(text: str, rest: str, where: str) -> TargetUrl:
    if not _CONTAINER.fullmatch(rest):
        raise BadInput(f"{shown(text)} names no place", where, "write labgrid:PLACE")
    return TargetUrl(text, "labgrid", rest)


def _local(text: str, rest: str, where: str) -> TargetUrl:
    if rest:
        raise BadInput(f"{shown(text)} is not a target", where, "write local: alone")
    return TargetUrl(text, "local")


_READERS: dict[str, Callable[[str, str, str], TargetUrl]] = {
    "ssh": _ssh_url,
    "labgrid": _place,
    "podman": _container,
    "docker": _container,
    "local": _local,
}
