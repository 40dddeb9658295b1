"""The bench `vm`: virtual machines under KVM, here, on an emulated host, or without KVM."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from latenz.benches.base import Assignment, Bench, TraceKind, Watch
from latenz.errors import BadInput
from latenz.model import SampleSet, TimeBase
from latenz.obstacle import Obstacle
from latenz.setup import ensure_group
from latenz.stacks.base import Job
from latenz.stacks.vm import HOST_LAYERS, VmStackSettings

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition
    from latenz.traces.recording import Recorded
    from latenz.vm.settings import VmSettings

_NESTED_S = 90
_NESTED_FOR_VIRTUAL = 25
_NS = 1_000_000_000


class Vm(Bench):
    """Measures in virtual machines, each tuned as its stack says."""

    name = "vm"
    stacks = ("vm",)
    engines = ("wakeup", "cyclictest")
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")
    traces = True

    def trace_obstacle(self, kind: TraceKind) -> Obstacle | None:
        """Return None for causes: whether a condition can be traced depends on how it runs."""
        if kind == "windows":
            return Obstacle("windows of a guest are not recorded; its host takes time as well")
        return None

    def obstacle(self, condition: "Condition") -> Obstacle | None:
        """Return what is not installed, or which tuning is none, or that KVM does not work."""
        from latenz.vm.acceleration import acceleration
        from latenz.vm.guest import flavour, guest

        if missing := ensure_group("vm", "virtual machines"):
            return missing
        stack = _stack(condition)
        try:
            settings, _ = machine(stack)
            if stack.accel == "kvm":
                acceleration("kvm", guest(flavour(settings)).kernel)
        except BadInput as mistake:
            return Obstacle(str(mistake))
        return None

    def describe(self) -> dict[str, Any]:
        """Return the emulator, and this machine, whose KVM may be used."""
        from latenz import environment
        from latenz.programs import program_version

        return {
            "qemu": program_version("qemu-system-x86_64", "--version"),
            "host": environment.describe(),
        }

    def planned_ns(self, condition: "Condition") -> int:
        """Return about how long booting and measuring take."""
        return nested_planned_ns(condition)

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Run the machine, store the sample sets, and return an account."""
        condition = assignment.condition
        known: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "bench": self.name,
            "engine": {
                "name": condition.engine.engine,
                "settings": condition.engine.model_dump(),
            },
            "stack": _stack(condition).model_dump(),
            "load": {"name": condition.load.kind, "settings": condition.load.model_dump()},
        }
        try:
            return {**_measured(assignment, watch, known), **known}
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake), **known}


def nested_planned_ns(condition: "Condition") -> int:
    """Return about how long a measurement on an emulated host takes, boot included."""
    virtual_s = -(-condition.duration_ns // _NS)
    return (_NESTED_S + _NESTED_FOR_VIRTUAL * virtual_s) * _NS


def machine(stack: VmStackSettings) -> "tuple[VmSettings, tuple[str, ...]]":
    """Return the machine that a stack asks for, and the tunings it asks for of the host.

    A layer stands for what it holds that needs nobody's consent; the id of a tuning is consent.

    Raises:
        BadInput: A name is neither the id of a tuning nor a layer.
    """
    from latenz.tune.catalogue import load
    from latenz.vm.choice import chosen
    from latenz.vm.host import made_settings

    of_host = {entry.id: entry for entry in load() if entry.layer in HOST_LAYERS}
    known = {*of_host, *HOST_LAYERS}
    wanted = [
        entry.id
        for entry in of_host.values()
        if entry.id in stack.tunings or (entry.layer in stack.tunings and not entry.consent)
    ]
    others = [name for name in stack.tunings if name not in known]
    settings = made_settings(
        tunings=chosen(frozenset(), others, kernel=stack.kernel),
        vcpus=stack.vcpus,
        memory_mib=stack.memory_mib,
    )
    return settings, tuple(wanted)


def _stack(condition: "Condition") -> VmStackSettings:
    return cast(VmStackSettings, condition.system)


def _measured(assignment: Assignment, watch: Watch, known: dict[str, Any]) -> dict[str, Any]:
    """Measure by the accelerator that the stack asks for."""
    stack = _stack(assignment.condition)
    settings, wanted = machine(stack)
    accelerator = _accelerator(stack, settings)
    known["accelerator"] = accelerator
    if accelerator == "kvm-in-tcg":
        return _nested(assignment, watch, known, settings, wanted)
    return _here(assignment, watch, known, settings, wanted, accelerator)


def _accelerator(stack: VmStackSettings, settings: "VmSettings") -> str:
    """Return how the machine runs: `auto` prefers what has KVM."""
    from latenz.vm.acceleration import acceleration
    from latenz.vm.guest import flavour, guest

    if stack.accel != "auto":
        return stack.accel
    found = acceleration("auto", guest(flavour(settings)).kernel)
    return "kvm" if found.accelerator == "kvm" else "kvm-in-tcg"


def _nested(
    assignment: Assignment,
    watch: Watch,
    known: dict[str, Any],
    settings: "VmSettings",
    wanted: tuple[str, ...],
) -> dict[str, Any]:
    from latenz.vm import nested

    condition, folder = assignment.condition, assignment.folder()
    stack = _stack(condition)
    wish = nested.Wish(
        nested.placed(settings),
        Job("vm", condition, folder, assignment.metadata(TimeBase.VIRTUAL)),
        wanted,
        load_on_host=stack.load_on == "host",
        without_machine=stack.measured == "host",
        trace=assignment.trace is not None,
    )
    try:
        found = nested.run(wish, lambda: watch.stopped, lambda phase: _tell(watch, phase))
    except nested.Stopped:
        return {"state": "interrupted", "reason": "stopped before the machine sent anything"}
    known |= found.account
    stored = _store(assignment, found.sets)
    return {"state": "measured", "sample_sets": stored, **_explained(assignment, found.recorded())}


def _explained(assignment: Assignment, recorded: "Recorded | None") -> dict[str, Any]:
    """Return why the worst moments of what was recorded were late; nothing if nothing was."""
    from latenz.traces.recording import explained

    return explained(recorded, assignment.writer.folder) if recorded else {}


def _here(
    assignment: Assignment,
    watch: Watch,
    known: dict[str, Any],
    settings: "VmSettings",
    wanted: tuple[str, ...],
    accelerator: str,
) -> dict[str, Any]:
    """Measure in a machine that this host runs, by KVM or by counting instructions."""
    from latenz.vm.guest import flavour, guest
    from latenz.vm.host import made_settings, placed
    from latenz.vm.run import measure

    settings = placed(made_settings(**{**settings.model_dump(), "accelerator": accelerator}))
    silicon = accelerator == "kvm"
    base = TimeBase.SILICON if silicon else TimeBase.VIRTUAL
    job = Job("vm", assignment.condition, assignment.folder(), assignment.metadata(base))
    notes = _not_in_effect(wanted) if silicon else []
    made = guest(flavour(settings))
    found = measure(
        settings,
        made,
        job,
        trace=assignment.trace is not None,
        stopped=lambda: watch.stopped,
        tell=lambda phase: _tell(watch, phase),
    )
    known |= found.account
    stored = _store(assignment, [_noted(each, notes) for each in found.sets])
    told = {"reason": found.trouble} if found.trouble else {}
    told |= _explained(assignment, found.recorded)
    state = "interrupted" if found.stopped else "failed" if found.trouble else "measured"
    return {"state": state, "sample_sets": stored, "notes": notes, **told}


def _not_in_effect(wanted: tuple[str, ...]) -> list[str]:
    """Return which of the host's tunings that a condition asks for this host does not have."""
    from latenz.tune.catalogue import load
    from latenz.tune.check import check
    from latenz.tune.context import Context
    from latenz.tune.root import Root

    entries = [entry for entry in load() if entry.id in wanted]
    checks = check(Context.of(Root("/"), profile="kvm-host"), entries)
    missing = [each.id for each in checks if each.state in ("wrong", "unknown")]
    if not missing:
        return []
    return [f"not in effect on this host: {', '.join(missing)}; see latenz tune plan"]


def _noted(sample_set: SampleSet, notes: list[str]) -> SampleSet:
    return sample_set.with_metadata(notes=(*sample_set.metadata.notes, *notes))


def _store(assignment: Assignment, sets: list[SampleSet]) -> list[str]:
    for each in sets:
        assignment.writer.add(each)
    return [each.metadata.name for each in sets]


def _tell(watch: Watch, phase: str) -> None:
    if watch.report:
        watch.report(phase, None)
