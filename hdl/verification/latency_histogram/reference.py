# SPDX-License-Identifier: Apache-2.0
"""Which bin a latency belongs to, from the definition of the two scales."""


def linear_bin(latency: int, shift: int) -> int:
    """Bins of equal width, 2 ** shift."""
    return latency // 2**shift


def log_linear_bin(latency: int, sub_bits: int) -> int:
    """Bins whose width doubles with each octave, 2 ** sub_bits of them an octave.

    Counted one octave after the other: the first, below 2 ** sub_bits, and the second have bins of
    one latency, the next of two, of four, and so on.
    """
    each = 2**sub_bits
    before, begin, width = 0, 0, 1
    end = each
    while latency >= end:
        before += each
        begin, end = end, 2 * end
        width = (end - begin) // each
    return before + (latency - begin) // width
