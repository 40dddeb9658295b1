"""Reading the catalogue: `catalogue/LAYER.toml`, and the conditions that its entries name."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, get_args

from latenz import extensions
from latenz.errors import BadInput, closest
from latenz.toml_file import read_toml
from latenz.tune.model import Applicability, ConditionsFile, Entry, Layer, LayerFile

FOLDER = Path(__file__).with_suffix("")
"""The catalogue that comes with Latenz."""


class Catalogue(NamedTuple):
    """Entries, layer by layer, and the conditions that they name in `when`."""

    entries: tuple[Entry, ...]
    conditions: dict[str, Applicability]


def load() -> tuple[Entry, ...]:
    """Return all entries, layer by layer, in the order of their files.

    Raises:
        BadInput: A file of the catalogue is damaged.
    """
    return load_all().entries


@lru_cache(maxsize=4)
def load_all(folder: Path = FOLDER) -> Catalogue:
    """Return what a folder's files say; the file of a layer may be missing.

    Our own catalogue is joined by those of other packages: entry points of the group
    `latenz.tuning`, each a Python package with files of layers in its folder.

    Raises:
        BadInput: A file is damaged, an id is taken twice, or a condition is not there.
    """
    folders = [folder, *(_others() if folder == FOLDER else ())]
    conditions: dict[str, Applicability] = {}
    for place in folders:
        if (path := place / "conditions.toml").exists():
            read = read_toml(path, ConditionsFile, "the catalogue's conditions").content.condition
            conditions = {**read, **conditions}
    entries: dict[str, Entry] = {}
    for layer in get_args(Layer):
        for place in folders:
            if (path := place / f"{layer}.toml").exists():
                _add_layer(layer, path, conditions, entries)
    for entry in entries.values():
        for name in ("supersedes", "conflicts"):
            _check_others(entry, name, entries, folder)
    return Catalogue(tuple(entries.values()), conditions)


def _add_layer(
    layer: Layer, path: Path, conditions: dict[str, Applicability], entries: dict[str, Entry]
) -> None:
    """Add the entries of a file to those that there are."""
    file = read_toml(path, LayerFile, "a layer of the catalogue")
    for at, entry in enumerate(file.content.entry):
        if entry.id in entries:
            where = file.where(("entry", at, "id"))
            raise BadInput(f"{entry.id!r} is taken", where, "ids are unique")
        for name in (*entry.when, *entry.needs):
            if name not in conditions:
                where = file.where(("entry", at, "when" if name in entry.when else "needs"))
                raise BadInput(f"{name!r} is not a condition", where, closest(name, conditions))
        entries[entry.id] = entry.model_copy(update={"layer": layer})


def _others() -> list[Path]:
    """Return the folders of other packages' catalogues."""
    modules = map(extensions.loaded, extensions.added("latenz.tuning"))
    return [Path(module.__file__).parent for module in modules]


def _check_others(entry: Entry, name: str, entries: dict[str, Entry], folder: Path) -> None:
    """Look whether the other entries that an entry knows are there.

    Raises:
        BadInput: One is not.
    """
    where = f"{folder}, {entry.id}, {name}"
    for other in getattr(entry, name):
        if other == entry.id:
            raise BadInput("names itself", where, "name another entry")
        if other not in entries:
            raise BadInput(f"{other!r} is not an entry", where, closest(other, entries))


def chosen(ids: tuple[str, ...], option: str) -> tuple[Entry, ...]:
    """Return the entries of these ids in the catalogue's order; all of them if there are none.

    Args:
        ids: What the user asked for.
        option: Where, for the error message.

    Raises:
        BadInput: There is no such entry.
    """
    entries = load()
    known = [entry.id for entry in entries]
    for id_ in ids:
        if id_ not in known:
            raise BadInput(f"{id_!r} is not an entry of the catalogue", option, closest(id_, known))
    return tuple(entry for entry in entries if not ids or entry.id in ids)
