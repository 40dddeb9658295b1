"""Prints docs/tune-catalogue.md: each entry, and what publications say otherwise.

.venv/bin/python docs/make_tune_tables.py > docs/tune-catalogue.md
"""

import sys
from typing import get_args

from latenz.tune.catalogue import load
from latenz.tune.model import Entry, Layer
from latenz.tune.show import described

LAYERS = {
    "bios": "Firmware (BIOS)",
    "cmdline": "Kernel command line",
    "host": "Running host",
    "kvm": "KVM",
    "qemu": "QEMU",
    "libvirt": "libvirt",
    "guest": "Guest, and others",
}
HEADER = """# Catalogue of settings

Made from `python/latenz/tune/catalogue/*.toml` by `docs/make_tune_tables.py`; change those, not
this. `latenz tune check --why ID` tells more of an entry: why, risk, how to apply and revert it.

*Effect* is how much latency the setting is expected to remove. *For*: `h` hosts that measure on the
bare machine, `k` hosts of virtual machines, `g` guests. *Gives up*: such an entry is applied only
if it is named.
"""


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|")


def row(entry: Entry) -> str:
    """One entry."""
    places = "".join(profile[0] for profile in entry.profiles)
    actions = [described(action) for action in (*entry.now, *entry.boot)]
    changed = "now, boot" if entry.now and entry.boot else "now" if entry.now else "boot"
    cells = (
        f"`{entry.id}`",
        entry.title,
        entry.effect,
        places,
        changed if actions else "by hand",
        entry.consent,
        entry.source,
    )
    return f"| {' | '.join(map(cell, cells))} |"


def page() -> str:
    """The whole page."""
    lines = [HEADER]
    for layer in get_args(Layer):
        entries = [entry for entry in load() if entry.layer == layer]
        lines += [f"## {LAYERS[layer]}", ""]
        lines += ["| id | what should be so | effect | for | changed | gives up | source |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        lines += [*map(row, entries), ""]
    lines += ["## What publications say otherwise", ""]
    lines += [f"- `{entry.id}`: {entry.correction}" for entry in load() if entry.correction]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
