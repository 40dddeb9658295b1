"""Health tables: what faults and watchdogs do to a partition, and that nobody else pays for it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_guests import assembled

from latenz.errors import BadInput
from latenz.hypervisor.build import build
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.trace import Kind

LATENZ = Path(sys.executable).parent / "latenz"
MS = 1_000_000
CYCLE_NS = 2 * MS
SYSTEM = """
[[slot]]
partition = "watched"
length = "1 ms"
[[slot]]
partition = "victim"
length = "1 ms"
[[source]]
name = "timer"
partition = "victim"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "10 ms" }}
[[partition]]
name = "watched"
guest = "{guest}"
memory = "2 MiB"
{more}
[[partition]]
name = "victim"
guest = "victim"
"""
KICKS = """
    movz    x3, #0x0B00, lsl #16
    movk    x3, #0x1000
    mov     x5, #{kicks}
1:  ldr     x0, [x3]                // goes on counting after a restart
    add     x0, x0, #1
    str     x0, [x3]
    sub     x5, x5, #1
    cbz     x5, 2f
    mrs     x6, cntvct_el0
    movz    x7, #0x0f, lsl #16      // about 1 ms at 1 GHz
    add     x6, x6, x7
3:  mrs     x7, cntvct_el0
    cmp     x7, x6
    b.lo    3b
    b       1b
2:  b       2b                      // hangs
"""
FOR_EVER = 1 << 15


def booted(tmp_path, text, more, irqs=10):
    ensure_built()
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(guest=assembled(tmp_path, text), more=more))
    brought = boot(build(path, irqs=irqs), "virt")
    run = brought.measured
    assert run.outcome.complete
    assert run.outcome.sources[0].n == irqs
    watched, victim = run.statistics.partitions
    assert (victim.state, victim.faults, victim.expiries) == ("running", 0, 0)
    assert victim.progress > 1000
    return brought, watched


def slot_progress(run, number):
    own = run.records[(run.records["kind"] == Kind.PROGRESS) & (run.records["partition"] == number)]
    return own["value"].astype(np.int64)


def told(brought):
    return [line for line in brought.console if line.startswith("hypervisor: watched: ")]


def test_a_guest_that_kicks_in_time_is_left_alone(tmp_path):
    brought, watched = booted(tmp_path, KICKS.format(kicks=FOR_EVER), 'watchdog = "2 ms"')
    assert (watched.state, watched.faults, watched.expiries) == ("running", 0, 0)
    assert watched.progress >= 40
    assert not told(brought)


def test_one_that_hangs_is_stopped(tmp_path):
    brought, watched = booted(tmp_path, KICKS.format(kicks=20), 'watchdog = "6 ms"')
    assert (watched.state, watched.faults, watched.expiries) == ("stopped", 1, 1)
    assert watched.restarts == 0
    (line,) = told(brought)
    assert ": watchdog expired at 0x" in line
    seen = slot_progress(brought.measured, 0)
    hung = int(np.argmax(seen == 20))
    assert len(seen) > hung + 5, "the run went on"


@pytest.mark.parametrize(
    ("more", "state", "restarts"),
    [
        ('on_watchdog = "restart"', "running", 4),
        ('on_fault = "restart"\nrestarts = 2', "stopped", 2),
        ('on_watchdog = "restart"\nrestarts = 2\nrestart_window = "12 ms"', "running", 4),
        ('on_watchdog = "restart"\nrestarts = 2\nrestart_window = "1 s"', "stopped", 2),
    ],
)
def test_one_that_hangs_is_restarted(tmp_path, more, state, restarts):
    """It hangs after two slots, and is found three cycles later."""
    more = f'watchdog = "6 ms"\n{more}'
    _, watched = booted(tmp_path, KICKS.format(kicks=2), more, irqs=6)
    assert watched.state == state
    assert watched.restarts >= 4 if state == "running" else watched.restarts == restarts
    assert watched.expiries == watched.faults == watched.restarts + (state == "stopped")
    lives = watched.restarts + 1  # of which the last may have just begun
    assert 2 * (lives - 1) <= watched.progress <= 2 * lives


def test_one_that_hangs_is_reported_and_goes_on(tmp_path):
    brought, watched = booted(
        tmp_path, KICKS.format(kicks=2), 'watchdog = "6 ms"\non_watchdog = "report"'
    )
    assert (watched.state, watched.restarts) == ("running", 0)
    assert len(told(brought)) == watched.faults == watched.expiries
    assert 15 <= watched.expiries <= 17, "every 6 ms of 100 ms"


ABORTS = """
    adr     x0, vectors
    msr     vbar_el1, x0
    isb
    mov     x9, #0
    mov     x1, #0x08
    ldr     x0, [x1]                // nothing is there
    movz    x1, #0xdead, lsl #16
    str     x0, [x1]
    blr     x1                      // nor code
    report  x9
    .balign 0x800
vectors:
    .skip   0x200
at_el1:
    mrs     x2, esr_el1
    mrs     x3, far_el1
    movz    x4, #0x9600, lsl #16    // data abort of EL1, external: a load
    movk    x4, #0x0010
    cmp     x2, x4
    mov     x5, #0x08
    ccmp    x3, x5, #0, eq
    cinc    x9, x9, eq
    orr     x4, x4, #0x40           // a store
    cmp     x2, x4
    ccmp    x3, x1, #0, eq
    mov     x5, #0x100
    csel    x5, x5, xzr, eq
    add     x9, x9, x5
    movz    x4, #0x8600, lsl #16    // instruction abort of EL1
    movk    x4, #0x0010
    cmp     x2, x4
    ccmp    x3, x1, #0, eq
    b.eq    1f
    mrs     x5, elr_el1
    add     x5, x5, #4
    msr     elr_el1, x5
    eret
1:  add     x9, x9, #0x10, lsl #12
    msr     elr_el1, x30
    eret
"""


def test_a_reported_access_fails_in_the_guest_as_on_a_bus(tmp_path):
    brought, watched = booted(tmp_path, ABORTS, 'on_fault = "report"')
    assert (watched.state, watched.faults, watched.restarts) == ("running", 3, 0)
    assert watched.progress == 0x1_0101, "each abort with its class, its cause and its address"
    lines = told(brought)
    assert [line.split(": ")[2].split(" at ")[0] for line in lines] == [
        "forbidden access",
        "forbidden access",
        "forbidden instruction fetch",
    ]


REPEATS = """
    adr     x0, vectors
    msr     vbar_el1, x0
    isb
    mov     x1, #0x08
1:  ldr     x0, [x1]
    b       1b
    .balign 0x800
vectors:
    .skip   0x200
    eret                            // and again
"""


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (REPEATS, 'on_fault = "report"'),
        (KICKS.format(kicks=2), 'watchdog = "2 ms"\non_watchdog = "report"'),
        (KICKS.format(kicks=2), 'watchdog = "2 ms"\non_watchdog = "restart"\nrestarts = 1000'),
    ],
)
def test_nobody_else_pays(tmp_path, text, more):
    """Slots of others begin as promised, and are as long as beside a quiet guest."""
    quiet, _ = booted(tmp_path, "    report x0", "")
    brought, watched = booted(tmp_path, text, more)
    assert watched.faults >= 15
    run = brought.measured
    own = run.records[run.records["kind"] == Kind.SLOT_SWITCH]
    late = own[own["partition"] == 1]["value"]
    assert late.max() <= 700
    assert own["duration"].max() <= 1400
    assert run.sections.service <= 1400
    turns, undisturbed = np.diff(slot_progress(run, 1)), np.diff(slot_progress(quiet.measured, 1))
    assert undisturbed.min() - turns.min() <= 700, "a turn takes an instruction at least"


SIGNALS = """
    mov     x1, #0x08000000
    mov     w0, #1
    str     w0, [x1]                // the distributor forwards
    mov     w2, #0x02000000         // to itself: 0 to 15
    mov     w3, #16
1:  str     w2, [x1, #0xf00]
    add     w2, w2, #1
    subs    w3, w3, #1
    b.ne    1b
    mov     x0, #1
    msr     cntv_cval_el0, x0       // the timer is due, too
    msr     cntv_ctl_el0, x0
    mov     w0, #(1 << 27)
    str     w0, [x1, #0x100]
    movz    x3, #0x0B00, lsl #16
    movk    x3, #0x1000
    ldr     x0, [x3]
    add     x0, x0, #1
    str     x0, [x3]
2:  b       2b
"""


@pytest.mark.parametrize("reaction", ["stop", "restart", "report"])
def test_a_switch_to_one_that_hangs_is_bounded_whatever_waits_of_its_interrupts(tmp_path, reaction):
    more = f'watchdog = "2 ms"\non_watchdog = "{reaction}"\nrestarts = 1000'
    brought, watched = booted(tmp_path, SIGNALS, more)
    assert watched.expiries == watched.faults >= (1 if reaction == "stop" else 15)
    switches = brought.measured.records[brought.measured.records["kind"] == Kind.SLOT_SWITCH]
    own = switches[switches["partition"] == 0]["duration"]
    assert 800 < own.max() <= 1400
    assert switches["value"].max() <= 700


def test_the_account_is_told_in_json_and_in_words(tmp_path):
    path = tmp_path / "system.toml"
    ensure_built()
    more = 'watchdog = "6 ms"\non_watchdog = "restart"\nrestarts = 2'
    path.write_text(SYSTEM.format(guest=assembled(tmp_path, KICKS.format(kicks=2)), more=more))
    command = [LATENZ, "hypervisor", "run", path, "--irqs", "10"]
    words, told = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--json"])
    )
    assert "watched was stopped: 3 faults, of its watchdog, 2 restarts\n" in words
    told = json.loads(told)
    watched = told["counted"]["partitions"][0]
    assert (watched["state"], watched["faults"], watched["expiries"]) == ("stopped", 3, 3)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            'watchdog = "1 ms"',
            "shorter than from one of its slots to the next; write at least 2000000",
        ),
        ('on_watchdog = "stop"', "on_watchdog: there is no watchdog; give its time, such as"),
        ('restart_window = "1 s"', "restart_window: nothing restarts the guest"),
        (
            'on_fault = "restart"\nrestarts = 17\nrestart_window = "1 s"',
            "restarts: of 17 restarts within a time not all are remembered; write at most 16",
        ),
        ('watchdog = "1 s"\non_watchdog = "bark"', "on_watchdog: 'bark' is wrong"),
        ("watchdog = -1", "watchdog: is -1 ns"),
    ],
)
def test_mistakes_are_told_in_a_line(tmp_path, more, says):
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(guest="guest.bin", more=more))
    with pytest.raises(BadInput) as caught:
        build(path, irqs=1)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
