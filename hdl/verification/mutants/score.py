"""The mutation score: every drawn mutant against the tests of its file.

`python -m verification.mutants.score` judges what the record does not know yet or what has changed,
and writes `score.json` and its page; `--again survived` judges the survivors anew; names of files
limit it to these.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from simulation.vhdl_sources import ALL, HDL, listed
from verification.latencies_ip.runner import BUILD, ToolError, analysed, command, given
from verification.latencies_ip.suite import CONFIGURATIONS
from verification.mutants.generated import Change, changes, drawn, files
from verification.mutants.killers import KILLERS, OFFERED, Killer

HERE = Path(__file__).resolve().parent
RECORD = HERE / "score.json"
PAGE = HERE / "score.md"
ARGUMENTS = HERE / "survivors.toml"
EACH = 15  # mutants of a file that compile
LEAST_MUTANTS = 400
LEAST_SCORE = 0.97
LONGEST_NS = 100_000_000

KILLED, SURVIVED, STILLBORN, SAME = "killed", "survived", "stillborn", "same netlist"

Row = dict[str, Any]


def entity(file: str) -> str:
    """What a file is of, for tables."""
    return Path(file).stem


def planted(change: Change) -> Path:
    """A library of all sources, one of them with the change."""
    original = HDL / change.file
    place = BUILD / "mutants" / change.name / original.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(change.text)
    return analysed([place if path == original else path for path in listed(*ALL)])


def judge(change: Change) -> Row:
    """What becomes of one mutant, and who found it."""
    row: Row = {
        "file": change.file,
        "line": change.line,
        "operator": change.operator,
        "before": change.before.strip(),
        "after": change.after.strip(),
        "place": change.place,
    }
    try:
        work = planted(change)
    except ToolError:
        return {**row, "verdict": STILLBORN}
    try:
        return {**row, **_judged(change, work)}
    finally:
        shutil.rmtree(work)
        shutil.rmtree(BUILD / "mutants" / change.name)


def _judged(change: Change, work: Path) -> Row:
    """Run what can see a difference; where the circuit is the same there is none."""
    differs = False
    killers = KILLERS[entity(change.file)]
    for number, killer in enumerate(killers):
        same = number > 0 and _is_same(killer, work)
        if same:
            continue
        found = _finds(killer, work)
        if found == "crash" and not _elaborates(killer, work):
            return {"verdict": STILLBORN}
        if found == "crash" and not sound(killer):
            raise ToolError(f"{killer.name} does not pass on the sound design")
        if found:
            return {"verdict": KILLED, "by": killer.name, "how": found}
        differs = differs or number > 0 or not _is_same(killer, work)
    offered = [each for top in {each.top for each in killers} for each in OFFERED.get(top, ())]
    differs = differs or not all(_is_same(each, work) for each in offered)
    return {"verdict": SURVIVED if differs else SAME}


def _is_same(killer: Killer, work: Path) -> bool:
    return _netlist(work, killer) == _sound_netlist(killer)


def _finds(killer: Killer, work: Path) -> str:
    """The first test that fails, `crash` if it ends by itself or not in time, or nothing."""
    try:
        result = killer.run(work, "mutant", LONGEST_NS)
    except ToolError:
        return "crash"
    return result.failed[0] if result.failed else ""


@cache
def sound(killer: Killer) -> bool:
    """Whether the design as it is passes."""
    return not _finds(killer, analysed(listed(*ALL)))


def _options(killer: Killer) -> list[str]:
    return given(killer.top, CONFIGURATIONS[killer.ip], dict(killer.generics))


def _elaborates(killer: Killer, work: Path) -> bool:
    arguments = ("ghdl", "-r", "--std=08", f"--workdir={work}", killer.top, *_options(killer))
    try:
        command(*arguments, "--no-run", cwd=work)
    except ToolError:
        return False
    return True


def _netlist(work: Path, killer: Killer) -> str:
    """The synthesised design without comments; what GHDL says where it cannot."""
    arguments = ("ghdl", "--synth", "--std=08", f"--workdir={work}", "--out=verilog")
    try:
        text = command(*arguments, *_options(killer), killer.top, cwd=work)
    except ToolError as error:
        return str(error)
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text)


@cache
def _sound_netlist(killer: Killer) -> str:
    return _netlist(analysed(listed(*ALL)), killer)


def recorded() -> dict[str, Row]:
    """The record: each mutant's row by its name."""
    rows: dict[str, Row] = json.loads(RECORD.read_text())["mutants"] if RECORD.exists() else {}
    return rows


def wanted(file: str, rows: dict[str, Row], again: str) -> Iterator[tuple[Change, Row | None]]:
    """The mutants of a file that count, with what is known of each, until there are enough."""
    count = 0
    for change in drawn(file):
        row = rows.get(change.name)
        if row is not None and row["verdict"] == again:
            row = None
        yield change, row
        judged = row or rows.get(change.name)
        count += judged is not None and judged["verdict"] != STILLBORN
        if count == EACH:
            return


def _in_turn(
    mutants: Iterable[Iterator[tuple[Change, Row | None]]],
) -> Iterator[tuple[Change, Row | None]]:
    """One of each file, then the next of each: a run that is ended early has judged all files."""
    for turn in zip_longest(*mutants):
        yield from (each for each in turn if each is not None)


def arguments() -> list[dict[str, str]]:
    """Why survivors are no loss: file, before, after and the reason of each."""
    found: list[dict[str, str]] = tomllib.loads(ARGUMENTS.read_text()).get("survivor", [])
    return found


def argued(row: Row) -> str:
    """The reason why a mutant that survives is no loss, or nothing."""
    for each in arguments():
        same = (each["file"], each["before"], each["after"])
        if same == (entity(row["file"]), row["before"], row["after"]):
            return each["why"]
    return ""


def scores(rows: Iterable[Row]) -> dict[str, Counter[str]]:
    """Mutants of each entity by what became of them; `argued` are those with a reason."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        counts = found.setdefault(entity(row["file"]), Counter())
        verdict = "argued" if row["verdict"] == SURVIVED and argued(row) else row["verdict"]
        counts[verdict] += 1
    return found


def score(counts: Counter[str]) -> float:
    """Share of the mutants that are found, of those that change behaviour."""
    alive = counts[SURVIVED]
    return counts[KILLED] / (counts[KILLED] + alive) if counts[KILLED] + alive else 1.0


def page(rows: dict[str, Row]) -> str:
    """The documentation's page of a record."""
    by_entity = scores(rows.values())
    total = sum(by_entity.values(), Counter())
    lines = [
        f"| {name} | {_cells(counts)} |"
        for name, counts in [*by_entity.items(), ("**all**", total)]
    ]
    kinds = Counter(row["operator"] for row in rows.values() if row["verdict"] == KILLED)
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    left = [row for row in rows.values() if row["verdict"] == SURVIVED]
    survivors = "\n".join(_survivor(row) for row in left) or "None."
    return f"""# Mutation score

Generated by `make -C hdl mutants` from `score.json`: edit neither. Why a survivor is none is in
`survivors.toml`.

A program changes one place of the VHDL (`generated.py`), and the suites of that file (`killers.py`)
run until a test fails. So far {sum_judged(total)} mutants have been judged, of {EACH} a file that
`make -C hdl mutants` goes on with. Found by kind: {told}.

- **found**: a test fails, the simulation ends by itself, or does not end.
- **same netlist**: GHDL synthesises the very same circuit in every configuration of these suites,
  and in some of full size.
- **argued**: survives these suites, and below stands why nobody can see it, or which test of
  another kind does.
- **score**: found of those that are neither. Those that do not compile or elaborate do not count.

| entity | found | same netlist | argued | survived | score |
| --- | --: | --: | --: | --: | --: |
{chr(10).join(lines)}

## Survivors

{survivors}
"""


def sum_judged(counts: Counter[str]) -> int:
    """How many mutants are not stillborn."""
    return counts.total() - counts[STILLBORN]


def _cells(counts: Counter[str]) -> str:
    numbers = (counts[KILLED], counts[SAME], counts["argued"], counts[SURVIVED])
    return " | ".join([*map(str, numbers), f"{100 * score(counts):.1f} %"])


def _survivor(row: Row) -> str:
    after = f"`{row['after']}`" if row["after"] else "nothing"
    reason = argued(row) or "**no reason: a test is missing**"
    return f"- {entity(row['file'])}: `{row['before']}` becomes {after}. {reason}"


def write(rows: dict[str, Row]) -> None:
    """Record and page."""
    RECORD.write_text(json.dumps({"mutants": rows}, indent=1) + "\n")
    PAGE.write_text(page(rows))


def main(arguments: list[str]) -> int:
    """Judge what is wanted; 1 if the score is too low."""
    parser = argparse.ArgumentParser(description="Judge mutants of the VHDL.")
    parser.add_argument("files", nargs="*", help="entities; all if none is named")
    parser.add_argument("--again", default="", choices=["", SURVIVED, KILLED, SAME, STILLBORN])
    options = parser.parse_args(arguments)
    there = {change.name for file in files() for change in changes(file)}
    known = {name: row for name, row in recorded().items() if name in there}
    rows: dict[str, Row] = {}
    named = [file for file in files() if not options.files or entity(file) in options.files]
    mutants = [wanted(file, known, options.again if file in named else "") for file in files()]
    for change, row in _in_turn(mutants):
        if row is None and change.file in named:
            row = known[change.name] = judge(change)
            told = f"{entity(change.file)} {change.line} {row['verdict']} {row.get('by', '')}"
            sys.stderr.write(f"{told}\n")
            write(known)
        if row is not None:
            rows[change.name] = row
    write(rows)
    return int(any(score(counts) < LEAST_SCORE for counts in scores(rows.values()).values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
