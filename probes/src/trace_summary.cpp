// SPDX-License-Identifier: Apache-2.0
#include "trace_summary.hpp"

#include <algorithm>
#include <limits>

namespace latenz::trace {
namespace {

// A damaged or made-up trace may name anything; what is kept for each name stays bounded.
constexpr std::size_t most_threads = 4096;
constexpr std::size_t most_reasons = 512;
constexpr std::size_t most_exit_rows = 65536;  // of all threads
constexpr std::size_t most_names = 4096;
constexpr std::size_t most_cpus = 65536;
constexpr std::size_t most_pending = 16384;
constexpr std::size_t most_losses = 4096;
constexpr std::size_t longest_text = 128;
constexpr std::string_view others = "(others)";

constexpr std::int64_t realtime_priorities = 100;  // the kernel's priorities 0 to 99 are real-time

/// Waiting for an interrupt: the guest has nothing to do, so this time is not lost.
bool is_idle(std::string_view reason) {
  return reason == "HLT" || reason == "hlt" || reason == "idle-halt" || reason == "WFx" ||
         reason == "MWAIT_INSTRUCTION" || reason == "mwait";
}

std::string short_text(const Event& event, std::string_view field) {
  return event.fields->text(field).value_or("").substr(0, longest_text);
}

}  // namespace

bool Worst::wants(std::int64_t duration_ns) const {
  if (candidates_.size() < most_) return true;
  return most_ > 0 && duration_ns > candidates_.back().end_ns - candidates_.back().start_ns;
}

void Worst::add(Candidate candidate) {
  const auto is_longer = [](const Candidate& a, const Candidate& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  };
  const auto place = std::ranges::upper_bound(candidates_, candidate, is_longer);
  candidates_.insert(place, std::move(candidate));
  if (candidates_.size() > most_) candidates_.pop_back();
}

void Summary::event(const Event& event) {
  if (events_++ == 0) start_ns_ = end_ns_ = event.t_ns;
  start_ns_ = std::min(start_ns_, event.t_ns);
  end_ns_ = std::max(end_ns_, event.t_ns);
  count(event);
  const std::string name(names_.size() < most_names ? event.name : others);
  ++names_[name];
  switch (event.kind) {
    case Kind::kvm_exit:
      exit(event);
      break;
    case Kind::kvm_entry:
      entry(event);
      break;
    case Kind::kvm_userspace_exit:
      went_to_userspace(event.pid);
      break;
    case Kind::sched_switch:
      switched(event);
      break;
    case Kind::sched_waking:
      waking(event, true);
      break;
    case Kind::sched_wakeup:
      waking(event, false);
      break;
    case Kind::contention_begin:
      contended(event);
      break;
    default:
      timed(event);
  }
}

/// What timers and the tracers of latencies tell.
void Summary::timed(const Event& event) {
  switch (event.kind) {
    case Kind::hrtimer_start:
      timer_started(event);
      break;
    case Kind::hrtimer_expire_entry:
      timer_expired(event);
      break;
    case Kind::hrtimer_expire_exit:
      expiries_[event.cpu].active = false;
      break;
    case Kind::hrtimer_cancel:
      if (const auto timer = event.fields->number("hrtimer")) timers_.erase(*timer);
      break;
    case Kind::timerlat:
      timerlat(event);
      break;
    case Kind::hwlat:
      hwlat(event);
      break;
    default:
      break;
  }
}

void Summary::count(const Event& event) {
  if (cpus_.size() >= most_cpus && !cpus_.contains(event.cpu)) return;
  Cpu& cpu = cpus_[event.cpu];
  if (cpu.is_losing) resumed(cpu, event);
  ++cpu.events;
  cpu.last_ns = event.t_ns;
}

/// Of more losses than are kept, a CPU's last one grows: what lies between is not known either.
void Summary::resumed(Cpu& cpu, const Event& event) {
  const std::int64_t start_ns = cpu.events > 0 ? cpu.last_ns : start_ns_;
  const auto same = [&event](const Loss& loss) { return loss.cpu == event.cpu; };
  const auto last = std::ranges::find_if(losses_.rbegin(), losses_.rend(), same);
  if (losses_.size() < most_losses || last == losses_.rend()) {
    losses_.push_back({event.cpu, start_ns, event.t_ns});
  } else {
    last->end_ns = event.t_ns;
  }
  cpu.is_losing = false;
  cpu.resumed_ns = event.t_ns;
}

void Summary::went_to_userspace(int pid) {
  const auto found = threads_.find(pid);
  if (found == threads_.end()) return;
  if (auto& open = found->second.open) open->userspace = true;
}

/// What was open when events went missing cannot be closed by what comes after them.
void Summary::lost(int cpu, std::uint64_t count) {
  ++lost_places_;
  lost_events_ += count;
  const auto is_there = [cpu](int place) { return cpu < 0 || place < 0 || place == cpu; };
  for (auto& [pid, thread] : threads_) {
    if (is_there(thread.cpu)) leave_open(thread);
  }
  if (cpu < 0) {
    for (auto& [number, each] : cpus_) each.is_losing = true;
  } else if (cpus_.size() < most_cpus) {
    cpus_[cpu].is_losing = true;
  }
  std::erase_if(waiting_, [&](const auto& each) { return is_there(each.second.cpu); });
  if (cpu < 0) {
    expiries_.clear();
  } else {
    expiries_.erase(cpu);
  }
  timers_.clear();
  blocks_.clear();
  contended_ns_.clear();
  preempted_ns_.clear();
}

void Summary::leave_open(Thread& thread) {
  if (!thread.open) return;
  ++thread.exits[thread.open->reason].open;
  thread.open.reset();
}

/// Has a thread that was last seen on another CPU come to this one while its events were lost?
/// Then what it did there since is not known.
bool Summary::came_unseen(int before, std::int64_t since_ns, const Event& event) const {
  const auto cpu = cpus_.find(event.cpu);
  return before != event.cpu && cpu != cpus_.end() && since_ns < cpu->second.resumed_ns;
}

Summary::Thread& Summary::vcpu_thread(const Event& event) {
  // The last one takes all that are too many.
  const bool is_new = !threads_.contains(event.pid);
  Thread& thread = threads_[is_new && threads_.size() >= most_threads ? -1 : event.pid];
  if (is_new && thread.first_ns == 0) {
    thread.pid = event.pid;
    thread.first_ns = event.t_ns;
  }
  if (thread.comm.empty()) thread.comm = event.comm;
  if (const auto vcpu = event.fields->number("vcpu")) thread.vcpu = *vcpu;
  if (thread.open && came_unseen(thread.cpu, thread.open->t_ns, event)) leave_open(thread);
  thread.cpu = event.cpu;
  thread.last_ns = event.t_ns;
  return thread;
}

void Summary::exit(const Event& event) {
  Thread& thread = vcpu_thread(event);
  std::string reason = event.fields->text("reason").value_or("(not told)").substr(0, longest_text);
  if (!thread.exits.contains(reason)) {
    const bool is_full = thread.exits.size() >= most_reasons || exit_rows_ >= most_exit_rows;
    if (is_full) reason = others;
    exit_rows_ += is_full ? 0 : 1;
  }
  ++thread.exits[reason].count;
  leave_open(thread);
  thread.open = OpenExit{.t_ns = event.t_ns, .cpu = event.cpu, .reason = std::move(reason)};
}

void Summary::entry(const Event& event) {
  Thread& thread = vcpu_thread(event);
  ++thread.entries;
  if (!thread.open) return;
  const OpenExit open = std::move(*thread.open);
  thread.open.reset();
  Exits& exits = thread.exits[open.reason];
  std::int64_t cost_ns = 0;
  if (__builtin_sub_overflow(event.t_ns, open.t_ns, &cost_ns) || cost_ns < 0) {
    ++backwards_;
    ++exits.open;
    return;
  }
  const bool is_first = exits.count - exits.open == 1;
  if (__builtin_add_overflow(exits.total_ns, cost_ns, &exits.total_ns)) {
    exits.total_ns = std::numeric_limits<std::int64_t>::max();
  }
  exits.min_ns = is_first ? cost_ns : std::min(exits.min_ns, cost_ns);
  if (is_first || cost_ns > exits.max_ns) {
    exits.max_ns = cost_ns;
    exits.max_at_ns = open.t_ns;
  }
  exits.userspace += open.userspace ? 1 : 0;
  exits.userspace_ns += open.userspace ? cost_ns : 0;
  exits.slept += open.slept_ns > 0 ? 1 : 0;
  exits.slept_ns += open.slept_ns;
  exits.preempted += open.preempted_ns > 0 ? 1 : 0;
  exits.preempted_ns += open.preempted_ns;
  if (!is_idle(open.reason) && worst_exits_.wants(cost_ns)) {
    worst_exits_.add(
        {open.t_ns, event.t_ns, open.cpu, event.pid, std::string(event.comm), true, open.reason});
  }
}

void Summary::switched(const Event& event) {
  if (const auto pid = event.fields->number("prev_pid")) left(event, static_cast<int>(*pid));
  if (const auto pid = event.fields->number("next_pid")) came(event, static_cast<int>(*pid));
}

void Summary::left(const Event& event, int pid) {
  const auto thread = threads_.find(pid);
  const bool is_vcpu = thread != threads_.end();
  const auto priority = event.fields->number("prev_prio").value_or(realtime_priorities);
  const bool sleeps = !event.fields->text("prev_state").value_or("R").starts_with('R');
  if (!sleeps && pid != 0) {
    if (preempted_ns_.size() >= most_pending) preempted_ns_.clear();
    preempted_ns_[pid] = event.t_ns;
  }
  if (!is_vcpu && priority >= realtime_priorities && !waiting_.contains(pid)) return;
  if (sleeps) {
    waiting_.erase(pid);  // it was woken before it had gone to sleep
    if (priority < realtime_priorities) blocked(event, pid);
  } else {
    wait(pid, {Wait::ready, event.t_ns, event.cpu});
  }
  if (is_vcpu && thread->second.open) {
    thread->second.open->away_since_ns = event.t_ns;
    thread->second.open->sleeps = sleeps;
  }
}

void Summary::came(const Event& event, int pid) {
  const auto thread = threads_.find(pid);
  const bool is_vcpu = thread != threads_.end();
  if (is_vcpu && thread->second.open &&
      came_unseen(thread->second.cpu, thread->second.open->t_ns, event)) {
    leave_open(thread->second);
  }
  if (is_vcpu && thread->second.open) {
    OpenExit& open = *thread->second.open;
    thread->second.cpu = event.cpu;
    if (open.away_since_ns >= 0 && event.t_ns >= open.away_since_ns) {
      (open.sleeps ? open.slept_ns : open.preempted_ns) += event.t_ns - open.away_since_ns;
    }
    open.away_since_ns = -1;
  }
  const auto found = waiting_.find(pid);
  if (found == waiting_.end()) return;
  const Waiting waiting = found->second;
  waiting_.erase(found);
  if (came_unseen(waiting.cpu, waiting.since_ns, event)) return;
  const std::int64_t latency_ns = event.t_ns - waiting.since_ns;
  if (latency_ns < 0) {
    ++backwards_;
    return;
  }
  const std::string comm = short_text(event, "next_comm");
  if (waiting.blocked_ns >= 0 && worst_blocked_.wants(event.t_ns - waiting.blocked_ns)) {
    worst_blocked_.add({waiting.blocked_ns, event.t_ns, event.cpu, pid, comm, is_vcpu, ""});
  }
  Worst& worst = worst_of(waiting.why);
  if (!worst.wants(latency_ns)) return;
  worst.add({waiting.since_ns, event.t_ns, event.cpu, pid, comm, is_vcpu, ""});
}

void Summary::contended(const Event& event) {
  if (contended_ns_.size() >= most_pending) contended_ns_.clear();
  contended_ns_[event.pid] = event.t_ns;
}

/// Which sleeps are waits for somebody else is told by how they begin, or by who ends them.
void Summary::blocked(const Event& event, int pid) {
  constexpr std::int64_t longest_way_ns = 100'000;  // from a held lock to sleep, some microseconds
  const auto contended = contended_ns_.find(pid);
  const bool is_contended =
      contended != contended_ns_.end() && event.t_ns - contended->second < longest_way_ns;
  if (blocks_.size() >= most_pending) blocks_.clear();
  const bool is_deep = event.fields->text("prev_state").value_or("S").starts_with('D');
  blocks_[pid] = {event.t_ns, is_contended || is_deep};
}

/// When the thread that is woken began to wait for the one that wakes it; -1: it did not. A sleep
/// that a timer or an interrupt ends, or a thread that was never held up, is not a wait.
std::int64_t Summary::take_block(const Event& event, int woken, bool by_timer) {
  const auto found = blocks_.find(woken);
  if (found == blocks_.end()) return -1;
  const Block block = found->second;
  blocks_.erase(found);
  const bool by_interrupt =
      event.pid == 0 || event.flags.find_first_of("hHszZ") != std::string_view::npos;
  if (block.is_lock) return block.since_ns;
  if (by_timer || by_interrupt) return -1;
  const auto preempted = preempted_ns_.find(event.pid);
  const bool was_held_up = preempted != preempted_ns_.end() && preempted->second >= block.since_ns;
  return was_held_up ? block.since_ns : -1;
}

Worst& Summary::worst_of(Wait why) {
  if (why == Wait::woken) return worst_wakeups_;
  return why == Wait::ready ? worst_ready_ : worst_timers_;
}

void Summary::wait(int pid, const Waiting& waiting) {
  if (waiting_.size() >= most_pending) waiting_.clear();
  waiting_[pid] = waiting;
}

/// Of real-time threads and of those that run virtual CPUs; not of the kernel's own that stop a
/// CPU for a moment. A thread that a timer wakes waits since that timer was due.
void Summary::waking(const Event& event, bool is_first) {
  const auto pid = event.fields->number("pid");
  if (!pid) return;
  const auto priority = event.fields->number("prio").value_or(realtime_priorities);
  const int woken = static_cast<int>(*pid);
  if (priority >= realtime_priorities && !threads_.contains(woken)) return;
  if (!is_first && waiting_.contains(woken)) return;
  if (event.fields->text("comm").value_or("").starts_with("migration/")) return;
  const auto expiry = expiries_.find(event.cpu);
  const bool by_timer = expiry != expiries_.end() && expiry->second.active;
  wait(woken, {by_timer ? Wait::woken_by_timer : Wait::woken,
               by_timer ? expiry->second.due_ns : event.t_ns,
               static_cast<int>(event.fields->number("target_cpu").value_or(event.cpu)),
               take_block(event, woken, by_timer)});
}

void Summary::timer_started(const Event& event) {
  const auto timer = event.fields->number("hrtimer");
  const auto expires_ns = event.fields->number("expires");
  if (!timer || !expires_ns) return;
  if (timers_.size() >= most_pending) timers_.clear();
  timers_[*timer] = {*expires_ns, short_text(event, "function")};
}

/// The event tells the time by the timer's own clock: how late it is needs no common clock.
void Summary::timer_expired(const Event& event) {
  const auto timer = event.fields->number("hrtimer");
  const auto now_ns = event.fields->number("now");
  Expiry& expiry = expiries_[event.cpu];
  if (!now_ns || *now_ns != expiry.now_ns) {
    expiry = {.now_ns = now_ns.value_or(0), .read_at_ns = event.t_ns};
  }
  expiry.active = true;
  expiry.due_ns = event.t_ns;
  if (!timer || !now_ns) return;
  const auto started = timers_.find(*timer);
  if (started == timers_.end()) return;
  constexpr std::int64_t longest_ns = 10'000'000'000;  // more is a clock that was set
  const std::int64_t late_ns = *now_ns - started->second.expires_ns;
  if (late_ns > 0 && late_ns < longest_ns) {
    expiry.due_ns = expiry.read_at_ns - late_ns;
    if (worst_gaps_.wants(late_ns)) {
      worst_gaps_.add({expiry.due_ns, expiry.read_at_ns, event.cpu, event.pid,
                       std::string(event.comm), false, started->second.function});
    }
  }
  timers_.erase(started);
}

void Summary::timerlat(const Event& event) {
  const auto latency_ns = event.fields->number("timer_latency");
  if (!latency_ns || *latency_ns < 0 || !worst_timerlat_.wants(*latency_ns)) return;
  worst_timerlat_.add({event.t_ns - *latency_ns, event.t_ns, event.cpu, event.pid,
                       std::string(event.comm), false, short_text(event, "context")});
}

/// Of the hardware latency tracer: time that nobody accounts for.
void Summary::hwlat(const Event& event) {
  constexpr std::int64_t ns_per_us = 1000;
  constexpr std::int64_t longest_us = 10'000'000;
  const std::int64_t inner_us = event.fields->number("duration").value_or(0);
  const std::int64_t outer_us = event.fields->number("outer_duration").value_or(0);
  const std::int64_t gap_us = std::max(inner_us, outer_us);
  if (gap_us < 0 || gap_us > longest_us || !worst_gaps_.wants(gap_us * ns_per_us)) return;
  worst_gaps_.add({event.t_ns - gap_us * ns_per_us, event.t_ns, event.cpu, event.pid,
                   std::string(event.comm), false, "hwlat"});
}

/// The virtual CPU's number; several virtual machines have the same numbers, so with the thread.
std::string Summary::vcpu_name(const Thread& thread) const {
  const std::string number = thread.vcpu < 0 ? "?" : std::to_string(thread.vcpu);
  const auto same = std::ranges::count_if(
      threads_, [&](const auto& other) { return other.second.vcpu == thread.vcpu; });
  return same == 1 ? number : number + "@" + std::to_string(thread.pid);
}

void Summary::write(probe::Json& json) const {
  json.member("events", events_);
  json.member("start_ns", start_ns_).member("end_ns", end_ns_);
  json.key("lost").open_object();
  json.member("events", lost_events_).member("places", lost_places_).close_object();
  json.member("backwards", backwards_);
  json.key("cpus").open_array();
  for (const auto& [number, cpu] : cpus_) {
    json.open_object().member("cpu", number).member("events", cpu.events).close_object();
  }
  json.close_array();
  json.key("losses").open_array();
  for (const Loss& loss : losses_) {
    json.open_object().member("cpu", loss.cpu).member("start_ns", loss.start_ns);
    json.member("end_ns", loss.end_ns).close_object();
  }
  json.close_array();
  json.key("names").open_object();
  const std::map<std::string, std::uint64_t> sorted(names_.begin(), names_.end());
  for (const auto& [name, count] : sorted) json.member(name, count);
  json.close_object();
  write_exits(json);
  json.key("worst").open_array();
  write_worst(json, "exit", worst_exits_);
  write_worst(json, "wakeup", worst_wakeups_);
  write_worst(json, "timer", worst_timers_);
  write_worst(json, "ready", worst_ready_);
  write_worst(json, "blocked", worst_blocked_);
  write_worst(json, "timerlat", worst_timerlat_);
  write_worst(json, "gap", worst_gaps_);
  json.close_array();
}

void Summary::write_exits(probe::Json& json) const {
  std::vector<const Thread*> sorted;
  sorted.reserve(threads_.size());
  for (const auto& [pid, thread] : threads_) sorted.push_back(&thread);
  std::ranges::sort(sorted, [](const Thread* a, const Thread* b) {
    return std::pair(a->vcpu, a->pid) < std::pair(b->vcpu, b->pid);
  });
  json.key("vcpus").open_array();
  for (const Thread* const thread : sorted) {
    json.open_object().member("vcpu", vcpu_name(*thread)).member("pid", thread->pid);
    json.member("comm", thread->comm).member("entries", thread->entries);
    json.member("start_ns", thread->first_ns).member("end_ns", thread->last_ns).close_object();
  }
  json.close_array();
  json.key("exits").open_array();
  for (const Thread* const thread : sorted) write_exits_of(json, *thread);
  json.close_array();
}

void Summary::write_exits_of(probe::Json& json, const Thread& thread) const {
  const std::string vcpu = vcpu_name(thread);
  for (const auto& [reason, exits] : thread.exits) {
    const std::uint64_t still_open = thread.open && thread.open->reason == reason ? 1 : 0;
    json.open_object().member("vcpu", vcpu).member("reason", reason);
    json.member("count", exits.count).member("open", exits.open + still_open);
    json.member("total_ns", exits.total_ns).member("min_ns", exits.min_ns);
    json.member("max_ns", exits.max_ns).member("max_at_ns", exits.max_at_ns);
    json.member("userspace", exits.userspace).member("userspace_ns", exits.userspace_ns);
    json.member("slept", exits.slept).member("slept_ns", exits.slept_ns);
    json.member("preempted", exits.preempted).member("preempted_ns", exits.preempted_ns);
    json.close_object();
  }
}

void Summary::write_worst(probe::Json& json, std::string_view kind, const Worst& worst) const {
  for (const Candidate& each : worst.candidates()) {
    json.open_object().member("kind", kind).member("start_ns", each.start_ns);
    json.member("end_ns", each.end_ns).member("latency_ns", each.end_ns - each.start_ns);
    json.member("cpu", each.cpu).member("pid", each.pid).member("comm", each.comm);
    json.key("vcpu");
    const auto thread = threads_.find(each.pid);
    const bool is_known = each.is_vcpu && thread != threads_.end();
    is_known ? json.value(vcpu_name(thread->second)) : json.null();
    json.member("what", each.what).close_object();
  }
}

}  // namespace latenz::trace
