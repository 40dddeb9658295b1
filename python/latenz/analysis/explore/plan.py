"""What is asked of an exploration, kept with its results so that it can be resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from pydantic import Field, ValidationError

from latenz.analysis.explore.evaluate import Objective
from latenz.errors import BadInput
from latenz.files import file_in, replacing
from latenz.settings import Settings
from latenz.system import System, read_system, write_system

MOST_CANDIDATES = 10_000_000
ARRIVALS = "system.arrivals.csv"
"""Holds the recorded traces of all systems of a folder."""
_SYSTEM = "system.toml"
_PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an exploration is to find.

    Attributes:
        system: The one to start from.
        deadlines_ns: Limits by source; at least one.
        objectives: What to minimise, the most important first; at least one.
        candidates: How many to evaluate at most.
        seed: Of the sample, where the space holds more.
        shares: The least share of the cycle that partitions need, where it is not what they have.
    """

    system: System
    deadlines_ns: Mapping[str, int]
    objectives: tuple[Objective, ...] = ("interference", "switches")
    candidates: int = 100_000
    seed: int = 0
    shares: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sources = {source.name for source in self.system.sources}
        if not self.deadlines_ns or not sources.issuperset(self.deadlines_ns):
            raise BadInput("every deadline needs a source, and there must be one", "deadlines_ns")
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            raise BadInput("an objective is missing, or named twice", "objectives")
        if not 1 <= self.candidates <= MOST_CANDIDATES:
            raise BadInput(
                f"{self.candidates} is not a number of candidates",
                "candidates",
                f"give 1 to {MOST_CANDIDATES}",
            )

    def save(self, folder: Path) -> None:
        """Write the plan and its system into a folder."""
        write_system(self.system, folder / _SYSTEM)
        content = PlanFile(
            latenz=version("latenz"),
            deadlines_ns=dict(self.deadlines_ns),
            objectives=self.objectives,
            candidates=self.candidates,
            seed=self.seed,
            shares={name: str(share) for name, share in self.shares.items()},
        )
        with replacing(folder / _PLAN) as partial:
            partial.write_text(content.model_dump_json(indent=1) + "\n")

    def check_same(self, folder: Path) -> None:
        """Refuse a folder that holds an exploration with another plan.

        Raises:
            BadInput: It does, or its plan cannot be read.
        """
        kept = load_plan(folder)
        for each in fields(self):
            if getattr(self, each.name) != getattr(kept, each.name):
                what = each.name.removesuffix("_ns")
                raise BadInput(
                    f"holds an exploration with other {what}"
                    if what != "system"
                    else "holds an exploration of another system",
                    str(folder),
                    "name another folder with -o",
                )


class PlanFile(Settings):
    """The content of plan.json; the system stands beside it in system.toml."""

    latenz: str
    deadlines_ns: dict[str, int] = Field(min_length=1)
    objectives: tuple[Objective, ...] = Field(min_length=1)
    candidates: int
    seed: int
    shares: dict[str, str]


def has_plan(folder: Path) -> bool:
    """Tell whether a folder holds an exploration."""
    return file_in(folder, _PLAN) is not None


def load_plan(folder: Path) -> Plan:
    """Read the plan of a folder.

    Raises:
        BadInput: There is none, it is damaged, or another version of Latenz made it.
    """
    path = file_in(folder, _PLAN)
    if path is None:
        raise BadInput(f"holds no {_PLAN}", str(folder), "name a folder of latenz explore")
    try:
        content = PlanFile.model_validate_json(path.read_bytes())
        shares = {name: Fraction(share) for name, share in content.shares.items()}
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except (ValidationError, ValueError):
        raise BadInput("is damaged", str(path), "begin anew in another folder") from None
    if content.latenz != version("latenz"):
        raise BadInput(
            f"was begun by latenz {content.latenz}, this is {version('latenz')}",
            str(folder),
            "begin anew in another folder",
        )
    system = read_system(folder / _SYSTEM)
    return Plan(
        system, content.deadlines_ns, content.objectives, content.candidates, content.seed, shares
    )
