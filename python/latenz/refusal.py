"""Why the kernel refuses real-time scheduling with EPERM, which many things can cause.

The probes tell the same of themselves (probes/src/refusal.cpp), where there is no Python.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from latenz.machine import measured_machine

_CAP_SYS_NICE = 23
_ALL_USERS = 2**32 - 1


@dataclass(frozen=True)
class Rights:
    """What the kernel goes by.

    Attributes:
        capable: Has CAP_SYS_NICE, if only within its user namespace.
        in_user_namespace: Its root is not the machine's.
        is_root: Is called root.
        priority_limit: RLIMIT_RTPRIO.
        empty_group: Its control group, if that has no real-time time.
        groups: Folder of the control groups.
        filtered: A seccomp filter is in place.
    """

    capable: bool = False
    in_user_namespace: bool = False
    is_root: bool = False
    priority_limit: int = 0
    empty_group: str = ""
    groups: str = ""
    filtered: bool = False

    @classmethod
    def read(cls, process: Path = Path("/proc/self")) -> "Rights":
        """Read those of this process.

        Args:
            process: Its folder of /proc.
        """
        status = _text(process / "status")
        effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
        groups, empty_group = _empty_group(process)
        return cls(
            capable=bool(effective and int(effective[1], 16) >> _CAP_SYS_NICE & 1),
            in_user_namespace=_text(process / "uid_map").split() not in ([], _whole_map()),
            is_root=measured_machine().is_root(),
            priority_limit=_priority_limit(_text(process / "limits")),
            empty_group=empty_group,
            groups=groups,
            filtered=re.search(r"^Seccomp:\s*2$", status, re.MULTILINE) is not None,
        )


def why_refused(rights: Rights, priority: int) -> tuple[str, str]:
    """Return the cause of a refusal, and the command or change that ends it; it may be empty.

    Args:
        rights: Of the process that was refused.
        priority: The real-time priority that was asked for.
    """
    limits = "/etc/security/limits.conf"
    if rights.priority_limit < priority:
        if rights.in_user_namespace:
            return (
                "root of a user namespace (a rootless container) is not root to the scheduler",
                f"start it outside, or by a user with 'rtprio {priority}' in {limits}",
            )
        if not rights.capable and rights.is_root:
            return (
                "this container or service has no CAP_SYS_NICE",
                "start it with --cap-add=SYS_NICE (systemd: AmbientCapabilities=CAP_SYS_NICE)",
            )
        if not rights.capable:
            limit = rights.priority_limit
            reason = f"the limit rtprio is {limit}" if limit else "neither root nor a limit rtprio"
            allow = f"write 'USER - rtprio {priority}' into {limits} and log in again"
            return reason, f"run as root, or {allow}"
    if rights.empty_group:
        return (
            f"the control group {rights.empty_group} has no real-time time (RT_GROUP_SCHED)",
            f"echo $$ > {rights.groups}/cgroup.procs",
        )
    if rights.filtered:
        return (
            "a filter of system calls forbids it",
            "start the container with --security-opt seccomp=unconfined",
        )
    return "a security module forbids it", "look for what was denied: dmesg"


def _text(path: Path) -> str:
    return (measured_machine().content(os.fspath(path)) or b"").decode("utf-8", "replace")


def _priority_limit(limits: str) -> int:
    """Return RLIMIT_RTPRIO, the soft one: /proc/PID/limits."""
    told = re.search(r"^Max realtime priority\s+(\d+|unlimited)", limits, re.MULTILINE)
    if told is None:
        return 0
    return 99 if told[1] == "unlimited" else int(told[1])


def _whole_map() -> list[str]:
    return ["0", "0", str(_ALL_USERS)]


def _empty_group(process: Path) -> tuple[str, str]:
    """Return the folder of the control groups and our group, if that has no real-time time."""
    group = _group_of_cpu(_text(process / "cgroup"))
    mount = group and _mount(_text(process / "mountinfo"), unified=group[1])
    if not group or not mount:
        return "", ""
    root, folder = mount
    below = group[0].removeprefix(root) if root != "/" else group[0]
    if below in ("", "/"):
        return "", ""
    # Version 2 has no file for it: a group that has the controller has none of that time.
    name = "cpu.max" if group[1] else "cpu.rt_runtime_us"
    told = _text(Path(folder + below) / name).strip()
    is_empty = bool(told) if group[1] else told == "0"
    return (folder, below) if is_empty else ("", "")


def _group_of_cpu(text: str) -> tuple[str, bool] | None:
    """Return our group of the controller `cpu`, and whether it is one of version 2."""
    unified = None
    for line in text.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if "cpu" in controllers.split(","):
            return path, False
        if not controllers:
            unified = path, True
    return unified


def _mount(text: str, *, unified: bool) -> tuple[str, str] | None:
    """Return the root of the mount of the control groups, and its folder."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        mounted, kind = before.split(), after.split()
        if len(mounted) < 5 or len(kind) < 3:
            continue
        wanted = kind[0] == "cgroup2" if unified else "cpu" in kind[2].split(",")
        if wanted and (unified or kind[0] == "cgroup"):
            return mounted[3], mounted[4]
    return None
