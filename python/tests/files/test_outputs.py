"""No command writes over what it reads, nor, unasked, over what others wrote."""

import os
import shutil
from pathlib import Path

import pytest
from test_strangers_folders import DATA, IRQS, OUTPUTS, SYSTEM, latenz, marked_long

pytestmark = pytest.mark.boots

NEEDS_A_GUEST = ("vm run", "ip read", "ip replay")
FOLDERS = {
    ("run", "-o"),
    ("attach", "-o"),
    ("tune prove", "-o"),
    ("import", "-o"),
    ("hypervisor run", "-o"),
    ("explore", "-o"),
}
"""Of a command's own: none that holds anything is taken."""
MANY = ("vm build", "icc generate")
"""Commands that put several files into a folder."""
WRITTEN = (
    "latenz: {}: exists and was not written by Latenz, or cannot be made again;"
    " name another file, or add --force"
)
READ = "latenz: {}: is what the command reads; name another file"
TWICE = "latenz: {}: is named for two outputs; name two files"
FILES = [
    each
    for each in OUTPUTS
    if each not in FOLDERS and each[0] not in (*NEEDS_A_GUEST, *MANY, "hypervisor trace")
]


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    """Hand-made inputs of each kind, and a run folder."""
    folder = tmp_path_factory.mktemp("given")
    shutil.copy(SYSTEM, folder / "system.toml")
    shutil.copy(DATA / "traces/planted/throttled.dat", folder / "trace.dat")
    rows = [f"can,{1000 * number}" for number in range(50)]
    (folder / "arrivals.csv").write_text("\n".join(["source,time_ns", *rows, ""]))
    samples = [f"{number * 1000},{number % 7 + 5}" for number in range(200)]
    (folder / "samples.csv").write_text("\n".join(["t_ns,latency_ns", *samples, ""]))
    (folder / "page.html").write_text("<!doctype html><title>mine</title>")
    made = latenz(folder, ["import", DATA / "importers/oslat-v2.4.json", "-o", "run"])
    assert made.returncode == 0
    return folder


def words(output: tuple[str, str], given: Path, path: Path, *more: object) -> list[object]:
    from test_strangers_folders import Inputs

    inputs = Inputs(given)
    option = [output[1]] if output[1] else []
    return [*OUTPUTS[output](inputs), *more, *option, path]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(each.relative_to(folder)): (each.read_bytes(), each.stat().st_mtime_ns)
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@pytest.mark.parametrize("output", marked_long(FILES), ids=" ".join)
def test_what_others_wrote_stays_unless_forced(output, given, tmp_path):
    for name in ("system.toml", "samples.csv", "trace.dat", "page.html"):
        path = tmp_path / name
        shutil.copy(given / name, path)
        before = path.read_bytes()
        done = latenz(tmp_path, words(output, given, path))
        assert done.returncode == 2, done.stdout
        assert done.stderr == WRITTEN.format(path) + "\n"
        assert path.read_bytes() == before

    done = latenz(tmp_path, words(output, given, path, "--force"))
    assert done.returncode in (0, 1, 3), done.stderr
    assert path.read_bytes() != before
    again = latenz(tmp_path, words(output, given, path))
    if output[0] == "tune snapshot":
        assert (again.returncode, again.stderr) == (2, WRITTEN.format(path) + "\n")
    else:
        assert again.returncode in (0, 1, 3), again.stderr


@pytest.mark.parametrize("output", FILES, ids=" ".join)
def test_inputs_stay_even_when_forced(output, given, tmp_path):
    here = tmp_path / "here"
    shutil.copytree(given, here)
    copies = {
        SYSTEM: here / "system.toml",
        DATA / "traces/planted/throttled.dat": here / "trace.dat",
    }
    asked = [copies.get(each, each) for each in words(output, here, Path("output"), "--force")]
    read = [each for each in asked if isinstance(each, Path) and each.exists()]
    assert read or output[0].startswith("tune "), "what this command reads is not known here"
    for given_path in read:
        path = given_path / "run.json" if given_path.is_dir() else given_path
        link = tmp_path / "link"
        link.unlink(missing_ok=True)
        os.link(path, link)
        before = contents(here)
        for name in (path, link) if path == given_path else (path,):
            done = latenz(here, [*asked[:-1], name])
            assert (done.returncode, done.stderr) == (2, READ.format(name) + "\n")
            assert contents(here) == before


@pytest.mark.parametrize(
    "command",
    [
        ["report", "samples.csv", "-o", "samples.csv"],
        ["export", "samples.csv", "--to=openmetrics", "-o", "samples.csv"],
        ["report", "run", "-o", "run/run.json"],
        ["export", "run/samples.parquet", "--to=csv", "-o", "run/run.json"],
        ["simulate", "system.toml", IRQS, "--picture", "system.toml"],
        ["simulate", "system.toml", "--arrivals", "arrivals.csv", "--records", "arrivals.csv"],
        ["explain", "trace.dat", "--timeline", "trace.dat"],
        ["hypervisor", "costs", "system.toml", IRQS, "-o", "system.toml"],
        ["learn", "arrivals.csv", "--length=2", "--arrivals-out", "arrivals.csv"],
        ["compare", "run", "samples.csv", "-o", "samples.csv"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "forced"])
def test_the_file_that_is_read_is_never_written(command, force, given):
    before = contents(given)
    done = latenz(given, [*command, *force])
    assert done.returncode == 2
    assert done.stderr == READ.format(command[-1]) + "\n"
    assert contents(given) == before


def test_an_edited_output_counts_as_somebodys(given, tmp_path):
    picture = tmp_path / "schedule.svg"
    command = ["simulate", SYSTEM, IRQS, "--picture", picture]
    assert latenz(tmp_path, command).returncode == 0
    assert latenz(tmp_path, command).returncode == 0
    picture.write_text(picture.read_text() + "<!-- my remark -->")
    done = latenz(tmp_path, command)
    assert (done.returncode, done.stderr) == (2, WRITTEN.format(picture) + "\n")
    assert "my remark" in picture.read_text()


def test_a_copied_page_is_known_as_ours_and_one_in_its_run_is_renewed(given, tmp_path):
    """Continuous integration keeps pages where extended attributes are lost."""
    run = tmp_path / "run"
    shutil.copytree(given / "run", run)
    page = run / "report.html"
    assert latenz(tmp_path, ["report", run, "-o", page]).returncode == 0
    content = page.read_bytes()
    page.unlink()
    page.write_bytes(content)
    assert latenz(tmp_path, ["report", run, "-o", page]).returncode == 0
    (run / "mine.html").write_text("<!doctype html><title>mine</title>")
    done = latenz(tmp_path, ["report", run, "-o", run / "mine.html"])
    assert (done.returncode, done.stderr) == (2, READ.format(run / "mine.html") + "\n")


def test_what_was_measured_once_stays(given, tmp_path):
    """Parts of runs that are not read, and snapshots, are no page to be made again."""
    data = DATA / "importers/oslat-v2.4.json"
    assert latenz(tmp_path, ["import", data, "-o", "other"]).returncode == 0
    tree = tmp_path / "tree"
    (tree / "proc").mkdir(parents=True)
    assert latenz(tmp_path, ["tune", "snapshot", "machine.tar", "--root", tree]).returncode == 0
    before = contents(tmp_path)
    names = [name for name in before if name.endswith((".json", ".parquet", ".tar"))]
    assert len(names) >= 3
    for name in names:
        done = latenz(tmp_path, ["report", given / "run", "-o", tmp_path / name])
        assert (done.returncode, done.stderr) == (2, WRITTEN.format(tmp_path / name) + "\n")
    assert contents(tmp_path) == before


def test_two_outputs_are_two_files(tmp_path):
    file = tmp_path / "out"
    command = ["simulate", SYSTEM, IRQS, "--picture", file, "--trace", file]
    done = latenz(tmp_path, command)
    assert (done.returncode, done.stderr) == (2, TWICE.format(file) + "\n")
    assert not file.exists()


def test_a_folder_for_a_guest_keeps_somebodys_kernel(tmp_path):
    (tmp_path / "vmlinuz").write_text("mine")
    done = latenz(tmp_path, ["vm", "build", "-o", tmp_path])
    assert (done.returncode, done.stderr) == (2, WRITTEN.format(tmp_path / "vmlinuz") + "\n")
    assert [each.name for each in tmp_path.iterdir()] == ["vmlinuz"]


def test_an_empty_file_and_a_descriptor_are_written(given, tmp_path):
    empty = tmp_path / "made-by-mktemp"
    empty.touch()
    command = ["export", given / "run", "--to=csv", "-o"]
    assert latenz(tmp_path, [*command, empty]).returncode == 0
    done = latenz(tmp_path, [*command, "/dev/stdout"])
    assert done.stdout == empty.read_text()
