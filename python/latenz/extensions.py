"""What other installed packages add to Latenz, by entry points: docs/extending.md."""

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from latenz.errors import BadInput

Group = Literal[
    "latenz.engines", "latenz.loads", "latenz.importers", "latenz.stacks", "latenz.tuning"
]


@cache
def added(group: Group) -> tuple[EntryPoint, ...]:
    """Return the entry points that other packages have in a group, by their names."""
    found = {(each.name, each.value): each for each in entry_points(group=group)}
    return tuple(found[key] for key in sorted(found))


def loaded(each: EntryPoint) -> Any:
    """Return what an entry point names.

    Raises:
        BadInput: It cannot be imported; the remedy names its package.
    """
    try:
        return each.load()
    except Exception as error:  # whatever a stranger's module raises
        reason = f"cannot be imported: {type(error).__name__}: {error}"
        raise BadInput(reason, _place(each), _remedy(each)) from None


def kinds(group: Group, base: type, taken: Collection[str]) -> list[Any]:
    """Return the classes that other packages add to a group.

    Args:
        group: Of their entry points.
        base: What each must be derived from.
        taken: Names that Latenz itself has.

    Raises:
        BadInput: One cannot be imported, is something else, or takes a name that there is.
    """
    names, found = set(taken), []
    for each in added(group):
        kind = loaded(each)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            what = f"does not name a class derived from {base.__module__}.{base.__name__}"
            raise BadInput(what, _place(each), _remedy(each))
        name = getattr(kind, "name", None)
        if name != each.name:
            raise BadInput(f"names a class whose name is {name!r}", _place(each), _remedy(each))
        if name in names:
            raise BadInput(f"the name {name!r} is taken", _place(each), _remedy(each))
        names.add(name)
        found.append(kind)
    return found


def _place(each: EntryPoint) -> str:
    return f"entry point {each.name} of {each.group}"


def _remedy(each: EntryPoint) -> str:
    package = each.dist.name if each.dist else "its package"
    return f"mend or uninstall {package}"
