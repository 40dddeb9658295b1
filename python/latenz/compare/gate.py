"""The language of `--fail-if`: which change between two runs fails a gate.

```
expression = term { "or" term }
term       = clause { "and" clause }
clause     = "(" expression ")"
           | statistic [ "significantly" ] comparison change
           | statistic "ratio" [ "significantly" ] comparison number
           | statistic comparison value
statistic  = "mean" | "median" | "p90" | "p99" | "p99.9" | "p99.99" | "min" | "max" | "stdev"
           | "miss_rate"
comparison = ">" | ">=" | "<" | "<="
change     = sign number "%" | sign duration         ("miss_rate": sign number)
value      = duration                                ("miss_rate": number)
duration   = number unit, unit = "ns" | "us" | "µs" | "ms" | "s"
sign       = "+" | "-"
```

A threshold with a sign is a change, B minus A ("+10%" of A's size); without one it is B's own
value; after `ratio` it is B over A. `significantly` asks besides that the interval of the
difference excludes no change, in the direction of the comparison; without an interval nothing can
be told. Figures are compared exactly, as fractions.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from latenz.durations import NANOSECONDS
from latenz.errors import BadInput

STATISTICS = (
    "mean",
    "median",
    "p90",
    "p99",
    "p99.9",
    "p99.99",
    "min",
    "max",
    "stdev",
    "miss_rate",
)
_ALSO = {"avg": "mean", "average": "mean", "p50": "median"}
"""What other tools call them."""
_WHERE = "--fail-if"
_EXAMPLE = 'write for example "p99 significantly > +10% or max > 3ms"'
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z_0-9.]*)"
    r"|(?P<number>[+-]?(?:[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?)(?:%|[a-zµμ]+)?)"
    r"|(?P<sign>>=|<=|>|<|\(|\)))"
)
_NUMBER = re.compile(r"([+-]?)([0-9.]+(?:[eE][+-]?[0-9]+)?)(.*)")
_LONGEST = 10_000
_DEEPEST = 50

Truth = bool | None
Kind = Literal["value", "change", "percent", "ratio"]
_COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


@dataclass(frozen=True)
class Figure:
    """One statistic of both sides, for the gate.

    Attributes:
        a: Value of the first side; None where it is not known.
        b: Value of the second.
        low: Lower end of the interval of b - a; None where there is none.
        high: Its upper end.
        unknown: Why nothing can be told of it, though there are values; None if something can.
        why_none: Why there is no interval, where there is none.
    """

    a: float | None
    b: float | None
    low: float | None
    high: float | None
    unknown: str | None = None
    why_none: str = "none is known"


@dataclass(frozen=True)
class Clause:
    """One condition on one statistic, such as `p99 significantly > +10%`."""

    statistic: str
    kind: Kind
    significantly: bool
    comparison: str
    threshold: Fraction
    """In nanoseconds, per cent, or as a plain number."""
    text: str

    def holds(self, figures: Mapping[str, Figure]) -> Truth:
        """Tell whether the condition is fulfilled; None if the figures cannot tell."""
        figure = figures[self.statistic]
        compare = _COMPARISONS[self.comparison]
        if figure.b is None or (self.kind != "value" and figure.a is None) or figure.unknown:
            return None
        if self.significantly and (figure.low is None or figure.high is None):
            return None
        b = Fraction(figure.b)
        if self.kind == "value" or figure.a is None:
            return compare(b, self.threshold)
        a = Fraction(figure.a)
        if self.kind == "ratio":
            if a < 0 or b < 0 or a == b == 0:
                return None
            reached = compare(b, self.threshold * a)
        else:
            threshold = self.threshold * (abs(a) / 100 if self.kind == "percent" else 1)
            reached = compare(b - a, threshold)
        return self._significant(figure) if reached and self.significantly else reached

    def _significant(self, figure: Figure) -> Truth:
        if figure.low is None or figure.high is None:
            return None
        return figure.low > 0 if self.comparison.startswith(">") else figure.high < 0

    def clauses(self) -> "tuple[Clause, ...]":
        """Return the conditions this consists of: itself."""
        return (self,)


@dataclass(frozen=True)
class Joined:
    """Conditions joined by `or` (one suffices) or `and` (all are needed)."""

    word: Literal["or", "and"]
    parts: "tuple[Expression, ...]"

    def holds(self, figures: Mapping[str, Figure]) -> Truth:
        """Tell whether it is fulfilled; None only if the unknown parts could decide it."""
        truths = [part.holds(figures) for part in self.parts]
        decisive = self.word == "or"
        if decisive in truths:
            return decisive
        return None if None in truths else not decisive

    def clauses(self) -> tuple[Clause, ...]:
        """Return the single conditions it consists of."""
        return tuple(clause for part in self.parts for clause in part.clauses())


Expression = Clause | Joined


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        BadInput: It does not follow the grammar; position and remedy are told.
    """
    if len(text) > _LONGEST:
        raise BadInput(f"the expression has {len(text)} characters", _WHERE, f"at most {_LONGEST}")
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parse(self) -> Expression:
        found = self._joined("or")
        if token := self._peek():
            raise _wrong(token, 'join conditions by "or" or "and"')
        return found

    def _joined(self, word: Literal["or", "and"]) -> Expression:
        def part() -> Expression:
            return self._joined("and") if word == "or" else self._part()

        parts = [part()]
        while self._take("word", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _part(self) -> Expression:
        if not self._take("sign", "("):
            return self._clause()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadInput(f"more than {_DEEPEST} nested parentheses", _WHERE, "use fewer")
        found = self._joined("or")
        self._depth -= 1
        if not self._take("sign", ")"):
            raise self._missing('close the parenthesis with ")"')
        return found

    def _clause(self) -> Clause:
        wanted = "a statistic: " + ", ".join(STATISTICS)
        statistic = self._expect("word", (*STATISTICS, *_ALSO), wanted)
        name = _ALSO.get(statistic.text, statistic.text)
        ratio = self._take("word", "ratio") is not None
        significantly = self._take("word", "significantly") is not None
        comparison = self._expect("sign", tuple(_COMPARISONS), "a comparison: >, >=, < or <=")
        token = self._peek()
        if token is None or token.kind != "number":
            raise self._missing('give a threshold such as "+10%", "+5us" or "3ms"')
        self._next += 1
        kind, threshold = _threshold(token, name, ratio)
        if significantly and kind == "value":
            raise _wrong(token, 'after "significantly" give a change, such as "+5us" or "+10%"')
        text = self._text[statistic.position : token.position + len(token.text)]
        return Clause(name, kind, significantly, comparison.text, threshold, " ".join(text.split()))

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str, *texts: str) -> _Token | None:
        token = self._peek()
        if token is None or token.kind != kind or token.text not in texts:
            return None
        self._next += 1
        return token

    def _expect(self, kind: str, texts: tuple[str, ...], remedy: str) -> _Token:
        token = self._take(kind, *texts)
        if token is None:
            raise self._missing(f"there should be {remedy}")
        return token

    def _missing(self, remedy: str) -> BadInput:
        token = self._peek()
        if token is not None:
            return _wrong(token, remedy)
        return BadInput("the expression ends too early", _WHERE, f"{remedy}; {_EXAMPLE}")


def _tokens(text: str) -> "list[_Token]":
    tokens = []
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            start = len(text) - len(text[position:].lstrip())
            raise BadInput(
                f"{text[start]!r} at character {start + 1} has no meaning", _WHERE, _EXAMPLE
            )
        kind = found.lastgroup or ""
        tokens.append(_Token(kind, found[kind], found.start(kind)))
        position = found.end()
    return tokens


def _wrong(token: _Token, remedy: str) -> BadInput:
    return BadInput(f"{token.text!r} at character {token.position + 1}", _WHERE, remedy)


def _threshold(token: _Token, statistic: str, ratio: bool) -> tuple[Kind, Fraction]:
    parts = _NUMBER.fullmatch(token.text)
    if parts is None:
        raise _wrong(token, _EXAMPLE)
    sign, digits, unit = parts.groups()
    number = Fraction(sign + digits)
    if ratio:
        if sign or unit:
            raise _wrong(token, 'after "ratio" give a plain number, such as "1.1"')
        return "ratio", number
    if unit == "%":
        if not sign:
            raise _wrong(token, f'write a change with its sign: "+{token.text}"')
        return "percent", number
    kind: Kind = "change" if sign else "value"
    if statistic == "miss_rate":
        if unit:
            raise _wrong(token, 'miss_rate is a share: give a number such as "1e-6"')
        return kind, number
    if unit not in NANOSECONDS or NANOSECONDS[unit] > NANOSECONDS["s"]:
        raise _wrong(token, 'give a time with its unit (ns, us, ms, s) or a change such as "+10%"')
    return kind, number * NANOSECONDS[unit]
