"""What a check of coherence found, as a terminal table."""

import re

from rich import box
from rich.table import Table

from latenz.analysis.show import console_for_tables, print_titled
from latenz.coherence.places import WHAT
from latenz.coherence.run import Checked
from latenz.durations import format_duration

_SCOPE = re.compile(r"\b(?:\w+::|\(anonymous namespace\)::)+(?=[\w~]+)")
_PARAMETERS = re.compile(r"(?<=\w)\((?!EL\d).*?\)(?= const| \(EL|$)(?: const)?")


def print_checked(checked: Checked) -> None:
    """Print what may read old data, once for each place, and what could not be followed."""
    console = console_for_tables()
    if checked.places:
        table = _table()
        for each in checked.places:
            more = f", {each.readers - 1} more" if each.readers > 1 else ""
            where = f"{each.address:#x}" + (f" ({_short(each.symbol)})" if each.symbol else "")
            parties = _short(each.written_by), _short(each.read_by) + more
            table.add_row(each.what, where, *parties, format_duration(each.first_ns))
        print_titled(console, "what may read old data on silicon", table)
        for cause in dict.fromkeys(each.cause for each in checked.places):
            console.print(": ".join(WHAT[cause]))
    else:
        console.print("nothing was seen that caches could spoil")
    if checked.accesses is not None:
        console.print(f"{checked.accesses} accesses followed in emulation; see docs/coherence.md")
    for note in checked.notes:
        console.print(f"note: {note}", style="dim")


def _table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    for heading in ("address", "written by", "read by"):
        table.add_column(heading, overflow="fold")
    table.add_column("first", justify="right", no_wrap=True)
    return table


def _short(name: str) -> str:
    """Return a name of C++ without its namespaces and parameters."""
    return _PARAMETERS.sub("", _SCOPE.sub(_last_class, name))


def _last_class(scope: re.Match[str]) -> str:
    last = scope[0].removesuffix("::").split("::")[-1]
    return f"{last}::" if last[:1].isupper() else ""
