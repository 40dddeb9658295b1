"""Runs of the hypervisor as terminal tables."""

from dataclasses import asdict

from latenz.analysis.show import (
    console_for_tables,
    duration_or_dash,
    plain_table,
    print_simulation,
    print_titled,
)
from latenz.hypervisor.results import Costs, Measured, Sections
from latenz.hypervisor.trace import PartitionStatistics

_COSTS = {
    "slot_switch": "slot switch",
    "monitor": "monitor (C_Mon)",
    "schedule": "scheduler (C_sched)",
    "context_switch": "context switch (C_ctx)",
    "limit": "masking a source (C_lim)",
}
SECTIONS = {
    "slot_switch": "slot switch",
    "top": "top handler without the monitor",
    "monitor": "monitor",
    "schedule": "scheduler",
    "context_switch_to": "switch to an interposed job",
    "context_switch_from": "switch back",
    "bottom_end": "end of a bottom handler",
    "limit": "masking a source",
    "service": "visit that a guest caused",
    "trap": "entering and leaving the hypervisor",
}
"""Names of what `Sections` has."""


def print_run(run: Measured, bench: str) -> None:
    """Print the figures of each source, what became of partitions, and the costs."""
    print_simulation(run.outcome, f"measured on {bench} (virtual time)")
    console = console_for_tables()
    table = plain_table("partition", "state", "faults", "restarts", "progress")
    for each in run.statistics.partitions:
        table.add_row(
            each.name, each.state, str(each.faults), str(each.restarts), f"{each.progress:,}"
        )
    console.print(table)
    for each in run.statistics.partitions:
        if each.faults:
            console.print(in_words(each), markup=False, highlight=False)
    if run.costs and run.sections:
        print_costs(run.costs, run.sections, bench)


def in_words(partition: PartitionStatistics) -> str:
    """Return what its health table made of a partition that had faults."""
    ways = {"stopped": "was stopped", "off": "switched itself off", "running": "runs on"}
    ending = ways.get(partition.state, f"is {partition.state}")
    found = [f"{partition.faults:,} fault{'s' * (partition.faults > 1)}"]
    if partition.expiries:
        every = partition.expiries == partition.faults
        found.append("of its watchdog" if every else f"{partition.expiries:,} of its watchdog")
    found.append(f"{partition.restarts:,} restart{'s' * (partition.restarts != 1)}")
    return f"{partition.name} {ending}: {', '.join(found)}"


def print_costs(costs: Costs, sections: Sections, bench: str) -> None:
    """Print what the hypervisor's own work took."""
    console = console_for_tables()
    table = plain_table("cost", "at most")
    for key, cost in costs.to_json().items():
        if key in _COSTS:
            table.add_row(_COSTS[key], duration_or_dash(cost))
    for name, cost in costs.top.items():
        table.add_row(f"top handler (C_TH) of {name}", duration_or_dash(cost))
    print_titled(
        console, f"costs as the analysis takes them, measured on {bench} (virtual time)", table
    )
    table = plain_table("section", "longest")
    for key, section in asdict(sections).items():
        table.add_row(SECTIONS[key], duration_or_dash(section))
    print_titled(console, "what they are made of", table)
