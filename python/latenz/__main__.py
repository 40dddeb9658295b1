"""The command line as `python -m latenz` and as the installed script start it.

Python itself would take modules from the current folder, where a stranger's files may lie, while
Latenz often runs as root. So nothing but the standard library's first modules is imported here
before Python runs without that folder, and no program that Latenz starts is given it either.
"""

import os
import sys


def main() -> None:
    """Run the command line with no module from the current folder."""
    if "PYTHONPATH" in os.environ and not sys.flags.ignore_environment:
        given = os.environ["PYTHONPATH"].split(os.pathsep)
        kept = os.pathsep.join(path for path in given if path.startswith("/"))
        if kept != os.environ["PYTHONPATH"]:  # an empty or relative entry is the current folder
            os.environ["PYTHONPATH"] = kept
            _start_again()
    if not sys.flags.safe_path:
        _start_again()
    from latenz.cli import main as command_line

    command_line()


def _start_again() -> None:
    os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])  # noqa: S606 - no shell


if __name__ == "__main__":
    main()
