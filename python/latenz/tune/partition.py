"""Isolation by a cpuset partition of control group v2: at run time, and at each boot by systemd.

A partition takes its CPUs out of all other control groups, and out of the scheduler's balancing.
Only what runs in its own group may use them: with systemd, the units of a slice. Without systemd,
the group is made at once, and is gone after a restart.
"""

from collections.abc import Sequence

from latenz.tune.changes import (
    PARTITION_GROUP,
    PARTITION_UNIT,
    GroupChange,
    PartitionChange,
)
from latenz.tune.context import Context
from latenz.tune.lasting import HEAD, Draft, Wish, add_file_change, add_unit, plain
from latenz.tune.model import Entry, Partition
from latenz.tune.root import Root

SLICE = f"/etc/systemd/system/{PARTITION_GROUP}"
_GROUP = f"/sys/fs/cgroup/{PARTITION_GROUP}/cpuset.cpus.partition"
_UNIT = f"""{HEAD}[Unit]
Description=Isolated cpuset partition for real-time work (latenz tune)
Requires=latenz.slice
After=latenz.slice

[Service]
Type=oneshot
RemainAfterExit=yes
# The kernel takes the word in any case, and says there whether the partition is valid.
ExecStart=/bin/sh -c 'echo isolated > {_GROUP} && read -r state < {_GROUP} && echo "$$state" && \\
  [ "$$state" = isolated ]'
ExecStop=/bin/sh -c 'echo member > {_GROUP}'

[Install]
WantedBy=multi-user.target
"""


def add_partition_now(entry: Entry, context: Context, draft: Draft) -> None:
    """Add the change that makes the partition at once, by systemd if it runs there."""
    root = context.root
    if not root.running:
        where = "when the machine starts" if _is_systemds(root) else "on the machine itself only"
        draft.note(f"{entry.id}: the partition is made {where}")
    elif root.is_folder("/run/systemd/system"):
        draft.changes.append(PartitionChange(entries=(entry.id,)))
    else:
        draft.changes.append(GroupChange(cpus=context.expand("{iso}"), entries=(entry.id,)))


def _is_systemds(root: Root) -> bool:
    """Return whether systemd runs the machine: the control groups are its own then."""
    return (root.read("/proc/1/comm") or "").strip() == "systemd"


def add_lasting_partition(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    """Add the slice of the real-time work, and the unit that makes a partition of it.

    Where there is no systemd, nothing can make it last.
    """
    if not _is_systemds(context.root):
        return
    for entry, action in wishes:
        if isinstance(action, Partition):
            cpus = plain(context.expand(action.partition), entry)
            content = (
                f"{HEAD}# {entry.id}: {entry.title}\n"
                "[Unit]\nDescription=Real-time work on isolated CPUs (latenz tune)\n\n"
                f"[Slice]\nAllowedCPUs={cpus}\n"
            )
            add_file_change(SLICE, content, [entry.id], context, draft)
            add_unit(PARTITION_UNIT, _UNIT, [entry.id], context, draft)
