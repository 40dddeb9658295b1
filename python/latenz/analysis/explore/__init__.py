"""Search for monitors and slots with which all deadlines hold."""

from latenz.analysis.explore.evaluate import OBJECTIVES, Objective
from latenz.analysis.explore.plan import Plan
from latenz.analysis.explore.result import Candidate, Exploration
from latenz.analysis.explore.run import explore
from latenz.analysis.explore.space import Space

__all__ = [
    "OBJECTIVES",
    "Candidate",
    "Exploration",
    "Objective",
    "Plan",
    "Space",
    "explore",
]
