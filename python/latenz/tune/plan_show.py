"""Plans, transactions and what was taken back, for people and for programs."""

import difflib
import os
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.terminal import printable
from latenz.tune.changes import (
    AnyChange,
    FileChange,
    FolderChange,
    FollowingChange,
    GroupChange,
    LinkChange,
    ServiceChange,
    ThreadChange,
    WriteChange,
)
from latenz.tune.cpus import format_list
from latenz.tune.model import Entry
from latenz.tune.places import Place
from latenz.tune.plan import Plan
from latenz.tune.root import Root
from latenz.tune.transaction import Restored, Step, Transaction

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_POLICIES = {0: "OTHER", 1: "FIFO", 2: "RR", 3: "BATCH", 5: "IDLE", 6: "DEADLINE"}
_MOST_VALUE = 60


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as a document."""
    return {
        "isolated": plan.isolated,
        "profile": plan.profile,
        "changes": [
            {
                "kind": change.kind,
                "what": change.what,
                "entries": list(change.entries),
                "old": old,
                "new": new,
                "diff": diff(change, plan.root) if isinstance(change, FileChange) else None,
            }
            for change in plan.changes
            for old, new in [values(change, plan.root)]
        ],
        "by_hand": [each._asdict() for each in plan.by_hand],
        "offers": [_offer_document(entry) for entry in plan.offers],
        "conflicts": [
            {
                "unit": each.unit,
                "state": each.state,
                "why": each.why,
                "entries": list(each.entries),
                "remedy": each.remedy,
            }
            for each in plan.conflicts
        ],
        "notes": list(plan.notes),
    }


def _offer_document(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "entries": [entry.id],
        "title": entry.title,
        "gives_up": entry.consent,
        "risk": entry.risk,
        "gain": entry.why,
        "effect": entry.effect,
        "option": f"--include {entry.id}",
    }


def diff(change: FileChange, root: Root) -> str:
    """Return what changes in a file, as a unified diff."""
    before = root.read(change.path)
    after = None if change.content is None else change.content.decode("utf-8", "replace")
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        "/dev/null" if before is None else change.path,
        "/dev/null" if after is None else change.path,
        lineterm="",
    )
    return "\n".join(printable(line.expandtabs()) for line in lines)


def values(change: AnyChange, root: Root) -> tuple[str | None, str | None]:
    """Return what is there and what is to be there, on one line; None for nothing."""
    if isinstance(change, WriteChange):
        return _short(root.read(change.path) or ""), change.value
    if isinstance(change, LinkChange):
        return root.link(change.path), change.target
    if isinstance(change, ThreadChange):
        cpus, *scheduled = change.before or ((), None, None)
        if change.policy:
            return _scheduling(*scheduled), _scheduling(*change.policy)
        now = f"on CPUs {format_list(frozenset(cpus))}" if cpus else None
        return now, f"on CPUs {format_list(frozenset(change.cpus))}"
    if isinstance(change, ServiceChange):
        return "active", "stopped"
    if isinstance(change, FollowingChange):
        return None, "started again"
    if isinstance(change, GroupChange):
        return None, f"an isolated cpuset partition of CPU {change.cpus}"
    return None, "made" if isinstance(change, FolderChange) else "made again"


def _scheduling(policy: int | None, priority: int | None) -> str | None:
    if policy is None:
        return None
    return f"{_POLICIES.get(policy & ~os.SCHED_RESET_ON_FORK, f'policy {policy}')} {priority}"


def _short(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MOST_VALUE else line[:_MOST_VALUE] + "..."


def print_plan(plan: Plan) -> None:
    """Print a plan on standard output."""
    console = Console(highlight=False)
    files = [change for change in plan.changes if isinstance(change, FileChange)]
    for change in files:
        for line in diff(change, plan.root).splitlines():
            console.print(Text(line, _STYLES.get(line[:1], "")), soft_wrap=True)
        console.print()
    _print_others(console, plan)
    if plan.by_hand:
        rows = [(", ".join(each.entries), each.advice) for each in plan.by_hand]
        console.print(_table("Left to you", ("for", "what to do"), rows))
    _print_offers(console, plan.offers)
    if plan.conflicts:
        conflicts = [
            (each.unit, each.state, f"{each.why}: {', '.join(each.entries[:4])}", each.remedy)
            for each in plan.conflicts
        ]
        title = "Works against it"
        console.print(_table(title, ("unit", "is", "would undo", "remedy"), conflicts))
    for note in plan.notes:
        console.say(Text(f"Note: {printable(note)}"))
    if not plan.changes:
        console.print("Nothing that Latenz could change is to be changed.")
    else:
        console.print(f"{_count(len(plan.changes), 'change')}; nothing is changed yet.")


def _print_offers(console: Console, offers: Sequence[Entry]) -> None:
    if offers:
        console.print(Text("Offers: only if you name them", "italic"))
    for each in offers:
        line = Text(f"  --include {each.id}", "bold")
        line.append(f": gives up {each.consent}; effect {each.effect}", "not bold")
        console.say(line)
        console.say(Text(f"    risk: {each.risk}"))
        console.say(Text(f"    gain: {each.why}"))
    if offers:
        console.print()


def _print_others(console: Console, plan: Plan) -> None:
    """Print what is not a file's content, below the entries that want it."""
    others = [change for change in plan.changes if not isinstance(change, FileChange)]
    for entries in dict.fromkeys(change.entries for change in others):
        console.say(Text(", ".join(entries), "bold"))
        for change in others:
            if change.entries == entries:
                line = Text(f"  {printable(change.what)}: ")
                line.append(printable(_step(change, plan.root)), "cyan")
                console.say(line)
        console.print()


def _step(change: AnyChange, root: Root) -> str:
    old, new = values(change, root)
    if isinstance(change, LinkChange):
        return f"link to {new}" if new else f"link to {old} is removed"
    return f"{old or 'nothing'} -> {new}" if old is not None else new or ""


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def status_document(transaction: Transaction | None, at_work: bool) -> dict[str, Any]:
    """Return a transaction as a document."""
    if transaction is None:
        return {"state": "none", "at_work": at_work, "changes": []}
    head = transaction.journal.head
    return {
        "state": transaction.phase,
        "at_work": at_work,
        "began": head.began,
        "same_boot": transaction.same_boot,
        "isolated": head.isolated,
        "profile": head.profile,
        "proof": head.proof or None,
        "changes": [
            {
                "kind": step.change.kind,
                "what": step.change.what,
                "entries": list(step.change.entries),
                "state": step.state,
                "now": step.now,
                "reason": step.reason or None,
            }
            for step in transaction.steps()
        ],
    }


def is_intact(transaction: Transaction | None) -> bool:
    """Return whether nothing is half done, and nothing was changed by others or by a restart."""
    if transaction is None:
        return True
    done = [step for step in transaction.steps() if step.state == "done"]
    return transaction.phase == "applied" and all(step.now == "as applied" for step in done)


def print_status(transaction: Transaction | None, at_work: bool) -> None:
    """Print how far a transaction is, and how what it changed looks now."""
    console = Console(highlight=False)
    if transaction is None:
        console.print("another latenz tune is at work" if at_work else "nothing is applied")
        return
    place = transaction.place
    apply_it, revert_it = place.command("apply"), place.command("revert")
    texts = {
        "applied": "applied",
        "applying": f"apply was interrupted: {apply_it} finishes, {revert_it} takes it back",
        "reverting": f"revert was interrupted: {revert_it} takes back the rest",
        "reverted": f"reverted; {revert_it} removes what is left of the journal",
    }
    state = "being changed right now" if at_work else texts[transaction.phase]
    began = transaction.journal.head.began
    boot = "" if transaction.same_boot else "; the machine was restarted since"
    console.say(f"begun {began}: {state}{boot}")
    if proof := transaction.journal.head.proof:
        ways = f"{place.command('prove')} --resume goes on, {revert_it} ends it"
        what = "" if at_work else f": {ways}"
        console.say(f"it is on trial, samples are in {proof}{what}")
    for step in transaction.steps():
        line = Text(f"  {printable(step.change.what)}: ")
        line.append(_state(step, transaction), "" if step.now == "as applied" else "yellow")
        console.say(line)


def _state(step: Step, transaction: Transaction) -> str:
    now: str = step.now
    if step.change.fleeting and not transaction.same_boot and now != "as applied":
        now = "taken back by the restart"
    state = f"{step.state} ({printable(step.reason)})" if step.reason else step.state
    return f"{state}, {now}"


def print_applied(transaction: Transaction) -> None:
    """Print what became of an apply."""
    console = Console(highlight=False)
    steps = transaction.steps()
    refused = [step for step in steps if step.state == "refused"]
    if refused:
        rows = [(step.change.what, step.reason) for step in refused]
        console.print(_table("Refused, and left as it was", ("what", "reason"), rows))
    done = sum(step.state == "done" for step in steps)
    left = len(steps) - done - len(refused)
    apply_it, revert_it = (transaction.place.command(verb) for verb in ("apply", "revert"))
    if left:
        console.say(
            f"stopped after {_count(done, 'change')}, {left} left: {apply_it} finishes, "
            f"{revert_it} takes it back"
        )
    else:
        console.say(f"{_count(done, 'change')} applied; {revert_it} takes all back")


def revert_document(results: list[Restored] | None) -> dict[str, Any]:
    """Return what was taken back as a document."""
    return {
        "complete": results is not None,
        "changes": [
            {
                "kind": each.change.kind,
                "what": each.change.what,
                "outcome": each.outcome,
                "reason": each.reason or None,
            }
            for each in results or ()
        ],
    }


def print_reverted(place: Place, results: list[Restored] | None) -> None:
    """Print what became of a revert."""
    console = Console(highlight=False)
    if results is None:
        console.say(f"stopped: {place.command('revert')} takes back the rest")
        return
    unusual = [each for each in results if each.outcome not in ("restored", "was as before")]
    if unusual:
        rows = [(each.change.what, each.outcome, each.reason) for each in unusual]
        console.print(_table("", ("what", "outcome", "reason"), rows))
    count = _count(len(results) - len(unusual), "change")
    console.print(f"{count} taken back" if results else "there was nothing to take back")
