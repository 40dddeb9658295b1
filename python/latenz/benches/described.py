"""Systems as an experiment describes them: their files, and what their sources learn first."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from latenz.engines.simulation import LearnSettings, SimulationSettings
from latenz.errors import BadInput, shown

if TYPE_CHECKING:
    from latenz.system import System


@dataclass(frozen=True)
class LearnedMonitor:
    """What a source learned in its learning phase.

    Attributes:
        events: How many of its interrupts it learned from.
        from_ns: When the first interrupt after the phase arrives, and the monitor is switched on.
        observed_ns: Minimum distances that the phase showed.
        distances_ns: Those that the monitor keeps.
    """

    events: int
    from_ns: int
    observed_ns: tuple[int, ...]
    distances_ns: tuple[int, ...]


@dataclass(frozen=True)
class Described:
    """A system as it is going to be simulated.

    Attributes:
        name: What the experiment calls it.
        path: Its file.
        text: What stood in the file.
        system: With learned monitors, if any.
        learned: What each source learned; empty without a learning phase.
    """

    name: str
    path: Path
    text: str
    system: "System"
    learned: dict[str, LearnedMonitor]


def described(
    settings: SimulationSettings, folder: Path, where: Callable[[str], str] = lambda key: key
) -> list[Described]:
    """Read the systems that settings name, and carry out their learning phases.

    Args:
        settings: What to simulate.
        folder: What relative paths start from.
        where: Returns the place of a key of the settings, for error messages.

    Raises:
        BadInput: A system file is missing or has a mistake, or does not fit the other settings.
    """
    return [
        _described(settings, name, folder / file, where) for name, file in settings.system.items()
    ]


def _described(
    settings: SimulationSettings, name: str, path: Path, where: Callable[[str], str]
) -> Described:
    from latenz.system import Exponential, RecordedTrace, read_system
    from latenz.system.processors import check_one_processor

    if not _is_file(path):
        remedy = "name a system file, relative to this file"
        raise BadInput(f"there is no file {shown(str(path))}", where("system"), remedy)
    system = read_system(path)
    check_one_processor(system, where("system"))
    text = path.read_text(encoding="utf-8")
    mode = settings.mode or system.mode
    endless = [each for each in system.sources if not isinstance(each.arrival, RecordedTrace)]
    if settings.irqs is None and endless:
        what = f"arrivals of {endless[0].name!r} have no end"
        raise BadInput(what, where("irqs"), "say how many interrupts to simulate")
    if settings.learn is None:
        return Described(name, path, text, system, {})
    if endless:
        kind = "drawn" if isinstance(endless[0].arrival, Exponential) else "described"
        what = f"arrivals of {endless[0].name!r} are {kind}, not recorded"
        raise BadInput(what, where("learn"), 'learning needs arrivals of kind = "trace"')
    if mode == "plain":
        remedy = 'write mode = "paper" or "carry"'
        raise BadInput("mode plain has no monitor that could learn", where("learn"), remedy)
    return _learned(settings.learn, Described(name, path, text, system, {}), where)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
    except ValueError:  # a name that no file can have
        return False


def _learned(wanted: LearnSettings, found: Described, where: Callable[[str], str]) -> Described:
    """Give every source the monitor that it learns, from where its learning phase ends."""
    from latenz.analysis.learn import learn
    from latenz.system import Monitor, RecordedTrace

    times_ns = {
        source.name: source.arrival.times_ns
        for source in found.system.sources
        if isinstance(source.arrival, RecordedTrace)
    }
    try:
        learned = learn(times_ns, wanted.length, wanted.fraction, allow=wanted.allow)
    except BadInput as mistake:
        raise BadInput(mistake.what, where("learn"), mistake.remedy) from None
    sources = []
    for source in found.system.sources:
        seen = learned.of(source.name)
        if len(seen.observed_ns) < wanted.length:
            raise BadInput(
                f"{seen.learned_from} interrupts of {source.name!r} do not show {wanted.length} "
                "distances",
                where("learn"),
                "give a greater fraction or a smaller length",
            )
        # A trace with equal times shows distances of 0, which would limit nothing.
        distances_ns = tuple(max(1, distance) for distance in seen.distances_ns)
        sources.append(replace(source, monitor=Monitor(distances_ns)))
    return replace(
        found,
        system=replace(found.system, sources=tuple(sources)),
        learned={
            each.name: LearnedMonitor(
                each.learned_from,
                int(times_ns[each.name][each.learned_from]),
                each.observed_ns,
                each.distances_ns,
            )
            for each in learned.sources
        },
    )
