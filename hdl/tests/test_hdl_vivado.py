"""The Vivado scripts, run in a Tcl interpreter that records what they ask of Vivado.

Nothing here has run in Vivado: these tests find wrong syntax, and names that the VHDL, the other
scripts or Vivado's list of commands do not have.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from vivado_scripts import HDL, VIVADO, evaluate, recorded

from simulation.vhdl_sources import listed

CONSTRAINTS = HDL / "latencies_ip/constraints/latencies_ip_asynchronous.xdc"
BOARDS = ("zcu102", "kv260", "kr260")
VARIANTS = ("published", "extended")
# What the scripts ask Vivado for, and a Vivado that built the design without fault would say.
ANSWERS = {
    "get_ipdefs -all xilinx.com:ip:*": "xilinx.com:ip:some:1.9 xilinx.com:ip:some:1.10",
    "get_board_parts -quiet *": "some:part0:3.4",
    "get_property CONFIG.PSU__CRL_APB__PL0_REF_CTRL__ACT_FREQMHZ *": "99.999001",
    "get_property PROGRESS *": "100%",
    "get_property DIRECTORY *": "/runs/impl_1",
    "get_property SLACK *": "1.5",
    "make_wrapper *": "/made/wrapper.vhd",
}
ZCU102 = ANSWERS | {"get_property CONFIG.PSU__CRL_APB__PL0_REF_CTRL__ACT_FREQMHZ *": "99.990005"}


class Entity(NamedTuple):
    """Names and what they are, without white space: generics with default, ports with mode."""

    generics: dict[str, str]
    ports: dict[str, str]


def entity(path: Path, name: str) -> Entity:
    text = re.sub(r"--[^\n]*", "", path.read_text())
    body = re.search(rf"entity {name} is(.*?)end entity", text, re.S)[1]
    generics, ports = re.fullmatch(r"\s*generic \((.*)\);\s*port \((.*)\);\s*", body, re.S).groups()

    def declared(part: str) -> dict[str, str]:
        pairs = (line.split(":", 1) for line in part.split(";"))
        return {name.strip(): "".join(kind.split()) for name, kind in pairs}

    return Entity(declared(generics), declared(ports))


def source_of(name: str) -> Path:
    return HDL / name / "rtl" / f"{name}.vhd"


def build(board: str, variant: str, tmp_path: Path, answers=None):
    answers = answers or (ZCU102 if board == "zcu102" else ANSWERS)
    return recorded("build.tcl", [board, variant, str(tmp_path)], answers)


def named(calls: list[list[str]], command: str) -> list[list[str]]:
    return [call[1:] for call in calls if call[0] == command]


def words(tcl_list: str) -> list[str]:
    """Return the words of a Tcl list without nested ones."""
    return tcl_list.replace("{", "").replace("}", "").split()


@pytest.fixture(scope="module", params=[(b, v) for b in BOARDS for v in VARIANTS])
def built(request, tmp_path_factory):
    calls, error = build(*request.param, tmp_path_factory.mktemp("vivado"))
    assert error == ""
    return request.param[1], calls


@pytest.fixture(scope="module")
def packaged(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("ip"))
    calls, error = recorded("package_latencies_ip.tcl", [folder], ANSWERS)
    assert error == ""
    return calls


def wrapper_of(name: str, folder: Path) -> Path:
    """Return the wrapper that the scripts make."""
    return Path(evaluate(f"latenz::write_wrapper {name} {{{folder}}}"))


@pytest.fixture(scope="module")
def wrappers(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wrappers")
    return {name: wrapper_of(name, folder) for name in ("latencies_ip", "latency_bench")}


@pytest.mark.parametrize("name", ["latencies_ip", "latency_bench"])
def test_the_wrapper_has_the_generics_and_ports_of_what_it_wraps(name, wrappers):
    wrapper = entity(wrappers[name], f"{name}_packaged")
    wrapped = entity(source_of(name), name)
    assert dict(wrapper.generics) == {"s00_address_bits_g": "positive:=12"} | wrapped.generics
    assert list(wrapper.ports) == list(wrapped.ports)
    for port, kind in wrapped.ports.items():
        if not re.search(r"s00_axi_a[rw]addr$", port):
            assert wrapper.ports[port] == kind


@pytest.mark.parametrize("name", ["latencies_ip", "latency_bench"])
def test_the_wrapper_is_vhdl_93(name, wrappers, tmp_path):
    command = ["ghdl", "-a", "--std=93", f"--workdir={tmp_path}", wrappers[name]]
    subprocess.run(command, check=True, timeout=600)


@pytest.fixture(scope="module")
def library(tmp_path_factory, wrappers) -> Path:
    """All sources and the wrappers, analysed."""
    folder = tmp_path_factory.mktemp("library")
    sources = [*listed("sources.txt", "bench_sources.txt"), *wrappers.values()]
    command = ["ghdl", "-a", "--std=08", f"--workdir={folder}", *sources]
    subprocess.run(command, check=True, timeout=600)
    return folder


# A window of samples from each branch of window_bits.
WINDOWS = [
    ("latency_bench", {}),
    ("latency_bench", None),
    ("latencies_ip", {"depth_g": "2048"}),
    ("latencies_ip", {"depth_g": "16", "time_stamp_g": "true"}),
    ("latencies_ip", {"depth_g": "4096", "histogram_g": "true", "histogram_bins_g": "8192"}),
    ("latencies_ip", {"depth_g": "1024", "latency_width_g": "48"}),
]


@pytest.mark.parametrize(("name", "generics"), WINDOWS)
def test_the_window_of_samples_is_as_wide_as_in_the_vhdl(name, generics, library):
    """GHDL refuses ports of other widths than those they are connected to."""
    if generics is None:
        flat = evaluate("latenz::generics_of extended").split()
        generics = dict(zip(flat[::2], flat[1::2], strict=True))
    listed = " ".join(f"{key} {value}" for key, value in generics.items())
    bits = int(evaluate(f"latenz::window_bits {{{listed}}}"))
    dialogue = evaluate(
        "with_generics",
        "package_latencies_ip.tcl",
        before=f"""
proc with_generics {{}} {{
    foreach {{name value}} {{depth_g 512 histogram_g false histogram_bins_g 1024
        latency_width_g 16 time_stamp_g false {listed}}} {{ set $name $value }}
    eval [string trim $latenz::s00_address_bits]
}}""",
    )
    assert int(dialogue) == bits
    elaborate = ["ghdl", "--elab-run", "--std=08", f"--workdir={library}", f"{name}_packaged"]
    options = [f"-g{key}={value}" for key, value in generics.items()]
    for width, fits in ((bits, True), (bits + 1, False)):
        run = [*elaborate, *options, f"-gs00_address_bits_g={width}", "--no-run"]
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=600)
        assert (done.returncode == 0) == fits, done.stderr


def test_constraints_are_loaded_scoped_and_late_and_assertions_are_on(built, packaged):
    for recording, scope in ((built[1], "latency_bench"), (packaged, "latencies_ip")):
        assert [
            Path(call[-1]) for call in named(recording, "add_files") if "constrs_1" in call
        ] == [CONSTRAINTS]
        sets = named(recording, "set_property")
        said = {call[0]: call[1] for call in sets if call[2:] == [str(CONSTRAINTS)]}
        assert said == {
            "SCOPED_TO_REF": scope,
            "PROCESSING_ORDER": "LATE",
            "USED_IN_SYNTHESIS": "false",
        }
    asserts = ["STEPS.SYNTH_DESIGN.ARGS.ASSERT", "true", "synth_1"]
    assert asserts in named(built[1], "set_property")
    assert {"report_cdc", "report_methodology"} <= {call[0] for call in built[1]}


def test_every_source_is_added_and_is_there(built, packaged):
    _, calls = built
    for recording, lists, wrapper in (
        (calls, ("sources.txt", "bench_sources.txt"), "latency_bench_packaged"),
        (packaged, ("sources.txt",), "latencies_ip_packaged"),
    ):
        added = [word for call in named(recording, "add_files") for word in words(call[-1])]
        wanted = listed(*lists)
        assert [Path(name) for name in added[: len(wanted)]] == wanted
        assert Path(added[len(wanted)]).name == f"{wrapper}.vhd"
        assert Path(added[len(wanted)]).exists()
        assert [Path(name).name for name in added[len(wanted) + 1 :]][:1] == [CONSTRAINTS.name]
        assert all(path.exists() for path in wanted)
        kinds = {
            Path(name).name: call[1]
            for call in named(recording, "set_property")
            if call[0] == "file_type"
            for name in words(call[2])
        }
        assert kinds.pop(f"{wrapper}.vhd") == "VHDL"
        assert set(kinds.values()) == {"VHDL 2008"}


def test_the_block_design_sets_generics_that_the_bench_has(built, wrappers):
    variant, calls = built
    wrapper = entity(wrappers["latency_bench"], "latency_bench_packaged")
    [flat] = [
        words(call[1])
        for call in named(calls, "set_property")
        if call[0] == "-dict" and call[2] == "bench"
    ]
    chosen = {
        key.removeprefix("CONFIG."): value for key, value in zip(flat[::2], flat[1::2], strict=True)
    }
    assert set(chosen) <= set(wrapper.generics)
    assert chosen["synchroniser_stages_g"] == "2"
    assert chosen["clock_frequency_hz_g"] in ("99990005", "99999001")
    assert ("time_stamp_g" in chosen) == (variant == "extended")


def test_every_pin_of_the_bench_is_a_port_and_connected_once(built, wrappers):
    _, calls = built
    ports = entity(wrappers["latency_bench"], "latency_bench_packaged").ports
    pins = [pin for call in named(calls, "connect_bd_net") for pin in call]
    interfaces = [pin for call in named(calls, "connect_bd_intf_net") for pin in call]
    scalar = [pin.removeprefix("bench/") for pin in pins if pin.startswith("bench/")]
    slaves = [pin.removeprefix("bench/") for pin in interfaces if pin.startswith("bench/")]
    of_slaves = [port for port in ports if any(port.startswith(f"{name}_") for name in slaves)]
    assert sorted(scalar + of_slaves) == sorted(ports)
    inputs = [pin for pin in pins if re.fullmatch(r"interrupts/In\d+", pin)]
    [outputs] = [
        int(call[1]) for call in named(calls, "set_property") if call[0] == "CONFIG.NUM_PORTS"
    ]
    assert inputs == [f"interrupts/In{number}" for number in range(outputs)]
    assert outputs <= 8  # width of pl_ps_irq0


def test_the_addresses_lie_in_the_processors_window_and_do_not_overlap(built):
    _, calls = built
    placed = {}
    for call in named(calls, "assign_bd_address"):
        options = dict(zip(call[:-1:2], call[1:-1:2], strict=True))
        placed[call[-1]] = (int(options["-offset"], 16), int(options["-range"]))
    slaves = [
        pin
        for call in named(calls, "connect_bd_intf_net")
        for pin in call
        if pin.startswith("bench/")
    ]
    assert sorted(placed) == sorted(f"{slave}/reg0" for slave in slaves)
    end = 0xA000_0000  # M_AXI_HPM0_FPD: UG1085, table "System Address Map"
    for address, size in sorted(placed.values()):
        assert size & (size - 1) == 0
        assert address % size == 0
        assert address >= end
        end = address + size
    assert end <= 0xB000_0000


def test_the_bit_stream_for_linux_is_the_one_that_the_device_trees_name(built):
    variant, calls = built
    [call] = named(calls, "write_cfgmem")
    loaded = call[call.index("-loadbit") + 1]
    assert loaded == f"up 0x0 /runs/impl_1/latency_bench_{variant}_wrapper.bit"
    tops = [call[1] for call in named(calls, "set_property") if call[0] == "top"]
    assert tops == [f"latency_bench_{variant}_wrapper"]
    text = (HDL / "devicetree/latency-bench.dtsi").read_text()
    assert f'firmware-name = "{Path(call[-1]).name}";' in text


def test_cells_that_are_connected_were_created(built):
    _, calls = built
    cells = {call[-1] for call in named(calls, "create_bd_cell")}
    for command in ("connect_bd_net", "connect_bd_intf_net"):
        for call in named(calls, command):
            assert {pin.partition("/")[0] for pin in call} <= cells


def test_the_newest_version_of_an_ip_is_taken(built):
    _, calls = built
    versions = {call[3] for call in named(calls, "create_bd_cell") if call[1] == "ip"}
    assert versions == {"xilinx.com:ip:some:1.10"}


def test_the_package_describes_every_generic_and_no_other(packaged, wrappers):
    wrapper = entity(wrappers["latencies_ip"], "latencies_ip_packaged")
    titled = {call[2] for call in named(packaged, "set_property") if call[0] == "display_name"}
    assert titled - {"core"} == set(wrapper.generics) - {"s00_address_bits_g"}
    for name in titled - {"core"}:
        kinds = [call for call in named(packaged, "set_property") if call[2] == name]
        values = {call[0]: call[1] for call in kinds}
        default = wrapper.generics[name].partition(":=")[2].strip('"').replace("_", "")
        if "value_validation_list" in values:
            assert default in values["value_validation_list"].split()
        elif "value_validation_range_minimum" in values:
            least = int(values["value_validation_range_minimum"])
            assert least <= int(default) <= int(values["value_validation_range_maximum"])
        else:
            assert (values["value_format"], default) == ("bool", "false")


def test_the_package_names_ports_and_interfaces_that_exist(packaged, wrappers):
    wrapper = entity(wrappers["latencies_ip"], "latencies_ip_packaged")
    named_ports = [call[0] for call in named(packaged, "ipx::get_ports")]
    named_ports += [call[0] for call in named(packaged, "ipx::infer_bus_interface")]
    assert {"aclk", "aresetn", "interrupt", "time_in"} <= set(named_ports) <= set(wrapper.ports)
    interfaces = [call[call.index("-busif") + 1]
                  for call in named(packaged, "ipx::associate_bus_interfaces")]  # fmt: skip
    interfaces += [call[0] for call in named(packaged, "ipx::get_bus_interfaces")]
    levels = {"interrupt", "alarm"}
    assert set(interfaces) == {"s00_axi", "s01_axi", "m_axis", *levels}
    for interface in set(interfaces) - levels:
        assert any(port.startswith(f"{interface}_") for port in wrapper.ports)
    conditions = [
        call[1] for call in named(packaged, "set_property") if call[0] == "enablement_dependency"
    ]
    used = set(re.findall(r"\$(\w+)", " ".join(conditions)))
    assert {"stream_g", "shared_time_g", "self_test_g"} <= used <= set(wrapper.generics)


def test_interrupts_are_levels_for_whoever_connects_them(packaged):
    """Else Vivado takes its own default, and with it the device tree that is made of the design."""
    levels = [call for call in named(packaged, "set_property") if call[0] == "value"]
    assert levels == [
        ["value", "LEVEL_HIGH", f"SENSITIVITY of {port}"] for port in ("interrupt", "alarm")
    ]


def test_the_interrupt_is_there_with_every_addition(packaged):
    """As `extended_c` of the VHDL: the condition names the same generics."""
    text = source_of("latencies_ip").read_text()
    extended = re.search(r"constant extended_c : boolean := (.*?);", text, re.S)[1]
    [condition] = [
        call[1]
        for call in named(packaged, "set_property")
        if call[0] == "enablement_dependency" and call[2] == "interrupt"
    ]
    assert set(re.findall(r"\w+_g\b", condition)) == set(re.findall(r"\w+_g\b", extended))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a board (zcu102, kv260, kr260), a variant (published, extended) and a folder"),
        (
            ["zcu104", "published", "x"],
            "board 'zcu104': there is none; wanted: zcu102, kv260, kr260",
        ),
        (["kr260", "full", "x"], "variant 'full': there is none; wanted: published, extended"),
        (
            ["../kr260", "published", "x"],
            "board '../kr260': there is none; wanted: zcu102, kv260, kr260",
        ),
    ],
)
def test_bad_arguments_get_one_line(arguments, said):
    calls, error = recorded("build.tcl", arguments, ANSWERS)
    assert (calls, error) == ([], said)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"get_property PROGRESS *": "40%"}, "the implementation has failed: see"),
        ({"get_property SLACK *": "-0.25"}, "the clock is too fast by 0.25 ns: see"),
        (
            {"get_timing_paths -hold": "hold", "get_property SLACK hold": "-0.1"},
            "the clock is too skewed by 0.1 ns: see",
        ),
        ({"get_cdc_violations *": "{CDC-1 a} {CDC-10 b}"}, "2 clock crossings are unsafe: see"),
        ({"get_board_parts -quiet *": ""}, "this Vivado does not know the board"),
        ({"get_ipdefs -all xilinx.com:ip:*": ""}, "this Vivado has no IP zynq_ultra_ps_e"),
        (
            {"get_property CONFIG.PSU__CRL_APB__PL0_REF_CTRL__ACT_FREQMHZ *": "100"},
            "the clock of the logic is 100000000 Hz, not 99990005 Hz",
        ),
    ],
)
def test_what_vivado_cannot_do_ends_the_build(wrong, said, tmp_path):
    calls, error = build("zcu102", "published", tmp_path, wrong | ZCU102 | wrong)
    assert error.startswith(said)
    assert not named(calls, "write_hw_platform")


def test_a_misspelt_command_does_not_pass(tmp_path):
    (tmp_path / "latenz.tcl").write_text((VIVADO / "latenz.tcl").read_text())
    script = tmp_path / "misspelt.tcl"
    script.write_text("source latenz.tcl\nconnect_bd_nets a b\n")
    _, error = recorded(str(script), [], ANSWERS)
    assert error != ""
