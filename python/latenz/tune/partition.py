"""Isolation by a cpuset partition of control group v2: at run time, and at each boot by systemd.

A partition takes its CPUs out of all other control groups, and out of the scheduler's balancing.
Only what runs in its own group may use them: with systemd, the units of a slice.
"""

from collections.abc import Sequence

from latenz.tune.changes import PARTITION_UNIT, PartitionChange
from latenz.tune.context import Context
from latenz.tune.lasting import HEAD, Draft, Wish, add_file_change, add_unit, plain
from latenz.tune.model import Entry, Partition

SLICE = "/etc/systemd/system/latenz.slice"
_GROUP = "/sys/fs/cgroup/latenz.slice/cpuset.cpus.partition"
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
    """Add the change that makes the partition at once, if systemd runs here."""
    if context.root.running and context.root.is_folder("/run/systemd/system"):
        draft.changes.append(PartitionChange(entries=(entry.id,)))
    else:
        draft.note(f"{entry.id}: the partition is made when the machine starts")


def add_lasting_partition(wishes: Sequence[Wish], context: Context, draft: Draft) -> None:
    """Add the slice of the real-time work, and the unit that makes a partition of it."""
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
