"""Bugs planted into what the IP has beyond its measuring core, and into the parts around it.

An outside review planted these; `SURVIVORS` survived every test of then, `OTHERS` did not. None has
a test of its own: the whole module of tests for that part must find it. One more survivor, a
counter of events that wraps, is for a proof: `formal/event_counter_properties.sv`. One more of the
others changed nothing that can be seen.
"""

from verification.mutants.mutants import ADDITIONS as IP
from verification.mutants.mutants import CASES, COUNTER, EDGE, GENERATOR, QUEUE, RTL, TOP, Mutant

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


def _histogram(bug: str, old: str, new: str) -> Mutant:
    return Mutant(
        0,
        bug,
        f"{RTL}/latency_histogram.vhd",
        old,
        new,
        tests="",
        module="verification.latency_histogram.cases",
        top="latency_histogram",
        generics=(("bins_g", "64"),),
    )


def _ip(bug: str, file: str, old: str, new: str, *, ip: str = "full_drop", module: str) -> Mutant:
    return Mutant(0, bug, file, old, new, tests="", module=module, ip=ip)


SURVIVORS = (
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

OTHERS = (
    _ip(
        "an interrupt that comes as another leaves is put into that one's place",
        QUEUE,
        "memory(to_integer(free)) <= tick;",
        "memory(to_integer(free - unsigned'(0 => leaves))) <= tick;",
        ip="queue_of_two",
        module=CASES,
    ),
    Mutant(
        0,
        "a number of words beyond the FIFO's is not cut",
        f"{GENERATOR}/random_data_generator.vhd",
        "if unsigned(to_hardware.words) > fifo_depth_g then",
        "if false then",
        tests="",
        module="verification.random_data_generator.cases",
        top="random_data_generator",
    ),
    Mutant(
        0,
        "a beat never says that its latency is cut",
        f"{RTL}/sample_stream.vhd",
        "std_logic_vector(sample_number) & saturated & sample & start_tick;",
        "std_logic_vector(sample_number) & '0' & sample & start_tick;",
        tests="",
        module="verification.sample_stream.cases",
        top="sample_stream",
    ),
    Mutant(
        0,
        "beats that were dropped are not forgotten by a new series",
        f"{RTL}/sample_stream.vhd",
        "            clear     => begins,\n            event_now => lost,",
        "            clear     => rst,\n            event_now => lost,",
        tests="",
        module="verification.sample_stream.cases",
        top="sample_stream",
    ),
    _ip(
        "a synchroniser has one flip-flop less than was asked for",
        EDGE,
        "here <= seen(synchroniser_stages_g - 1);",
        "here <= seen(synchroniser_stages_g - 2);",
        module=CASES,
    ),
    _ip(
        "a half that its last sample just fills is not full",
        f"{RTL}/sample_placement.vhd",
        "all_now     <= full_now or is_full(position);",
        "all_now     <= full_now;",
        ip="halves",
        module=IP,
    ),
    _ip(
        "a restart does not begin the watchdog anew",
        COUNTER,
        "if begins = '1' then\n                    age",
        "if begins = '1' and open_now = '0' then\n                    age",
        ip="full_restart",
        module=CASES,
    ),
    Mutant(
        0,
        "a signal that ends one part and begins another forks before its synchroniser",
        "latencies_ip_channels/rtl/latencies_ip_channels.vhd",
        "irq(i) <= ack(i - 1);",
        "irq(i) <= ack_in(i - 1);",
        tests="",
        module=CHANNELS,
        ip="channels",
        top="latencies_ip_channels",
        generics=(("chained_g", "true"), ("synchroniser_stages_g", "2")),
    ),
    _ip(
        "clock_frequency_hz tells another number",
        TOP,
        "std_logic_vector(to_unsigned(clock_frequency_hz_g, 32));",
        "std_logic_vector(to_unsigned(clock_frequency_hz_g / 2, 32));",
        module=IP,
    ),
    _histogram(
        "a read that waits for its turn survives a reset",
        "                pending       <= '0';\n            end if;\n        end if;",
        "            end if;\n        end if;",
    ),
    _histogram(
        "a read that is on its way survives a reset",
        "                stage_2.reads <= '0';\n",
        "",
    ),
)
