"""What a load beside an emulated core does, told apart from what the emulator does.

An emulator that counts instructions runs all cores in turn on one thread of the host. A neighbour
that merely spins can therefore change figures that no real neighbour would. What a load does is
only what differs from such a baseline.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from latenz.path.model import PathFile
from latenz.report.collect import View
from latenz.report.words import duration

BASELINE = "spin"
_NOT_MODELLED = (
    "Every instruction takes 1 ns here, whatever the caches hold and whoever else uses the bus:"
    " emulation knows no caches, no DRAM, no interconnect. What a load adds by those on silicon"
    " cannot show, such as the longer maximum under stress that Alonso et al. (Electronics 2024,"
    " 13, 1626, Table 4) measured under Xen."
)


@dataclass(frozen=True)
class Neighbour:
    """One condition, beside others that differ in the load only.

    Attributes:
        view: What was measured.
        load: What ran beside.
        finding: What can be said of the load.
    """

    view: View
    load: str
    finding: str


@dataclass(frozen=True)
class Neighbourhood:
    """Conditions that differ in the load only.

    Attributes:
        title: What they share.
        members: Without load first.
        caution: What emulation cannot show.
    """

    title: str
    members: list[Neighbour]
    caution: str = _NOT_MODELLED


def neighbourhoods(
    accounts: Sequence[dict[str, Any]],
    views: list[View],
    paths: Mapping[str, PathFile] | None = None,
) -> list[Neighbourhood]:
    """Group the conditions of emulated boards that differ in the load only.

    Args:
        accounts: Of the run's conditions.
        views: Of the run's sample sets.
        paths: Recorded paths, by condition; they tell what longer paths do more.

    Returns:
        Groups in which at least one condition has a load.
    """
    by_name = {view.metadata.name: view for view in views if view.time_base == "virtual"}
    groups: dict[str, list[tuple[dict[str, Any], View]]] = {}
    for account in accounts:
        for name in account.get("samples_sha256", {}):
            if name in by_name:
                key = f"{_shared(account)} {account.get('repetition')} {name.rpartition('/')[2]}"
                groups.setdefault(key, []).append((account, by_name[name]))
    return [
        Neighbourhood(
            _title(group[0]),
            [_judged(*each, group, paths or {}) for each in sorted(group, key=_rank)],
        )
        for group in groups.values()
        if any(_load(account) != "none" for account, _ in group)
    ]


def _load(account: dict[str, Any]) -> str:
    return str(account.get("load", {}).get("name", "none"))


def _rank(member: tuple[dict[str, Any], View]) -> int:
    return (
        ["none", BASELINE].index(_load(member[0])) if _load(member[0]) in ("none", BASELINE) else 2
    )


def _shared(account: dict[str, Any]) -> str:
    engine = dict(account.get("engine", {}).get("settings", {}))
    for recorded in ("path", "windows"):  # recording changes no sample
        engine.pop(recorded, None)
    return repr((account.get("bench"), account.get("stack"), engine))


def _title(member: tuple[dict[str, Any], View]) -> str:
    account, view = member
    wait = account.get("engine", {}).get("settings", {}).get("wait")
    waiting = {"poll": ", polling", "wfi": ", waiting for interrupts"}.get(wait, "")
    return f"{view.metadata.stack} on {view.metadata.bench}{waiting}"


def _hash(account: dict[str, Any], view: View) -> Any:
    return account["samples_sha256"].get(view.metadata.name)


def _judged(
    account: dict[str, Any],
    view: View,
    group: list[tuple[dict[str, Any], View]],
    paths: Mapping[str, PathFile],
) -> Neighbour:
    load = _load(account)
    if load == "none":
        return Neighbour(view, "none", "")
    idle = next((each for each in group if _load(each[0]) == "none"), None)
    baseline = next((each for each in group if _load(each[0]) == BASELINE), None)
    if load == BASELINE:
        finding = _compared("the row without load", account, view, idle)
        return Neighbour(view, load, f"baseline; {finding}: what changes is the emulator's doing")
    if baseline is None:
        finding = "no row with a spinning neighbour: nothing can be said about the load"
        return Neighbour(view, load, finding)
    finding = _compared("the spinning neighbour's", account, view, baseline)
    if finding.startswith("differs"):
        finding += "; " + _explained(account, view, paths)
    return Neighbour(view, load, finding)


def _compared(
    whose: str, account: dict[str, Any], view: View, other: tuple[dict[str, Any], View] | None
) -> str:
    if other is None:
        return "there is no row without load"
    if _hash(account, view) == _hash(*other):
        return f"sample by sample the same as {whose}"
    mine, theirs = view.summary, other[1].summary
    return (
        f"differs from {whose}: median {duration(mine.median_ns)} against"
        f" {duration(theirs.median_ns)}, max {duration(mine.max_ns)} against"
        f" {duration(theirs.max_ns)}"
    )


def _explained(account: dict[str, Any], view: View, paths: Mapping[str, PathFile]) -> str:
    """Return why samples differ, as far as recorded paths tell."""
    if view.metadata.cpu is None:
        return (
            "the measured core is not the first of the emulated ones and waits for the turns of the"
            " others, so that nothing follows about the load"
        )
    recorded = paths.get(str(account.get("condition")))
    if recorded is None:
        return "path = true would tell why"
    usual = recorded.paths[0]
    longest = max(recorded.paths, key=lambda path: path.instructions)
    if longest.instructions <= usual.instructions:
        return "no longer path was recorded"
    more = Counter({part.category: part.instructions for part in longest.categories()})
    more.subtract({part.category: part.instructions for part in usual.categories()})
    told = ", ".join(f"{count:+,} {name}" for name, count in more.most_common(3) if count > 0)
    return (
        f"the longest recorded path has {longest.instructions:,} instructions where most have"
        f" {usual.instructions:,}: {told}"
    )
