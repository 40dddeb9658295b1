# SPDX-License-Identifier: Apache-2.0
"""The IP-XACT description (IEEE 1685-2014), written by PeakRDL's exporter."""

import tempfile
from pathlib import Path

from peakrdl_ipxact import IPXACTExporter

from .model import compile_map, everything


def description(source: Path) -> str:
    """The component of a map, with every register present."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "component.xml"
        exporter = IPXACTExporter(vendor="latenz", library="ip", version="1.0")
        exporter.export(compile_map(source, everything(source)), str(path))
        return path.read_text(encoding="utf-8")
