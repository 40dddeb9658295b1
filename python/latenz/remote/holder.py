"""Holds the local end of a link, so that the target hears of Latenz' end however that comes.

Latenz starts this file as a small process of its own, which starts ssh and copies to it what
Latenz sends. When that ends without being told so, because Latenz was killed, it asks the agent on
the target to end, and waits for that. It imports only the standard library.

Arguments: descriptor of ssh's output (kept open, read only once Latenz is gone), then the command.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

LAST_REQUEST = b"end 0 0\n"
_LONGEST_END_S = 15.0


def _copy(link: "subprocess.Popen[bytes]", to: int) -> None:
    """Copy until there is no more to copy, or the link has ended."""
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    waiting.register(os.pidfd_open(link.pid), select.POLLIN)
    while link.poll() is None:
        if any(descriptor == 0 for descriptor, _ in waiting.poll()):
            data = os.read(0, 65536)
            if not data:
                return
            while data:
                data = data[os.write(to, data) :]


def _await_end(link: "subprocess.Popen[bytes]", output: int) -> None:
    """Take what the agent still sends, so that it can end; and the descriptor's end."""
    os.set_blocking(output, False)
    deadline = time.monotonic() + _LONGEST_END_S
    while link.poll() is None and time.monotonic() < deadline:
        if select.select([output], [], [], 0.1)[0]:
            os.read(output, 65536)


def _hold(output: int, command: Sequence[str]) -> int:
    def give_up(_number: int, _frame: FrameType | None) -> None:
        link.kill()
        os._exit(1)

    try:
        # In a session of its own: Ctrl-C is for Latenz, which ends the link in order.
        link = subprocess.Popen(command, stdin=subprocess.PIPE)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    signal.signal(signal.SIGTERM, give_up)
    os.close(1)  # the link's end is seen by Latenz when all have closed it
    to_link = link.stdin.fileno() if link.stdin else -1
    try:
        _copy(link, to_link)
        os.write(to_link, LAST_REQUEST)
        _await_end(link, output)
    except BrokenPipeError:
        pass
    finally:
        if link.poll() is None:
            link.kill()
    return link.wait()


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(_hold(int(sys.argv[1]), sys.argv[2:]))
