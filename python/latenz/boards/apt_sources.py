"""Debian's sources as this machine's own apt knows them, for apt with directories of its own.

`setup/ensure` starts this module before there is an environment: it needs only the standard
library.
"""

import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput

_FIELDS = ("REPO_URI", "RELEASE", "CODENAME", "COMPONENT", "ORIGIN")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Repository:
    """One suite of Debian at one mirror.

    Attributes:
        uri: Where the mirror is.
        suite: The suite's name there, such as "bookworm-updates".
        codename: The suite's own name; differs from `suite` where that is an alias, as "stable".
    """

    uri: str
    suite: str
    codename: str

    def stanza(self) -> str:
        """Return the entry of a `.sources` file, bound to Debian's own keys where they are."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {self.suite}", "Components: main"]
        if _KEYRING.exists():
            lines.append(f"Signed-By: {_KEYRING}")
        return "\n".join(lines) + "\n"


def output(*command: str) -> str:
    """Return what a program of apt prints.

    Raises:
        BadInput: apt is not there, or refuses.
    """
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise BadInput("is not installed", command[0], "boards need a Debian system") from None
    except subprocess.CalledProcessError as error:
        raise BadInput(error.stderr.strip(), " ".join(command[:2])) from None
    return answer.stdout


def release() -> str:
    """Return the codename of the release that this machine runs, such as "bookworm"."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def repositories() -> list[Repository]:
    """Return main, updates and security of the running release as this machine is set up.

    Raises:
        BadInput: apt is not there, or knows no source of the running release.
    """
    codename = release()
    for option in ([], ["--no-release-info"]):  # the second tells also what was never downloaded
        found = _repositories(codename, option)
        if any(repository.codename == codename for repository in found):
            return found
    raise BadInput(
        f"knows no source of Debian {codename or '(unknown release)'} main",
        "apt",
        "see /etc/apt/sources.list.d, then run apt-get update",
    )


def _repositories(codename: str, option: list[str]) -> list[Repository]:
    fields = "\t".join(f"$({name})" for name in _FIELDS)
    answer = output("apt-get", "indextargets", *option, "--format", fields, "Created-By: Packages")
    suites = (codename, f"{codename}-updates", f"{codename}-security")
    found: dict[Repository, None] = {}
    for line in answer.splitlines():
        uri, suite, own_name, component, origin = line.split("\t")
        unknown = own_name.startswith("$(")  # before the first `apt-get update`
        repository = Repository(uri, suite, suite if unknown else own_name)
        is_debian = origin == "Debian" or origin.startswith("$(")
        if is_debian and component == "main" and repository.codename in suites:
            found[repository] = None
    return list(found)


def backports() -> Repository:
    """Return the backports of the running release, at the mirror that this machine uses.

    Raises:
        BadInput: This is not Debian, or apt knows no source of the running release.
    """
    codename = release()
    system = platform.freedesktop_os_release()
    if system["ID"] != "debian":
        raise BadInput("has no Debian backports", system["PRETTY_NAME"], "use Debian 12 or later")
    uri = next(known.uri for known in repositories() if known.codename == codename)
    return Repository(uri, f"{codename}-backports", f"{codename}-backports")


def main() -> int:
    """Print entries of the known sources and of backports."""
    try:
        for repository in [*repositories(), backports()]:
            sys.stdout.write(repository.stanza() + "\n")
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
