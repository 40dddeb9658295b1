"""Which tunings a machine has, from what people name: ids, layers of the catalogue, a kernel."""

from collections.abc import Iterable
from typing import Literal

from latenz.errors import BadInput, closest
from latenz.vm.settings import ALTERNATIVES, EXPRESSED, NOT_EXPRESSED, TUNED

Kernel = Literal["stock", "rt"]


def layers() -> dict[str, frozenset[str]]:
    """Return the tunings of each layer that starting a virtual machine can turn on.

    Those of ALTERNATIVES are not among them.

    Raises:
        BadInput: The catalogue is damaged.
    """
    from latenz.tune.catalogue import load

    found: dict[str, set[str]] = {}
    for entry in load():
        if entry.id in TUNED:
            found.setdefault(entry.layer, set()).add(entry.id)
    return {layer: frozenset(ids) for layer, ids in found.items()}


def chosen(
    base: frozenset[str],
    added: Iterable[str] = (),
    removed: Iterable[str] = (),
    kernel: Kernel | None = None,
) -> frozenset[str]:
    """Return a set of tunings.

    Args:
        base: Where to start from: none, or `TUNED`.
        added: Ids, and names of layers, that are turned on as well.
        removed: Ids, and names of layers, that are turned off; they win.
        kernel: Which kernel the guest has, whatever the rest says; None: as the rest says.

    Raises:
        BadInput: A name is neither the id of such a tuning nor a layer that has some.
    """
    found = (base | _named(added, "--with")) - _named(removed, "--without")
    if kernel is None:
        return found
    rt = frozenset({"guest-rt-kernel"})
    return found | rt if kernel == "rt" else found - rt


def _named(names: Iterable[str], option: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for name in names:
        if name in EXPRESSED:
            found |= {name}
        elif name in NOT_EXPRESSED:
            raise BadInput(f"{name} cannot be turned on here: {NOT_EXPRESSED[name]}", option)
        elif name in (known := layers()):
            found |= known[name]
        else:
            raise BadInput(
                f"{name!r} is not a tuning of virtual machines and no layer with some",
                option,
                closest(name, [*known, *EXPRESSED]),
            )
    return found


def left_out(tunings: frozenset[str]) -> dict[str, str]:
    """Return the tunings that are only taken if they are named and were not, with the reason."""
    return {entry: reason for entry, reason in ALTERNATIVES.items() if entry not in tunings}
