"""Every output of every command in a folder of another user: nothing outside it is touched."""

import shutil
import subprocess
import sys
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
import typer
from strangers import IS_ROOT, exchanging, give_away, plant, state
from typer.models import OptionInfo

from latenz.cli import VERBS

pytestmark = pytest.mark.boots

DATA = Path(__file__).parents[1] / "data"
SYSTEM = Path(__file__).parents[3] / "experiments/systems/can-gateway.toml"
ROBOT = Path(__file__).parents[3] / "icc/examples/robot.toml"
EXPERIMENT = """\
name = "short"
duration = "300 ms"

[stressor.busy]
kind = "stress-ng-cpu"
instances = 1
settle = "300 ms"

[[condition]]
name = "loaded"
stressor = "busy"
probe = "cyclictest"
"""
TREE = {"sys/devices/system/cpu/online": "0-1\n", "proc/sys/vm/stat_interval": "1\n"}
WAVES = """\
$timescale 1ns $end
$var wire 1 ! irq $end
$var wire 1 " ack $end
$enddefinitions $end
#0
0!
0"
#100
1!
#300
1"
#400
0!
0"
"""


@dataclass(frozen=True)
class Inputs:
    """What the commands read: `run` is a run folder, `booted` one of the hypervisor's."""

    folder: Path

    @property
    def experiment(self) -> Path:
        return self.folder / "experiment.toml"

    @property
    def waves(self) -> Path:
        return self.folder / "waves.vcd"

    @property
    def arrivals(self) -> Path:
        return self.folder / "arrivals.csv"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def booted(self) -> Path:
        return self.folder / "booted"


Words = Callable[[Inputs], list[object]]
IRQS = "--irqs=60"
OUTPUTS: dict[tuple[str, str], Words] = {
    ("run", "-o"): lambda i: ["run", i.experiment],
    ("attach", "-o"): lambda _: ["attach", "--from", DATA / "traces/planted/throttled.dat"],
    ("import", "-o"): lambda _: ["import", DATA / "importers/oslat-v2.4.json"],
    ("export", "-o"): lambda i: ["export", i.run, "--to=csv"],
    ("report", "-o"): lambda i: ["report", i.run],
    ("compare", "-o"): lambda i: ["compare", i.run, i.run],
    ("simulate", "--records"): lambda _: ["simulate", SYSTEM, IRQS],
    ("simulate", "--picture"): lambda _: ["simulate", SYSTEM, IRQS],
    ("simulate", "--trace"): lambda _: ["simulate", SYSTEM, IRQS],
    ("hypervisor build", "-o"): lambda _: ["hypervisor", "build", SYSTEM, IRQS],
    ("hypervisor run", "-o"): lambda _: ["hypervisor", "run", SYSTEM, IRQS],
    ("hypervisor run", "--records"): lambda _: ["hypervisor", "run", SYSTEM, IRQS],
    ("hypervisor costs", "-o"): lambda _: ["hypervisor", "costs", SYSTEM, IRQS],
    ("hypervisor trace", "-o"): lambda i: ["hypervisor", "trace", i.booted],
    ("icc generate", "-o"): lambda _: ["icc", "generate", ROBOT],
    ("ip read", "-o"): lambda _: ["ip", "read", "sim:latency_bench", "--samples=5"],
    ("ip replay", "-o"): lambda i: ["ip", "replay", i.waves, "--start=irq", "--end=ack"],
    ("tune prove", "-o"): lambda i: [
        *("tune", "prove", i.experiment, "--root", i.tree, "--cpus=1", "--profile=host"),
        *("--only=host-stat-interval", "--figure=mean", "--yes"),
    ],
    ("tune snapshot", ""): lambda _: ["tune", "snapshot"],
    ("tune topology", "-o"): lambda _: ["tune", "topology"],
    ("vm build", "-o"): lambda _: ["vm", "build"],
    ("vm run", "-o"): lambda _: ["vm", "run", "--accelerator=tcg", "--duration=1s"],
    ("explain", "--timeline"): lambda _: ["explain", DATA / "traces/planted/throttled.dat"],
    ("check", "--arrivals-out"): lambda _: ["check", SYSTEM, "--effort=50"],
    ("explore", "-o"): lambda _: [
        *("explore", SYSTEM, "--deadline=can-engine=300us", "--candidates=20")
    ],
    ("learn", "-o"): lambda i: ["learn", i.arrivals, "--length=2"],
    ("learn", "--arrivals-out"): lambda i: ["learn", i.arrivals, "--length=2"],
}
"""What each output needs besides the path, which comes behind the option named here."""
ONLY_READ = {
    "--arrivals",
    "--disk",
    "--domain",
    "--from",
    "--initrd",
    "--r5",
    "--resume",
    "--root",
    "--samples",
    "--secret",
    "--system",
}
LONG = {("hypervisor costs", "-o"), ("tune prove", "-o"), ("vm run", "-o")}
"""What takes most of a minute."""
DEEP = (("run", "-o"), ("import", "-o"), ("hypervisor run", "-o"), ("explore", "-o"))
"""Folders of a command's own, which are made with their parents; those of `vm build` are not."""


def marked_long(outputs: Iterable[tuple[str, str]]) -> list[object]:
    """Mark what belongs to the long suite, as values of a parametrised test."""
    return [
        pytest.param(each, marks=pytest.mark.long) if each in LONG else each for each in outputs
    ]


def commands(command: object, name: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """Give all commands below one of the command line's, with their functions."""
    if not isinstance(command, typer.Typer):
        yield name, command  # type: ignore[misc]
        return
    for each in command.registered_commands:
        yield f"{name} {each.name or each.callback.__name__}", each.callback  # type: ignore[misc, union-attr]
    for group in command.registered_groups:
        yield from commands(group.typer_instance, f"{name} {group.name}")


def path_options() -> Iterator[tuple[str, str]]:
    """Give all options of the command line that take a path, and what writes to an argument."""
    for verb in VERBS:
        module = import_module(
            "latenz.commands." + {"import": "import_"}.get(verb, verb).replace("-", "_")
        )
        for name, function in commands(module.command, verb):
            for parameter, hint in typing.get_type_hints(function, include_extras=True).items():
                [information] = [*getattr(hint, "__metadata__", ()), None][:1]
                if "Path" not in str(hint):
                    continue
                if isinstance(information, OptionInfo):
                    declared = (information.default, *(information.param_decls or ()))
                    words = [each for each in declared if str(each).startswith("-")]
                    yield (
                        name,
                        "-o" if "-o" in words else f"--{parameter.strip('_').replace('_', '-')}",
                    )
                elif parameter == "output":
                    yield name, ""


def test_every_path_of_the_command_line_is_known_as_written_or_as_only_read():
    assert {each for each in path_options() if each[1] not in ONLY_READ} == set(OUTPUTS)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory) -> Inputs:
    found = Inputs(tmp_path_factory.mktemp("inputs"))
    found.experiment.write_text(EXPERIMENT)
    found.waves.write_text(WAVES)
    for name, text in TREE.items():
        (found.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (found.tree / name).write_text(text)
    rows = [f"can,{1000 * number}" for number in range(50)]
    found.arrivals.write_text("\n".join(["source,time_ns", *rows, ""]))
    data = DATA / "importers/oslat-v2.4.json"
    assert latenz(found.folder, ["import", data, "-o", found.run]).returncode == 0
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can go through, with a stranger's, victims, and where we are."""
    with tempfile.TemporaryDirectory(prefix="latenz-strangers-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        for each in ("stranger", "victims", "here"):
            (folder / each).mkdir()
        (folder / "victims").chmod(0o755)
        (folder / "victims/victim").write_text("as it was")
        give_away(folder / "stranger")
        yield folder


def latenz(here: Path, words: list[object]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", *map(str, words)]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=600)


def check(done: "subprocess.CompletedProcess[str]", place: Path, before: object) -> None:
    told = f"{done.returncode}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert state(place / "victims") == before, told
    assert not list((place / "here").iterdir()), told
    assert done.returncode in (0, 1, 2, 3), told
    assert "Traceback" not in done.stderr, told
    if done.returncode == 2:
        assert done.stderr.splitlines()[-1].startswith("latenz: "), told


def words_for(output: tuple[str, str], inputs: Inputs, path: Path) -> list[object]:
    if output[0] == "hypervisor trace" and not inputs.booted.exists():
        words = ["hypervisor", "run", SYSTEM, IRQS, "-o", inputs.booted]
        assert latenz(inputs.folder, words).returncode == 0
    return [*OUTPUTS[output](inputs), *([output[1]] if output[1] else []), path]


def remove(path: Path) -> None:
    """Remove what a command has written."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("output", marked_long(OUTPUTS), ids=" ".join)
def test_nothing_outside_a_strangers_folder_is_touched(output, inputs, place):
    stranger, victims = place / "stranger", place / "victims"
    before = state(victims)
    path = stranger / "output.csv"
    words = words_for(output, inputs, path)

    # He exchanges whatever appears while the command writes.
    for _ in range(5):  # a busy machine may keep him from seeing what is there for a moment only
        with exchanging(stranger, victims):
            done = latenz(place / "here", words)
        check(done, place, before)
        aside = [each for each in stranger.iterdir() if each.name.endswith(".aside")]
        if aside:
            break
        remove(path)
    names = {each.name.rsplit(".", 2)[0] for each in aside}
    assert aside, f"nothing was written there, so nothing was tested: {done}"

    # He has put links in all places that were written.
    inner = {
        str(below.relative_to(each))
        for each in aside
        if each.is_dir()
        for below in each.rglob("*")
        if not below.is_dir()
    }
    for target in (victims, victims / "victim") if IS_ROOT else (victims / "victim",):
        shutil.rmtree(stranger)
        stranger.mkdir()
        for name in names | {path.name}:
            plant(stranger / name, target)
        give_away(stranger)
        check(latenz(place / "here", words), place, before)

    # He has made the folder himself, with links in it.
    shutil.rmtree(stranger)
    path.mkdir(parents=True)
    for name in inner | {".lock", "run.json", "run.json.partial"}:
        plant(path / name, victims / "victim")
    give_away(stranger)
    done = latenz(place / "here", words)
    check(done, place, before)
    if output[0] not in ("vm build", "icc generate"):
        assert done.returncode == 2


@pytest.mark.parametrize("output", marked_long(OUTPUTS), ids=" ".join)
def test_a_strangers_folder_takes_what_is_written(output, inputs, place):
    """Containers run as root and are given folders of users."""
    if output[0] in ("vm run", "ip read", "ip replay"):  # as run and import, and slow
        return
    stranger = place / "stranger"
    path = stranger / ("deep/output.csv" if output in DEEP else "output.csv")
    done = latenz(place / "here", words_for(output, inputs, path))
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert path.exists()
    assert [each.name for each in stranger.iterdir()] == [path.relative_to(stranger).parts[0]]
    assert not list((place / "here").iterdir())
    if (path / "run.json").exists():
        assert "/proc/" not in (path / "run.json").read_text()
    if IS_ROOT:
        assert path.stat().st_uid == 0
