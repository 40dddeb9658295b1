"""The model against hand calculation, and the published rows that it is compared with."""

import re
from html.parser import HTMLParser

import pytest
from test_path_cutting import SOFTWARE, THROUGH_XEN, ran

from latenz.errors import BadInput
from latenz.path.calibration import calibration, calibrations, compare, estimate
from latenz.path.cutting import paths
from latenz.path.model import PathFile
from latenz.path.picture import section, section_for, shown

ALONE = (ran(0x9100), ran(0x8280, 13), ran(0x9000, 4))
TEXT = """core = "a core"
table = "alonso2024.table4"
conditions = ["standalone-a53", "xen"]
fitted_to = ["standalone-a53"]
clock_mhz = { value = 500, origin = "published", source = "here" }
cycles_per_instruction = { value = 1.5, origin = "assumed", source = "here" }
exception_cycles = { value = 20, origin = "assumed", source = "here" }
device_read_ns = { value = 100, origin = "published", source = "here" }
device_write_ns = { value = 30, origin = "published", source = "here" }
"""


@pytest.fixture
def core(tmp_path):
    path = tmp_path / "core.toml"
    path.write_text(TEXT)
    return calibration(path)


@pytest.fixture
def both():
    return {
        "standalone-a53": paths([ALONE], SOFTWARE, [17])[0],
        "xen": paths([THROUGH_XEN], SOFTWARE, [28])[0],
    }


def test_estimate_by_hand(core, both):
    # 28 instructions of 1.5 cycles, 2 entries and 1 return of 20, at 2 ns; 1 read and 1 write
    found = estimate(core, both["xen"], fixed_ns=7)
    assert found.instructions_ns == pytest.approx(84)
    assert found.exceptions_ns == pytest.approx(120)
    assert found.devices_ns == pytest.approx(130)
    assert found.total_ns == pytest.approx(341)


def test_fixed_time_makes_the_fitted_row_exact_and_predicts_the_other(core, both):
    alone, xen = compare(core, both)
    assert (alone.fitted, xen.fitted) == (True, False)
    assert alone.estimate.total_ns == pytest.approx(638.15)
    fixed_ns = 638.15 - (17 * 3 + 40)
    assert xen.estimate.total_ns == pytest.approx(fixed_ns + 84 + 120 + 130)
    assert xen.error_percent == pytest.approx(100 * (xen.estimate.total_ns / 2319.86 - 1))


def test_without_the_fitted_row_nothing_is_compared(core, both):
    assert compare(core, {"xen": both["xen"]}) == []


def test_every_parameter_says_where_it_is_from():
    for name, each in calibrations().items():
        assert len(each.parameters()) == 5, name
        assert all(parameter.source for parameter in each.parameters().values())
        assert set(each.fitted_to) < set(each.conditions)  # something is predicted


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"xen"]', '"xan"]', "conditions: 'xan' is not a row; did you mean 'xen'?"),
        ('fitted_to = ["standalone-a53"]', 'fitted_to = ["xen-stress"]', "is not a row"),
        ("value = 500", "value = 0", "0 is not a clock"),
        ("value = 100", "value = -1", "device_read_ns"),
        ('origin = "assumed"', 'origin = "guessed"', "cycles_per_instruction.origin"),
        ("clock_mhz =", "clock =", "unknown key 'clock'; did you mean 'clock_mhz'?"),
    ],
)
def test_mistakes_are_told_with_file_and_line(tmp_path, old, new, complaint):
    path = tmp_path / "core.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(BadInput, match=re.escape(complaint)) as told:
        calibration(path)
    assert str(told.value).startswith(f"{path}:")


class Parts(HTMLParser):
    """What a page is made of."""

    def __init__(self):
        super().__init__()
        self.open, self.widths, self.tags, self.cells = [], [], set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "rect":
            self.widths.append(float(dict(attributes)["width"]))
        if tag not in ("br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data.strip())


def page(both, core, name="xen"):
    file = PathFile(tick_ns=1.0, paths=(both["xen"],))
    alone = PathFile(tick_ns=1.0, paths=(both["standalone-a53"],))
    text = section(
        [shown("standalone", alone), shown(name, file)],
        {"core": compare(core, both)},
        {"core": core},
    )
    parts = Parts()
    parts.feed(text)
    assert parts.open == []
    return text, parts


def test_bars_are_as_long_as_paths(core, both):
    _, parts = page(both, core)
    longest = sum(parts.widths[-4:])
    assert longest == pytest.approx(560, abs=0.1)
    assert sum(parts.widths[:2]) == pytest.approx(560 * 17 / 28, abs=0.1)


def test_tables_hold_the_terms_and_the_error(core, both):
    _, parts = page(both, core)
    row = parts.cells[parts.cells.index("xen") :]
    assert row[:6] == ["xen", "0", "20", "6", "2", "28"]
    assert f"{compare(core, both)[1].error_percent:+.1f} %" in parts.cells
    assert "predicted" in parts.cells


def test_a_report_has_what_the_shipped_calibrations_say(both):
    files = {name: PathFile(tick_ns=1.0, paths=(path,)) for name, path in both.items()}
    text = section_for(files)
    error = compare(calibrations()["zynqmp-a53"], both)[1].error_percent
    assert f"{error:+.1f} %" in text
    assert "A model, not a measurement" in text
    assert "Cortex-R5" not in text  # nothing of it was recorded


def test_names_cannot_add_markup(core, both):
    text, parts = page(both, core, name="<script>alert(1)</script>")
    assert "script" not in parts.tags
    assert "&lt;script&gt;" in text
