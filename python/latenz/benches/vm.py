"""The bench `vm`: virtual machines under KVM, here, on an emulated host, or without KVM."""

from dataclasses import dataclass
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

NESTED = "kvm-in-tcg"
"""Real KVM on an emulated host, in virtual time."""
_NESTED_S = 90
_NESTED_FOR_VIRTUAL = 25
_NS = 1_000_000_000


@dataclass(frozen=True)
class MachineSetup:
    """What is measured in, and how it runs.

    Attributes:
        settings: The machine, as it is asked for.
        accelerator: `kvm`, `tcg` or `kvm-in-tcg`.
        reason: Why not by this host's KVM; empty with it.
        of_host: Ids of tunings that are asked for of its host.
        load_on_host: The load runs on the emulated host, beside the machine.
        without_machine: The emulated host itself is measured.
    """

    settings: "VmSettings"
    accelerator: str
    reason: str = ""
    of_host: tuple[str, ...] = ()
    load_on_host: bool = False
    without_machine: bool = False

    @property
    def time_base(self) -> TimeBase:
        """What time means there."""
        return TimeBase.SILICON if self.accelerator == "kvm" else TimeBase.VIRTUAL


class Vm(Bench):
    """Measures in virtual machines, each tuned as its stack says."""

    name = "vm"
    stacks = ("vm",)
    engines = ("wakeup", "cyclictest", "robot")
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
        return _nested_planned_ns(condition)

    def setup(self, condition: "Condition") -> MachineSetup:
        """Return the machine that a condition's stack asks for, by what works here.

        Raises:
            BadInput: A tuning is none, or the machine cannot run as it is asked for.
        """
        return _setup(_stack(condition))

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
            **({"stack": condition.system.model_dump()} if condition.system else {}),
            "load": {"name": condition.load.kind, "settings": condition.load.model_dump()},
        }
        try:
            setup = self.setup(condition)
            known |= {"accelerator": setup.accelerator, "accelerator_reason": setup.reason}
            measured = _nested if setup.accelerator == NESTED else _here
            return {**measured(assignment, watch, known, setup), **known}
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake), **known}


class OneMachine(Vm):
    """Measures every condition in the machine that it is given, which this host can run."""

    def __init__(self, setup: MachineSetup) -> None:
        self._setup = setup

    def trace_obstacle(self, kind: TraceKind) -> Obstacle | None:
        """Return that this host, whose KVM runs the machine, has no tracer."""
        from latenz.traces.ring import obstacle

        on_host = kind == "causes" and self._setup.accelerator == "kvm"
        return obstacle() if on_host else super().trace_obstacle(kind)

    def obstacle(self, condition: "Condition") -> Obstacle | None:  # noqa: ARG002
        """Return None: whoever gave the machine has looked whether this host can run it."""
        return None

    def planned_ns(self, condition: "Condition") -> int:
        """Return about how long booting and measuring take."""
        from latenz.vm.run import planned_ns

        if self._setup.accelerator == NESTED:
            return _nested_planned_ns(condition)
        return planned_ns(self._setup.settings, condition)

    def setup(self, condition: "Condition") -> MachineSetup:  # noqa: ARG002
        """Return the machine."""
        return self._setup


def _nested_planned_ns(condition: "Condition") -> int:
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


def _setup(stack: VmStackSettings) -> MachineSetup:
    """Return what a stack asks for; `auto` prefers what has KVM."""
    from latenz.vm.acceleration import acceleration
    from latenz.vm.guest import flavour, guest
    from latenz.vm.host import made_settings, placed

    settings, of_host = machine(stack)
    accelerator: str = stack.accel
    reason = ""
    if stack.accel == "auto":
        found = acceleration("auto", guest(flavour(settings)).kernel)
        accelerator, reason = ("kvm" if found.accelerator == "kvm" else NESTED), found.reason
    if accelerator == NESTED:
        there = (stack.load_on == "host", stack.measured == "host")
        return MachineSetup(settings, accelerator, reason, of_host, *there)
    settings = placed(made_settings(**{**settings.model_dump(), "accelerator": accelerator}))
    return MachineSetup(settings, accelerator, reason, of_host)


def _nested(
    assignment: Assignment, watch: Watch, known: dict[str, Any], setup: MachineSetup
) -> dict[str, Any]:
    """Measure in a machine under real KVM, on an emulated host."""
    from latenz.vm import nested
    from latenz.vm.run import guest_account

    condition, folder = assignment.condition, assignment.folder()
    settings = nested.placed(setup.settings)
    left_out = sorted(setup.settings.tunings - settings.tunings)
    known |= {
        "settings": settings.model_dump(mode="json"),
        "without_effect": dict.fromkeys(left_out, "a real host"),
        "boot_wall_ns": None,
    }
    wish = nested.Wish(
        settings,
        Job("vm", condition, folder, assignment.metadata(setup.time_base)),
        setup.of_host,
        load_on_host=setup.load_on_host,
        without_machine=setup.without_machine,
        trace=assignment.trace is not None,
    )
    try:
        found = nested.run(wish, lambda: watch.stopped, lambda phase: _tell(watch, phase))
    except nested.Stopped:
        return {"state": "interrupted", "reason": "stopped before the machine sent anything"}
    known |= found.account
    if not setup.without_machine:
        known["guest"] = guest_account(folder / "received", settings.measured_cpu)
    stored = _store(assignment, found.sets)
    told = _explained(assignment, found.recorded())
    return {"state": "measured", "sample_sets": stored, **told}


def _explained(
    assignment: Assignment, recorded: "Recorded | None", note: str | None = None
) -> dict[str, Any]:
    """Return why the worst moments of what was recorded were late; nothing if nobody asked."""
    from latenz.traces.recording import explained

    if assignment.trace is None:
        return {}
    if recorded is None:
        return {"traces": [], "causes": [], "trace_notes": ["nothing was recorded"]}
    told = explained(recorded, assignment.writer.folder)
    if note:
        told["trace_notes"] = [note, *told["trace_notes"]]
    return told


_GUEST_ALONE = "emulation has no exits, and time of its own: only the guest was recorded"


def _here(
    assignment: Assignment, watch: Watch, known: dict[str, Any], setup: MachineSetup
) -> dict[str, Any]:
    """Measure in a machine that this host runs, by KVM or by counting instructions."""
    from latenz.vm.guest import flavour, guest
    from latenz.vm.run import measure

    metadata = assignment.metadata(setup.time_base)
    is_silicon = setup.time_base is TimeBase.SILICON
    notes = _not_in_effect(setup.of_host) if is_silicon else []
    found = measure(
        setup.settings,
        guest(flavour(setup.settings)),
        Job("vm", assignment.condition, assignment.folder(), metadata),
        trace=assignment.trace is not None,
        stopped=lambda: watch.stopped,
        tell=lambda phase: _tell(watch, phase),
    )
    known |= found.account
    stored = _store(assignment, [_noted(each, notes) for each in found.sets])
    told = {"reason": found.trouble} if found.trouble else {}
    told |= _explained(assignment, found.recorded, None if is_silicon else _GUEST_ALONE)
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
