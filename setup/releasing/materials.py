"""The bill of materials of a release, in CycloneDX: what is in it, and what it needs."""

import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from releasing.stage import Failed, Stage, say

_PACKED = {
    "libzstd-dev": ("BSD-3-Clause", "in latenz-trace"),
    "zlib1g-dev": ("Zlib", "in latenz-trace"),
    "g++": ("GPL-3.0-or-later WITH GCC-exception-3.1", "libstdc++ and libgcc, in programs"),
    "g++-aarch64-linux-gnu": (
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        "libgcc, in firmware, hypervisor and programs for boards",
    ),
    "gcc-arm-none-eabi": ("GPL-3.0-or-later WITH GCC-exception-3.1", "libgcc, in firmware"),
    "libc6-dev-arm64-cross": ("LGPL-2.1-or-later", "in programs for boards' Linux"),
}
"""Debian packages of which parts are in the built programs: licence, and where."""
_BUILT_IN = {"nanobind": "headers, in _core"}
"""Python packages of which parts are in the native core."""
_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def write(stage: Stage) -> None:
    """Write the bill of materials beside the other files of a release, and check it.

    Raises:
        Failed: It does not fit its schema.
    """
    say("bill of materials")
    version = stage.version
    product = Component(
        name="latenz",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"latenz@{version}",
        purl=PackageURL("pypi", name="latenz", version=version),
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        hashes=None,
    )
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"pkg:pypi/latenz@{version}"))
    bom.metadata.timestamp = datetime.fromtimestamp(int(stage.epoch), UTC)
    bom.metadata.component = product
    parts = [*_python_packages(stage), *_debian_packages()]
    bom.components.update(parts)
    bom.register_dependency(product, parts)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if trouble := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise Failed(f"the bill of materials does not fit CycloneDX 1.6: {trouble}")
    (stage.results / f"latenz-{version}.cdx.json").write_text(text + "\n", "utf-8")


def _python_packages(stage: Stage) -> Iterator[Component]:
    text = (stage.checkout / "setup/python-base.lock").read_text("utf-8")
    starts = list(_ENTRY.finditer(text))
    ends = [each.start() for each in starts[1:]] + [len(text)]
    built_only = ("scikit-build-core", "pathspec")
    for entry, end in zip(starts, ends, strict=True):
        name, version = entry[1], entry[2]
        if name in built_only:
            continue
        note = _BUILT_IN.get(name)
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"python/{name}@{version}",
            purl=PackageURL("pypi", name=name, version=version),
            licenses=_licences(name),
            properties=[Property(name="latenz:part", value=note)] if note else None,
            hashes=None
            if note
            else [
                HashType(alg=HashAlgorithm.SHA_256, content=each)
                for each in sorted(_HASH.findall(text[entry.end() : end]))
            ],
        )


def _licences(name: str) -> list[LicenseExpression | DisjunctiveLicense]:
    """Return what a package's own data says of its licence; nothing where it says nothing."""
    try:
        data = distribution(name).metadata
    except PackageNotFoundError:
        return []
    if expression := data.get("License-Expression"):
        return [LicenseExpression(expression)]
    kinds = [each for each in data.get_all("Classifier") or () if each.startswith("License ::")]
    names = sorted({each.rpartition(":: ")[2] for each in kinds} - {"OSI Approved"})
    if not names and (said := (data.get("License") or "").strip()) and "\n" not in said:
        names = [said]
    return [DisjunctiveLicense(name=each) for each in names]


def _debian_packages() -> Iterator[Component]:
    for name, (licence, part) in sorted(_PACKED.items()):
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{name} is not installed, but parts of it are in what was built")
        yield Component(
            name=name,
            version=done.stdout,
            type=ComponentType.LIBRARY,
            bom_ref=f"debian/{name}@{done.stdout}",
            purl=PackageURL("deb", namespace="debian", name=name, version=done.stdout),
            licenses=[LicenseExpression(licence)],
            properties=[Property(name="latenz:part", value=part)],
        )
