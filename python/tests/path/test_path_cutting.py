"""Cutting of made-up executions: sums hold for any, and each rule on one written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.path.cutting import paths
from latenz.path.model import PathFile
from latenz.path.recording import Accessed, Block, Ran, read_recording
from latenz.path.software import Program, Software, Term
from latenz.path.symbols import SymbolTable

NOP, ERET, WFI = (bytes.fromhex(each) for each in ("1f2003d5", "e0039fd6", "7f2003d5"))
XEN = SymbolTable(
    [
        (0x1000, 0x800, "hyp_traps_vector"),
        (0x2000, 0x100, "do_IRQ"),
        (0x2100, 0x100, "_spin_lock"),
        (0x2200, 0x100, "entry.o#return_from_trap"),
        (0x2300, 0x100, "domain.c#idle_loop"),
        (0x2400, 0x100, "something_new"),
    ],
    0x2500,
)
GUEST = SymbolTable(
    [(0x8000, 0x800, "vectors"), (0x9000, 0x100, "x::on_interrupt()"), (0x9100, 0x100, "wait")],
    0x9200,
)
SOFTWARE = Software(Program("Xen", "xen", XEN), Program("guest", "firmware", GUEST))


def ran(address, executed=1, last=NOP, vcpu=0):
    block = Block(address, (*[NOP] * (executed - 1), last))
    return Ran(vcpu, block, executed)


THROUGH_XEN = (
    ran(0x9100, 5),
    ran(0x1480, 2),  # vector
    ran(0x2000, 10),
    ran(0x2100, 3),  # helper
    Accessed(0, 0x2008, False, "gic_cpu"),
    ran(0x2008, 1),
    Accessed(0, 0x2008, True, "gic_cpu"),
    ran(0x2200, 4, ERET),
    ran(0x8280, 6),  # vector of the guest
    ran(0x9000, 2),
)


def test_terms_categories_and_counts():
    (path,) = paths([THROUGH_XEN], SOFTWARE)
    assert path.terms() == {Term.IRQ: 0, Term.HYP: 20, Term.OS: 6, Term.USER: 2}
    assert [(each.category, each.instructions) for each in path.categories()] == [
        ("exception entry and return", 6),
        ("interrupt dispatch", 14),  # what it calls for help included
        ("vector, registers saved", 6),
        ("handler", 2),
    ]
    assert (path.exception_entries, path.exception_returns) == (2, 1)
    assert (path.device_reads, path.device_writes) == (1, 1)
    assert path.begin == "exception"


def test_a_function_without_a_category_goes_by_its_name():
    events = (ran(0x9100), ran(0x1480), ran(0x2400, 7), ran(0x2200, 1, ERET), ran(0x9000))
    (path,) = paths([events], SOFTWARE)
    assert "something_new" in {each.category for each in path.segments}
    assert path.terms()[Term.HYP] == 9


def test_code_of_nobody_is_told():
    (path,) = paths([(ran(0x9100), ran(0x1480), ran(0x77123, 4), ran(0x9000))], SOFTWARE)
    assert path.terms()[Term.UNKNOWN] == 4
    assert [each.category for each in path.segments][1] == "code at 0x77000"


def test_turns_of_another_cpu_are_no_part_of_the_equation():
    events = (ran(0x9100), ran(0x1480), ran(0x2100, 9, vcpu=1), ran(0x2100, 2), ran(0x9000))
    (path,) = paths([events], SOFTWARE)
    assert path.terms()[Term.OTHER_CPU] == 9
    assert path.terms()[Term.HYP] == 3
    assert path.instructions == 13


def test_sleep_begins_where_it_ends():
    """The exception is taken only some instructions after the core woke up."""
    events = (ran(0x2300, 3, WFI), ran(0x230C, 2), ran(0x1280, 5), ran(0x9000, 1))
    for latency_ns in (None, 8):
        (path,) = paths([events], SOFTWARE, None if latency_ns is None else [latency_ns])
        assert (path.begin, path.instructions) == ("wake", 8)


def test_latency_decides_between_several_beginnings():
    """Xen was in an interrupt of its own when this one was raised."""
    events = (ran(0x9100, 4), ran(0x1480, 50), ran(0x2000, 40), ran(0x8280, 6), ran(0x9000, 2))
    by_exception = paths([events], SOFTWARE, [98])[0]
    assert (by_exception.begin, by_exception.instructions) == ("exception", 98)
    counted = paths([events], SOFTWARE, [70])[0]
    assert (counted.begin, counted.instructions, counted.unaccounted_ns) == ("counted", 70, 0)


def test_too_short_a_recording_is_told_as_unaccounted():
    (path,) = paths([(ran(0x2000, 10), ran(0x9000, 2))], SOFTWARE, [500])
    assert (path.instructions, path.unaccounted_ns) == (12, 488)


def test_equal_paths_are_one():
    found = paths([THROUGH_XEN, THROUGH_XEN[:4] + THROUGH_XEN[7:], THROUGH_XEN], SOFTWARE)
    assert [(each.interrupts, each.first) for each in found] == [(2, 0), (1, 1)]


def test_equal_code_in_other_blocks_is_one_path():
    halves = (ran(0x9100, 5), ran(0x1480, 1), ran(0x1484, 1), *THROUGH_XEN[2:])
    (path,) = paths([THROUGH_XEN, halves], SOFTWARE)
    assert path.interrupts == 2


ADDRESSES = st.sampled_from(
    [0x1000, 0x1480, 0x2000, 0x2100, 0x2300, 0x8280, 0x9000, 0x9100, 0x50000]
)
RUNS = st.builds(
    ran,
    ADDRESSES,
    st.integers(1, 20),
    st.sampled_from([NOP, ERET, WFI]),
    st.integers(0, 2),
)
ACCESSES = st.builds(Accessed, st.integers(0, 2), ADDRESSES, st.booleans(), st.just("uart"))


@given(
    st.lists(RUNS | ACCESSES, max_size=60),
    st.integers(1, 20),
    st.none() | st.integers(0, 1500),
    st.sampled_from([1.0, 7.52, 16.0]),
)
def test_nothing_is_lost(events, last, latency_ns, tick_ns):
    events = (*events, ran(0x9000, last))
    total = sum(each.executed for each in events if isinstance(each, Ran))
    latencies = None if latency_ns is None else [latency_ns]
    (path,) = paths([events], SOFTWARE, latencies, tick_ns)
    assert 1 <= path.instructions <= total
    assert sum(each.instructions for each in path.segments) == path.instructions
    assert sum(path.terms().values()) == path.instructions
    if latency_ns is not None and path.unaccounted_ns == 0:
        assert latency_ns - 1 <= path.instructions <= latency_ns + tick_ns + 1
    assert sum(each.instructions for each in path.categories()) == path.instructions


def test_file_is_read_back(tmp_path):
    file = PathFile(tick_ns=1.0, paths=tuple(paths([THROUGH_XEN], SOFTWARE, [28])))
    assert PathFile.load(file.save(tmp_path)) == file


def test_a_file_that_does_not_sum_up_is_refused(tmp_path):
    file = PathFile(tick_ns=1.0, paths=tuple(paths([THROUGH_XEN], SOFTWARE)))
    target = file.save(tmp_path)
    target.write_text(target.read_text().replace('"instructions": 28', '"instructions": 29', 1))
    with pytest.raises(BadInput, match="the segments do not sum up to the path"):
        PathFile.load(target)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("run 0 7 1", "is not understood"),
        ("run 0 0 99", "is not understood"),
        ("colour red", "is not understood"),
        ("block 1 zz 00", "is not understood"),
        ("fault the reason", "the reason"),
    ],
)
def test_damaged_recordings_are_told_with_their_line(tmp_path, line, complaint):
    path = tmp_path / "path.txt"
    path.write_text(f"latenz-path 1 aarch64 1\nblock 0 1000 1f2003d5\ncapture 0\n{line}\nend\n")
    with pytest.raises(BadInput, match=complaint) as told:
        read_recording(path)
    assert str(path) in str(told.value)


def test_a_recording_that_was_cut_off_keeps_what_is_whole(tmp_path):
    path = tmp_path / "path.txt"
    whole = "latenz-path 1 aarch64 1\nblock 0 1000 1f2003d5\ncapture 0\nrun 0 0 1\nend\n"
    path.write_text(whole + "capture 1\nrun 0 0 1\nru")
    assert len(read_recording(path).captures) == 1
