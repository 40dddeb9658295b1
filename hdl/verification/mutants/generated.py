"""Makes mutants of every VHDL file: one small change of one place each, drawn by a seed.

What is changed: operators, constants, slices, names, conditions (an enable that is always or never
true), and statements that are left out (resets among them). What is not: initial values, which the
reset repeats; assertions; interfaces and attributes.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from simulation.vhdl_sources import ALL, HDL, listed

LOGIC = {"and": "or", "or": "and", "xor": "xnor", "nand": "and", "nor": "or"}
RELATIONS = {"=": "/=", "/=": "=", ">": ">=", ">=": ">", "<": "<="}

_WORD = re.compile(r"\b(and|or|xor|nand|nor)\b")
_RELATION = re.compile(r"(?<=[\w)' ]) (=|/=|>=|>|<) (?=[\w('])")
_SUM = re.compile(r"(?<=[\w)]) ([+-]) (?=[\w(])")
_BIT = re.compile(r"'([01])'")
_STRING = re.compile(r'"([01]+)"|x"([0-9A-F]+)"')
_INTEGER = re.compile(r"(?<![\w.\"'])(\d+)(?![\w.\"'])")
_CONDITION = re.compile(r"^(\s*(?:els)?if )(.+)( then)$")
_TRUTH = re.compile(r"\b(true|false)\b")
_SLICE = re.compile(r"\((\d+) (downto|to) (\d+)\)")
_ASSIGNMENT = re.compile(r"^\s*[a-z_][\w.]*(?:\([^<=]*\))? (?:<=|:=) .*;$")
_SIGNAL = re.compile(
    r"^\s*(?:signal +)?([a-z]\w*) +: +(?:in |out )?\s*([a-z][\w ().*+-]*?)(?: :=.*)?;?$"
)
_LEFT_ALONE = re.compile(
    r"^\s*(assert|report|severity|attribute|library|use|signal|end|for|component)\b"
)


@dataclass(frozen=True)
class Change:
    """One mutant.

    Attributes:
        file: Below hdl/.
        line: Counted from 1.
        operator: What kind of change it is.
        before: The line as it is.
        after: The line of the mutant.
        place: Which of the lines that read so, from 0.
    """

    file: str
    line: int
    operator: str
    before: str
    after: str
    place: int

    @property
    def name(self) -> str:
        """What it is known by, wherever the line moves."""
        text = "\0".join((self.file, self.before.strip(), self.after.strip(), str(self.place)))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def text(self) -> str:
        """The whole file with the change."""
        lines = (HDL / self.file).read_text().split("\n")
        lines[self.line - 1] = self.after
        return "\n".join(lines)


def files() -> list[str]:
    """Every file with something to change, in compile order; registers' names have nothing."""
    names = [str(path.relative_to(HDL)) for path in listed(*ALL)]
    return [name for name in names if not name.endswith("_registers_pkg.vhd")]


def changes(file: str) -> list[Change]:
    """Every change of one file."""
    found: list[Change] = []
    seen: dict[str, int] = {}
    text = (HDL / file).read_text().split("\n")
    names = _alike(text)
    inside = False
    for number, line in enumerate(text, start=1):
        inside = inside or re.match(r"(architecture|package body)\b", line) is not None
        code = line.split("--")[0].rstrip()
        if not inside or not code or _LEFT_ALONE.match(code) or "rising_edge" in code:
            continue
        place = seen.setdefault(line.strip(), 0)
        seen[line.strip()] += 1
        for operator, changed in _changed(code, names):
            found.append(Change(file, number, operator, line, changed, place))
    return found


def drawn(file: str, seed: int = 7) -> list[Change]:
    """All changes of a file, in turn of each operator, in an order that the seed decides."""
    kinds: dict[str, list[Change]] = {}
    ordered = sorted(changes(file), key=lambda change: _mixed(seed, change.name))
    for change in ordered:
        kinds.setdefault(change.operator, []).append(change)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [change for turn in turns for change in turn if change is not None]


def _mixed(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def _alike(text: list[str]) -> dict[str, list[str]]:
    """For each signal the others of its type in this file."""
    types: dict[str, list[str]] = {}
    for line in text:
        if match := _SIGNAL.match(line.split("--")[0].rstrip()):
            types.setdefault(match[2].strip(), []).append(match[1])
    return {name: names for names in types.values() for name in names if len(names) > 1}


def _changed(code: str, names: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Operator and new line of each change of one line."""
    for pattern, table, operator in (
        (_WORD, LOGIC, "logic"),
        (_RELATION, RELATIONS, "relation"),
        (_SUM, {"+": "-", "-": "+"}, "sum"),
        (_BIT, {"0": "1", "1": "0"}, "bit"),
        (_TRUTH, {"true": "false", "false": "true"}, "bit"),
    ):
        for match in pattern.finditer(code):
            yield operator, _with(code, match.span(1), table[match[1]])
    for match in re.finditer(r"\bnot ", code):
        yield "negation", _with(code, match.span(), "")
    for match in _STRING.finditer(code):
        digits = match[1] or match[2]
        other = digits[:-1] + ("0" if digits[-1] == "1" else "1")
        yield "constant", _with(code, match.span(1 if match[1] else 2), other)
    for match in _INTEGER.finditer(code):
        yield "constant", _with(code, match.span(), str(int(match[1]) + 1))
    for match in _SLICE.finditer(code):
        moved = f"({int(match[1]) + 1} {match[2]} {int(match[3]) + 1})"
        yield "slice", _with(code, match.span(), moved)
    if match := _CONDITION.match(code):
        for value in ("true", "false"):
            yield "condition", f"{match[1]}{value}{match[3]}"
        yield "condition", f"{match[1]}not ({match[2]}){match[3]}"
    if _ASSIGNMENT.match(code):
        yield "statement", ""
    yield from _renamed(code, names)


def _renamed(code: str, names: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Each name that is read, replaced by the next one of its type."""
    begin = max(code.find("<="), code.find(":="), code.find("=>"))
    if begin < 0 and not _CONDITION.match(code):
        return
    operator = "port" if "=>" in code and "<=" not in code else "name"
    for match in re.compile(r"(?<![\w.'])([a-z]\w*)(?![\w(']| *=>)").finditer(code, max(begin, 0)):
        alike = names.get(match[1], [match[1]])
        other = alike[(alike.index(match[1]) + 1) % len(alike)]
        if other != match[1]:
            yield operator, _with(code, match.span(1), other)


def _with(text: str, span: tuple[int, int], new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]
