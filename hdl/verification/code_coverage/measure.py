"""Which lines and branches of the VHDL the suites reach: GHDL with GCC's code generator, and gcov.

`python -m verification.code_coverage.measure` runs every simulation that judges mutants on designs
that count, and writes record and page; it returns 1 if too little of a file was reached. Names of
entities limit it to these and to their simulations: the others stay as they are.

- A line is reached if gcov says so: anything that GCC made of it ran. Lines of a `generate` that no
  simulation has in it are missed.
- A branch is one of the two ways of a condition: of `if` and `elsif` by gcov; of concurrent
  assignments by calls that are written into a copy of the source, for gcov cannot tell their ways.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from latenz.errors import BadInput, closest
from latenz.progress import counting
from simulation.vhdl_sources import ALL, listed
from verification.code_coverage.record import Reached, digest, recorded, write
from verification.latencies_ip.runner import BUILD, ToolError, command
from verification.mutants.killers import KILLERS, Killer

HERE = Path(__file__).resolve().parent
PLACE = BUILD / "code_coverage"
LINES = 1000  # more than a file has: a place is 1000 times its file's number, and its line

_CHOICE = re.compile(r"\bwhen (.+?) else\b")
_IF = re.compile(r"^\s*(?:els)?if .* then$")


def suites(entities: Sequence[str]) -> list[Killer]:
    """Every simulation of these entities, once."""
    return list(dict.fromkeys(chain.from_iterable(KILLERS[name] for name in entities)))


def marked(text: str, number: int) -> str:
    """A source whose concurrent conditions are noted; lines stay where they are."""

    def noted(line: int, code: str) -> str:
        place = number * LINES + line
        return _CHOICE.sub(lambda it: f"when work.observed.seen({place}, {it[1]}) else", code)

    lines = enumerate(text.split("\n"), start=1)
    return "\n".join(
        code if code.lstrip().startswith("--") else noted(line, code) for line, code in lines
    )


def build(tops: Sequence[str]) -> None:
    """Compile copies of all sources so that they count, and one program of each top."""
    PLACE.mkdir(parents=True, exist_ok=True)
    for old in chain(PLACE.glob("*.gc*"), PLACE.glob("*.cf")):
        old.unlink()
    copies = [HERE / "observed.vhd"]
    for number, source in enumerate(listed(*ALL)):
        copy = PLACE / source.name
        copy.write_text(marked(source.read_text(), number))
        copies.append(copy)
    _ghdl("-a", "--std=08", "-Wc,-fprofile-arcs", "-Wc,-ftest-coverage", *copies)
    for top in tops:
        _ghdl("-e", "--std=08", "-Wl,--coverage", "-o", PLACE / f"{top}.program", top)


def _ghdl(*arguments: object) -> None:
    command("env", "GHDL_BACKEND=gcc", "ghdl", *arguments, cwd=PLACE, seconds=900)


def run(suite: Killer) -> set[tuple[int, str]]:
    """Simulate one suite on the design that counts; what its concurrent conditions were."""
    folder = f"coverage-{suite.name}"
    notes = BUILD / "runs" / folder / "observed.txt"
    notes.unlink(missing_ok=True)
    result = suite.run(None, folder, 0, program=PLACE / f"{suite.top}.program")
    if result.failed or not result.passed:
        raise ToolError(f"{suite.name} does not pass: {result.failed}\n{result.log[-2000:]}")
    if not notes.exists():
        return set()
    pairs = (line.split() for line in notes.read_text().splitlines())
    return {(int(place), value) for place, value in pairs}


def measured(entities: Sequence[str]) -> dict[str, Reached]:
    """Run all that concerns these entities; what was reached of each."""
    wanted = suites(entities)
    build(list(dict.fromkeys(suite.top for suite in wanted)))
    seen: set[tuple[int, str]] = set()
    with counting("suites", len(wanted), wanted=True) as show, ThreadPoolExecutor(2) as pool:
        for done, values in enumerate(pool.map(run, wanted), start=1):
            seen |= values
            show(done)
    return {
        source.stem: _reached(source, number, seen)
        for number, source in enumerate(listed(*ALL))
        if source.stem in entities
    }


def _reached(source: Path, number: int, seen: set[tuple[int, str]]) -> Reached:
    text = source.read_text().split("\n")
    code = [line.split("--")[0].rstrip() for line in text]
    counts, ways = counted(_gcov(source.stem), source.name)
    for line, words in enumerate(code, start=1):
        if _CHOICE.search(words):
            place = number * LINES + line
            ways[line] = sum((place, value) in seen for value in ("true", "false"))
    conditions = {
        line: ways.get(line, 0)
        for line, words in enumerate(code, start=1)
        if _IF.match(words) or _CHOICE.search(words)
    }

    def told(line: int) -> str:
        return f"{line}: {text[line - 1].strip()}"

    return Reached(
        source=digest(source),
        lines=len(counts),
        branches=2 * len(conditions),
        missed_lines=tuple(told(line) for line in sorted(counts) if not counts[line]),
        missed_branches=tuple(
            told(line) for line in sorted(conditions) for _ in range(2 - conditions[line])
        ),
    )


def _gcov(stem: str) -> str:
    data = PLACE / f"{stem}.gcda"
    if not data.exists():
        raise ToolError(f"no simulation has {stem} in it")
    return command("gcov", "--json-format", "--stdout", "-b", data, cwd=PLACE)


def counted(told: str, source: str) -> tuple[dict[int, int], dict[int, int]]:
    """What gcov's JSON says of a file: how often each line ran, how many ways its condition went.

    GCC's own checks, of bounds, make branches as well; they go one way only.
    """
    counts: dict[int, int] = {}
    ways: dict[int, int] = {}
    files = json.loads(told)["files"]
    for line in chain.from_iterable(file["lines"] for file in files if _is(source, file["file"])):
        number, taken = line["line_number"], [each["count"] for each in line["branches"]]
        both = any(all(pair) for pair in zip(taken[::2], taken[1::2], strict=False))
        counts[number] = max(line["count"], counts.get(number, 0))
        ways[number] = max(ways.get(number, 0), 2 if both else int(line["count"] > 0))
    return counts, ways


def _is(name: str, path: str) -> bool:
    return Path(path).name == name


def main(names: Sequence[str]) -> int:
    """Measure the named entities, or all; 1 if too little of one was reached."""
    parser = argparse.ArgumentParser(description="Measure the code coverage of the VHDL.")
    parser.add_argument("entities", nargs="*", help="all if none is named")
    wanted = parser.parse_args(names).entities or list(KILLERS)
    for name in wanted:
        if name not in KILLERS:
            raise BadInput(f"there is no entity {name!r}", remedy=closest(name, KILLERS))
    rows = measured(wanted)
    write(recorded() | rows)
    for name, row in rows.items():
        sys.stdout.write(
            f"{'' if row.suffices(name) else 'TOO LITTLE '}{name}: {row.cells(name)}\n"
        )
    return int(not all(row.suffices(name) for name, row in rows.items()))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BadInput, ToolError) as error:
        sys.exit(f"code coverage: {error}")
