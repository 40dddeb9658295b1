from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.durations import NANOSECONDS, format_duration, parse_duration
from latenz.errors import BadInput


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        (0, 0),
        (17, 17),
        ("17", 17),
        ("40 us", 40_000),
        ("6ms", 6_000_000),
        ("1.5 ms", 1_500_000),
        ("128 instr @ 200 MHz", 640),
        ("24 h", 86_400_000_000_000),
        (" 3 µs ", 3_000),
        ("-2 us", -2_000),
    ],
)
def test_durations_as_people_write_them(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "ms", "1.5", "0.5 ns", "1 instr @ 3 GHz", "1 parsec", "1e3 us", "nan s", "3 ms 2 us"),
        *("300 years", "9999999999 d", "1 instr @ 0 Hz", True, 1.5, None, 2**63),
    ],
)
def test_what_is_not_exact_is_refused(text):
    with pytest.raises(BadInput, match=r"file\.toml"):
        parse_duration(text, "file.toml")


@given(st.integers(-(10**15), 10**15), st.integers(0, 6), st.sampled_from(sorted(NANOSECONDS)))
def test_decimals_are_exact_or_refused(digits, decimals, unit):
    value = Fraction(digits, 10**decimals) * NANOSECONDS[unit]
    sign = "-" if digits < 0 else ""
    text = f"{abs(digits):0{decimals + 1}d}"
    written = sign + (text[:-decimals] + "." + text[-decimals:] if decimals else text) + " " + unit
    if value.denominator == 1 and -(2**63) <= value < 2**63:
        assert parse_duration(written) == value
    else:
        with pytest.raises(BadInput):
            parse_duration(written)


def test_people_read_four_digits():
    assert format_duration(2_319_860) == "2.32 ms"
    assert format_duration(638.15) == "638.1 ns"
    assert format_duration(-1_500) == "-1.5 µs"
