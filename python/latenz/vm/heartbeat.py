"""Whether virtual time still passes on an emulated host as it should.

What an emulated processor that hangs in a busy loop executes most is PAUSE, for which QEMU needs a
thousand times longer than for other instructions: virtual time passes ten times more slowly than in
order, while QEMU works. How much it has worked its CPU time tells, which does not depend on what
else this computer does; and how fast this computer is, the CPU time that booting took.
"""

import os
from pathlib import Path

_WINDOW_BOOTS = 3
_FEWEST_BEATS = 12
"""In the CPU time of three boots; in order there are 50 and more, and 5 of a machine that hangs."""


class Heartbeat:
    """Follows an emulated host that writes ten lines a second of its own, virtual time.

    Args:
        beats: File that takes the lines.
        pid: File that QEMU writes its process number to.
    """

    def __init__(self, beats: Path, pid: Path) -> None:
        self._beats = beats
        self._pid = pid
        self._boot_cpu_s = 0.0
        self._began_cpu_s = 0.0
        self._began_beats = 0

    def is_lost(self) -> bool:
        """Return whether beats have become too few; to be asked often, from the start."""
        try:
            beats = self._beats.read_bytes().count(b"\n")
            cpu_s = _cpu_s(int(self._pid.read_text()))
        except (OSError, ValueError):
            return False  # it starts, or has just ended
        if beats == 0 or self._boot_cpu_s == 0:
            self._boot_cpu_s = self._began_cpu_s = cpu_s
            return False
        if cpu_s - self._began_cpu_s < _WINDOW_BOOTS * self._boot_cpu_s:
            return False
        came, self._began_beats = beats - self._began_beats, beats
        self._began_cpu_s = cpu_s
        return came < _FEWEST_BEATS


def _cpu_s(process: int) -> float:
    """Return the seconds that all threads of a process have run: proc(5), utime and stime."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in after_name[11:13]) / os.sysconf("SC_CLK_TCK")
