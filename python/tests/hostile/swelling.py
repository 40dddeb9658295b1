"""Texts of which one part has grown to a size that nobody expects."""

import re
from collections.abc import Iterator

_PART = re.compile(rb"\d+|[A-Za-z_]+|[ \t]+|[^\sA-Za-z_\d]")
SIZE = 900_000


def swollen(text: bytes, size: int = SIZE, most: int = 400) -> Iterator[bytes]:
    """Give the text with each of its first parts repeated: numbers, words, spaces, signs, lines.

    Parts of the same look in lines of the same look are taken once.
    """
    seen: set[tuple[bytes, int]] = set()
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        parts = list(_PART.finditer(line))
        look = re.sub(rb"\d+", b"0", line)[:200]
        before, after = b"".join(lines[:number]), b"".join(lines[number + 1 :])
        for place, part in enumerate(parts[:40]):
            if (look, place) in seen or len(seen) >= most:
                continue
            seen.add((look, place))
            for piece in {part[0], part[0] + b" ", line[: part.end()]}:
                grown = piece * (size // len(piece))
                yield before + line[: part.start()] + grown + line[part.end() :] + after
        if (look, -1) not in seen and len(line) > 1:
            seen.add((look, -1))
            yield before + line * (size // len(line)) + after
