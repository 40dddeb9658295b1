"""`latenz tune irqs|tasks|topology`: who uses which CPU, and how the CPUs are built together."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from latenz.commands import Force

if TYPE_CHECKING:
    from latenz.tune.interrupts import Interrupt
    from latenz.tune.root import Root
    from latenz.tune.tasks import Thread

Seen = TypeVar("Seen")
_CPUS = typer.Option(
    "--cpus", help="The CPUs to look at, such as 4 or 2-3 (default: those isolated at boot)."
)
_ROOT = typer.Option("--root", help="Another machine's files: a folder, or a snapshot's tar.")
_ALL = typer.Option("--all", help="Also what does not touch these CPUs.")
_DURING = typer.Option("--during", help="Look again after this long, and tell what happened.")
_JSON = typer.Option("--json", help="Print one JSON document.")


def add_to(application: typer.Typer) -> None:
    """Add the commands to `latenz tune`."""
    application.command()(irqs)
    application.command()(tasks)
    application.command()(topology)


def irqs(
    cpus: Annotated[str | None, _CPUS] = None,
    root: Annotated[Path, _ROOT] = Path("/"),
    everything: Annotated[bool, _ALL] = False,
    during: Annotated[str | None, _DURING] = None,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Show which interrupts reach these CPUs, how often, and which of them can be moved.

    Example: latenz tune irqs --cpus 4 --during 5s
    """
    from latenz.tune.interrupts import read_interrupts, since

    watched, before, after = _observe(read_interrupts, "/proc/interrupts", root, cpus, during)
    counted = since(before, after) if during else None
    chosen = [each for each in after if everything or not watched or each.reaches(watched)]
    rows = [_interrupt_row(each, watched, counted) for each in chosen]
    if json:
        _print_json({"cpus": sorted(watched), "interrupts": rows})
    else:
        _print_interrupts(rows, watched, counted is not None)
    return 0


def tasks(
    cpus: Annotated[str | None, _CPUS] = None,
    root: Annotated[Path, _ROOT] = Path("/"),
    everything: Annotated[bool, _ALL] = False,
    during: Annotated[str | None, _DURING] = None,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Show which threads run on these CPUs, with policy and priority, and which can be moved.

    A thread is shown if it ran last on one of the CPUs, or may run nowhere else.

    Example: latenz tune tasks --cpus 4
    """
    from latenz.tune.tasks import read_threads, worked_between

    watched, before, after = _observe(read_threads, "/proc/PID/task", root, cpus, during)
    worked = worked_between(before, after) if during else None
    chosen = [each for each in after if everything or not watched or each.touches(watched)]
    rows = [_thread_row(each, worked) for each in chosen]
    if json:
        _print_json({"cpus": sorted(watched), "threads": rows})
    else:
        _print_threads(rows, watched, worked is not None)
    return 0


def topology(
    root: Annotated[Path, _ROOT] = Path("/"),
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a picture to this SVG file.")
    ] = None,
    force: Force = False,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Show caches, siblings, kinds of cores and NUMA nodes, for choosing the CPUs to isolate.

    Example: latenz tune topology -o topology.svg
    """
    from latenz.files import replacing
    from latenz.outputs import check_output
    from latenz.tune.root import Root
    from latenz.tune.topology import advice, read_topology
    from latenz.tune.topology_picture import svg

    check_output(output, (root,) if root.is_file() else (), force=force)
    found = read_topology(Root(root))
    if output is not None:
        with replacing(output) as partial:
            partial.write_text(svg(found), encoding="utf-8")
    if json:
        cpus = [vars(cpu) | {"siblings": sorted(cpu.siblings)} for cpu in found.cpus]
        caches = [vars(cache) | {"cpus": sorted(cache.cpus)} for cache in found.caches]
        about = {"isolated": sorted(found.isolated), "boot_cpu": found.boot_cpu}
        _print_json({"cpus": cpus, "caches": caches, **about, "advice": advice(found)})
        return 0
    from latenz.console import Console

    console = Console()
    console.print(_topology_table(found))
    for sentence in advice(found):
        console.print(f"- {sentence}")
    if output is not None:
        console.print(f"The picture is in {output}")
    return 0


def _open(root: Path, cpus: str | None) -> "tuple[Root, frozenset[int]]":
    """Open the tree; of CPUs take the given ones, or those that it isolates."""
    from latenz.errors import BadInput
    from latenz.settings import parse_cpu_list
    from latenz.tune.root import Root
    from latenz.tune.topology import read_topology

    opened = Root(root)
    found = read_topology(opened)
    if cpus is None:
        return opened, found.isolated
    try:
        watched = frozenset(parse_cpu_list(cpus))
    except ValueError as mistake:
        raise BadInput(str(mistake), "--cpus") from None
    online = frozenset(cpu.number for cpu in found.cpus)
    if absent := sorted(watched - online):
        raise BadInput(f"CPU {absent[0]} is not online", "--cpus", f"there are {len(online)} CPUs")
    return opened, watched


def _observe(
    read: "Callable[[Root], tuple[Seen, ...]]",
    file: str,
    root: Path,
    cpus: str | None,
    during: str | None,
) -> "tuple[frozenset[int], tuple[Seen, ...], tuple[Seen, ...]]":
    """Return the CPUs to look at, and what is read now and a while later."""
    from latenz.errors import BadInput

    opened, watched = _open(root, cpus)
    before = read(opened)
    if not before:
        raise BadInput(
            f"has no {file} that can be read", str(root), "take a snapshot of that machine"
        )
    if during is None:
        return watched, before, before
    _wait(during, root)
    return watched, before, read(opened)


def _wait(during: str, root: Path) -> None:
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    duration_ns = parse_duration(during, "--during")
    if root != Path("/"):
        raise BadInput("nothing happens in files", "--during", "leave out --root or --during")
    if not 0 < duration_ns <= 3_600_000_000_000:
        raise BadInput(f"{during} is too short or too long", "--during", "take 10ms to 3600s")
    time.sleep(duration_ns / 1e9)


def _interrupt_row(
    each: "Interrupt", watched: frozenset[int], counted: dict[str, dict[int, int]] | None
) -> dict[str, Any]:
    cpus = sorted(watched) or sorted(each.counts)
    row: dict[str, Any] = {
        "id": each.id,
        "name": each.name,
        "counts": {str(cpu): each.counts.get(cpu, 0) for cpu in cpus},
        "affinity": _cpu_list(each.affinity),
        "effective": _cpu_list(each.effective),
        "movable": each.movable,
        "why": each.why,
        "entries": list(each.entries),
    }
    if counted is not None:
        row["during"] = {str(cpu): counted[each.id].get(cpu, 0) for cpu in cpus}
    return row


def _thread_row(each: "Thread", worked: dict[int, int] | None) -> dict[str, Any]:
    from dataclasses import asdict

    row = asdict(each) | {"allowed": _cpu_list(each.allowed), "entries": list(each.entries)}
    if worked is not None:
        row["worked_ticks"] = worked.get(each.tid, 0)
    return row


def _cpu_list(cpus: frozenset[int] | None) -> str | None:
    from latenz.settings import format_cpu_list

    return None if cpus is None else format_cpu_list(tuple(cpus))


def _print_json(document: dict[str, Any]) -> None:
    import json

    typer.echo(json.dumps(document, indent=1))


def _print_interrupts(rows: list[dict[str, Any]], watched: frozenset[int], live: bool) -> None:
    from latenz.console import Console

    if not rows:
        typer.echo("no interrupt reaches these CPUs")
        return
    table = _table("IRQ", "affinity", "effective")
    for cpu in rows[0]["counts"]:
        table.add_column(f"CPU {cpu}", justify="right")
    for name in ("device or purpose", "move?", "why"):
        table.add_column(name)
    for row in rows:
        counts = [
            f"{count} (+{row['during'][cpu]})" if live else str(count)
            for cpu, count in row["counts"].items()
        ]
        known = (row["affinity"] or "", row["effective"] or "")
        about = (row["name"], row["movable"], row["why"])
        _add_row(table, (row["id"], *known, *counts, *about))
    Console().print(table)
    if any(row["movable"] == "maybe" for row in rows):
        typer.echo("maybe: writing its affinity tells; with debugfs mounted, it is known before.")
    _print_ending(watched, "interrupts of all CPUs")


def _print_threads(rows: list[dict[str, Any]], watched: frozenset[int], live: bool) -> None:
    from latenz.console import Console

    if not rows:
        typer.echo("no thread touches these CPUs")
        return
    table = _table("CPU", "PID", "thread", "name", "policy", "prio", "nice", "allowed")
    if live:
        table.add_column("ran (ticks)", justify="right")
    for name in ("move?", "why"):
        table.add_column(name)
    for row in rows:
        name = f"[{row['name']}]" if row["kernel"] else row["name"]
        priority = "" if row["priority"] is None else str(row["priority"])
        numbers = (str(row["last_cpu"]), str(row["pid"]), str(row["tid"]))
        about = (row["policy"], priority, str(row["nice"]), row["allowed"])
        ran = (str(row["worked_ticks"]),) if live else ()
        _add_row(table, (*numbers, name, *about, *ran, row["movable"], row["why"]))
    Console().print(table)
    _print_ending(watched, "threads of all CPUs")


def _print_ending(watched: frozenset[int], what: str) -> None:
    if not watched:
        typer.echo(f"No CPU is isolated: these are the {what}; choose some by --cpus.")


def _table(*columns: str) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(*columns, box=SIMPLE, pad_edge=False)


def _add_row(table: Any, cells: tuple[str, ...]) -> None:
    """Add a row of which neither the terminal nor rich obeys anything: users name threads."""
    from rich.text import Text

    from latenz.terminal import printable

    table.add_row(*(Text(printable(cell)) for cell in cells))


def _topology_table(found: Any) -> Any:
    table = _table("CPU", "package", "node", "core's CPUs", "P/E", "shares L2 with", "L3 with", "")
    for cpu in found.cpus:
        own = frozenset({cpu.number})
        marks = ["isolated"] if cpu.number in found.isolated else []
        marks += ["boot CPU"] if cpu.number == found.boot_cpu else []
        table.add_row(
            str(cpu.number),
            str(cpu.package),
            "" if cpu.node is None else str(cpu.node),
            _cpu_list(cpu.siblings),
            cpu.kind[:1].upper(),
            *(_cpu_list(found.shared_with(own, level)) for level in (2, 3)),
            ", ".join(marks),
        )
    return table
