"""Experiment files: what may stand in them, and the conditions they ask for."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from latenz.allowance import DEFAULT, parse_allowance
from latenz.benches import BENCHES
from latenz.benches.host import Host
from latenz.engines import (
    PROBE_SETTINGS,
    AnyEngineSettings,
    IntercoreSettings,
    InterruptSettings,
    SimulationSettings,
)
from latenz.errors import BadInput, closest, shown
from latenz.loads import LOAD_SETTINGS, AnyStressorSettings
from latenz.measuring.condition import Condition
from latenz.measuring.settings import StackSettings
from latenz.model import Deadline
from latenz.remote import TargetUrl
from latenz.settings import Duration, Settings
from latenz.stacks import STACKS, AnyStackSettings
from latenz.stacks.base import StackKind
from latenz.toml_file import TomlFile, read_toml

AXES = ("target", "bench", "stack", "stressor", "probe")
_MOST_CONDITIONS = 10_000
_LASTS = {
    "simulation": "a simulation lasts until its last interrupt",
    "interrupt": "the engine 'interrupt' measures until its last interrupt",
    "intercore": "the engine 'intercore' measures until its last sample",
}
_CONDITION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def _condition_name(name: str) -> str:
    if not _CONDITION_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a condition; use letters, digits and . _ + - (at most 100)"
        )
    return name


Name = Annotated[str, AfterValidator(_condition_name)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


def _allowance(text: str) -> str:
    try:
        parse_allowance(text)
    except BadInput as mistake:
        raise ValueError(f"{mistake.what}; {mistake.remedy}") from None
    return text


class DeadlineSettings(Settings):
    """A limit that every latency must stay within."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    limit: Duration
    allowed: Annotated[str, AfterValidator(_allowance)] = DEFAULT
    """How much lateness counts as meeting the limit: "0", a probability per activation ("1e-3",
    "0.1%"), or a rate of late episodes ("1/h")."""
    burst: Annotated[Duration, Field(gt=0)] = 1_000_000_000
    """The longest burst of lateness that is tolerated unseen."""
    sets: str = "*"
    """Which sample sets are judged by it, a pattern such as "stress/cpu*"."""
    source: str | None = None
    """Where the limit comes from."""


def _url(text: str) -> str:
    try:
        TargetUrl.parse(text, "url")
    except BadInput as mistake:
        raise ValueError(f"{mistake.what}; {mistake.remedy}") from None
    return text


class TargetSettings(Settings):
    """Another machine, on which nothing need be installed."""

    url: Annotated[str, AfterValidator(_url)]
    """Where it is, as for `--on`."""


class MatrixSettings(Settings):
    """Every combination of these is a condition."""

    target: Names | None = None
    """Names of `[target.NAME]` tables; None: this machine."""
    bench: Names = ("host",)
    stack: Names | None = None
    """Names of `[stack.NAME]` tables, or kinds of stack with their defaults; None: the first of
    each bench."""
    stressor: Names = ("none",)
    """Names of `[stressor.NAME]` tables, or kinds of load with their defaults."""
    probe: Names
    """Names of `[probe.NAME]` tables, or engines with their defaults."""
    name: str | None = None
    """Names of the conditions, such as "{stressor}-{probe}"; None: what varies, joined by -."""


class ConditionSettings(Settings):
    """One condition besides those of the matrix."""

    name: Name
    target: str | None = None
    """None: this machine, or what `--on` names."""
    bench: str = "host"
    stack: str | None = None
    """None: the first of the bench."""
    stressor: str = "none"
    probe: str
    duration: Duration | None = None


class ExperimentFile(Settings):
    """An experiment file."""

    name: Name
    description: str = ""
    duration: Duration | None = None
    """How long each condition is measured, each time. Simulations need none: they last until their
    last interrupt has ended."""
    repetitions: int = Field(default=1, ge=1, le=10_000)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    """Seed of the random order; None: drawn anew each time. It is recorded either way."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    published: tuple[str, ...] = ()
    """Published tables to show beside the measured values, such as "alonso2021.table1"."""
    target: dict[Name, TargetSettings] = Field(default_factory=dict)
    probe: dict[Name, AnyEngineSettings] = Field(default_factory=dict)
    stressor: dict[Name, AnyStressorSettings] = Field(default_factory=dict)
    stack: dict[Name, AnyStackSettings] = Field(default_factory=dict)
    deadline: tuple[DeadlineSettings, ...] = ()
    matrix: MatrixSettings | None = None
    condition: tuple[ConditionSettings, ...] = ()

    @model_validator(mode="after")
    def _has_conditions(self) -> "ExperimentFile":
        if self.matrix is None and not self.condition:
            raise ValueError("no conditions; add a [matrix] table or [[condition]] tables")
        return self


class Experiment:
    """An experiment, read from a file and checked.

    Attributes:
        path: The file.
        file: Its content.
        conditions: In the order of the file: the matrix first.
        deadlines: What to judge by.
    """

    def __init__(self, path: Path, file: ExperimentFile, conditions: list[Condition]) -> None:
        self.path = path
        self.file = file
        self.conditions = conditions
        self.deadlines = tuple(
            Deadline(
                name=each.name,
                limit_ns=each.limit,
                allowed=each.allowed,
                burst_ns=each.burst,
                sets=each.sets,
            )
            for each in file.deadline
        )

    @classmethod
    def read(cls, path: Path, bench: str | None = None) -> "Experiment":
        """Read an experiment file.

        Args:
            path: A TOML file.
            bench: Runs every condition on this bench instead of the file's.

        Raises:
            BadInput: The file cannot be read or has a mistake; the place is file and line.
        """
        if bench is not None and bench not in BENCHES:
            known = ", ".join(BENCHES)
            raise BadInput(f"{bench!r} is not a bench", "--bench", f"choose one of: {known}")
        text = read_toml(path, ExperimentFile, "an experiment file")
        file = text.content
        _check_published(file.published, text.where(("published",)))
        _check_simulations(text)
        conditions: list[Condition] = []

        def add(wanted: ConditionSettings, *place: str | int) -> None:
            condition = _resolve(text, wanted, bench, lambda key: text.where((*place, key)))
            if any(other.name == condition.name for other in conditions):
                raise BadInput(
                    f"a second condition is named {condition.name!r}",
                    text.where((*place, "name")),
                    "give each its own name",
                )
            conditions.append(condition)

        for each in _matrix(file, text.where(("matrix", "name"))):
            add(each, "matrix")
        for index, each in enumerate(file.condition):
            add(each, "condition", index)
        for index, deadline in enumerate(file.deadline):
            if deadline.name in {other.name for other in file.deadline[:index]}:
                raise BadInput(
                    f"a second deadline is named {deadline.name!r}",
                    text.where(("deadline", index, "name")),
                    "give each its own name",
                )
        return cls(path, file, conditions)


def _matrix(file: ExperimentFile, where: str) -> list[ConditionSettings]:
    """Combine the axes of the matrix."""
    matrix = file.matrix
    if matrix is None:
        return []
    axes = [getattr(matrix, axis) or (None,) for axis in AXES]
    if prod(map(len, axes)) > _MOST_CONDITIONS:
        raise BadInput(
            f"the matrix has more than {_MOST_CONDITIONS} conditions", where, "leave some out"
        )
    combinations = [dict(zip(AXES, values, strict=True)) for values in product(*axes)]
    varied = [axis for axis, words in zip(AXES, axes, strict=True) if len(words) > 1]
    varied = varied or ["stressor"]
    template = matrix.name or "-".join(f"{{{axis}}}" for axis in varied)
    if unknown := set(re.findall(r"\{(.*?)\}", template)) - set(AXES):
        raise BadInput(
            f"{{{unknown.pop()}}} stands for nothing in the names of conditions",
            where,
            "choose one of: " + ", ".join(f"{{{axis}}}" for axis in AXES),
        )
    found = []
    for combination in combinations:
        # No load is called idle in a name, as the publications call it.
        words = {
            **combination,
            "target": combination["target"] or "here",
            "stressor": combination["stressor"].replace("none", "idle"),
            "stack": combination["stack"] or _first_stack(combination["bench"]),
        }
        name = template
        for axis, word in words.items():
            name = name.replace(f"{{{axis}}}", word)
        try:
            found.append(ConditionSettings(name=_condition_name(name), **combination))
        except ValueError as error:
            what, _, remedy = str(error).partition("; ")
            raise BadInput(what, where, remedy) from None
    return found


def _resolve(
    text: TomlFile[ExperimentFile],
    wanted: ConditionSettings,
    bench: str | None,
    where: Callable[[str], str],
) -> Condition:
    """Look up every name that a condition uses."""
    file = text.content
    runs_on = bench or wanted.bench
    _check("bench", runs_on, BENCHES, where("bench"))
    stack = wanted.stack or _first_stack(runs_on)
    system = _system(file, stack, runs_on, where("stack"), moved=bench is not None)
    _check("stressor", wanted.stressor, {**LOAD_SETTINGS, **file.stressor}, where("stressor"))
    _check("probe", wanted.probe, {**PROBE_SETTINGS, **file.probe}, where("probe"))
    load = file.stressor.get(wanted.stressor) or LOAD_SETTINGS[wanted.stressor].model_validate(
        {"kind": wanted.stressor}
    )
    target = _target(file, wanted.target, runs_on, where)
    engine = file.probe.get(wanted.probe) or PROBE_SETTINGS[wanted.probe].model_validate(
        {"engine": wanted.probe}
    )
    _check_runs_on(runs_on, "load", load.kind, BENCHES[runs_on].loads, where("stressor"))
    _check_runs_on(runs_on, "engine", engine.engine, BENCHES[runs_on].engines, where("probe"))
    if system is not None:
        kind = STACKS[system.kind]
        _check(f"load beside stack {stack!r}", load.kind, kind.loads, where("stressor"))
        _check(f"engine of stack {stack!r}", engine.engine, kind.engines, where("probe"))
    _check_windows(system, engine, runs_on, where("probe"))
    return Condition(
        name=wanted.name,
        bench=runs_on,
        stack=stack,
        system=system,
        stressor=wanted.stressor,
        load=load,
        probe=wanted.probe,
        engine=engine,
        duration_ns=_duration(text, wanted, engine, where("duration")),
        folder=text.path.parent,
        target=wanted.target or "",
        target_url=target,
    )


def _target(file: ExperimentFile, name: str | None, bench: str, where: Callable[[str], str]) -> str:
    """Return the URL of a condition's target; empty: it names none."""
    if name is None:
        return ""
    _check("target", name, file.target, where("target"))
    if bench != Host.name:
        what = f"the bench {bench!r} is on this machine, not on a target"
        raise BadInput(what, where("bench"), f"leave one of them out, or write {Host.name!r}")
    if name in BENCHES:
        what = f"{name!r} is the name of a bench"
        raise BadInput(what, where("target"), "give the target another name")
    return file.target[name].url


def _system(
    file: ExperimentFile, stack: str, bench: str, where: str, moved: bool
) -> StackSettings | None:
    """Return the settings of a stack, None where stacks have none.

    On a bench that was named instead of the file's own (`moved`), stacks that do not run there are
    no mistake of the file: the bench says so, and the other conditions are measured.
    """
    able = BENCHES[bench].stacks
    if any(bench in kind.benches for kind in STACKS.values()):
        able = tuple(STACKS) if moved else able
    else:
        _check(f"stack of bench {bench}", stack, able, where)
        return None
    tables = [name for name, settings in file.stack.items() if settings.kind in able]
    _check(f"stack of bench {bench}", stack, [*able, *tables], where)
    named = file.stack.get(stack)
    return named or STACKS[stack].settings_type.model_validate({"kind": stack})


def _first_stack(bench: str) -> str:
    return BENCHES[bench].stacks[0] if bench in BENCHES else ""


def _check_runs_on(bench: str, what: str, name: str, able: Sequence[str], where: str) -> None:
    if name not in able:
        benches = [
            f"{each!r}" for each, kind in BENCHES.items() if name in getattr(kind, f"{what}s")
        ]
        raise BadInput(
            f"the {what} {name!r} does not run on bench {bench!r}",
            where,
            f"it runs on {' and '.join(benches)}; there is here: {', '.join(able)}",
        )


def _check_windows(system: StackSettings | None, engine: Any, bench: str, where: str) -> None:
    """Tell that the windows of a kernel are asked for where they cannot be recorded."""
    if not getattr(engine, "windows", False):
        return
    kind = STACKS[system.kind] if system is not None else StackKind
    if obstacle := kind.windows_obstacle(system, engine, bench):
        remedy = obstacle.fix or "leave windows = true out"
        raise BadInput(obstacle.reason, where, remedy)


def _duration(
    text: TomlFile[ExperimentFile], wanted: ConditionSettings, engine: Any, where: str
) -> int:
    if isinstance(engine, SimulationSettings | InterruptSettings | IntercoreSettings):
        if wanted.duration is not None:
            raise BadInput(_LASTS[engine.engine], where, "leave the key out")
        return 0
    duration = wanted.duration or text.content.duration
    if duration is None:
        where = text.where(("duration",))
        raise BadInput("the key 'duration' is missing", where, "say how long to measure")
    return duration


def _check_simulations(text: TomlFile[ExperimentFile]) -> None:
    """Tell mistakes in systems now, not after others have been simulated."""
    for name, settings in text.content.probe.items():
        if isinstance(settings, SimulationSettings):
            from latenz.benches.described import described

            described(settings, text.path.parent, partial(_where, text, name))


def _where(text: TomlFile[ExperimentFile], probe: str, key: str) -> str:
    return text.where(("probe", probe, key))


def _check_published(names: Iterable[str], where: str) -> None:
    """Tell unknown tables now, not after hours of measuring."""
    from latenz import published

    for name in names:
        try:
            published.load(name)
        except BadInput as mistake:
            raise BadInput(mistake.what, where, mistake.remedy) from None


def _check(what: str, name: str, known: Iterable[str], where: str) -> None:
    if name not in known:
        raise BadInput(f"{shown(name)} is not a known {what}", where, closest(name, known))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of experiment files, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Latenz experiment",
        **ExperimentFile.model_json_schema(),
    }
