"""How well robots were controlled: a table, and the control error over time with missed cycles."""

from collections.abc import Sequence
from dataclasses import dataclass

from latenz.report import words
from latenz.report.collect import View
from latenz.report.figures import Figure, Panel
from latenz.robot_account import Control

_CAPTION = (
    "Greatest tracking error of all joints in consecutive stretches of time: where the servo should"
    " be, minus where it is, when a cycle runs. Triangles mark stretches in which cycles were"
    " missed. The axis of the error is logarithmic, and the same in all panels."
)


@dataclass(frozen=True)
class Controlled:
    """A robot in one condition.

    Attributes:
        label: Its condition, with the run's name where there are several.
        time_base: Of its sample sets.
        control: What its program told.
    """

    label: str
    time_base: str
    control: Control


def controlled(
    runs: Sequence[tuple[str, Sequence[tuple[str, Control]], Sequence[View]]],
) -> list[Controlled]:
    """Return the robots of some runs.

    Args:
        runs: Of each run what its labels begin with, its robots by condition, and the views of its
            sample sets.
    """
    found = []
    for prefix, controls, views in runs:
        bases = {view.metadata.name.rpartition("/")[0]: view.time_base.value for view in views}
        found += [
            Controlled(prefix + name, bases[name], control)
            for name, control in controls
            if name in bases
        ]
    return found


def control_figures(robots: Sequence[Controlled]) -> list[Figure]:
    """Return the control error over time, a panel for each robot; nothing without robots."""
    moved = [robot for robot in robots if any(robot.control.over_time.max_urad)]
    most = max((robot.control.error_max_urad for robot in moved), default=0)
    panels = [_panel(number, robot, most) for number, robot in enumerate(moved)]
    return [Figure("control-error", "Control error over time", _CAPTION, panels)] if panels else []


def _panel(number: int, robot: Controlled, most_urad: int) -> Panel:
    """Return the panel of one robot; all have one scale, up to the greatest error of all."""
    control, over_time = robot.control, robot.control.over_time
    step_s = over_time.stretch_ns / 1e9
    told = (
        f"rms {control.error_rms_urad:,} µrad, maximum {control.error_max_urad:,} µrad,"
        f" {words.count(control.missed)} cycles missed, {words.count(control.safe_stops)} safe"
        " stops"
    )
    return Panel(
        key=f"control-error-{number}",
        kind="control",
        time_base=robot.time_base,
        title=robot.label,
        description=f"Control error over time, {robot.label}: {told}.",
        data={
            "series": [
                {
                    "label": robot.label,
                    "at": [round(i * step_s, 6) for i in range(len(over_time.max_urad))],
                    "max": over_time.max_urad,
                    "missed": [[i, count] for i, count in enumerate(over_time.missed) if count],
                }
            ],
            "most": most_urad,
            "timeBase": robot.time_base,
            "limits": [],
        },
    )
