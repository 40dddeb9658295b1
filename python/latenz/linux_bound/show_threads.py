"""Response times of real-time threads as JSON, and as a table."""

from collections.abc import Sequence
from typing import Any

from latenz.analysis.show import console_for_tables, duration_or_dash, plain_table, print_titled
from latenz.durations import format_duration
from latenz.linux_bound.judging import ThreadVerdict
from latenz.linux_bound.thread_file import LinuxSystem
from latenz.linux_bound.threads import Response
from latenz.terminal import printable_line


def document(
    system: LinuxSystem, found: Sequence[Response], verdicts: Sequence[ThreadVerdict]
) -> dict[str, Any]:
    """Return all of it for `--json`."""
    evidence = system.evidence
    return {
        "wake_up_ns": system.kernel.wake_up if evidence is None else evidence.bound.bound_ns,
        "holding_ns": system.kernel.wake_up,
        "switch_ns": system.kernel.switch,
        "is_open": evidence is not None and evidence.is_open,
        "threads": [
            {
                "name": each.thread.name,
                "priority": each.thread.priority,
                "verdict": "unbounded" if each.response is None else "bounded",
                "response_ns": each.response,
                "end_to_end_ns": each.end_to_end,
                "chain": list(each.chain),
                "activations": each.activations,
                "made_of_ns": {
                    "own": each.activations * each.thread.execution + each.thread.blocking,
                    "preemption": each.preemption,
                    "interrupts": each.interrupts,
                },
            }
            for each in found
        ],
        "deadlines": [each.to_json() for each in verdicts],
        "assumptions": list(system.assumptions),
    }


def print_responses(
    system: LinuxSystem, found: Sequence[Response], verdicts: Sequence[ThreadVerdict]
) -> None:
    """Print how late each thread can end, and what that rests on."""
    console = console_for_tables()
    table = plain_table(
        "thread", "priority", "response", "from its chain's begin", "preemption", "chain"
    )
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for each in found:
        table.add_row(
            printable_line(each.thread.name),
            str(each.thread.priority),
            duration_or_dash(each.response),
            duration_or_dash(each.end_to_end),
            format_duration(each.preemption),
            printable_line(" > ".join(each.chain)) if len(each.chain) > 1 else "",
        )
    print_titled(console, "How late each thread can end", table)
    if lost := [printable_line(each.thread.name) for each in found if each.response is None]:
        console.print(
            f"No bound of {', '.join(lost)}: together they may need more than the CPU has, or one"
            " is above --horizon.",
            style="red",
        )
    for verdict in verdicts:
        console.print(f"{verdict.thread}: {verdict.verdict}; {verdict.sentence}")
    console.print("It holds if:")
    for assumption in system.assumptions:
        console.print(f"- {printable_line(assumption)}")
