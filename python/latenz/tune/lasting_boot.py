"""The kernel command line of the next boots, as each boot loader keeps it.

GRUB has drop-ins; entries after the Boot Loader Specification (Fedora's GRUB, systemd-boot) and
/etc/kernel/cmdline, from which new ones are made, are edited, as are U-Boot's extlinux.conf and the
Raspberry Pi's cmdline.txt. Every boot loader that is found is served: a machine may have files of
two, and the other's do no harm.
"""

import re
from collections.abc import Sequence

from latenz.tune.changes import BOOT_ENTRIES, BootMenuChange, FileChange
from latenz.tune.context import Context
from latenz.tune.lasting import (
    HEAD,
    ByHand,
    Draft,
    Line,
    Wish,
    add_file_change,
    explained,
    tokens,
)
from latenz.tune.root import Root
from latenz.tune.transaction import Transaction

GRUB = "/etc/default/grub.d/latenz.cfg"
KERNEL_CMDLINE = "/etc/kernel/cmdline"
_MKCONFIG = tuple(
    f"/usr/{folder}/{name}"
    for folder in ("sbin", "bin")
    for name in ("grub-mkconfig", "grub2-mkconfig")
)
_ENTRIES = ("/boot/loader/entries", "/boot/efi/loader/entries", "/efi/loader/entries")
_EXTLINUX = "/boot/extlinux/extlinux.conf"
_PROXMOX = "/etc/kernel/proxmox-boot-uuids"
_TRANSACTIONAL = ("/usr/sbin/transactional-update", "/usr/bin/transactional-update")
_UPDATE_EXTLINUX = "/etc/update-extlinux.conf"
_ARMBIAN = "/boot/armbianEnv.txt"
_RASPBERRY_PI = ("/boot/firmware/cmdline.txt", "/boot/cmdline.txt")
_ASSIGNS = r"^\s*(?:export\s+)?GRUB_CMDLINE_LINUX=(.*)$"
_MENUS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")


def add_command_line(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    """Add the changes to all boot loaders that are found; say what to add where there is none."""
    lines = tokens(wishes, context, draft)
    if not lines:
        return
    if by_hand := _by_others(lines, context):
        draft.by_hand.append(by_hand)
        return
    before = len(draft.changes)
    served = [
        _add_armbian(lines, context, draft),
        _add_entries(lines, context, draft),
        _add_extlinux(lines, context, draft),
        _add_raspberry_pi(lines, context, draft),
    ]
    if _has_drop_ins(context.root):
        served.append(True)
        _add_grub(lines, context, draft)
    if not any(served):
        draft.by_hand.append(_left_to_a_person(lines, context.root))
    elif len(draft.changes) > before:
        draft.note("the kernel command line takes effect at the next boot")


def made_since(transaction: Transaction) -> list[str]:
    """Return the boot entries that were made after us with what we added, as for a new kernel."""
    root = Root(transaction.place.top)
    ours: set[bytes] = set()
    known = set()
    for number, change in enumerate(transaction.changes):
        if not isinstance(change, FileChange) or not change.content or not change.before:
            continue
        backup = transaction.folder / str(number)
        if (BOOT_ENTRIES in change.path or change.path == KERNEL_CMDLINE) and backup.is_file():
            ours |= set(change.content.split()) - set(backup.read_bytes().split())
            known.add(change.path)
    return [
        path
        for folder in _ENTRIES
        for path in root.glob(f"{folder}/*.conf")
        if path not in known and ours & set((root.read_bytes(path) or b"").split())
    ]


def _by_others(lines: Sequence[Line], context: Context) -> ByHand | None:
    """Return what to run where another program owns the boot entries, and would undo edits."""
    root, given = context.root, dict(context.parameters or ())
    values = [line.value for line in lines]
    if "ostree" in given or root.exists("/run/ostree-booted"):
        title = "OSTree owns the boot entries of this machine: edits would be lost"
        names = [line.name for line in lines if line.name.replace("-", "_") in given]
        options = [f"--delete-if-present={name}={given[name.replace('-', '_')]}" for name in names]
        options += [f"--append-if-missing={value}" for value in values]
        return ByHand(tuple(_entries(lines)), title, f"rpm-ostree kargs {' '.join(options)}")
    if "snapd_recovery_mode" in given or root.exists("/var/lib/snapd/modeenv"):
        title = "Ubuntu Core owns the kernel command line of this machine"
        setting = f'system.kernel.dangerous-cmdline-append="{" ".join(values)}"'
        return ByHand(tuple(_entries(lines)), title, f"snap set system {setting}")
    if root.exists(_PROXMOX) and root.exists(KERNEL_CMDLINE) and "BOOT_IMAGE" not in given:
        title = "Proxmox' boot tool makes the boot entries, on partitions of its own"
        text = " ".join(values)
        how = f"add to the line of {KERNEL_CMDLINE}: {text}; then proxmox-boot-tool refresh"
        return ByHand(tuple(_entries(lines)), title, how)
    return None


def _left_to_a_person(lines: Sequence[Line], root: Root) -> ByHand:
    """Return what to do where no file is ours to edit, as far as it can be told."""
    text = " ".join(line.value for line in lines)
    title, where = "The boot loader of this machine is not known", "the kernel command line"
    after = ""
    if root.exists("/etc/default/grub"):
        title = "GRUB reads no drop-ins on this machine"
        where = "GRUB_CMDLINE_LINUX in /etc/default/grub"
        menu = next((path for path in _MENUS if root.exists(path)), _MENUS[0])
        after = f"; then {'grub2' if 'grub2' in menu else 'grub'}-mkconfig -o {menu}"
        if any(map(root.exists, _TRANSACTIONAL)):  # its root is read-only, and a new one is booted
            title = "The root of this machine is changed by transactional-update only"
            after = "; then transactional-update grub.cfg"
    elif root.exists(_UPDATE_EXTLINUX):
        title = "update-extlinux makes the boot menu of this machine"
        where = f"default_kernel_opts in {_UPDATE_EXTLINUX}"
        after = "; then update-extlinux"
    elif root.exists("/etc/fw_env.config"):
        title = "U-Boot keeps the command line of this machine in its environment"
        where = "bootargs (fw_printenv bootargs shows it)"
        after = ', with fw_setenv bootargs "ALL OF IT"'
    elif root.exists(KERNEL_CMDLINE):
        title = "The command line is part of images that are made on this machine"
        where = KERNEL_CMDLINE
        after = "; then make the images again, as kernel-install add-all does"
    return ByHand(tuple(_entries(lines)), title, f"add to {where}: {text}{after}")


def _entries(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(entry for line in lines for entry in line.entries))


def _has_drop_ins(root: Root) -> bool:
    """Return whether GRUB's menu is made with the files of /etc/default/grub.d."""
    texts = [text for path in _MKCONFIG if (text := root.read(path)) is not None]
    if texts:
        return any("/default/grub.d" in text for text in texts)
    return root.is_folder("/etc/default/grub.d") or (
        root.exists("/etc/default/grub") and root.exists("/etc/debian_version")
    )


def _add_grub(lines: Sequence[Line], context: Context, draft: Draft) -> None:
    entries = _entries(lines)
    content = HEAD + "".join(dict.fromkeys(map(explained, lines)))
    if again := _given_otherwise(lines, context):
        patterns = "|".join(f"{name}|{name}=*" for name in again)
        content += (
            "# Without what is set again below: of some settings the kernel takes the first.\n"
            "latenz_others() {\n  set -f\n  for word in $1; do\n"
            f'    case $word in {patterns}) ;; *) printf "%s " "$word" ;; esac\n'
            "  done\n}\n"
            'GRUB_CMDLINE_LINUX="$(latenz_others "${GRUB_CMDLINE_LINUX:-}")"\n'
            'GRUB_CMDLINE_LINUX_DEFAULT="$(latenz_others "${GRUB_CMDLINE_LINUX_DEFAULT:-}")"\n'
        )
    text = " ".join(line.value for line in lines)
    content += f'GRUB_CMDLINE_LINUX="${{GRUB_CMDLINE_LINUX:-}} {text}"\n'
    before = len(draft.changes)
    add_file_change(GRUB, content, entries, context, draft)
    menu = next((path for path in _MENUS if context.root.exists(path)), None)
    for path in context.root.glob("/etc/default/grub.d/*.cfg"):
        assigned = re.findall(_ASSIGNS, context.root.read(path) or "", re.MULTILINE)
        if path > GRUB and any("GRUB_CMDLINE_LINUX" not in value for value in assigned):
            draft.note(
                f"{path} is read after {GRUB} and sets GRUB_CMDLINE_LINUX anew: ours is lost"
            )
    if len(draft.changes) == before:
        return
    if context.root.running and menu:
        draft.changes.append(BootMenuChange(path=menu, entries=tuple(entries)))  # type: ignore[arg-type]
    else:
        draft.note("run update-grub on the machine itself, so that GRUB's menu takes it up")


def _given_otherwise(lines: Sequence[Line], context: Context) -> list[str]:
    """Return names of ours that the machine's command line gives another value already."""
    ours = {line.name.replace("-", "_"): line for line in lines}
    given = context.parameters or ()
    return sorted(
        ours[name].name
        for name, value in dict(given).items()
        if name in ours and ours[name].value.partition("=")[2] != value
    )


def _add_entries(lines: Sequence[Line], context: Context, draft: Draft) -> bool:
    """Edit boot entries, but for those that rescue; return whether there are any."""
    root = context.root
    paths = [
        path
        for folder in _ENTRIES
        for path in root.glob(f"{folder}/*.conf")
        if "rescue" not in path
    ]
    for path in paths:
        if text := _content(root, path):
            add_file_change(path, _with_options(text, lines), _entries(lines), context, draft)
    if not paths:
        return False
    if (text := _content(root, KERNEL_CMDLINE)) is not None:
        content = _with_tokens(text.strip(), lines) + "\n"
        add_file_change(KERNEL_CMDLINE, content, _entries(lines), context, draft)
    else:
        draft.note(
            f"there is no {KERNEL_CMDLINE}: a new kernel takes over what the running one has"
        )
    return True


def _add_extlinux(lines: Sequence[Line], context: Context, draft: Draft) -> bool:
    """Edit the labels of extlinux.conf, but for those that rescue; return whether there is one."""
    text = _content(context.root, _EXTLINUX)
    if text is None:
        return False
    rows = text.split("\n")
    for at, row in enumerate(rows):
        match = re.match(r"(\s*append\s+)(.*\S)", row, re.IGNORECASE)
        if match and not {"single", "rescue", "emergency"} & set(match[2].split()):
            rows[at] = match[1] + _with_tokens(match[2], lines)
    add_file_change(_EXTLINUX, "\n".join(rows), _entries(lines), context, draft)
    if context.root.exists("/etc/default/u-boot"):
        draft.note(
            f"u-boot-update makes {_EXTLINUX} again, as for a new kernel: what is added to it "
            "belongs into U_BOOT_PARAMETERS in /etc/default/u-boot, too"
        )
    return True


def _add_armbian(lines: Sequence[Line], context: Context, draft: Draft) -> bool:
    """Edit the line of Armbian's environment that is added to U-Boot's; return if there is one."""
    text = _content(context.root, _ARMBIAN)
    if text is None:
        return False
    rows = text.removesuffix("\n").split("\n")
    at = next((at for at, row in enumerate(rows) if row.startswith("extraargs=")), None)
    if at is None:
        rows.append("extraargs=" + _with_tokens("", lines))
    else:
        rows[at] = "extraargs=" + _with_tokens(rows[at].partition("=")[2], lines)
    add_file_change(_ARMBIAN, "\n".join(rows) + "\n", _entries(lines), context, draft)
    return True


def _add_raspberry_pi(lines: Sequence[Line], context: Context, draft: Draft) -> bool:
    """Edit the Raspberry Pi's command line, which is one line; return whether there is one."""
    for path in _RASPBERRY_PI:
        text = (_content(context.root, path) or "").strip()
        if text and "\n" not in text:
            content = _with_tokens(text, lines) + "\n"
            add_file_change(path, content, _entries(lines), context, draft)
            return True
    return False


def _with_options(entry: str, lines: Sequence[Line]) -> str:
    """Return a boot entry whose options are ours after the others."""
    rows = entry.split("\n")
    options = [at for at, row in enumerate(rows) if re.match(r"options(\s|$)", row)]
    if not options:
        return entry.rstrip("\n") + "\noptions " + " ".join(line.value for line in lines) + "\n"
    for at in options:
        others = _with_tokens(rows[at][len("options") :].strip(), lines, add=at == options[-1])
        rows[at] = f"options {others}".rstrip()
    return "\n".join(rows).removesuffix("\n") + "\n"


def _content(root: Root, path: str) -> str | None:
    """Return the text of a file, from which its bytes can be made again, whatever they are."""
    found = root.read_bytes(path)
    return None if found is None else found.decode("utf-8", "surrogateescape")


def _with_tokens(command_line: str, lines: Sequence[Line], *, add: bool = True) -> str:
    """Return a command line with ours at its end, and no others of their names."""
    ours = {line.name for line in lines}
    words = re.findall(r'(?:[^\s"]|"[^"]*"?)+', command_line)
    kept = [word for word in words if word.partition("=")[0] not in ours]
    return " ".join([*kept, *(line.value for line in lines if add)])
