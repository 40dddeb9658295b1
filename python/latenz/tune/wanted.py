"""What is wanted of a setting, in words."""

from latenz.tune.context import Context
from latenz.tune.cpus import format_list
from latenz.tune.model import Wanted


def described(wanted: Wanted, context: Context) -> str:
    """Return what is wanted on this machine.

    Raises:
        NotKnown: It depends on CPUs that are not known.
    """
    parts = [
        *([context.expand(wanted.equals) or '""'] if wanted.equals is not None else []),
        *([" or ".join(map(context.expand, wanted.one_of))] if wanted.one_of else []),
        *([f"at least {_limit(wanted.at_least, context)}"] if wanted.at_least is not None else []),
        *([f"at most {_limit(wanted.at_most, context)}"] if wanted.at_most is not None else []),
        *([f"with {context.expand(wanted.contains)}"] if wanted.contains is not None else []),
        *([f"with {' '.join(wanted.flags)}"] if wanted.flags else []),
        *([f"without {' '.join(wanted.lacks)}"] if wanted.lacks else []),
        *_described_cpus(wanted, context),
        *(["none"] if wanted.absent else []),
        *(["present"] if wanted.present else []),
    ]
    return ", ".join(parts)


def _limit(limit: int | str, context: Context) -> str:
    return str(limit) if isinstance(limit, int) else context.expand(limit)


def _described_cpus(wanted: Wanted, context: Context) -> list[str]:
    found = []
    if wanted.same_cpus == "no iso":
        found.append(f"not CPU {format_list(context.cpus('iso'))}")
    elif wanted.same_cpus:
        found.append(f"CPU {format_list(context.cpus(wanted.same_cpus))}")
    if wanted.covers:
        found.append(f"all of CPU {format_list(context.cpus(wanted.covers))}")
    if wanted.within:
        found.append(f"only CPU {format_list(context.cpus(wanted.within))}")
    return found
