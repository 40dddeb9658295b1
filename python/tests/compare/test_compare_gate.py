"""The language of --fail-if."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.compare.gate import STATISTICS, Clause, Expression, Figure, Joined, parse
from latenz.errors import BadInput

KNOWN = Figure(100.0, 150.0, 20.0, 80.0)


def figures(**changed: Figure) -> dict[str, Figure]:
    return {name: changed.get(name, KNOWN) for name in STATISTICS}


@pytest.mark.parametrize(
    ("text", "a", "b", "holds"),
    [
        ("p99 > +10%", 100, 110, False),
        ("p99 >= +10%", 100, 110, True),
        ("p99 > +10%", 100, 111, True),
        ("p99 > +10%", 0, 0, False),
        ("p99 > +10%", 0, 1, True),
        ("p99 > +10%", -100, -89, True),
        ("p99 < -10%", 100, 89, True),
        ("p99 < -10%", 100, 91, False),
        ("p99 > +5us", 10_000, 15_000, False),
        ("p99 > +5us", 10_000, 15_001, True),
        ("p99 > +5µs", 10_000, 15_001, True),
        ("p99>+0.5us", 10_000, 10_501, True),
        ("p99 > 3ms", 9, 3_000_000, False),
        ("p99 >= 3ms", 9, 3_000_000, True),
        ("p99 <= 3ms", 9, 3_000_001, False),
        ("p99 ratio > 1.1", 10, 11, False),
        ("p99 ratio > 1.1", 10, 12, True),
        ("p99 ratio < 0.5", 10, 4, True),
        ("p99 ratio > 2", 0, 1, True),
        ("p99 ratio > 2", 0, 0, None),
        ("p99 ratio > 2", -1, 5, None),
        ("p99 > +1ns", None, 5, None),
        ("p99 > 4ns", None, 5, True),
        ("p99 > 4ns", 5, None, None),
        ("((p99 > 4ns))", 5, 5, True),
    ],
)
def test_one_condition(text: str, a: float | None, b: float | None, holds: bool | None) -> None:
    assert parse(text).holds(figures(p99=Figure(a, b, None, None))) is holds


@pytest.mark.parametrize(
    ("text", "b", "holds"),
    [
        ("miss_rate > 1e-6", 2e-6, True),
        ("miss_rate > 1e-6", 1e-7, False),
        ("miss_rate > +0.1", 0.35, True),
        ("miss_rate > +50%", 0.29, False),
        ("miss_rate ratio >= 2", 0.5, True),
    ],
)
def test_miss_rate_is_a_share(text: str, b: float, holds: bool) -> None:
    assert parse(text).holds(figures(miss_rate=Figure(0.2, b, None, None))) is holds


@pytest.mark.parametrize(
    ("text", "low", "high", "holds"),
    [
        ("max significantly > +10%", 1, 90, True),
        ("max significantly > +10%", 0, 90, False),
        ("max significantly > +10%", -5, 90, False),
        ("max significantly > +10%", None, None, None),
        ("max significantly > +60%", None, None, None),
        ("max ratio significantly > 1.2", 1, 90, True),
        ("max significantly < -10%", -9, -1, False),
    ],
)
def test_significantly_needs_an_interval_without_zero(
    text: str, low: float | None, high: float | None, holds: bool | None
) -> None:
    assert parse(text).holds(figures(max=Figure(100, 150, low, high))) is holds


def test_significantly_smaller() -> None:
    found = parse("mean significantly < -10%")
    assert found.holds(figures(mean=Figure(100, 80, -30, -10))) is True
    assert found.holds(figures(mean=Figure(100, 80, -30, 1))) is False


def test_and_binds_tighter_than_or() -> None:
    found = parse("max > 1s or p99 > 1ns and p90 > 1ns")
    assert isinstance(found, Joined)
    assert found.word == "or"
    assert isinstance(found.parts[0], Clause)
    assert isinstance(found.parts[1], Joined)
    grouped = parse("(max > 1s or p99 > 1ns) and p90 > 1ns")
    assert isinstance(grouped, Joined)
    assert grouped.word == "and"


def test_unknown_parts_matter_only_if_they_decide() -> None:
    unknown = Figure(None, None, None, None)
    values = figures(p99=unknown)
    assert parse("p99 > +1% or max > 1ns").holds(values) is True
    assert parse("p99 > +1% or max > 1s").holds(values) is None
    assert parse("p99 > +1% and max > 1s").holds(values) is False
    assert parse("p99 > +1% and max > 1ns").holds(values) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "ends too early"),
        ("p99", "ends too early"),
        ("p99 >", "ends too early"),
        ("p99 > 10%", "'10%' at character 7; write a change with its sign"),
        ("p99 > 10", "'10' at character 7; give a time with its unit"),
        ("p99 > +10", "with its unit"),
        ("p99 > +10min", "with its unit"),
        ("p98 > +10%", "'p98' at character 1; there should be a statistic"),
        ("p99 = +10%", "'=' at character 5"),
        ("p99 > +10% max > 3ms", "'max' at character 12; join conditions"),
        ("p99 > +10% or", "ends too early"),
        ("(p99 > +10%", "close the parenthesis"),
        ("p99 > +10%)", "')' at character 11"),
        ("p99 significantly > 3ms", "'3ms' at character 21; after \"significantly\""),
        ("p99 ratio > +1.1", "plain number"),
        ("p99 ratio > 1.1us", "plain number"),
        ("miss_rate > 3ms", "miss_rate is a share"),
        ("miss_rate > +1e-6us", "miss_rate is a share"),
        ("p99 > +1_000us", "'+1' at character 7; give a time"),
        ("__import__(1)", "'__import__' at character 1"),
        ("__import__('os')", "at character 12 has no meaning"),
        ("(" * 60 + "p99 > +1%" + ")" * 60, "nested"),
        ("p99 > +1% or " * 2000, "characters"),
        ("p99 > +" + "9" * 5000 + "us", "at character"),
    ],
)
def test_bad_expressions_tell_where_and_what_would_be_right(text: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert told in str(caught.value)
    assert str(caught.value).startswith("--fail-if: ")
    assert "\n" not in str(caught.value)


# --- any expression, written and read back

UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}


@st.composite
def clauses(draw: st.DrawFn) -> tuple[str, Clause]:
    statistic = draw(st.sampled_from([s for s in STATISTICS if s != "miss_rate"]))
    comparison = draw(st.sampled_from([">", ">=", "<", "<="]))
    kind = draw(st.sampled_from(["value", "change", "percent", "ratio"]))
    significantly = kind != "value" and draw(st.booleans())
    digits = f"{draw(st.integers(0, 10**6))}.{draw(st.integers(0, 999)):03}"
    unit = draw(st.sampled_from(list(UNITS)))
    sign = draw(st.sampled_from("+-"))
    threshold, number = {
        "value": (digits + unit, Fraction(digits) * UNITS[unit]),
        "change": (sign + digits + unit, Fraction(sign + digits) * UNITS[unit]),
        "percent": (sign + digits + "%", Fraction(sign + digits)),
        "ratio": (digits, Fraction(digits)),
    }[kind]
    words = [
        statistic,
        *(["ratio"] if kind == "ratio" else []),
        *(["significantly"] if significantly else []),
        comparison,
        threshold,
    ]
    text = " ".join(words)
    return text, Clause(statistic, kind, significantly, comparison, number, text)


def _joined(parts: list[tuple[str, Expression]], word: str) -> tuple[str, Expression]:
    return f" {word} ".join(f"({text})" for text, _ in parts), Joined(
        word, tuple(expression for _, expression in parts)
    )


EXPRESSIONS = st.recursive(
    clauses(),
    lambda inner: st.builds(
        _joined, st.lists(inner, min_size=2, max_size=3), st.sampled_from(["or", "and"])
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_what_is_written_is_read(written: tuple[str, Expression]) -> None:
    text, expression = written
    assert parse(text) == expression
    assert parse("  " + text.replace(" ", "   ")) == parse(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except BadInput:
        return
    assert found.clauses()


WORDS = (*STATISTICS, "ratio", "significantly", "or", "and", "(", ")", ">", "<=", "+1%", "2us", "3")


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        found = parse(" ".join(words))
    except BadInput:
        return
    assert found.holds(figures()) in (True, False, None)
