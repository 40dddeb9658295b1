"""What makes settings last, written the way administrators keep it: drop-ins of our own.

Sysctls and sysfs values go into a TuneD profile where TuneD starts at boot, which would otherwise
overwrite them; else into /etc/sysctl.d and /etc/tmpfiles.d. No file of somebody else is edited, but
for the boot entries of boot loaders that have no drop-ins (`latenz.tune.lasting_boot`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from latenz.errors import BadInput, shown
from latenz.tune.changes import AnyChange, FileChange, LinkChange, TunedChange
from latenz.tune.context import Context
from latenz.tune.cpus import format_list
from latenz.tune.model import (
    Affinity,
    BootAction,
    CmdlineToken,
    CpuAffinity,
    Entry,
    File,
    ModuleOption,
    Policy,
    Service,
    Sysctl,
    SysfsWrite,
)
from latenz.tune.root import Root
from latenz.tune.services import has_systemd, unit_states
from latenz.tune.targets import targets

SYSCTL = "/etc/sysctl.d/99-latenz.conf"
TMPFILES = "/etc/tmpfiles.d/latenz.conf"
MODPROBE = "/etc/modprobe.d/latenz.conf"
MANAGER = "/etc/systemd/system.conf.d/latenz.conf"
IRQ_UNIT = "/etc/systemd/system/latenz-irqs.service"
THREAD_UNIT = "/etc/systemd/system/latenz-threads.service"
HEAD = "# Written by latenz tune; latenz tune revert takes it back.\n"
_UNITS = "/etc/systemd/system"
_PLAIN = re.compile(r"[A-Za-z0-9_.,:;=@/+*? -]{0,4000}")
_LATE = re.compile(
    r"/proc/irq/[0-9*?]+/smp_affinity(_list)?|/sys/kernel/debug/sched/fair_server/cpu\d+/runtime"
)
"""What is there late in the boot only: interrupts of devices, and debugfs."""
_CPUS = re.compile(r"[0-9a-f,-]+")
_THREADS = re.compile(r"[a-z_?*/]+")


class Wish(NamedTuple):
    """Something that is to last, and the entry that wants it."""

    entry: Entry
    action: BootAction


class ByHand(NamedTuple):
    """What only a person can do, and the ids of the entries that want it."""

    entries: tuple[str, ...]
    title: str
    advice: str


@dataclass
class Draft:
    """A plan while it is made.

    Attributes:
        changes: What is to be changed.
        by_hand: What is left to a person.
        notes: What the user should know before it is applied.
    """

    changes: list[AnyChange] = field(default_factory=list)
    by_hand: list[ByHand] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note that is not there yet."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass
class Line:
    """A setting, and who wants it.

    Attributes:
        entries: Ids of the entries; the first one's title explains the line.
    """

    name: str
    value: str
    entries: list[str]
    title: str


def add_lasting(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    """Add the changes that make settings last, but for the kernel command line and services."""
    sysctls = [
        (wish.entry, wish.action.sysctl, wish.action.value)
        for wish in wishes
        if isinstance(wish.action, Sysctl)
    ]
    sysfs = [
        (wish.entry, path, value)
        for wish in wishes
        if isinstance(wish.action, SysfsWrite)
        for path, value in _boot_targets(wish.action, context)
    ]
    irqs = [each for each in sysfs if _LATE.fullmatch(each[1])]
    rest = merged([each for each in sysfs if each not in irqs], context, draft)
    lines = merged(sysctls, context, draft)
    units = {wish.action.service for wish in wishes if isinstance(wish.action, Service)}
    if tuned_lasts(context.root) and "tuned.service" not in units:
        ours = [line for line in rest if line.name.startswith("/sys/")]
        _add_tuned(lines, ours, context, draft)
        rest = [line for line in rest if line not in ours]
    else:
        _add_file(SYSCTL, lines, "{} = {}", context, draft)
        _note_later_sysctls(lines, context.root, draft)
    late = merged(irqs, context, draft)
    if has_systemd(context.root):
        _add_file(TMPFILES, rest, "w {} - - - - {}", context, draft)
        _add_irq_unit(late, context, draft)
        _add_thread_unit(wishes, context, draft)
    else:
        _leave_to_init([*rest, *late], _thread_commands(wishes, context), draft)
    _add_modules(wishes, context, draft)
    _add_manager(wishes, context, draft)
    _add_own_files(wishes, context, draft)


def for_built_in(wishes: Iterable[Wish], root: Root) -> list[Wish]:
    """Return the wishes; options of modules that are part of the kernel as its own parameters.

    /etc/modprobe.d is for modules that are loaded.
    """
    loaded = root.read("/proc/modules")
    found = []
    for wish in wishes:
        action = wish.action
        if isinstance(action, ModuleOption) and _has_not(root, action):
            continue
        if isinstance(action, ModuleOption) and loaded is not None:
            name = action.modprobe
            is_loaded = re.search(rf"^{name} ", loaded, re.MULTILINE)
            if root.is_folder(f"/sys/module/{name}") and not is_loaded:
                token = f"{name}.{action.option}={action.value}"
                action = CmdlineToken(cmdline=token)
        found.append(Wish(wish.entry, action))
    return found


def _has_not(root: Root, action: ModuleOption) -> bool:
    """Return whether the running kernel's module is there without such a parameter."""
    known = root.names(f"/sys/module/{action.modprobe}/parameters")
    return bool(known) and action.option not in known


def merged(wanted: Iterable[tuple[Entry, str, str]], context: Context, draft: Draft) -> list[Line]:
    """Return a line for each name; of two values for one name the first is kept, and noted."""
    lines: dict[str, Line] = {}
    for entry, name, text in wanted:
        value = plain(context.expand(text), entry)
        line = lines.setdefault(name, Line(name, value, [], entry.title))
        if line.value != value:
            draft.note(f"{entry.id} wants {name} = {value}, {line.entries[0]} {line.value}: kept")
        elif entry.id not in line.entries:
            line.entries.append(entry.id)
    return list(lines.values())


def plain(value: str, entry: Entry) -> str:
    """Return a value that means itself in all files that are written here.

    Raises:
        BadInput: It holds something that some of them would take for more than text.
    """
    if not _PLAIN.fullmatch(value):
        remedy = "use letters, digits and _.,:;=@/+*?- alone"
        raise BadInput(f"{shown(value)} would not mean itself in every file", entry.id, remedy)
    return value


def add_file_change(
    path: str, content: str, entries: Iterable[str], context: Context, draft: Draft
) -> None:
    """Add a file unless it is already so."""
    wanted, found = content.encode("utf-8", "surrogateescape"), context.root.read_bytes(path)
    if found != wanted:
        seen = "" if found is None else sha256(found).hexdigest()
        ids = tuple(dict.fromkeys(entries))
        draft.changes.append(FileChange(path=path, content=wanted, seen=seen, entries=ids))


def tuned_lasts(root: Root) -> bool:
    """Return whether TuneD starts at boot."""
    states = unit_states(root, "tuned.service") or []
    return root.is_folder("/etc/tuned") and any("enabled" in state for _, state, _ in states)


def tuned_folder(root: Root) -> str:
    """Return where TuneD looks for profiles: newer ones keep them in a folder of their own."""
    newer = root.is_folder("/usr/lib/tuned/profiles") or root.is_folder("/etc/tuned/profiles")
    return "/etc/tuned/profiles" if newer else "/etc/tuned"


def _boot_targets(action: SysfsWrite, context: Context) -> list[tuple[str, str]]:
    """Return patterns, so that a device found later counts; files where only some are meant."""
    if action.beside:
        return targets(action, context)
    value = context.expand(action.value)
    return [(path, value) for path in context.paths(action.sysfs)]


def _text(lines: Sequence[Line], form: str) -> str:
    """Return lines in the form of a file, below who wants them and why."""
    text, above = "", ""
    for line in lines:
        comment = explained(line)
        text += comment if comment != above else ""
        text += form.format(line.name, line.value) + "\n"
        above = comment
    return text


def explained(line: Line) -> str:
    """Return a comment that says who wants a line, and why."""
    return f"# {', '.join(line.entries)}: {line.title}\n"


def _ids(lines: Iterable[Line]) -> list[str]:
    return [entry for line in lines for entry in line.entries]


def _add_file(path: str, lines: list[Line], form: str, context: Context, draft: Draft) -> None:
    if lines:
        add_file_change(path, HEAD + _text(lines, form), _ids(lines), context, draft)


def _note_later_sysctls(lines: list[Line], root: Root, draft: Draft) -> None:
    """Note the files that are read after ours and set the same."""
    later = [path for path in root.glob("/etc/sysctl.d/*.conf") if path > SYSCTL]
    for path in (*later, "/etc/sysctl.conf"):
        for line in (root.read(path) or "").splitlines():
            name, equals, value = line.strip().lstrip("-").partition("=")
            name = name.strip().replace("/", ".")
            for ours in lines:
                if equals and name == ours.name and value.strip() != ours.value:
                    draft.note(
                        f"{path} is read after {SYSCTL} and sets {name} = {value.strip()[:40]}: "
                        "remove that line, or it wins at the next boot"
                    )


def _add_tuned(sysctls: list[Line], sysfs: list[Line], context: Context, draft: Draft) -> None:
    if not sysctls and not sysfs:
        return
    root = context.root
    folder = tuned_folder(root)
    active = (root.read("/etc/tuned/active_profile") or "").split()
    kept = [name for name in active if name != "latenz" and re.fullmatch(r"[A-Za-z0-9_.-]+", name)]
    content = (
        f"{HEAD}# The kernel command line stands in the boot loader's settings alone, so that it\n"
        "# takes effect at the next boot, whether TuneD runs or not.\n[main]\n"
        "summary=Real-time tunings by Latenz, on top of what was active\n"
    )
    content += f"include={','.join(kept)}\n" if kept else ""
    if context.isolated:
        content += f"\n[variables]\nisolated_cores={format_list(context.isolated)}\n"
    content += f"\n[sysctl]\n{_text(sysctls, '{}={}')}" if sysctls else ""
    content += f"\n[sysfs]\n{_text(sysfs, '{}={}')}" if sysfs else ""
    entries = _ids([*sysctls, *sysfs])
    add_file_change(f"{folder}/latenz/tuned.conf", content, entries, context, draft)
    add_file_change("/etc/tuned/active_profile", "latenz\n", entries, context, draft)
    add_file_change("/etc/tuned/profile_mode", "manual\n", entries, context, draft)
    if root.running and root.is_folder("/run/systemd/system"):
        draft.changes.append(TunedChange(entries=tuple(dict.fromkeys(entries))))
    else:
        draft.note("TuneD takes its profile latenz up when it is started next")


def _add_irq_unit(lines: list[Line], context: Context, draft: Draft) -> None:
    """Add a unit that writes affinities late: interrupts come up with their devices."""
    if not lines:
        return
    for line in lines:
        if not _CPUS.fullmatch(line.value):
            raise BadInput(f"{shown(line.value)} is not a set of CPUs", line.entries[0], "use {hk}")
    writes = "; ".join(
        f"for file in {line.name}; do echo {line.value} > $$file; done" for line in lines
    )
    content = (
        f"{HEAD}{''.join(dict.fromkeys(map(explained, lines)))}"
        "# Some interrupts refuse: those of one CPU, and those that the kernel manages.\n"
        f"{_late_unit('Device interrupts away from isolated CPUs', writes)}"
    )
    add_unit(IRQ_UNIT, content, _ids(lines), context, draft)


def _leave_to_init(
    lines: Sequence[Line], threads: tuple[dict[str, str], list[Entry]], draft: Draft
) -> None:
    """Leave to a person what only systemd would do at each boot, as commands of a shell."""
    writes = [
        f"for file in {line.name}; do echo {line.value} > $file; done"
        if set(line.name) & set("*?[")
        else f"echo {line.value} > {line.name}"
        for line in lines
    ]
    commands, concerned = threads
    entries = dict.fromkeys([*_ids(lines), *(entry.id for entry in concerned)])
    if commands:
        writes.append(_thread_loop(commands).replace("$$", "$"))
    if entries:
        title = "There is no systemd here that would set it at each boot"
        where = (
            "the init scripts of this machine (/etc/local.d/*.start, /etc/rc.local or their like)"
        )
        draft.by_hand.append(ByHand(tuple(entries), title, f"add to {where}: {'; '.join(writes)}"))


def _add_thread_unit(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    """Add a unit that gives the kernel's threads CPUs and policies: they are new at each boot."""
    commands, concerned = _thread_commands(wishes, context)
    if not commands:
        return
    lines = [Line(entry.id, "", [entry.id], entry.title) for entry in concerned]
    content = (
        f"{HEAD}{''.join(dict.fromkeys(map(explained, lines)))}"
        "# The kernel's threads have no program; some are bound and refuse.\n"
        f"{_late_unit('Threads of the kernel for isolated CPUs', _thread_loop(commands))}"
    )
    add_unit(THREAD_UNIT, content, _ids(lines), context, draft)


def _thread_commands(
    wishes: Sequence[Wish], context: Context
) -> tuple[dict[str, str], list[Entry]]:
    """Return branches of a shell's `case`, by the names of threads, and the entries they are of."""
    commands: dict[str, str] = {}
    concerned: list[Entry] = []
    for entry, action in wishes:
        if isinstance(action, Affinity):
            names = action.affinity
            command = f"taskset -pc {context.expand(action.cpus)}"
        elif isinstance(action, Policy):
            names, command = action.threads, f"chrt --{action.policy} -p {action.priority}"
        else:
            continue
        if not _THREADS.fullmatch(names):
            raise BadInput(f"{shown(names)} names no threads", entry.id, "use a-z, _, /, ? and *")
        commands[names] = f"{names}) {command} $${{folder##*/}};;"
        concerned.append(entry)
    return commands, concerned


def _thread_loop(commands: dict[str, str]) -> str:
    """Return what goes through the threads of the kernel; $ as units write it."""
    return (
        "for folder in /proc/[0-9]*; do [ -e $$folder/exe ] || { read -r name < $$folder/comm; "
        f"case $$name in {' '.join(commands.values())} esac; }}; done"
    )


def _late_unit(description: str, shell: str) -> str:
    return (
        f"[Unit]\nDescription={description} (latenz tune)\n"
        "After=network.target network-online.target\n\n"
        f"[Service]\nType=oneshot\nExecStart=/bin/sh -c '{{ {shell}; }} 2>/dev/null; true'\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def add_unit(
    path: str, content: str, entries: Iterable[str], context: Context, draft: Draft
) -> None:
    """Add a unit of our own, which starts with multi-user.target."""
    ids = tuple(dict.fromkeys(entries))
    add_file_change(path, content, ids, context, draft)
    link = f"{_UNITS}/multi-user.target.wants/{path.rpartition('/')[2]}"
    if context.root.link(link) != path:
        draft.changes.append(LinkChange(path=link, target=path, entries=ids))


def _add_modules(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    wanted = []
    for entry in dict.fromkeys(wish.entry.id for wish in wishes):
        options = [
            (wish.entry, wish.action)
            for wish in wishes
            if wish.entry.id == entry and isinstance(wish.action, ModuleOption)
        ]
        loaded = [
            each for each in options if context.root.exists(f"/sys/module/{each[1].modprobe}")
        ]
        wanted += [
            (owner, f"{action.modprobe} {action.option}", action.value)
            for owner, action in loaded or options
        ]
    lines = merged(wanted, context, draft)
    _add_file(MODPROBE, lines, "options {}={}", context, draft)
    if lines:
        draft.note(
            f"{MODPROBE} counts when the modules are loaded anew: at the next boot at the latest"
        )


def _add_manager(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    lines = merged(
        [
            (wish.entry, "CPUAffinity", wish.action.cpuaffinity)
            for wish in wishes
            if isinstance(wish.action, CpuAffinity)
        ],
        context,
        draft,
    )
    for line in lines:
        content = (
            f"{HEAD}{explained(line)}[Manager]\n"
            "# Empty first: systemd would add these CPUs to those that other files name.\n"
            f"CPUAffinity=\nCPUAffinity={line.value}\n"
        )
        add_file_change(MANAGER, content, line.entries, context, draft)


def _add_own_files(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    for entry, action in wishes:
        if isinstance(action, File):
            path, content = context.expand(action.file), context.expand(action.content)
            if path.startswith(_UNITS) and not has_systemd(context.root):
                draft.note(f"{entry.id}: there is no systemd that would read {path}")
                continue
            add_file_change(path, content, [entry.id], context, draft)


def tokens(wishes: Sequence[Wish], context: Context, draft: Draft) -> list[Line]:
    """Return the tokens of the kernel command line, each with its name; `hugepages` can repeat."""
    found: dict[str, Line] = {}
    for entry, action in wishes:
        if not isinstance(action, CmdlineToken):
            continue
        for token in plain(context.expand(action.cmdline), entry).split():
            name = token.partition("=")[0]
            key = token if name in ("hugepages", "hugepagesz") else name
            line = found.setdefault(key, Line(name, token, [], entry.title))
            if line.value != token:
                draft.note(f"{entry.id} wants {token}, {line.entries[0]} {line.value}: kept")
            elif entry.id not in line.entries:
                line.entries.append(entry.id)
    return list(found.values())


def add_disabled(units: Iterable[tuple[str, str]], context: Context, draft: Draft) -> None:
    """Add what keeps units from being started at boot, as `systemctl disable` does.

    Args:
        units: Names with their suffix, each with the entry that wants it.
        context: The machine.
        draft: Where it is added.
    """
    root = context.root
    for unit, entry in units:
        links = [
            path
            for pattern in (f"{_UNITS}/*", f"{_UNITS}/*.wants/*", f"{_UNITS}/*.requires/*")
            for path in root.glob(pattern)
            if (target := root.link(path))
            and target != "/dev/null"
            and unit in (target.rpartition("/")[2], path.rpartition("/")[2])
        ]
        draft.changes += [LinkChange(path=path, target=None, entries=(entry,)) for path in links]
        elsewhere = [
            path
            for folder in ("/usr/lib/systemd/system", "/lib/systemd/system")
            for wants in ("wants", "requires")
            for path in root.glob(f"{folder}/*.{wants}/{unit}")
        ]
        mask = f"{_UNITS}/{unit}"
        if elsewhere and not (root.exists(mask) or root.link(mask)):
            draft.changes.append(LinkChange(path=mask, target="/dev/null", entries=(entry,)))
        elif (
            not links
            and not elsewhere
            and root.glob(f"/etc/rc[2-5].d/S??{unit.rpartition('.')[0]}")
        ):
            draft.note(f"{unit} is started by a link in /etc/rc*.d: update-rc.d turns it off")
