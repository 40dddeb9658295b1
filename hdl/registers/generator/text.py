# SPDX-License-Identifier: Apache-2.0
"""Small helpers for text that is going to be a source file."""

import re
import textwrap

from .model import Register

_OPERATORS = {"&&": "and", "||": "or", "!=": "/=", "==": "="}


def origin(source: str) -> str:
    """What a banner says about where a file is from."""
    return f"Generated from hdl/registers/{source} by hdl/registers/generate: edit that, not this."


def comment(text: str, prefix: str, width: int = 100) -> list[str]:
    """Lines of a comment, wrapped; prefix is the indentation and the comment's mark."""
    return textwrap.wrap(
        text, width, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False
    )


def sentence(register: Register) -> str:
    """What a register is, and when it exists."""
    title = register.title[0].upper() + register.title[1:]
    return f"{title}; exists if {register.present_when}." if register.present_when else f"{title}."


def vhdl_condition(condition: str) -> str:
    """A SystemRDL condition as VHDL."""
    vhdl = re.sub(r"&&|\|\||!=|==", lambda found: _OPERATORS[found[0]], condition)
    return re.sub(r"!\s*", "not ", vhdl)


def aligned(rows: list[tuple[str, str]], indent: str, separator: str) -> list[str]:
    """Rows of two columns, the second one aligned."""
    width = max(len(left) for left, _ in rows)
    return [f"{indent}{left:<{width}} {separator} {right}" for left, right in rows]


def assignment(left: str, right: str, indent: str, width: int = 100) -> list[str]:
    """A signal assignment on one line, or on two, split at its last "and", if that is too long."""
    line = f"{indent}{left} <= {right};"
    if len(line) <= width:
        return [line]
    head, tail = line.rsplit(" and ", 1)
    return [f"{head} and", f"{indent}    {tail}"]
