# SPDX-License-Identifier: Apache-2.0
"""What the generator's words must be, from the recurrence of its bits and not from its circuit."""

from collections.abc import Iterator

TAPS = {8: (8, 6, 5, 4), 16: (16, 15, 13, 4), 32: (32, 22, 2, 1)}
"""Xilinx XAPP 052, table 3: bit n of the sequence is the XOR of the bits n - tap."""


def words(seed: int, width: int = 32) -> Iterator[int]:
    """Yield the words after a seed; a seed's highest bit is its oldest."""
    state = seed or 1
    bits = [state >> place & 1 for place in reversed(range(width))]
    while True:
        for _ in range(width):
            bits.append(sum(bits[-tap] for tap in TAPS[width]) % 2)
        del bits[:width]
        yield int("".join(map(str, bits)), 2)


def is_maximal(width: int, primes: tuple[int, ...]) -> bool:
    """Return whether the recurrence has period 2 ** width - 1: its polynomial is primitive.

    Args:
        width: Its degree.
        primes: All prime factors of 2 ** width - 1.
    """
    order = (1 << width) - 1
    return _power(width, order) == 1 and all(_power(width, order // p) != 1 for p in primes)


def _power(width: int, exponent: int) -> int:
    """Return x ** exponent modulo the characteristic polynomial over GF(2)."""
    modulus = 1 << width | sum(1 << (width - tap) for tap in TAPS[width])
    result, base = 1, 2
    while exponent:
        if exponent & 1:
            result = _product(result, base, modulus)
        base = _product(base, base, modulus)
        exponent >>= 1
    return result


def _product(left: int, right: int, modulus: int) -> int:
    top = 1 << (modulus.bit_length() - 1)
    result = 0
    while right:
        if right & 1:
            result ^= left
        right >>= 1
        left <<= 1
        if left & top:
            left ^= modulus
    return result
