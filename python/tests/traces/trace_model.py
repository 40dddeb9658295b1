"""A slow, plain model of what a trace tells about exits, from the text of trace-cmd report.

Written from the definition alone: the cost of an exit is the time from kvm_exit to the next
kvm_entry of the same thread.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

_LINE = re.compile(
    r"^\s*(?P<comm>.*)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+(?:\S+\s+)?"
    r"(?P<s>\d+)\.(?P<fraction>\d{6}|\d{9}): (?P<name>\w+):\s*(?P<details>.*)$"
)


@dataclass
class Row:
    count: int = 0
    costs_ns: list[int] = field(default_factory=list)
    userspace: int = 0
    away_ns: int = 0


def events(text):
    for line in text.splitlines():
        if match := _LINE.match(line):
            t_ns = int(match["s"]) * 10**9 + int(match["fraction"].ljust(9, "0"))
            yield t_ns, int(match["pid"]), match["name"], match["details"]


def switched(details):
    """The two threads, from either way of printing sched_switch."""
    pids = re.findall(r"(?:prev_pid|next_pid)=(\d+)|:(\d+) \[", details)
    return [int(one or other) for one, other in pids]


def exits(text):
    """Rows by (thread, reason)."""
    found = list(events(text))
    rows = defaultdict(Row)
    for position, (t_ns, pid, name, details) in enumerate(found):
        if name != "kvm_exit":
            continue
        row = rows[pid, re.search(r"reason (.*?) rip", details)[1]]
        row.count += 1
        gone_ns = None
        away_ns = 0
        userspace = False
        for later in range(position + 1, len(found)):
            later_ns, later_pid, later_name, later_details = found[later]
            if later_name == "kvm_exit" and later_pid == pid:
                break
            if later_name == "kvm_userspace_exit" and later_pid == pid:
                userspace = True
            if later_name == "sched_switch":
                before, after = switched(later_details)
                if before == pid:
                    gone_ns = later_ns
                elif after == pid and gone_ns is not None:
                    away_ns += later_ns - gone_ns
            if later_name == "kvm_entry" and later_pid == pid:
                row.costs_ns.append(later_ns - t_ns)
                row.away_ns += away_ns
                row.userspace += userspace
                break
    return dict(rows)
