"""Bugs that are planted into the VHDL, one or more for each corner case, and who must find them.

Each replaces one text, which must be in the file just once: a change of the VHDL that moves it is
noticed here. The tests named for it pass without it, which other test modules see to.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from verification.latencies_ip.runner import BUILD, HDL, Result, analysed, simulate, sources
from verification.latencies_ip.suite import CONFIGURATIONS

CASES = "verification.latencies_ip.corner_cases"
AXI = "verification.latencies_ip.axi_cases"
ADDITIONS = "verification.latencies_ip.additions"
BENCH = "verification.latency_bench.cases"

RTL = "latencies_ip/rtl"
COUNTER = f"{RTL}/latency_counter.vhd"
QUEUE = f"{RTL}/start_queue.vhd"
CORE = f"{RTL}/latencies_core.vhd"
TOP = f"{RTL}/latencies_ip.vhd"
STATISTICS = f"{RTL}/latency_statistics.vhd"
EDGE = f"{RTL}/input_edge.vhd"
REGISTERS = f"{RTL}/latencies_ip_register_block.vhd"
GENERATOR = "random_data_generator/rtl"


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    Attributes:
        case: Number of the corner case; 0: of none.
        bug: What it does.
        file: Where, below hdl/.
        old: The text.
        new: The text in its place.
        tests: Regular expression of the tests that must find it.
        module: Where these are.
        ip: The configuration, one of the suite's.
        top: The entity to simulate.
        generics: Of that entity, unless it is `latencies_ip`: name and value of each.
    """

    case: int
    bug: str
    file: str
    old: str
    new: str
    tests: str
    module: str = CASES
    ip: str = "published"
    top: str = "latencies_ip"
    generics: tuple[tuple[str, str], ...] = ()


MUTANTS = (
    Mutant(
        case=1,
        bug="an ack without an irq is a sample",
        file=COUNTER,
        old="sample_valid <= enable and stop and (open_now or start);",
        new="sample_valid <= enable and stop;",
        tests="case_01",
    ),
    Mutant(
        case=2,
        bug="a second irq replaces the first, whatever the policy is",
        file=COUNTER,
        old="(open_now and (closes or restarts_c))",
        new="open_now",
        tests="case_02_second",
    ),
    Mutant(
        case=2,
        bug="a full queue has no room for the irq of an ack's cycle",
        file=QUEUE,
        old="start and (leaves or (open_now and not full)",
        new="start and ((open_now and not full)",
        tests="case_02",
        ip="queue_of_two",
    ),
    Mutant(
        case=3,
        bug="a level is an irq in every cycle",
        file=EDGE,
        old="rising <= here and not seen(synchroniser_stages_g);",
        new="rising <= here;",
        tests="case_03",
    ),
    Mutant(
        case=4,
        bug="irq and ack at once while idle leave a measurement open",
        file=COUNTER,
        old="(not open_now and not stop)",
        new="not open_now",
        tests="case_04",
    ),
    Mutant(
        case=5,
        bug="a latency longer than the width wraps",
        file=COUNTER,
        old="if at_end = '1' then",
        new="if at_end = '1' and open_now = '0' then",
        tests="case_05",
    ),
    Mutant(
        case=6,
        bug="a full memory is overwritten from its begin",
        file=CORE,
        old="store      <= valid_now and not (or num_now(num_width_g - 1 downto index_bits_c));",
        new="store      <= valid_now;",
        tests="case_06_memory_full",
    ),
    Mutant(
        case=7,
        bug="statistics survive a reset",
        file=CORE,
        old="clears <= clear or rst;",
        new="clears <= clear;",
        tests="case_07",
    ),
    Mutant(
        case=8,
        bug="one input has no synchroniser",
        file=CORE,
        old="""acknowledgement : entity work.input_edge
        generic map (
            synchroniser_stages_g => synchroniser_stages_g""",
        new="""acknowledgement : entity work.input_edge
        generic map (
            synchroniser_stages_g => 0""",
        tests="case_08",
        ip="full_drop",
    ),
    Mutant(
        case=9,
        bug="min begins with 0",
        file=STATISTICS,
        old="minimum_now <= (others => '1');",
        new="minimum_now <= (others => '0');",
        tests="case_09",
    ),
    Mutant(
        case=10,
        bug="the sums of a snapshot miss the newest sample",
        file=TOP,
        old="if commanded(sums_delay_c) = '1' then",
        new="if to_hardware.command_snapshot = '1' then",
        tests="case_10",
        ip="full_drop",
    ),
    Mutant(
        case=11,
        bug="a read gives nothing new in the cycle of a write",
        file=f"{RTL}/sample_memory.vhd",
        old="if read_enable = '1' then",
        new="if read_enable = '1' and write_enable = '0' then",
        tests="case_11",
    ),
    Mutant(
        case=12,
        bug="clearing we does not abort what is open",
        file=COUNTER,
        old="if begins = '1' or closes = '1' or enable = '0' then",
        new="if begins = '1' or closes = '1' then",
        tests="case_12",
    ),
    Mutant(
        case=13,
        bug="a series that begins does not clear last",
        file=STATISTICS,
        old="last_now    <= (others => '0');",
        new="null;",
        tests="case_13",
    ),
    Mutant(
        case=14,
        bug="a latency of just alarm_lat alarms",
        file=CORE,
        old="exceeds <= valid_now and (beyond_now or is_greater(sample_now, limit));",
        new="exceeds <= valid_now and (beyond_now or not is_greater(limit, sample_now));",
        tests="case_14_alarm$",
    ),
    Mutant(
        case=14,
        bug="clearing the alarm wins over a new one",
        file=CORE,
        old="if exceeds = '1' then",
        new="if exceeds = '1' and alarm_clear = '0' then",
        tests="case_14_alarm_set_wins",
    ),
    Mutant(
        case=15,
        bug="a measurement is given up although its ack comes in time",
        file=COUNTER,
        old="to_bit(age >= unsigned(timeout))",
        new="to_bit(age + 1 >= unsigned(timeout))",
        tests="case_15",
        ip="full_drop",
    ),
    Mutant(
        case=16,
        bug="an address is taken without its word",
        file=REGISTERS,
        old="marked <= s_axi_awvalid and s_axi_wvalid;",
        new="marked <= s_axi_awvalid;",
        tests="case_16_address_before_data",
        module=AXI,
    ),
    Mutant(
        case=16,
        bug="a read is taken before the last one's word is",
        file=REGISTERS,
        old="s_axi_arready <= not rvalid;",
        new="s_axi_arready <= '1';",
        tests="case_16_(answers_wait|random)",
        module=AXI,
    ),
    Mutant(
        case=17,
        bug="T2 begins with the request, as T1 does",
        file="latency_bench/rtl/latency_bench.vhd",
        old="irq_in    => ready,",
        new="irq_in    => ps_pl_irq,",
        tests="both_measure",
        module=BENCH,
        top="latency_bench",
    ),
    Mutant(
        case=18,
        bug="any register of the generator that is read ends T2",
        file=f"{GENERATOR}/random_data_generator.vhd",
        old="data_read <= pop;",
        new="data_read <= s_axi_rvalid and s_axi_rready;",
        tests="",
        module=BENCH,
        top="latency_bench",
    ),
    Mutant(
        case=19,
        bug="counting begins one cycle late",
        file=COUNTER,
        old="sample       <= std_logic_vector(counter);",
        new="sample       <= std_logic_vector(counter - to_integer(unsigned'(0 => open_now)));",
        tests="case_19",
    ),
    Mutant(
        case=20,
        bug="a request is taken before the FIFO has been drained",
        file=f"{GENERATOR}/random_data_generator.vhd",
        old="accept <= request and not busy and not ready;",
        new="accept <= request and not busy;",
        tests="requests_while_busy",
        module="verification.random_data_generator.cases",
        top="random_data_generator",
    ),
    Mutant(
        case=6,
        bug="the frozen half is forgotten by the next series' first sample",
        file=f"{RTL}/sample_placement.vhd",
        old="which_now   <= half;",
        new="which_now   <= not half;",
        tests="half_with",
        module=ADDITIONS,
        ip="halves",
    ),
)


def _name(mutant: Mutant) -> str:
    return hashlib.sha256(repr(mutant).encode()).hexdigest()[:16]


def planted(mutant: Mutant) -> list[Path]:
    """The sources, one of them with the bug."""
    original = HDL / mutant.file
    text = original.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file}: {text.count(mutant.old)} times: {mutant.old}")
    place = BUILD / "mutants" / _name(mutant) / original.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text.replace(mutant.old, mutant.new))
    whole = sources(with_bench=mutant.top != "latencies_ip")
    return [place if path == original else path for path in whole]


def run(mutant: Mutant) -> Result:
    """The mutant's tests on the design with the bug."""
    return simulate(
        mutant.module,
        CONFIGURATIONS[mutant.ip],
        name=f"mutant-{_name(mutant)}",
        tests=mutant.tests,
        work=analysed(planted(mutant)),
        top=mutant.top,
        generics=dict(mutant.generics),
    )
