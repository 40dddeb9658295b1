"""Feeds every reader of foreign data with damaged inputs, and keeps what it finds.

    fuzz/run.py [--seconds 30 | --runs 1000000 | --repeat] [TARGET...]

Builds the targets, runs two of them at a time, and ends with 1 if something was found. Inputs
that reached something new are kept in build/fuzz/corpus and used again; findings are in
build/fuzz/findings, each with the command that repeats it. Totals are in build/fuzz/results.json;
`--record` writes them into the table of fuzz/README.md.

`--repeat` feeds the same inputs each time and on each machine, so that only a change of Latenz
changes what is found.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache

from rich.progress import BarColumn, TimeElapsedColumn

from latenz.progress import progress_bar
from targets import ROOT, TARGETS, Target

BUILD = ROOT / "build/fuzz"
README = ROOT / "fuzz/README.md"
RESULTS = BUILD / "results.json"
AT_A_TIME = 2
MOST_MEMORY_MIB = 1024
MOST_SECONDS = 30
MOST_SECONDS_WHEN_BUSY = 180  # tests run beside other work: a slow machine is not a finding
_LINES_TOLD = 30
_WIDEST_TOLD = 300
_STATUS = re.compile(r"^#(\d+)\t\S+\s+cov: (\d+)")
_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)")
_KEPT = re.compile(r"Test unit written to (\S+)")
_TABLE = re.compile(r"(?<=<!-- totals -->\n).*?(?=<!-- end -->)", re.S)


@dataclass
class Result:
    """What came of a target.

    Attributes:
        executions: How many inputs were read.
        edges: Branches that they reached.
        seconds: How long that took.
        findings: Files that were kept.
    """

    executions: int = 0
    edges: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Return the result in words."""
        found = f"{len(self.findings)} FOUND" if self.findings else "nothing found"
        return (
            f"{name:18}{self.executions:>12,} executions {self.edges:>6} edges"
            f" {self.seconds:>6.0f} s  {found}"
        )


def command(target: Target) -> list[str]:
    """Return what starts a target; libFuzzer's options or an input follow."""
    if target.readers:
        return [sys.executable, str(ROOT / "fuzz/python_target.py"), target.name]
    return [str(BUILD / f"native/fuzz/fuzz-{target.name}")]


def build(targets: Sequence[Target]) -> None:
    """Build the chosen targets that are in C++."""
    names = [f"fuzz-{target.name}" for target in targets if not target.readers]
    if not names:
        return
    steps = (["cmake", "--preset", "fuzz"], ["cmake", "--build", "--preset", "fuzz"])
    for step, more in zip(steps, ([], ["--target", *names]), strict=True):
        done = subprocess.run([*step, *more], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:])
            raise SystemExit(2)


def repetition(target: Target) -> list[str]:
    """Return libFuzzer's options for the same inputs each time.

    Its table of recent comparisons goes by addresses, which differ from run to run.
    """
    return [f"-runs={target.repeated}", "-seed=1", "-use_cmp=0"]


@cache
def with_fixed_addresses() -> list[str]:
    """Return what starts a program at the same addresses each time, where that is allowed.

    The order of what Python keeps by identity follows them.
    """
    words = ["setarch", "--addr-no-randomize"]
    return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []


def fuzz(target: Target, limit: str, tell: Callable[[Result], None]) -> Result:
    """Run a target until libFuzzer's limit or its first finding.

    Args:
        target: Built already.
        limit: Such as "-runs=1000"; empty: the same inputs each time.
        tell: Called with what has come of it so far.
    """
    findings = BUILD / "findings" / target.name
    corpus = BUILD / ("corpus" if limit else "repeated") / target.name
    if not limit:
        shutil.rmtree(corpus, ignore_errors=True)
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    known = BUILD / f"{target.name}.inputs"
    known.write_text(",".join(map(str, target.whole_inputs())))
    options = (
        *([limit] if limit else repetition(target)),
        f"-max_len={target.longest}",
        f"-rss_limit_mb={MOST_MEMORY_MIB}",
        f"-timeout={MOST_SECONDS if limit else MOST_SECONDS_WHEN_BUSY}",
        f"-report_slow_units={MOST_SECONDS}",
        f"-artifact_prefix={findings}/",
        f"-seed_inputs=@{known}",
        "-print_final_stats=1",
    )
    began = time.monotonic()
    result = Result()
    with (
        (BUILD / f"{target.name}.log").open("w") as log,
        subprocess.Popen(
            [*([] if limit else with_fixed_addresses()), *command(target), *options, str(corpus)],
            cwd=BUILD,
            env={**os.environ, "PYTHONHASHSEED": "0"},  # else no repetition
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                log.write(line)
                _take(result, line)
                result.seconds = time.monotonic() - began
                tell(result)
        finally:
            process.kill()  # changes nothing if it has ended
    if process.returncode != 0 and not result.findings:
        result.findings.append(f"{BUILD / target.name}.log")
    return result


def _take(result: Result, line: str) -> None:
    if status := _STATUS.match(line):
        result.executions = max(result.executions, int(status[1]))
        result.edges = max(result.edges, int(status[2]))
    elif executed := _EXECUTED.match(line):
        result.executions = int(executed[1])
    elif kept := _KEPT.search(line):
        result.findings.append(kept[1])


def story(target: Target) -> str:
    """Return the end of a target's log without its progress: what went wrong, by which input."""
    lines = (BUILD / f"{target.name}.log").read_text(errors="replace").splitlines()
    told = [line[:_WIDEST_TOLD] for line in lines if not _STATUS.match(line)]
    return "".join(f"    {line}\n" for line in told[-_LINES_TOLD:])


def fuzz_all(targets: Sequence[Target], limit: str) -> Iterator[tuple[Target, Result]]:
    """Run targets, two at a time, and show how far they are; give each as it ends."""
    kind, _, number = limit.partition("=")
    with (
        progress_bar("{task.description}", BarColumn(), TimeElapsedColumn()) as shown,
        ThreadPoolExecutor(AT_A_TIME) as pool,
    ):

        def run(target: Target) -> Result:
            task = shown.add_task(target.name, total=int(number or target.repeated))

            def tell(result: Result) -> None:
                done = result.seconds if kind == "-max_total_time" else result.executions
                shown.update(task, completed=done, description=result.line(target.name))

            try:
                return fuzz(target, limit, tell)
            finally:
                shown.remove_task(task)

        for target, result in zip(targets, pool.map(run, targets), strict=True):
            shown.console.print(result.line(target.name), highlight=False)
            yield target, result


def add_up(results: dict[str, Result]) -> None:
    """Add results to the totals."""
    totals = totals_so_far()
    for name, result in results.items():
        before = totals.get(name, Result())
        totals[name] = Result(
            before.executions + result.executions,
            max(before.edges, result.edges),
            before.seconds + result.seconds,
            [*before.findings, *result.findings],
        )
    RESULTS.write_text(json.dumps({name: asdict(each) for name, each in totals.items()}, indent=1))


def totals_so_far() -> dict[str, Result]:
    """Return the totals of each target."""
    if not RESULTS.exists():
        return {}
    return {name: Result(**each) for name, each in json.loads(RESULTS.read_text()).items()}


def record() -> None:
    """Write the totals into the README."""
    totals = totals_so_far()
    rows = [
        "| target | reads | language | executions | edges | seconds |",
        "|---|---|---|--:|--:|--:|",
    ]
    for target in TARGETS:
        total = totals.get(target.name, Result())
        rows.append(
            f"| {target.name} | {target.reads} | {target.language} "
            f"| {total.executions:,} | {total.edges:,} | {total.seconds:,.0f} |"
        )
    README.write_text(_TABLE.sub("\n".join(rows) + "\n", README.read_text()))


def main() -> int:
    """Run the chosen targets; return 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [target.name for target in TARGETS]
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(names))
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--seconds", type=int, default=30, help="for each target (30)")
    limit.add_argument("--runs", type=int, help="inputs for each target")
    limit.add_argument("--repeat", action="store_true", help="the same inputs each time")
    parser.add_argument("--record", action="store_true", help="write totals into fuzz/README.md")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(names):
        parser.error(f"{', '.join(sorted(unknown))}: no target; choose one of: {', '.join(names)}")
    chosen = [each for each in TARGETS if each.name in (arguments.targets or names)]
    chosen.sort(key=lambda each: each.language, reverse=True)  # those in Python take longest
    limit_of_each = f"-max_total_time={arguments.seconds}"
    if arguments.runs:
        limit_of_each = f"-runs={arguments.runs}"
    if arguments.repeat:
        limit_of_each = ""
    build(chosen)
    found = False
    for target, result in fuzz_all(chosen, limit_of_each):
        add_up({target.name: result})
        for finding in result.findings:
            found = True
            sys.stdout.write(f"  {finding}\n  repeat: {' '.join(command(target))} {finding}\n")
        if result.findings:
            sys.stdout.write(story(target))
        sys.stdout.flush()
    if arguments.record:
        record()
    return int(found)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
