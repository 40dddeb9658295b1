"""Runs commands of the command line, each in a child on a terminal of its own.

The modules that take long to load are loaded once, before the children are made. A line on standard
input is a command as JSON: `{"words": [...], "columns": 80, "folder": "..."}`; its answer is a line
`{"code": 0, "written": "..."}`.
"""

import fcntl
import json
import os
import pty
import struct
import sys
import termios
import traceback

import duckdb  # noqa: F401 - for the children
import numpy  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pydantic  # noqa: F401
import rich.progress
import rich.table  # noqa: F401
import scipy.stats  # noqa: F401

from latenz import cli

CRASHED = 99


def command(words: list[str], folder: str) -> None:
    os.chdir(folder)
    os.environ.pop("COLUMNS", None)
    os.environ["TERM"] = "xterm"
    sys.argv = ["latenz", *words]
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    code = CRASHED
    try:
        cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(words: list[str], columns: int, folder: str) -> dict[str, object]:
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        command(words, folder)
    written = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            written += piece
    except OSError:  # its other end is closed
        pass
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "written": written.decode()}


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(**json.loads(line))) + "\n")
        sys.stdout.flush()
