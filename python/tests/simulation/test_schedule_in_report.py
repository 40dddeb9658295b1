"""The schedule's picture: in the run, and from there in the report."""

import base64
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from latenz.analysis import Simulator
from latenz.analysis.timeline import drawable, schedule_picture, telling_part, timeline
from latenz.system import read_system


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schedule") / "run"
    subprocess.run(
        ["./latenz", "run", "experiments/beckert2014-synthetic.toml", "--only", "monitored",
         "-o", str(folder)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder


def reported(run: Path, page: Path) -> list[bytes]:
    subprocess.run(["./latenz", "report", str(run), "-o", str(page)], check=True)
    embedded = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page.read_text())
    return [base64.b64decode(picture) for picture in embedded]


def test_the_report_shows_what_the_run_has(simulated: Path, tmp_path: Path) -> None:
    loads = [f"schedule-load-{load}.svg" for load in (1, 5, 10)]
    assert sorted(path.name for path in simulated.rglob("*.svg")) == sorted(loads)
    drawn = [(simulated / "monitored" / name).read_bytes() for name in loads]
    page = tmp_path / "page.html"
    assert reported(simulated, page) == drawn
    [section] = re.findall(r'<section id="schedule".*?</section>', page.read_text(), re.DOTALL)
    told = re.findall(r"<summary>(\S+) <[^>]*>simulated<", section)
    assert told == [f"monitored/load-{load}" for load in (1, 5, 10)]
    for picture in drawn:
        assert b"interposed bottom handler timer" in picture
        ET.fromstring(picture)


def test_a_picture_of_unknown_origin_stays_a_picture(simulated: Path, tmp_path: Path) -> None:
    """Within an image element no script of it runs, and its text is not a markup of the page."""
    hostile = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    place = simulated / "monitored" / 'schedule"><b>.svg'
    place.write_bytes(hostile)
    try:
        page = tmp_path / "page.html"
        assert hostile in reported(simulated, page)
        assert "alert(1)" not in page.read_text()
        assert '"><b>' not in page.read_text()
    finally:
        place.unlink()


def test_what_is_too_much_to_draw_is_cut() -> None:
    system = read_system(Path("experiments/systems/can-gateway.toml"))
    whole = timeline(Simulator(system, irqs=30_000, watch="segments"), 0, 10**11)
    assert len(whole.segments.start_ns) > 20_000
    part = drawable(whole)
    assert part.end_ns < whole.end_ns
    assert 5_000 < len(part.segments.start_ns) <= 20_000
    assert (part.irqs.arrival_ns < part.end_ns).all()
    schedule_picture(part)


def test_the_part_that_tells_most_has_an_interposed_interrupt() -> None:
    system = read_system(Path("experiments/systems/can-gateway.toml"))
    simulator = Simulator(system, "carry", irqs=1000, watch="irqs")
    while not simulator.run():
        pass
    irqs = simulator.take_irqs()
    start_ns, end_ns = telling_part(system, irqs)
    assert start_ns % system.cycle_ns == 0
    assert end_ns == start_ns + 2 * system.cycle_ns
    inside = (irqs.arrival_ns >= start_ns) & (irqs.arrival_ns < end_ns)
    assert 1 in irqs.handling[inside]
