// SPDX-License-Identifier: Apache-2.0
#include "attach_trace.hpp"

#include <algorithm>
#include <cstring>

namespace latenz::attach {
namespace {

constexpr std::size_t most_timers = 65536;
constexpr std::size_t most_threads = 65536;
/// A timer's handler runs so soon after its clock was read that only another clock is farther.
constexpr std::int64_t same_clock_ns = 10'000;
constexpr std::int64_t ten_years_ns = 315'576'000'000'000'000;

std::int64_t number(const trace::Event& event, std::string_view field) {
  return event.fields->number(field).value_or(0);
}

void set_name(Event& event, std::string_view name) {
  std::memcpy(event.comm.data(), name.data(), std::min(name.size(), event.comm.size() - 1));
}

std::uint32_t state_of(std::string_view letters) {
  constexpr std::uint32_t interruptible = 1;
  constexpr std::uint32_t uninterruptible = 2;
  constexpr std::uint32_t other = 4;
  if (letters.empty() || letters.front() == 'R') return 0;
  if (letters.front() == 'S') return interruptible;
  return letters.front() == 'D' ? uninterruptible : other;
}

}  // namespace

void TraceEvents::event(const trace::Event& event) {
  Cpu& cpu = cpus_[event.cpu];
  using trace::Kind;
  switch (event.kind) {
    case Kind::hrtimer_start:
    case Kind::hrtimer_expire_entry:
    case Kind::hrtimer_expire_exit:
      timer(event, cpu);
      return;
    case Kind::sched_waking:
      waking(event, cpu);
      return;
    case Kind::sched_switch:
      changed(event, cpu);
      return;
    default:
      break;
  }
  if (event.name.starts_with("irq_handler_") || event.name.starts_with("softirq_")) {
    interrupt(event, cpu);
  } else if (event.name == "sys_enter" || event.name == "sys_exit") {
    call(event);
  } else if (event.name == "page_fault_user" && thread(event.pid, event.comm).is_watched) {
    Event told = made(event, EventKind::fault, event.pid);
    told.a = number(event, "address");
    told.b = number(event, "ip");
    told.value = static_cast<std::uint32_t>(number(event, "error_code"));
    take_(told);
  } else if (event.name == "sched_process_fork" && thread(event.pid, event.comm).is_watched) {
    Event told = made(event, EventKind::fork, event.pid);
    told.value = static_cast<std::uint32_t>(number(event, "child_pid"));
    take_(told);
  } else if (event.name == "cpu_frequency") {
    Event told = made(event, EventKind::frequency, 0);
    told.cpu = static_cast<std::uint16_t>(number(event, "cpu_id"));
    told.value = static_cast<std::uint32_t>(number(event, "state"));
    take_(told);
  } else if ((event.name.starts_with("mm_vmscan_direct_reclaim_") ||
              event.name.starts_with("mm_vmscan_memcg_reclaim_")) &&
             thread(event.pid, event.comm).is_watched) {
    Event told = made(event, EventKind::reclaim, event.pid);
    told.value = event.name.ends_with("begin") ? 1 : 0;
    take_(told);
  }
}

void TraceEvents::lost(int /*cpu*/, std::uint64_t /*count*/) {
  ++lost_places_;
  missing_();
}

Event TraceEvents::made(const trace::Event& event, EventKind kind, std::int32_t tid) {
  Event told;
  told.t_ns = event.t_ns;
  told.tid = tid;
  told.cpu = static_cast<std::uint16_t>(std::max(event.cpu, 0));
  told.kind = kind;
  return told;
}

TraceEvents::Thread& TraceEvents::thread(std::int32_t tid, std::string_view comm) {
  const auto found = threads_.find(tid);
  if (found != threads_.end()) return found->second;
  if (threads_.size() == most_threads) threads_.clear();
  Thread& made = threads_[tid];
  made.is_watched = tid > 0 && wanted_(tid, comm);
  return made;
}

void TraceEvents::timer(const trace::Event& event, Cpu& cpu) {
  if (event.kind == trace::Kind::hrtimer_expire_exit) {
    cpu.timer_active = false;
    return;
  }
  const std::int64_t address = number(event, "hrtimer");
  if (event.kind == trace::Kind::hrtimer_start) {
    if (timers_.size() == most_timers) timers_.clear();
    Timer& timer = timers_[address];
    timer.due = number(event, "softexpires");
    if (!cpu.timer_active) timer.owner = event.pid;
    has_timers_ = true;
    return;
  }
  cpu.timer_active = true;
  cpu.timer_now = number(event, "now");
  const std::int64_t ahead_ns = event.t_ns - cpu.timer_now;
  // Timers of the time of day are decades away; the others tell how the trace's clock goes.
  const bool is_of_day = std::abs(ahead_ns) > ten_years_ns;
  if (!is_of_day && (!least_ahead_ns_ || std::abs(ahead_ns) < std::abs(*least_ahead_ns_))) {
    least_ahead_ns_ = ahead_ns;
    base_ns_ = ahead_ns >= 0 && ahead_ns < same_clock_ns ? 0 : ahead_ns;
  }
  const std::string function = event.fields->text("function").value_or("");
  cpu.timer_function = 0;
  for (const char letter : function) cpu.timer_function = cpu.timer_function * 31 + letter;
  const auto found = timers_.find(address);
  cpu.timer_base = is_of_day ? ahead_ns : base_ns_;
  cpu.is_of_day = is_of_day;
  cpu.timer_due =
      found == timers_.end() ? std::nullopt : std::optional(found->second.due + cpu.timer_base);
  if (found != timers_.end() && thread(found->second.owner, {}).is_watched) {
    Event told = made(event, EventKind::replenish, found->second.owner);
    told.a = found->second.due + cpu.timer_base;
    told.b = cpu.stolen;
    told.c = cpu.timer_function;
    take_(told);
  }
}

void TraceEvents::interrupt(const trace::Event& event, Cpu& cpu) {
  const bool begins = event.name.ends_with("entry");
  if (event.name.starts_with("irq")) {
    if (!begins && cpu.interrupt_began != 0) cpu.stolen += event.t_ns - cpu.interrupt_began;
    cpu.interrupt_began = begins ? event.t_ns : 0;
    if (begins) cpu.interrupt_number = number(event, "irq");
    return;
  }
  if (event.name == "softirq_raise") return;
  if (!begins && cpu.softirq_began != 0) {
    cpu.stolen = cpu.stolen_before_softirq + event.t_ns - cpu.softirq_began;
  }
  cpu.softirq_began = begins ? event.t_ns : 0;
  if (begins) {
    cpu.softirq_vector = number(event, "vec");
    cpu.stolen_before_softirq = cpu.stolen;
  }
}

void TraceEvents::call(const trace::Event& event) {
  Thread& caller = thread(event.pid, event.comm);
  if (!caller.is_watched) return;
  const auto id = event.fields->number("id");
  if (event.name == "sys_enter") ++caller.calls;
  caller.call = event.name == "sys_exit" ? no_call : id.value_or(unknown_call);
}

/// A timer of the time of day is told by its own clock, and how late it was by that: whoever builds
/// the cycles sees when the clock was set.
void TraceEvents::tell_own_clock(Event& told, const Cpu& cpu) {
  if (!cpu.is_of_day || !cpu.timer_due) return;
  const std::int64_t due = *cpu.timer_due - cpu.timer_base;
  const std::int64_t units = (cpu.timer_now - due) >> late_unit_bits;
  if (units < 0 || units >= std::int64_t{late_unknown}) return;
  told.a = due;
  const auto late = static_cast<std::uint32_t>(units);
  told.value = (told.value & ((1U << target_bits) - 1)) | (late << target_bits);
}

void TraceEvents::waking(const trace::Event& event, Cpu& cpu) {
  const auto tid = static_cast<std::int32_t>(number(event, "pid"));
  if (!thread(tid, event.fields->text("comm").value_or("")).is_watched) return;
  Event told = made(event, EventKind::waking, tid);
  told.other = event.pid;
  set_name(told, event.comm);
  const auto target =
      static_cast<std::uint32_t>(event.fields->number("target_cpu").value_or(event.cpu));
  told.value = (target & ((1U << target_bits) - 1)) | (late_unknown << target_bits);
  told.b = cpu.stolen;
  if (cpu.timer_active) {
    told.flags = cpu.timer_due ? by_timer | due_known : by_timer;
    told.a = cpu.timer_due.value_or(cpu.timer_now + cpu.timer_base);
    told.c = cpu.timer_function;
    tell_own_clock(told, cpu);
  } else if (cpu.interrupt_began != 0) {
    told.flags = by_interrupt;
    told.c = cpu.interrupt_number;
  } else if (cpu.softirq_began != 0) {
    told.flags = by_softirq;
    told.c = cpu.softirq_vector;
  }
  cpus_[static_cast<int>(target)].watching = true;
  take_(told);
}

void TraceEvents::changed(const trace::Event& event, Cpu& cpu) {
  const auto from = static_cast<std::int32_t>(number(event, "prev_pid"));
  const auto to = static_cast<std::int32_t>(number(event, "next_pid"));
  const std::string from_name = event.fields->text("prev_comm").value_or("");
  const std::string to_name = event.fields->text("next_comm").value_or("");
  const bool from_watched = thread(from, from_name).is_watched;
  const bool to_watched = thread(to, to_name).is_watched;
  if (from_watched) {
    const Thread& left = thread(from, from_name);
    Event told = made(event, EventKind::out, from);
    told.other = to;
    told.flags = static_cast<std::uint8_t>(left.calls);
    set_name(told, to_name);
    told.value = state_of(event.fields->text("prev_state").value_or("R"));
    told.a = cpu.stolen;
    told.b = left.call;
    told.c = left.argument_0;
    cpu.watching = cpu.watching || told.value == 0;
    take_(told);
  }
  if (!to_watched && !cpu.watching) return;
  Event told = made(event, to_watched ? EventKind::in : EventKind::foreign, to_watched ? to : 0);
  told.other = from;
  set_name(told, from_name);
  told.value = static_cast<std::uint32_t>(number(event, "prev_prio"));
  if (to_watched) {
    told.a = cpu.stolen;
    told.b = thread(to, to_name).calls;
    told.c = number(event, "next_prio");
    cpu.watching = false;
  } else {
    told.a = to;
    told.b = cpu.stolen;
  }
  take_(told);
}

}  // namespace latenz::attach
