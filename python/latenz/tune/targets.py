"""The files that an action writes to on a machine, and what it writes there."""

from latenz.tune.context import Context
from latenz.tune.model import SysfsWrite, Write


def targets(action: Write | SysfsWrite, context: Context) -> list[tuple[str, str]]:
    """Return path and value of each write, in order of the paths.

    Raises:
        NotKnown: It depends on CPUs that are not known.
    """
    pattern = action.write if isinstance(action, Write) else action.sysfs
    value = context.expand(action.value)
    paths = [path for each in context.paths(pattern) for path in context.root.glob(each)]
    return [(path, value) for path in dict.fromkeys(paths) if _is_meant(path, action, context)]


def _is_meant(path: str, action: Write | SysfsWrite, context: Context) -> bool:
    if action.beside is None:
        return True
    beside = f"{path.rpartition('/')[0]}/{action.beside.file}"
    text = (context.root.read(beside) or "").strip()
    return text.isdecimal() and int(text) > action.beside.above
