"""Runs of the hypervisor as terminal tables."""

from dataclasses import asdict

from latenz.analysis.show import (
    console_for_tables,
    duration_or_dash,
    plain_table,
    print_simulation,
    print_titled,
)
from latenz.hypervisor.results import Measured
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
    if run.costs:
        print_costs(run, bench)


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


def print_costs(run: Measured, bench: str) -> None:
    """Print what the hypervisor's own work took in a complete run, on each processor."""
    console = console_for_tables()
    costs = [each.costs for each in run.processors if each.costs]
    several = [f"on {each.processor}" for each in run.processors]
    heading = several if len(several) > 1 else ["at most"]
    table = plain_table("cost", *heading)
    for key, name in _COSTS.items():
        table.add_row(name, *(duration_or_dash(each.to_json()[key]) for each in costs))
    for name in dict.fromkeys(name for each in costs for name in each.top):
        own = (duration_or_dash(each.top.get(name)) for each in costs)
        table.add_row(f"top handler (C_TH) of {name}", *own)
    print_titled(
        console, f"costs as the analysis takes them, measured on {bench} (virtual time)", table
    )
    sections = [asdict(each.sections) for each in run.processors if each.sections]
    table = plain_table("section", *(heading if len(several) > 1 else ["longest"]))
    for key, name in SECTIONS.items():
        table.add_row(name, *(duration_or_dash(each[key]) for each in sections))
    print_titled(console, "what they are made of", table)
