"""Writes traces in the Common Trace Format 1.8 as LTTng shapes them, for babeltrace2 to read.

Names and counts are lttng-modules' (include/instrumentation/events/sched.h, timer.h, irq.h) and
those of ros2_tracing's tracepoints (tracetools/tp_call.h).
"""

import struct
from pathlib import Path

from two_sides import Side

_HEAD = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
env { hostname = "robot"; domain = "%s"; tracer_name = "lttng"; };
clock { name = "monotonic"; freq = %d; offset = 1700000000000000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := stamp_t;
stream { id = 0; event.header := struct { uint32_t id; stamp_t timestamp; };
  packet.context := struct { uint32_t cpu_id; };%s };
"""
_CONTEXT = "\n  event.context := struct { int32_t %s; char_t procname[16]; };"
_TYPES = {16: "char_t {}[16];", 8: "int64_t {};", 4: "int32_t {};"}
_SWITCH = (("prev_comm", 16), ("prev_tid", 4), ("prev_prio", 4), ("prev_state", 8))
_SWITCH += (("next_comm", 16), ("next_tid", 4), ("next_prio", 4))
EVENTS = {
    "sched_switch": _SWITCH,
    "sched_waking": (("comm", 16), ("tid", 4), ("prio", 4), ("target_cpu", 4)),
    "x86_irq_vectors_local_timer_entry": (("vector", 4),),
    "x86_irq_vectors_local_timer_exit": (("vector", 4),),
    "irq_handler_entry": (("irq", 4),),
    "irq_handler_exit": (("irq", 4), ("ret", 4)),
    "timer_hrtimer_start": (("hrtimer", 8), ("function", 8), ("expires", 8), ("softexpires", 8)),
    "timer_hrtimer_expire_entry": (("hrtimer", 8), ("now", 8), ("function", 8)),
    "timer_hrtimer_expire_exit": (("hrtimer", 8),),
    "power_cpu_idle": (("state", 4), ("cpu_id", 4)),
    "kvm_x86_entry": (("vcpu_id", 4),),
    "kvm_x86_exit": (("exit_reason", 4), ("isa", 4)),
    "ros2:callback_start": (("callback", 8), ("is_intra_process", 4)),
    "ros2:callback_end": (("callback", 8),),
}
_OF_KERNEL = {
    "local_timer_entry": "x86_irq_vectors_local_timer_entry",
    "local_timer_exit": "x86_irq_vectors_local_timer_exit",
    "hrtimer_start": "timer_hrtimer_start",
    "hrtimer_expire_entry": "timer_hrtimer_expire_entry",
    "hrtimer_expire_exit": "timer_hrtimer_expire_exit",
    "cpu_idle": "power_cpu_idle",
    "kvm_entry": "kvm_x86_entry",
    "kvm_exit": "kvm_x86_exit",
}
_REASONS = {"EXTERNAL_INTERRUPT": 1, "HLT": 12, "IO_INSTRUCTION": 30, "VMLAUNCH": 20}
_STATES = {"R": 0, "S": 1, "D": 2, "R+": 0x100}
_PRIORITIES = ("prio", "prev_prio", "next_prio")

Row = tuple[int, int, str, dict[str, int | str], tuple[int, str]]
"""Time (ns), CPU, name, fields, and thread with its name."""


def rows(side: Side) -> list[Row]:
    """The events of a kernel as LTTng has them."""
    found: list[Row] = []
    for each in sorted(side.events, key=lambda event: event.t_ns):
        name = _OF_KERNEL.get(each.name, each.name)
        if name not in EVENTS:
            continue
        fields = {key.replace("pid", "tid"): value for key, value in each.values.items()}
        for key in _PRIORITIES:
            if key in fields:
                fields[key] = int(fields[key]) - 100
        comm, pid, _ = each.thread
        found.append((each.t_ns, each.cpu, name, fields, (pid, comm)))
    return found


def write_ctf(
    events: list[Row], folder: Path, *, thread: str = "", domain: str = "kernel", hertz: int = 10**9
) -> Path:
    """Write a trace: a stream for each CPU, as LTTng's buffers are.

    Args:
        events: What happened.
        folder: The trace, made.
        thread: Name of the context that tells the thread, `tid` or `vtid`; empty: none does.
        domain: `kernel` or `ust`.
        hertz: Of the clock.
    """
    folder.mkdir(parents=True)
    ids = {name: number for number, name in enumerate(EVENTS)}
    text = _HEAD % (domain, hertz, _CONTEXT % thread if thread else "")
    for name, fields in EVENTS.items():
        listed = " ".join(_TYPES[size].format(field) for field, size in fields)
        text += f'event {{ name = "{name}"; id = {ids[name]}; stream_id = 0;'
        text += f" fields := struct {{ {listed} }}; }};\n"
    (folder / "metadata").write_text(text)
    for cpu in {each[1] for each in events}:
        own = [each for each in events if each[1] == cpu]
        body = b"".join(_event(each, ids, bool(thread)) for each in own)
        head = struct.pack("<III", 0xC1FC1FC1, 0, cpu)
        (folder / f"channel0_{cpu}").write_bytes(head + body)
    return folder


def _event(row: Row, ids: dict[str, int], has_thread: bool) -> bytes:
    t_ns, cpu, name, values, (pid, comm) = row
    content = struct.pack("<IQ", ids[name], t_ns)
    if has_thread:
        content += struct.pack("<i16s", pid, comm.encode()[:15])
    for field, size in EVENTS[name]:
        value = cpu if field == "cpu_id" else values.get(field, 0)
        if size == 16:
            content += str(value).encode()[:15].ljust(16, b"\0")
        else:
            number = value if isinstance(value, int) else (_STATES | _REASONS)[value]
            content += (number & (1 << 8 * size) - 1).to_bytes(size, "little")
    return content
