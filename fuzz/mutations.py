"""Damages text as people and programs do: its numbers, words and lines, and runs of a character.

libFuzzer's own mutations know bytes alone; the fuzzer takes turns with both.
"""

import random
import re

_TOKENS = (
    *(b"0 1 -1 9 1e999999 1e-999999 -0 +5 .5 5. nan inf NaN Infinity null true 0x10 1_0".split()),
    *(b"18446744073709551615 9223372036854775807 9223372036854775808 -9223372036854775808".split()),
    b"9" * 40,
    b"9" * 5000,
    "٣".encode(),
    "²".encode(),
    b"\0",
    b"\xff\xfe",
    b"\x1b[2;37;40m",
    b"\r",
    b"\n",
    b"\n\n",
    b'"',
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b":",
    b",",
    b"#",
    b"|",
    b"$end",
    b"$comment",
    b"T: 0 ",
    b" " * 3000,
    b"\n" * 3000,
    b"a" * 300,
    b"=1+1",
    b"../../../etc/passwd",
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb'"[^"\n]*"|[\w.-]+')


def mutate(content: bytes, most: int, seed: int) -> bytes:
    """Damage a text in one to four ways that depend on the seed; give at most so many bytes."""
    chance = random.Random(seed)  # noqa: S311 - nothing is to be kept secret
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = chance.choice(_MUTATIONS)(content, chance)
    return content[:most]


def _place(content: bytes, chance: random.Random) -> tuple[int, int]:
    begin = chance.randrange(len(content) + 1)
    return begin, min(len(content), begin + chance.choice((1, 1, 2, 5, 30, 200)))


def _cut(content: bytes, chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:begin] + content[end:]


def _truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:end] + content[begin:end] * chance.choice((1, 1, 2, 50)) + content[end:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    begin, _ = _place(content, chance)
    return content[:begin] + chance.choice(_TOKENS) + content[begin:]


def _number(content: bytes, chance: random.Random) -> bytes:
    new = chance.choice(_TOKENS) if chance.random() < 0.6 else b"%d" % chance.randrange(1 << 20)
    return _replaced(content, _NUMBER, new, chance)


def _word(content: bytes, chance: random.Random) -> bytes:
    """Put a word of the text where another one is."""
    words = _WORD.findall(content) or [b""]
    return _replaced(content, _WORD, chance.choice(words), chance)


def _replaced(
    content: bytes, pattern: re.Pattern[bytes], new: bytes, chance: random.Random
) -> bytes:
    found = list(pattern.finditer(content))
    if not found:
        return content
    begin, end = chance.choice(found).span()
    return content[:begin] + new + content[end:]


def _swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


_MUTATIONS = (_cut, _truncate, _repeat, _insert, _number, _number, _word, _word, _swap_lines)
