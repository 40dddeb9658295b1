"""What would have to change on a machine so that its checks are right; nothing is changed here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from pydantic import ValidationError

from latenz.errors import BadInput
from latenz.terminal import printable
from latenz.tune.catalogue import chosen, load_all
from latenz.tune.changes import (
    AnyChange,
    FileChange,
    FolderChange,
    LinkChange,
    ThreadChange,
)
from latenz.tune.check import Check, evaluate
from latenz.tune.context import Context, NotKnown, list_in
from latenz.tune.cpus import format_list
from latenz.tune.lasting import ByHand, Draft, Wish, add_disabled, add_lasting, for_built_in
from latenz.tune.lasting_boot import add_command_line
from latenz.tune.model import Entry, Partition, Service, Write
from latenz.tune.partition import add_lasting_partition
from latenz.tune.plan_now import add_now
from latenz.tune.reconcile import reconciled
from latenz.tune.root import Root
from latenz.tune.services import unit_states

_PAGE_KIB, _LARGEST_PAGE_KIB = 4, 64  # of x86; the largest that another architecture may have
_KUBELET = "kubelet.service"
_RIVALS = (
    ("irqbalance.service", r"/proc/irq/", "moves interrupts between CPUs every 10 seconds"),
    (
        "thermald.service",
        r"cpufreq|pstate|cpuidle|cstate|idle=",
        "changes clocks and idles CPUs to cool them",
    ),
    (
        "tuned.service",
        r"sysctl=|/proc/sys/|'/sys/",
        "sets sysctls, governors and affinities of its own profile",
    ),
    (
        "power-profiles-daemon.service",
        r"cpufreq|pstate",
        "sets governor, energy preference and turbo as the desktop asks",
    ),
    (
        _KUBELET,
        r"isolcpus=|partition=",
        "gives CPUs to containers by a list of its own, if its cpuManagerPolicy is static",
    ),
)
"""Services that set the same as we do: unit, what of ours they undo, and how."""


@dataclass(frozen=True)
class Conflict:
    """A service that would undo something.

    Attributes:
        unit: Its name.
        state: Whether it is active, enabled, or both.
        why: What it does.
        entries: Ids of the entries whose changes it would undo.
        remedy: What is done, or has to be done, about it.
    """

    unit: str
    state: str
    why: str
    entries: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class Plan:
    """All that would change, and what would not.

    Attributes:
        root: The machine's files.
        isolated: The CPUs chosen, as a list; empty if none are.
        profile: What the machine is for.
        changes: In the order in which they are carried out.
        by_hand: What only a person can do.
        offers: Entries that are wrong, but give something up, and were not asked for by name.
        conflicts: Services that would undo some of it.
        notes: What else to know.
    """

    root: Root
    isolated: str
    profile: str
    changes: tuple[AnyChange, ...]
    by_hand: tuple[ByHand, ...] = ()
    offers: tuple[Entry, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Choice:
    """Which entries the user wants changed.

    Attributes:
        include: Also these, which give something up.
        only: No others than these; none: all that are wrong.
        skip: Not these.

    Raises:
        BadInput: There is no such entry.
    """

    include: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option in ("include", "only", "skip"):
            chosen(getattr(self, option), f"--{option}")


def plan(context: Context, checks: Sequence[Check], choice: Choice) -> Plan:
    """Return what would make the wrong checks right.

    Args:
        context: The machine.
        checks: What was found, of the entries to be looked at.
        choice: Which of them to change.

    Raises:
        BadInput: What is to be changed has a name that no journal could hold.
    """
    try:
        return _planned(context, checks, choice)
    except ValidationError as mistake:
        name = printable(str(mistake.errors()[0]["input"]))
        raise BadInput("has a name that cannot be noted", name, "rename it, or --skip it") from None


def _planned(context: Context, checks: Sequence[Check], choice: Choice) -> Plan:
    wrong = [
        check.entry for check in checks if check.state == "wrong" and _is_chosen(check, choice)
    ]
    offers = [entry for entry in wrong if entry.consent and entry.id not in choice.include]
    named = {*choice.include, *choice.only}
    draft = Draft()
    for each in checks:
        if each.id in named and each.state != "wrong":
            draft.note(f"{each.id}: {each.state}{f' ({each.reason})' if each.reason else ''}")
    if context.online and min(context.online) in context.isolated:
        draft.note(
            f"CPU {min(context.online)} starts the machine and keeps its time: the kernel takes it "
            "out of nohz_full=, and much cannot be moved away from it; rather isolate others"
        )
    entries = [entry for entry in wrong if entry not in offers and _can_act(entry, context, draft)]
    entries = reconciled(entries, checks, named, draft)
    if any(isinstance(action, Partition) for entry in entries for action in entry.now):
        context = replace(context, partition=True)
    add_now(entries, context, draft)
    wishes = [Wish(entry, action) for entry in entries for action in entry.boot]
    later = for_built_in(wishes, context.root)
    disabled = _disabled(later, context)
    add_lasting(later, context, draft)
    add_lasting_partition(later, context, draft)
    add_command_line(later, context, draft)
    add_disabled(disabled, context, draft)
    changes = _in_order(_with_folders(_once(draft.changes), context.root))
    _note_fleeting(changes, draft)
    _add_advice(entries, draft)
    return Plan(
        context.root,
        format_list(context.isolated),
        context.profile,
        tuple(changes),
        tuple(draft.by_hand),
        tuple(offers),
        tuple(_conflicts(entries, offers, changes, context.root)),
        tuple(draft.notes),
    )


def _note_fleeting(changes: Sequence[AnyChange], draft: Draft) -> None:
    """Note the entries that the next restart takes back."""
    now = [entry for change in changes if change.fleeting for entry in change.entries]
    later = {entry for change in changes if not change.fleeting for entry in change.entries}
    later |= {entry for each in draft.by_hand for entry in each.entries}
    for entry in dict.fromkeys(now):
        if entry not in later:
            draft.note(f"{entry}: lasts until the next restart only")


def _is_chosen(check: Check, choice: Choice) -> bool:
    return check.id not in choice.skip and (not choice.only or check.id in choice.only)


def _can_act(entry: Entry, context: Context, draft: Draft) -> bool:
    """Return whether the entry's actions can be carried out; else leave it to a person."""
    obstacle = _obstacle(entry, context)
    if obstacle is not None:
        draft.by_hand.append(ByHand((entry.id,), entry.title, obstacle))
    return obstacle is None


def _obstacle(entry: Entry, context: Context) -> str | None:
    """Return what a person has to know or to do, as it cannot be carried out; None if it can."""
    actions = str((*entry.now, *entry.boot))
    second = _second_threads(context)
    if second and re.search(r"smt/control|'nosmt'", actions):
        gone = f"CPU {format_list(second)} would be gone with SMT, as the second of its core"
        return f"{gone}: isolate the first ones"
    version = context.root.read("/proc/version") or ""  # without PREEMPT_DYNAMIC, it is ignored
    if "'preempt=" in str(entry.boot) and version and "PREEMPT_DYNAMIC" not in version:
        return entry.advice
    for name in entry.needs:
        condition = load_all().conditions[name]
        if evaluate(condition, context).state == "wrong":
            return f"{condition.otherwise}: take one that has it"
    for written in entry.now:
        if isinstance(written, Write) and not _fits(written, context.root):
            return f"the pages that {written.fits_pages} counts do not fit into the free memory"
    return _unknown_placeholder(entry, context)


def _unknown_placeholder(entry: Entry, context: Context) -> str | None:
    """Return what its actions have to know and nothing tells; None if all is known."""
    try:
        for action in (*entry.now, *entry.boot):
            for value in action.model_dump().values():
                if isinstance(value, str):
                    context.paths(value)
    except NotKnown as reason:
        return str(reason)
    return None


def _fits(action: Write, root: Root) -> bool:
    """Return whether what is written needs no more memory than there is."""
    if action.fits_pages is None:
        return True
    available = re.search(r"^MemAvailable:\s*(\d+) kB", root.read("/proc/meminfo") or "", re.M)
    pages = (root.read(action.fits_pages) or "").strip()
    if not available or not pages.isdecimal():
        return False
    x86 = re.search(r"^vendor_id", root.read("/proc/cpuinfo") or "", re.M)
    return int(pages) * (_PAGE_KIB if x86 else _LARGEST_PAGE_KIB) < int(available[1])


def _second_threads(context: Context) -> frozenset[int]:
    """Return the isolated CPUs that are not the first of their core."""
    found = {
        cpu: list_in(
            context.root, f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        )
        for cpu in context.isolated
    }
    return frozenset(cpu for cpu, core in found.items() if core and cpu != min(core))


def _disabled(wishes: Sequence[Wish], context: Context) -> list[tuple[str, str]]:
    """Return the units that start at boot and should not, each with the entry that wants it."""
    return [
        (unit, wish.entry.id)
        for wish in wishes
        if isinstance(wish.action, Service)
        for unit, state, _ in unit_states(context.root, wish.action.service) or ()
        if "enabled" in state
    ]


def _add_advice(entries: Sequence[Entry], draft: Draft) -> None:
    changed = {entry for change in draft.changes for entry in change.entries}
    told = {entry for each in draft.by_hand for entry in each.entries}
    for entry in entries:
        if entry.besides and entry.id in changed:
            draft.by_hand.append(ByHand((entry.id,), entry.title, entry.besides))
        if entry.id not in changed | told:
            advice = entry.advice or "nothing that could be changed was found; see the notes"
            draft.by_hand.append(ByHand((entry.id,), entry.title, advice))


def _once(changes: Iterable[AnyChange]) -> list[AnyChange]:
    """Return one change for each thing that is changed, with all entries that want it."""
    kept: dict[tuple[str, str], AnyChange] = {}
    for change in changes:
        key: tuple[str, str] = (change.kind, change.what)
        if isinstance(change, ThreadChange):
            key = (f"{change.kind} {change.policy is None}", change.what)
        first = kept.setdefault(key, change)
        entries = tuple(dict.fromkeys((*first.entries, *change.entries)))
        kept[key] = first.model_copy(update={"entries": entries})
    return list(kept.values())


def _with_folders(changes: Sequence[AnyChange], root: Root) -> list[AnyChange]:
    """Return the changes, those before them that make the folders which are missing."""
    folders: dict[str, FolderChange] = {}
    for change in changes:
        if not isinstance(change, FileChange | LinkChange):
            continue
        parts = change.path.split("/")[1:-1]
        for count in range(1, len(parts) + 1):
            folder = "/" + "/".join(parts[:count])
            if folder not in folders and not root.is_folder(folder):
                folders[folder] = FolderChange(path=folder, entries=change.entries)
    return [*folders.values(), *changes]


def _in_order(changes: Sequence[AnyChange]) -> list[AnyChange]:
    """Return the changes in the order in which they are carried out.

    Services are stopped, and TuneD has set what it sets, before values are written to the kernel:
    taken back in the opposite order, each of them finds what it left.
    """
    order = (
        "folder", "file", "link", "service", "restart", "partition", "group", "boot menu", "tuned",
        "write", "thread",
    )  # fmt: skip
    return sorted(changes, key=lambda change: order.index(change.kind))


def _conflicts(
    entries: Sequence[Entry],
    offers: Sequence[Entry],
    changes: Sequence[AnyChange],
    root: Root,
) -> Iterable[Conflict]:
    for unit, pattern, why in _RIVALS:
        ids = [
            entry.id
            for entry in entries
            if any(re.search(pattern, str(action)) for action in (*entry.now, *entry.boot))
        ]
        for _, state, _ in (unit_states(root, unit) or ()) if ids else ():
            yield Conflict(unit, state, why, tuple(ids), _remedy(unit, changes, offers))


def _remedy(unit: str, changes: Sequence[AnyChange], offers: Sequence[Entry]) -> str:
    if unit == _KUBELET:  # threads of one container share the first of its isolated CPUs
        return "keep them out of its list: reservedSystemCPUs in its configuration"
    concerned = {change.kind for change in changes if unit == change.what.rpartition("/")[2]}
    if concerned - {"tuned", "restart"}:
        return "the plan turns it off"
    if "restart" in concerned or any(f"/{unit}.d/latenz" in change.what for change in changes):
        return "the plan keeps it off the isolated CPUs"
    if unit == "tuned.service" and any("/latenz/tuned.conf" in change.what for change in changes):
        return "its profile latenz takes in the one that is active now, and comes after it"
    for entry in offers:
        services = [action for action in (*entry.now, *entry.boot) if isinstance(action, Service)]
        if any(fnmatchcase(unit, action.service) for action in services):
            return f"--include {entry.id} turns it off"
    return f"systemctl disable --now {unit}, or tell it to keep off the isolated CPUs"
