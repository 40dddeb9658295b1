"""Debian's sources as this machine's own apt knows them, for apt with directories of its own.

`setup/ensure` starts this module before there is an environment: it needs only the standard
library.
"""

import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput

_FIELDS = ("REPO_URI", "RELEASE", "CODENAME", "COMPONENT", "ORIGIN")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TAKEN_OVER = re.compile(
    r"""Acquire::(?:
      Retries | Queue-Mode | ForceIPv[46] | Check-Valid-Until | Check-Date | (?:Min|Max)-ValidTime
    | GzipIndexes | CompressionTypes::.*
    | [a-z][a-z0-9+]*::(?:Proxy | Proxy-Auto-Detect | ProxyAutoDetect | Timeout | Dl-Limit
        | Pipeline-Depth | No-Cache | Max-Age | No-Store | AllowRedirect | User-Agent
        | CaInfo | CaPath | CrlFile | IssuerCert | SslCert | SslKey | SslForceVersion)(?:::.*)?
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""Settings that say how the network is reached and how long to wait. What is not named here stays
with this machine's own apt, first of all what would accept packages that nobody has signed."""
_TRUSTING = re.compile(
    r"^\s*(?:acquire::(?:.*::)?allow(?:insecure|weak|downgradetoinsecure)repositories"
    r"|apt::get::allowunauthenticated)$",
    re.IGNORECASE,
)
_NOT_LOOKING = re.compile(
    r"acquire::https?::(?:.*::)?verify-(?:peer|host)(?:::.*)?$", re.IGNORECASE
)
_UNDATED = re.compile(r"acquire::check-(?:valid-until|date)$", re.IGNORECASE)
_TRUSTED_SOURCE = re.compile(
    r"^(?!\s*\#).*\b(trusted|allow-(?:insecure|weak|downgrade-to-insecure))\s*[=:]\s*(?:yes|true|1|on)\b",
    re.IGNORECASE | re.MULTILINE,
)


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
        """Return the entry of a `.sources` file, bound to Debian's own keys.

        Raises:
            BadInput: They are not here: any key that apt trusts would do then.
        """
        if not KEYRING.exists():
            remedy = "apt-get install debian-archive-keyring"
            raise BadInput("Debian's keys are missing", str(KEYRING), remedy)
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {self.suite}", "Components: main"]
        return "\n".join([*lines, f"Signed-By: {KEYRING}"]) + "\n"


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


def settings() -> list[tuple[str, str]]:
    """Return the settings of this machine's apt, by their whole names.

    Raises:
        BadInput: apt is not there, or refuses.
    """
    lines = output("apt-config", "dump").splitlines()
    pairs = (re.fullmatch(r'(\S+) "(.*)";', line) for line in lines)
    return [(pair[1], pair[2]) for pair in pairs if pair]


def network_settings() -> str:
    """Return how this machine's apt reaches the network: proxies, certificates, patience."""
    taken = [pair for pair in settings() if pair[1] and _TAKEN_OVER.fullmatch(pair[0])]
    return "".join(f'{name} "{value}";\n' for name, value in taken)


def weaknesses() -> list[str]:
    """Return what makes this machine's own apt less strict than Debian's, each in a few words.

    Nothing of it is taken over but that old package lists are accepted, which some mirrors need.

    Raises:
        BadInput: apt is not there, or refuses.
    """
    found = [f"{KEYRING} is missing"] if not KEYRING.exists() else []
    for name, value in settings():
        is_on = value.lower() in ("1", "yes", "true", "with", "on", "enable")
        is_off = value.lower() in ("0", "no", "false", "without", "off", "disable")
        if _TRUSTING.match(name) and is_on:
            found.append(f"{name} accepts unsigned packages")
        elif _NOT_LOOKING.match(name) and is_off:
            found.append(f"{name} does not check who answers")
        elif _UNDATED.match(name) and is_off:
            found.append(f"{name} accepts old package lists")
    return found + [f"{file}: {key} accepts unsigned packages" for file, key in _trusted_sources()]


def account() -> dict[str, object]:
    """Return what a run keeps of where packages come from: whose signatures count, and how far."""
    try:
        return {"keys": str(KEYRING), "not_strict": weaknesses()}
    except BadInput:
        return {}


def _trusted_sources() -> list[tuple[str, str]]:
    """Return the files that apt takes sources from and that trust some of them, with the word."""
    answer = output("apt-get", "indextargets", "--no-release-info", "--format", "$(SOURCESENTRY)")
    found = []
    for file in sorted({line.rpartition(":")[0] for line in answer.splitlines()}):
        try:
            text = Path(file).read_text("utf-8", "replace")
        except OSError:
            continue
        found += [(file, key) for key in dict.fromkeys(_TRUSTED_SOURCE.findall(text))]
    return found


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
