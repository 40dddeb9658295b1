"""The bound of Linux' wake-up latency as JSON, and as tables."""

from dataclasses import asdict
from functools import reduce
from typing import Any

from rich.text import Text

from latenz.analysis.show import console_for_tables, duration_or_dash, plain_table, print_titled
from latenz.console import Console
from latenz.durations import format_duration
from latenz.linux_bound.evidence import LinuxBound, Verdict
from latenz.linux_bound.model import TERMS, Steps
from latenz.linux_bound.traced import SIGHTS
from latenz.linux_bound.windows import TraceTold
from latenz.terminal import printable_line

VIRTUAL = (
    "of an emulated board, where an instruction takes 1 ns: no caches, no buses; silicon's windows"
    " are longer, and not in proportion"
)
_TERM_NAMES = {
    "blocking": "held by a section that does not preempt",
    "switching": "held by a switch of threads",
    "idle": "held by the way into idle and out",
    "scheduler": "scheduler, until it runs",
    "to_user": "way to user mode",
    "interrupts": "interrupts",
}


def document(found: LinuxBound, verdicts: list[Verdict]) -> dict[str, Any]:
    """Return all of it for `--json`."""
    made = found.bound
    return {
        "words": "bound under the observed maxima",
        "bound_ns": made.bound_ns,
        "longest_seen_ns": found.longest_ns,
        "ratio": _ratio(found),
        "time_base": _time_bases(found),
        "unseen": found.unseen,
        "interrupts": found.interrupts,
        "to_user": found.to_user,
        "made_of": [
            {"term": name, "ns": nanoseconds, **_site(found, name)}
            for name, nanoseconds in _parts(found)
        ],
        "terms_ns": {name: getattr(found.terms, name) for name in TERMS},
        "conditions": [asdict(each) for each in found.conditions],
        "saturated": all(each.saturation.saturated for each in found.observations),
        "observations": [
            {
                "name": each.name,
                "file": str(each.path),
                "kernel": each.windows.kernel,
                "preemption": each.windows.preemption,
                "load": each.windows.load,
                "wake_ups": each.windows.wake_ups,
                "observed_ns": each.windows.observed_ns,
                "bound_ns": own,
                "longest_seen_ns": longest,
                "longest_sample_ns": each.sampled_ns,
                "exceeded_by_observations": above,
                "trace": None if each.windows.trace is None else _trace(each.windows.trace),
                "saturation": asdict(each.saturation),
            }
            for each, (own, longest, above) in zip(found.observations, found.matrix, strict=True)
        ],
        "deadlines": [
            {
                "name": each.deadline.name,
                "limit_ns": each.deadline.limit_ns,
                "allowed": each.deadline.allowed,
                "verdict": each.verdict,
                "sentence": each.sentence,
            }
            for each in verdicts
        ],
    }


def print_bound(found: LinuxBound, verdicts: list[Verdict]) -> None:
    """Print the bound, what it is made of, and what it rests on."""
    console = console_for_tables()
    made = found.bound
    if found.unseen:
        told = "; ".join(f"{what} ({how})" for what, how in found.unseen.items())
        console.print(f"No bound: the trace does not show {told}.", style="bold")
        console.print(
            "What follows is the part that was seen: its largest latency, and what interrupts took."
        )
    elif made.bound_ns is None:
        console.print("No bound: interrupts may take all of the time.")
    else:
        until = "has read the clock in user mode" if found.to_user else "runs"
        console.print(
            f"Bound under the observed maxima: {format_duration(made.bound_ns)}, from when a"
            f" wake-up is due until its thread {until}",
            style="bold",
        )
    seen = f"Largest seen until it runs: {format_duration(found.longest_ns)}"
    ratio = _ratio(found)
    console.print(seen + (f"; the bound is {ratio:.2f} times that" if ratio else ""))
    if "virtual" in _time_bases(found):
        console.print(f"Times are {VIRTUAL}.", style="yellow")
    if "trace" in _time_bases(found):
        _print_traces(found)
    if found.unseen:
        _print_staircase(found)
        _print_conditions(found)
        _print_verdicts(verdicts)
        return
    table = plain_table("made of", "longest", "where")
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for name, nanoseconds in _parts(found):
        table.add_row(_TERM_NAMES[name], format_duration(nanoseconds), _where(found, name))
    print_titled(console, "What the bound is made of", table)
    _print_conditions(found)
    _print_observations(found)
    for told in sorted(
        {each.saturation.recommendation or "" for each in found.observations} - {""}
    ):
        console.print(f"To know more: {told}.")
    _print_verdicts(verdicts)


def _print_verdicts(verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        console_for_tables().print(
            f"{verdict.deadline.name}: {verdict.verdict}; {verdict.sentence}"
        )


def _trace(told: TraceTold) -> dict[str, Any]:
    sights = {each.source: each for each in SIGHTS}
    return {
        **told.model_dump(exclude={"sources", "unseen"}),
        "sources": [
            {
                "source": source,
                "events": events,
                "sees": sights[source].sees,
                "lacks": sights[source].lacks,
            }
            for source, events in told.sources
        ],
    }


def _print_traces(found: LinuxBound) -> None:
    """Print what each source of events sees and what it cannot."""
    console = console_for_tables()
    traced = [each.windows.trace for each in found.observations if each.windows.trace is not None]
    for each in traced:
        if each.thread >= 0:
            name = printable_line(each.thread_name)
            console.print(
                f"The wake-ups are those of {name} (thread {each.thread}, CPU {each.cpu})."
            )
    _print_others_latencies(found, console)
    table = plain_table("source", "events", "sees", "cannot see")
    table.columns[2].justify = table.columns[3].justify = "left"
    table.columns[2].no_wrap = table.columns[3].no_wrap = False
    for number, sight in enumerate(SIGHTS):
        events = sum(each.sources[number][1] for each in traced)
        table.add_row(sight.source, f"{events:,}", sight.sees, sight.lacks)
    print_titled(console, "What the trace's events tell", table)
    if not found.unseen:
        inner = {name: max(each.inner_ns.get(name, 0) for each in traced) for name in TERMS}
        brackets = plain_table(
            "window", "between its events", "from the event before to that after"
        )
        for name in TERMS[:-1]:
            outer = getattr(found.terms, name)
            brackets.add_row(name, format_duration(inner[name]), format_duration(outer))
        print_titled(console, "How exactly the windows are known", brackets)


def _print_others_latencies(found: LinuxBound, console: Console) -> None:
    """Print the longest latencies that others measured of the same wake-ups."""
    for each in found.observations:
        if each.sampled_ns is not None:
            console.print(
                f"Largest sample of the probe in {printable_line(each.name)}:"
                f" {format_duration(each.sampled_ns)}, with its way to user mode."
            )
        trace = each.windows.trace
        if trace is not None and trace.timerlat:
            told = ", ".join(
                f"{printable_line(context)} {format_duration(seen.longest_ns)} ({seen.n:,})"
                for context, seen in sorted(trace.timerlat.items())
            )
            console.print(f"Largest seen by timerlat on CPU {trace.cpu}: {told}.")


def _print_staircase(found: LinuxBound) -> None:
    steps = reduce(Steps.joined, (each.windows.joint() for each in found.observations))
    table = plain_table("in any", "interrupts take at most, as seen")
    for length in (10_000, 100_000, 1_000_000, 10_000_000):
        table.add_row(format_duration(length), format_duration(steps(length)))
    print_titled(console_for_tables(), "Interrupts", table)


def _print_conditions(found: LinuxBound) -> None:
    rest = plain_table("condition", "state", "")
    rest.columns[1].justify = rest.columns[2].justify = "left"
    rest.columns[2].no_wrap = False
    for each in found.conditions:
        state = Text(each.state, style="red" if each.open else "")
        rest.add_row(f"{each.name} {each.what}", state, each.how)
    print_titled(console_for_tables(), "What it rests on", rest)


def _print_observations(found: LinuxBound) -> None:
    console = console_for_tables()
    table = plain_table(
        "observation", "wake-ups", "1/4", "1/2", "bound", "seen", "exceeded by", "longer blocks"
    )
    for each, (own, longest, above) in zip(found.observations, found.matrix, strict=True):
        quarter, half, _ = each.saturation.growth_ns
        share = each.saturation.share_of_longer
        table.add_row(
            each.name,
            f"{each.windows.wake_ups:,}",
            duration_or_dash(quarter),
            duration_or_dash(half),
            duration_or_dash(own),
            format_duration(longest),
            f"{above} of {len(found.observations)}",
            "-" if share is None else f"<= {share:.2%}",
        )
    print_titled(
        console,
        "Growth of the bound over each observation, and against the others' largest wake-ups",
        table,
    )


def _ratio(found: LinuxBound) -> float | None:
    if found.bound.bound_ns is None or not found.longest_ns:
        return None
    return round(found.bound.bound_ns / found.longest_ns, 4)


def _time_bases(found: LinuxBound) -> list[str]:
    return sorted({each.windows.time_base for each in found.observations})


def _parts(found: LinuxBound) -> list[tuple[str, int]]:
    made = found.bound
    parts = [
        (made.holding, made.holding_ns),
        ("scheduler", made.scheduler_ns),
        ("interrupts", made.interrupts_ns),
    ]
    return [*parts, ("to_user", made.to_user_ns)] if found.to_user else parts


def _terms_of(found: LinuxBound, name: str) -> tuple[str, ...]:
    if name != "idle":
        return (name,)
    terms = found.terms
    direct = terms.idle_direct > terms.idle_in + terms.idle_out
    return ("idle_direct",) if direct else ("idle_in", "idle_out")


def _site(found: LinuxBound, name: str) -> dict[str, Any]:
    sites = [found.sites[term] for term in _terms_of(found, name) if term in found.sites]
    if not sites:
        return {"begin": None, "end": None, "observation": None}
    begin, end = sites[0][0].begin, sites[-1][0].end
    return {
        "begin": {"at": begin[0], "caller": begin[1]},
        "end": {"at": end[0], "caller": end[1]},
        "observation": sites[0][1],
    }


def _where(found: LinuxBound, name: str) -> str:
    if name == "interrupts":
        return f"model {found.interrupts}"
    sites = [found.sites[term] for term in _terms_of(found, name) if term in found.sites]
    return "; ".join(str(site) for site, _ in sites) or "-"
