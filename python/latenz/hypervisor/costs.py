"""Measured costs in system files."""

from dataclasses import replace

from latenz.hypervisor.results import Costs, Sections
from latenz.system import Platform, Source, System


def with_costs(system: System, costs: Costs, sections: Sections) -> tuple[System, tuple[str, ...]]:
    """Return a system with measured costs instead of its own.

    What did not happen in the run keeps the cost that the system gives it. A top handler that was
    measured takes what it took at most each time: nobody measured sums of several.

    Returns:
        The system, and the costs that were not measured.

    Raises:
        BadInput: A slot is not longer than the slot switch took.
    """
    old = system.platform
    seen = {
        "monitor": sections.monitor is not None,
        "schedule": sections.schedule is not None,
        "context_switch": sections.context_switch_from is not None,
    }
    platform = Platform(
        slot_switch_ns=costs.slot_switch,
        monitor_ns=costs.monitor if seen["monitor"] else old.monitor_ns,
        schedule_ns=costs.schedule if seen["schedule"] else old.schedule_ns,
        context_switch_ns=costs.context_switch if seen["context_switch"] else old.context_switch_ns,
        limit_ns=costs.limit or old.limit_ns,
    )
    sources = tuple(_with_top(source, costs.top[source.name]) for source in system.sources)
    missing = [name for name, measured in seen.items() if not measured]
    missing += [f"top of {name}" for name, cost in costs.top.items() if not cost]
    return replace(system, platform=platform, sources=sources), tuple(missing)


def _with_top(source: Source, top_ns: int | None) -> Source:
    return replace(source, top_ns=top_ns, top_sums_ns=None) if top_ns else source
