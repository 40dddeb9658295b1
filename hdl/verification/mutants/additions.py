"""Bugs planted into what the IP has beyond its measuring core, and into the parts around it.

An outside review planted these; they survived every test of then. None has a test of its own: the
whole module of tests for that part must find it. One more, a counter of events that wraps, is for a
proof: `formal/event_counter_properties.sv`.
"""

from verification.mutants.mutants import TOP, Mutant

WIDE = "verification.latencies_ip.wide_values"
RING = "verification.stream_ring_writer.cases"
CHANNELS = "verification.latencies_ip_channels.cases"
WRITER = "stream_ring_writer/rtl/ring_writer.vhd"
ADDRESS = "awaddr  <= unsigned(base) + resize(next_record and index_mask, awaddr'length);"
HIGHEST = "awaddr  <= unsigned(base(address_width_g - 1 downto"


def _wide(bug: str, old: str, new: str) -> Mutant:
    return Mutant(0, bug, TOP, old, new, tests="", module=WIDE, ip="wide_queue")


def _ring(bug: str, old: str, new: str) -> Mutant:
    return Mutant(0, bug, WRITER, old, new, tests="", module=RING, top="stream_ring_writer")


def _channels(bug: str, file: str, old: str, new: str) -> Mutant:
    place = f"latencies_ip_channels/rtl/{file}"
    top = "latencies_ip_channels"
    return Mutant(0, bug, place, old, new, tests="", module=CHANNELS, ip="channels", top=top)


ADDITIONS = (
    _wide(
        "time_high is of another moment than time_low",
        "if to_hardware.time_low_read = '1' then",
        "if true then",
    ),
    _wide(
        "clearing interrupt_status loses a new event",
        "(happened_once and not cleared) or happened;",
        "(happened_once or happened) and not cleared;",
    ),
    _wide(
        "a snapshot takes overlaps for orphans",
        "orphans_then   <= from_hardware.orphans;",
        "orphans_then   <= from_hardware.overlaps;",
    ),
    _wide(
        "the time of a snapshot is of another moment",
        "tick_then      <= tick;",
        "tick_then      <= std_logic_vector(unsigned(tick) - 40);",
    ),
    _wide(
        "the high word of alarm_lat does not count",
        "limit  <= to_hardware.alarm_lat_high & to_hardware.alarm_lat;",
        'limit  <= x"00000000" & to_hardware.alarm_lat;',
    ),
    _wide(
        "last_high is max's",
        "from_hardware.last_high <= high_word(last);",
        "from_hardware.last_high <= high_word(maximum);",
    ),
    _wide(
        "high words of time stamps are low words",
        "(high_word(tick_read) and region(3))",
        "(low_word(tick_read) and region(3))",
    ),
    _wide(
        "high words of latencies are low words",
        "(high_word(latency_read) and region(1))",
        "(low_word(latency_read) and region(1))",
    ),
    _channels(
        "a beat waits for its receiver",
        "stream_merger.vhd",
        "m_axis_tvalid <= valid;",
        "m_axis_tvalid <= valid and m_axis_tready;",
    ),
    _channels(
        "a read under way survives a reset",
        "axi_lite_selector.vhd",
        "                reading      <= '0';\n",
        "",
    ),
    _wide(
        "a self test that is commanded again goes on",
        "abandoned <= rst or not to_hardware.we or commanded;",
        "abandoned <= rst or not to_hardware.we;",
    ),
    _ring(
        "the ring wraps in a page of 4 KiB",
        ADDRESS,
        f"{HIGHEST} 12)) & (unsigned(base(11 downto 4)) + resize(next_record and index_mask, 8));",
    ),
    _ring(
        "the carry into address bit 32 is lost",
        ADDRESS,
        f"{HIGHEST} 32)) & (unsigned(base(31 downto 4)) + resize(next_record and index_mask, 28));",
    ),
    _ring(
        "EXOKAY is an error",
        "refused   <= m_axi_bvalid and m_axi_bresp(1);",
        "refused   <= m_axi_bvalid and (or m_axi_bresp);",
    ),
    _ring(
        "a bus error in the cycle of clearing is lost",
        "failed  <= refused or (failed and not clear_bus_error);",
        "failed  <= (refused or failed) and not clear_bus_error;",
    ),
    _wide(
        "status.saturated survives a new series",
        "                if clear = '1' then\n                    saturated_once <= '0';",
        "                if false then\n                    saturated_once <= '0';",
    ),
    _wide(
        "timeouts survive a new series",
        "anew <= clear or rst;\n\n        timeouts :",
        "anew <= rst;\n\n        timeouts :",
    ),
)
