"""`latenz vm`: real-time virtual machines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force
from latenz.commands.judging import AcceptEmulated, Globs, Limits, asked_deadlines

if TYPE_CHECKING:
    from latenz.benches.vm import MachineSetup
    from latenz.measuring.condition import Condition
    from latenz.stacks.base import Job
    from latenz.vm.guest import Guest
    from latenz.vm.settings import VmSettings

command = typer.Typer(
    help="Build and run a real-time virtual machine: image, QEMU command, libvirt XML, measuring."
    "\n\nExample: latenz vm run --duration 10s --deadline 50us -o results/vm",
    no_args_is_help=True,
)

_Tuned = Annotated[
    bool, typer.Option("--tuned/--default", help="All tunings, or a plain QEMU command line.")
]
_With = Annotated[
    list[str] | None,
    typer.Option("--with", help="Also these tunings: ids or layers (qemu, libvirt, guest)."),
]
_Without = Annotated[
    list[str] | None, typer.Option("--without", help="Not these tunings: ids or layers.")
]
_Kernel = Annotated[str | None, typer.Option(help="stock or rt, whatever the tunings say.")]
_Accelerator = Annotated[str, typer.Option(help="kvm, tcg, or auto: KVM where it works.")]
_Vcpus = Annotated[
    int, typer.Option(min=2, max=64, help="Virtual CPUs of a machine with a spare one.")
]
_Memory = Annotated[int, typer.Option(min=256, max=1 << 20, help="Memory in MiB.")]
_Cpus = Annotated[
    str | None,
    typer.Option(help="Host CPUs for the vCPUs, such as 2-3. (default: isolated ones)"),
]
_Disk = Annotated[Path | None, typer.Option(help="A raw image that the guest gets as disk.")]
_Tap = Annotated[str | None, typer.Option(help="Host interface (tap) of the guest's network.")]
_Passthrough = Annotated[
    str | None, typer.Option(help="PCI device that the guest gets, such as 0000:03:00.0.")
]
_Engine = Annotated[str, typer.Option(help="wakeup, cyclictest or robot.")]
_Load = Annotated[str, typer.Option(help="none, spin, stress-ng-cpu or stress-ng-all.")]
_Duration = Annotated[str, typer.Option(help="How long to measure in the guest's time.")]
_Period = Annotated[str, typer.Option(help="Distance of the activations.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@command.command()
def build(
    kernel: Annotated[str, typer.Option(help="stock or rt.")] = "rt",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for copies of both files.")
    ] = None,
    force: Force = False,
    json: _Json = False,
) -> None:
    """Make the guest's kernel and initial RAM disk from Debian packages.

    They are kept in Latenz's cache; -o copies them as vmlinuz and initrd.cpio.

    Example: latenz vm build --kernel rt -o guest
    """
    from latenz.outputs import check_outputs
    from latenz.vm.guest import EXPORTED, export

    if output is not None:
        check_outputs([output / name for name in EXPORTED], force=force)
    _ensure()
    made = _guest(_kernel(kernel) or "rt")
    files = [made.kernel.path, made.initrd.path] if output is None else export(made, output)
    if json:
        names = {"kernel_file": str(files[0]), "initrd_file": str(files[1])}
        _print_json({**names, **made.provenance()})
        return
    for path in files:
        typer.echo(f"{path.stat().st_size >> 20} MiB  {path}")
    count = len({each.name for each in (*made.kernel.packages, *made.initrd.packages)})
    typer.echo(f"Linux {made.release}, from {count} Debian packages")


@command.command("command")
def command_line(
    tuned: _Tuned = True,
    with_: _With = None,
    without: _Without = None,
    kernel: _Kernel = None,
    accelerator: _Accelerator = "kvm",
    vcpus: _Vcpus = 2,
    memory: _Memory = 1024,
    cpus: _Cpus = None,
    disk: _Disk = None,
    tap: _Tap = None,
    passthrough: _Passthrough = None,
    json: _Json = False,
) -> None:
    """Print QEMU's command line, and which tuning each part of it comes from.

    Example: latenz vm command --default --with guest
    """
    from latenz.vm.command import Boot
    from latenz.vm.command import command as pieces_of
    from latenz.vm.guest import flavour, guest_options
    from latenz.vm.show import as_script, to_json

    settings = _settings(
        tuned, with_, without, kernel, accelerator, vcpus, memory, cpus, disk, tap, passthrough
    )
    made = _guest(flavour(settings))
    boot = Boot(
        kernel=made.kernel.path,
        initrd=made.initrd.path,
        options=guest_options(settings, _example_job()),
        console=Path("console.log"),
        results="file,path=results.tar.gz",
    )
    pieces = pieces_of(settings, boot)
    if json:
        _print_json(to_json(settings, pieces))
    else:
        typer.echo(as_script(settings, pieces), nl=False)


@command.command()
def xml(
    tuned: _Tuned = True,
    with_: _With = None,
    without: _Without = None,
    kernel: _Kernel = None,
    accelerator: _Accelerator = "kvm",
    vcpus: _Vcpus = 2,
    memory: _Memory = 1024,
    cpus: _Cpus = None,
    disk: _Disk = None,
    tap: _Tap = None,
    passthrough: _Passthrough = None,
    domain: Annotated[
        Path | None, typer.Option("--domain", help="Tune this domain, as virsh dumpxml prints it.")
    ] = None,
    json: _Json = False,
) -> None:
    """Print the domain that libvirt starts as the same machine, or your own one, tuned.

    With --domain only what tunings decide is changed, and each change is told on standard error.

    Example: latenz vm xml --cpus 2-3 > guest.xml && virsh define guest.xml
    """
    if domain is not None:
        asked = {
            "--kernel": kernel is not None,
            "--accelerator": accelerator != "kvm",
            "--vcpus": vcpus != 2,
            "--memory": memory != 1024,
            "--disk": disk is not None,
            "--tap": tap is not None,
            "--passthrough": passthrough is not None,
        }
        _tune_domain(domain, asked, tuned, with_, without, cpus, json)
        return
    from latenz.vm.guest import flavour, guest_options
    from latenz.vm.libvirt import domain as domain_of

    settings = _settings(
        tuned, with_, without, kernel, accelerator, vcpus, memory, cpus, disk, tap, passthrough
    )
    made = _guest(flavour(settings))
    options = guest_options(settings, _example_job())
    text = domain_of(settings, made.kernel.path, made.initrd.path, options)
    if json:
        _print_json({"xml": text, "tunings": sorted(settings.tunings)})
    else:
        typer.echo(text, nl=False)


@command.command()
def run(
    output: Annotated[Path, typer.Option("--output", "-o", help="New run folder.")],
    duration: _Duration = "10s",
    load: _Load = "none",
    engine: _Engine = "wakeup",
    period: _Period = "1ms",
    deadline: Limits = None,
    for_: Globs = None,
    accept_emulated: AcceptEmulated = False,
    tuned: _Tuned = True,
    with_: _With = None,
    without: _Without = None,
    kernel: _Kernel = None,
    accelerator: Annotated[
        str, typer.Option(help="kvm, tcg, kvm-in-tcg, or auto: KVM where it works.")
    ] = "auto",
    vcpus: _Vcpus = 2,
    memory: _Memory = 1024,
    cpus: _Cpus = None,
    disk: _Disk = None,
    tap: _Tap = None,
    passthrough: _Passthrough = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Also record guest and host, and explain the worst.")
    ] = False,
    json: _Json = False,
) -> int:
    """Measure in a virtual machine; what comes back is an ordinary run.

    Ends with 0 if all deadlines are met, 1 if one is violated, 3 if one could not be shown or is
    met in emulated time only, and 130 if interrupted: the guest is then asked for what it has.
    With --trace what guest and host did is recorded, joined and told (latenz explain RUN).
    The accelerator kvm-in-tcg is KVM on an emulated host, for machines without KVM.

    Example: latenz vm run --load stress-ng-cpu --duration 10s --deadline 50us -o results/vm
    """
    from latenz.benches.vm import NESTED, MachineSetup
    from latenz.commands.vm_run import measured

    deadlines = tuple(asked_deadlines(deadline, for_))
    is_nested = accelerator == NESTED
    wanted = _settings(
        tuned,
        with_,
        without,
        kernel,
        "kvm" if is_nested else accelerator,
        vcpus,
        memory,
        cpus,
        disk,
        tap,
        passthrough,
        NESTED,
    )
    name = "tuned" if tuned and not (with_ or without or kernel) else "default"
    name = name if name == "tuned" or not (with_ or without or kernel or tuned) else "chosen"
    condition = _condition(name, engine, load, duration, period)
    if is_nested:
        _check_nested(wanted)
        setup = MachineSetup(wanted, NESTED, "KVM on an emulated host was asked for")
    else:
        setup = _accelerated(wanted, accelerator)
    return measured(setup, condition, deadlines, output, trace, json, accept_emulated)


def _settings(
    tuned: bool,
    with_: list[str] | None,
    without: list[str] | None,
    kernel: str | None,
    accelerator: str,
    vcpus: int,
    memory: int,
    cpus: str | None,
    disk: Path | None,
    tap: str | None,
    passthrough: str | None,
    *more_accelerators: str,
) -> "VmSettings":
    """Return the machine that the options describe, on this host's isolated CPUs.

    Raises:
        BadInput: An option is wrong, or they contradict each other.
    """
    from latenz.errors import BadInput, closest
    from latenz.vm.choice import chosen
    from latenz.vm.host import made_settings, placed
    from latenz.vm.settings import TUNED

    _ensure()
    if accelerator not in (known := ("auto", "kvm", "tcg", *more_accelerators)):
        what = f"{accelerator!r} is not an accelerator"
        raise BadInput(what, "--accelerator", closest(accelerator, known))
    base = TUNED if tuned else frozenset[str]()
    tunings = chosen(base, _words(with_), _words(without), _kernel(kernel))
    settings = made_settings(
        accelerator="tcg" if accelerator == "tcg" else "kvm",
        vcpus=vcpus,
        memory_mib=memory,
        tunings=tunings,
        cpus=cpus,
        disk=disk and disk.absolute(),
        tap=tap,
        passthrough=passthrough,
    )
    return placed(settings)


def _tune_domain(
    path: Path,
    asked: dict[str, bool],
    tuned: bool,
    with_: list[str] | None,
    without: list[str] | None,
    cpus: str | None,
    json: bool,
) -> None:
    """Print a user's own domain with our tunings, and what was changed.

    Raises:
        BadInput: It is not a domain that can be tuned, or an option says what it says itself.
    """
    from latenz.console import say
    from latenz.errors import BadInput
    from latenz.vm.own_domain import read_domain, settings_for, tuned_domain

    if given := next((option for option, is_given in asked.items() if is_given), None):
        raise BadInput("the domain says that itself", given, "leave the option out")
    document = read_domain(path)
    settings = settings_for(document, path, tuned, _words(with_), _words(without), cpus)
    made = tuned_domain(document, settings)
    if json:
        changes, left = (
            [{"what": what, "tuning": entry} for what, entry in each]
            for each in (made.changes, made.left)
        )
        _print_json({"xml": made.text, "changes": changes, "left": left})
        return
    typer.echo(made.text, nl=False)
    for what, entry in made.changes:
        say(f"changed: {what}  ({entry})", error=True)
    for what, entry in made.left:
        say(f"left to you: {what}  ({entry})", error=True)
    say(f"{path}: {len(made.changes)} changes; all else is as it was", error=True)


def _words(given: list[str] | None) -> list[str]:
    """Return names that were given apart or with commas between them."""
    return [word for text in given or [] for word in text.split(",") if word]


def _kernel(name: str | None) -> Any:
    from latenz.errors import BadInput, closest

    if name is not None and name not in (known := ("stock", "rt")):
        raise BadInput(f"{name!r} is not a kernel", "--kernel", closest(name, known))
    return name


def _accelerated(wanted: "VmSettings", accelerator: str) -> "MachineSetup":
    """Return the machine by what works here, and why it is emulated if it is.

    Raises:
        BadInput: This host lacks something, or KVM was asked for and does not work.
    """
    from latenz.benches.vm import MachineSetup
    from latenz.vm.acceleration import Wanted, acceleration
    from latenz.vm.guest import flavour
    from latenz.vm.host import check_devices, check_host

    check_devices(wanted)  # before a guest is made for it, which may take minutes
    asked: Wanted = "kvm" if accelerator == "kvm" else "tcg" if accelerator == "tcg" else "auto"
    found = acceleration(asked, _guest(flavour(wanted)).kernel)
    settings = wanted.model_copy(update={"accelerator": found.accelerator})
    check_host(settings)
    return MachineSetup(settings, found.accelerator, found.reason)


def _check_nested(settings: "VmSettings") -> None:
    """Refuse what this host has and an emulated one has not.

    Raises:
        BadInput: The machine asks for such a device.
    """
    from latenz.errors import BadInput

    given = {
        "--disk": settings.disk,
        "--tap": settings.tap,
        "--passthrough": settings.passthrough,
    }
    for option, value in given.items():
        if value is not None:
            raise BadInput(f"an emulated host has no {value}", option, "leave it out")


def _guest(kernel: Any) -> "Guest":
    from latenz.vm.guest import guest

    return guest(kernel)


def _ensure() -> None:
    """Set up what virtual machines need.

    Raises:
        BadInput: Something is missing.
    """
    from latenz.errors import BadInput
    from latenz.setup import ensure_group

    if obstacle := ensure_group("vm", "virtual machines"):
        raise BadInput(obstacle.reason, "vm", obstacle.fix and f"run {obstacle.fix}")


def _example_job() -> "Job":
    """Return what a printed machine measures: ten seconds without load."""
    from latenz.model import Metadata, TimeBase
    from latenz.stacks.base import Job

    condition = _condition("tuned", "wakeup", "none", "10s", "1ms")
    metadata = Metadata(
        name=condition.name,
        time_base=TimeBase.VIRTUAL,
        bench=condition.bench,
        stack=condition.stack,
        stressor=condition.stressor,
        condition=condition.name,
    )
    return Job(condition.bench, condition, Path(condition.name), metadata)


def _condition(name: str, engine: str, load: str, duration: str, period: str) -> "Condition":
    """Return what to measure.

    Raises:
        BadInput: Engine, load or duration is none that runs in a guest.
    """
    from pydantic import ValidationError

    from latenz.benches.vm import Vm
    from latenz.durations import parse_duration
    from latenz.engines import ENGINES
    from latenz.errors import BadInput, closest
    from latenz.loads import STRESSORS
    from latenz.measuring.condition import Condition

    if engine not in Vm.engines:
        what = f"{engine!r} does not measure in guests"
        raise BadInput(what, "--engine", closest(engine, Vm.engines))
    if load not in Vm.loads:
        raise BadInput(f"{load!r} is not a load in guests", "--load", closest(load, Vm.loads))
    times = {"--duration": duration, "--period": period}
    lasts = {option: parse_duration(text, option) for option, text in times.items()}
    for option, nanoseconds in lasts.items():
        if nanoseconds <= 0 or (option == "--period" and nanoseconds % 1000):
            what = f"{times[option]!r} is not a usable duration or period"
            raise BadInput(what, option, "write a number of whole microseconds, such as 1ms")
    wanted = {"engine": engine, "period": lasts["--period"]}
    try:
        settings = ENGINES[engine].settings_type.model_validate(wanted)
    except ValidationError as error:
        limit = error.errors()[0]["msg"].removeprefix("Input ")
        what = f"{period!r} is not a period of the engine {engine}"
        raise BadInput(what, "--period", f"in nanoseconds it {limit}") from None
    return Condition(
        name=name,
        bench=Vm.name,
        stack=name,
        system=None,
        stressor=load,
        load=STRESSORS[load].settings_type(kind=load),
        probe=engine,
        engine=settings,
        duration_ns=lasts["--duration"],
        folder=Path(),
    )


def _print_json(document: dict[str, Any]) -> None:
    import json as json_module

    typer.echo(json_module.dumps(document, indent=1))
