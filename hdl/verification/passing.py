# SPDX-License-Identifier: Apache-2.0
"""Runs the cocotb cases of one design and says which of them failed."""

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "simulation"))

from designs import run

from verification.random_parts.bins import FILE

GENERICS = "LATENZ_GENERICS"  # environment: name=value of each, for the cases


def generic(name: str, default: str) -> str:
    """Return a generic of the design that is being simulated."""
    return dict(each.split("=") for each in os.environ[GENERICS].split()).get(name, default)


def passes(
    entity: str, generics: dict[str, str], folder: Path, *, cases: int, module: str = ""
) -> None:
    """Simulate the cases of an entity; assert that so many ran and all of them passed.

    Args:
        entity: What is simulated.
        generics: Of it.
        folder: Takes what the simulation leaves.
        cases: How many have to run.
        module: Where they are; verification.<entity>.cases if it is not given.
    """
    results = run(
        entity,
        module or f"verification.{entity}.cases",
        generics,
        folder,
        {
            FILE: str(folder / "bins.json"),
            GENERICS: " ".join(f"{name}={value}" for name, value in generics.items()),
            "COCOTB_RANDOM_SEED": "7",
            "COCOTB_TRUST_INERTIAL_WRITES": "1",
        },
    )
    listed = ElementTree.parse(results).iter("testcase")
    ran = [each for each in listed if not each.findall("skipped")]
    wrong = [each for each in ran if each.findall("failure") or each.findall("error")]
    failed = [each.attrib["name"] for each in wrong]
    assert not failed, (failed, (folder / "log").read_text()[-4000:])
    assert len(ran) == cases
