"""Tells `latenz attach` where a cycle of a Python loop begins and ends; `latenz/mark.h` for C.

Call `begin` and `end` in the thread that is measured; either may be left out. Each is a system call
without effect (prctl with an option that Linux does not have), which needs no right. The file
stands alone: copy it if Latenz is not installed where the loop runs.
"""

import ctypes

_OPTION, _BEGIN, _END = 0x4C545A4D, 1, 2
_prctl = ctypes.CDLL(None).prctl
_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def begin() -> None:
    """Mark that a cycle begins here."""
    _prctl(_OPTION, _BEGIN, 0, 0, 0)


def end() -> None:
    """Mark that the cycle's work is done."""
    _prctl(_OPTION, _END, 0, 0, 0)
