// SPDX-License-Identifier: Apache-2.0
// What events tell, for trace_windows.hpp: names of events and functions.
#include <cstring>
#include <limits>
#include <utility>

#include "trace_windows.hpp"
#include "trace_words.hpp"

namespace latenz::trace {
namespace {

constexpr std::int64_t same_clock = 10'000'000;  // a timer's `now` is so close before its event
constexpr std::size_t most_timers = 1U << 16U;
constexpr std::size_t most_functions = 1U << 16U;
constexpr int most_cpus = 4096;
constexpr std::int32_t lowest_real_time = 98;  // the kernel's priorities 0 to 98 are FIFO and RR
constexpr std::size_t most_threads = 4096;
constexpr std::size_t most_names = 4096;

What what_of(std::string_view name) {
  static const std::unordered_map<std::string_view, What> known = {
      {"irq_disable", What::irqs_off},
      {"irq_enable", What::irqs_on},
      {"preempt_disable", What::preempt_off},
      {"preempt_enable", What::preempt_on},
      {"irq_handler_entry", What::interrupt_begin},
      {"irq_handler_exit", What::interrupt_end},
      {"ipi_entry", What::interrupt_begin},
      {"ipi_exit", What::interrupt_end},
      {"softirq_entry", What::softirq_begin},
      {"softirq_exit", What::softirq_end},
      {"sched_switch", What::switched},
      {"sched_waking", What::waking},
      {"cpu_idle", What::idle},
      {"hrtimer_start", What::timer_start},
      {"hrtimer_cancel", What::timer_cancel},
      {"hrtimer_expire_entry", What::timer_expires},
      {"hrtimer_expire_exit", What::timer_done},
      {"nmi_handler", What::nmi},
      {"hwlat", What::stolen},
      {"nmi_noise", What::stolen},
      {"irq_noise", What::noise},
      {"sched_entry", What::scheduler_called},
      {"sched_entry_tp", What::scheduler_called},
      {"softirq_noise", What::noise},
  };
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  // irq_vectors: each has its own pair
  for (const std::string_view vector :
       {"local_timer", "reschedule", "call_function", "call_function_single", "irq_work",
        "x86_platform_ipi", "thermal_apic", "threshold_apic", "error_apic", "spurious_apic",
        "deferred_error_apic"}) {
    if (!name.starts_with(vector)) continue;
    if (name.substr(vector.size()) == "_entry") return What::interrupt_begin;
    if (name.substr(vector.size()) == "_exit") return What::interrupt_end;
  }
  return What::other;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool begins(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](auto start) { return text.starts_with(start); });
}

/// By which the kernel is entered from user mode, by an interrupt or another exception.
bool enters(std::string_view name) {
  return has(name, "enter_from_") || has(name, "irqentry_enter") ||
         begins(name, {"sysvec_", "asm_", "exc_", "el0", "el1", "common_interrupt", "do_syscall_64",
                       "do_fast_syscall", "do_int80", "entry_", "error_entry", "ret_from_fork"});
}

bool tells_of_scheduler(std::string_view name) {
  return begins(name, {"event_", "sched_exit", "sched_set_need_resched"});
}

void read_flags(std::string_view flags, Step& step) {
  // trace_print_lat_fmt of kernel/trace/trace_output.c; flags.py says more
  const std::size_t at = flags.size() == 4 || flags.size() == 5 ? 2 : 3;
  if (flags.size() < 4 || flags.size() > 7) return;
  step.context = flags[at];
  step.irqs_off = flags[0] == 'd' || flags[0] == 'D';
  step.needed = std::string_view("NnBb").find(flags[1]) != std::string_view::npos;
  step.counted = flags[at + 1] != '.' && flags[at + 1] != '0';
}

}  // namespace

TraceWindows::TraceWindows(const TraceWindows& survey, std::optional<bool> preemptible)
    : is_survey_(false), chosen_(survey.measured()), common_grain_(survey.common_grain_) {
  std::uint64_t preemptions = 0;
  for (const auto& [number, cpu] : survey.cpus_) {
    preemptions += cpu->kernel_preemptions();
    edges_.entry = std::max(edges_.entry, cpu->edges().entry);
    edges_.from_sleep = std::max(edges_.from_sleep, cpu->edges().from_sleep);
  }
  preemptible_ = preemptible.value_or(preemptions > 0);
  std::uint64_t most = 0;
  for (const auto& [number, events] : survey.of_cpu_) {
    if (events > most) busiest_ = number;
    most = std::max(most, events);
  }
}

const TraceWindows::Function& TraceWindows::function(const Event& event, const char* field,
                                                     const char* offset) {
  const auto distance = event.fields->number(offset);
  if (distance) {
    const auto known = by_offset_.find(*distance);
    if (known != by_offset_.end()) return known->second;
  }
  const std::string full = event.fields->text(field).value_or("");
  if (!distance) {
    const auto known = by_name_.find(full);
    if (known != by_name_.end()) return known->second;
  }
  std::string_view told(full);
  told = told.substr(0, told.find('/'));  // of name+0x0/0x0
  const std::string_view name = told.substr(0, told.find('+'));
  Function made;
  made.name = names_.number(told);
  const bool goes_on = has(name, "_loop") || has(name, "_prepare") || has(name, "_work");
  made.to_user = (has(name, "exit_to_user") || has(name, "ret_to_user")) && !goes_on;
  made.may_leave = begins(name, {"el0_", "el0t_", "do_syscall_64", "irqentry_exit"});
  made.from_hardware = enters(name);
  made.schedules =
      begins(name, {"schedule", "__schedule", "preempt_schedule", "io_schedule",
                    "rt_mutex_schedule", "dynamic_preempt_schedule", "raw_irqentry_exit_cond",
                    "irqentry_exit_cond", "exit_to_user_mode_loop", "finish_task_switch"});
  made.chooses = begins(name, {"__schedule"});
  // These leave it to others to look; and of whom no name is known that cannot be told.
  made.tests = !name.empty() && !name.starts_with("0x") && !has(name, "bh_enable") &&
               !has(name, "softirq") && !has(name, "irq_exit");
  has_names_ = has_names_ || (!name.empty() && !name.starts_with("0x"));
  if (distance) {
    if (by_offset_.size() >= most_functions) by_offset_.clear();
    return by_offset_[*distance] = made;
  }
  if (by_name_.size() >= most_functions) by_name_.clear();
  return by_name_[full] = made;
}

void TraceWindows::told_switch(const Event& event, Step& step) const {
  const auto number = [&](const char* name) {
    return static_cast<std::int32_t>(event.fields->number(name).value_or(-1));
  };
  step.pid = number("next_pid");
  step.priority = number("next_prio");
  step.prev_pid = number("prev_pid");
  const auto chosen = chosen_.find(event.cpu);
  const std::string state = event.fields->text("prev_state").value_or("");
  step.prev_runs_on = state.starts_with('R');
  step.kernel_preempted = state == "R+";
  if (chosen == chosen_.end() || step.priority > chosen->second.thread.priority) return;
  const std::string name = event.fields->text("next_comm").value_or("");
  std::memcpy(step.name.data(), name.data(), std::min(name.size(), step.name.size() - 1));
}

void TraceWindows::told_timer(const Event& event, Step& step) {
  step.timer = event.fields->number("hrtimer").value_or(0);
  if (step.what == What::timer_start) {
    if (timers_.size() >= most_timers) timers_.clear();
    const auto expires = event.fields->number("expires");
    if (expires) timers_[step.timer] = {*expires, event.t_ns};
  } else if (step.what == What::timer_cancel) {
    timers_.erase(step.timer);
  } else if (step.what == What::timer_expires) {
    const auto known = timers_.find(step.timer);
    const auto now = event.fields->number("now");
    if (known == timers_.end() || !now) return;
    const std::int64_t since = event.t_ns - *now;
    if (since >= -common_grain_ && since < same_clock) {  // both are of the same clock
      step.due_ns = std::max(known->second.expires, known->second.started);
    }
    timers_.erase(known);
  }
}

Step TraceWindows::step_of(const Event& event, const Seen& seen) {
  Step step;
  step.t_ns = event.t_ns;
  step.what = seen.what;
  if (!event.flags.empty()) {
    read_flags(event.flags, step);
    has_flags_ = has_flags_ || step.context != 0;
  }
  switch (step.what) {
    case What::irqs_off:
    case What::irqs_on:
    case What::preempt_off:
    case What::preempt_on: {
      const Function caller = function(event, "caller", "caller_offs");
      const Function parent = function(event, "parent", "parent_offs");
      step.place = {caller.name, parent.name};
      step.to_user = caller.to_user;
      step.may_leave = caller.may_leave || caller.to_user;
      step.from_hardware = caller.from_hardware || parent.from_hardware;
      step.schedules = caller.schedules || parent.schedules;
      step.chooses = caller.chooses;
      step.tests = caller.tests;
      break;
    }
    case What::interrupt_begin:
    case What::softirq_begin: {
      const auto irq = event.fields->number("irq");
      const std::string_view name = event.name.substr(0, event.name.rfind('_'));
      step.source = names_.number(irq ? "irq " + std::to_string(*irq) : std::string(name));
      break;
    }
    case What::noise:
      step.value = event.fields->number("duration").value_or(0);
      step.source = names_.number(event.fields->text("desc").value_or(std::string(event.name)));
      break;
    case What::switched:
      told_switch(event, step);
      break;
    case What::waking: {
      step.pid = static_cast<std::int32_t>(event.fields->number("pid").value_or(-1));
      step.priority = static_cast<std::int32_t>(event.fields->number("prio").value_or(-1));
      const auto target = event.fields->number("target_cpu");
      if (target && *target != event.cpu) step.pid = -1;
      break;
    }
    case What::idle:
      step.value = event.fields->number("state").value_or(-1);
      break;
    case What::timer_start:
    case What::timer_cancel:
    case What::timer_expires:
      told_timer(event, step);
      break;
    case What::other:
      if (seen.tells_of_scheduler) scheduler_told(event, step);
      break;
    default:
      break;
  }
  if (step.place == Place{}) step.place = {seen.name, 0};
  return step;
}

/// Tracepoints of the scheduler from Linux 6.15 on, told by a probe on them, or by the monitors of
/// runtime verification (kernel/trace/rv), whose events name what happened.
void TraceWindows::scheduler_told(const Event& event, Step& step) {
  const bool is_monitor = event.name.starts_with("event_");
  const std::string told = is_monitor ? event.fields->text("event").value_or("") : "";
  if (told.starts_with("schedule_entry")) {
    step.what = What::scheduler_called;
  } else if (told == "schedule_exit") {
    step.what = What::scheduler_idle;
  } else if (event.name.starts_with("sched_exit")) {
    if (event.fields->number("is_switch") == 0) step.what = What::scheduler_idle;
  } else if (told == "sched_need_resched") {  // of a thread, which may run elsewhere
    const auto thread = event.fields->number("id");
    for (const auto& [number, cpu] : cpus_) {
      if (thread && cpu->running() == *thread) cpu->needed(event.t_ns);
    }
  } else if (event.name.starts_with("sched_set_need_resched")) {
    const auto number = event.fields->number("cpu");
    const auto found = number ? cpus_.find(static_cast<int>(*number)) : cpus_.end();
    if (found != cpus_.end()) found->second->needed(event.t_ns);
  }
}

void TraceWindows::saw_timerlat(const Event& event) {
  constexpr std::size_t most_contexts = 8;
  const auto latency_ns = event.fields->number("timer_latency");
  const std::string context = event.fields->text("context").value_or("").substr(0, 15);
  auto& of_cpu = timerlat_[event.cpu];
  if (!latency_ns || (of_cpu.size() >= most_contexts && !of_cpu.contains(context))) return;
  Latencies& seen = of_cpu[context];
  ++seen.n;
  seen.longest_ns = std::max(seen.longest_ns, *latency_ns);
}

void TraceWindows::count_waking(const Event& event, const Step& step) {
  if (step.what == What::timer_expires) in_timer_[event.cpu] = true;
  if (step.what == What::timer_done) in_timer_[event.cpu] = false;
  if (step.what != What::waking || step.pid < 0 || step.priority > lowest_real_time) return;
  if (!in_timer_[event.cpu]) return;
  Threads& threads = woken_[event.cpu];
  if (threads.size() >= most_threads && !threads.contains(step.pid)) return;
  Woken& woken = threads[step.pid];
  woken.priority = step.priority;
  if (woken.times++ == 0) woken.name = event.fields->text("comm").value_or("").substr(0, 15);
}

std::map<int, TraceWindows::Measured> TraceWindows::measured() const {
  std::map<int, Measured> found;
  const Measured* most = nullptr;
  for (const auto& [cpu, threads] : woken_) {
    const auto best =
        std::ranges::max_element(threads, {}, [](const auto& each) { return each.second.times; });
    if (best == threads.end() || best->second.times < 2) continue;
    found[cpu] = {best->first, best->second};
  }
  for (const auto& [cpu, each] : found) {
    if (most == nullptr || each.thread.times > most->thread.times) most = &each;
  }
  if (most == nullptr) return found;
  const std::int32_t priority = most->thread.priority;  // one thread of a program on each CPU
  std::erase_if(found, [&](const auto& each) { return each.second.thread.priority != priority; });
  return found;
}

CpuSettings TraceWindows::settings_of(int number) const {
  CpuSettings settings;
  settings.is_survey = is_survey_;
  if (is_survey_) return settings;
  settings.preemptible = preemptible_;
  settings.edges = edges_;
  settings.grain = common_grain_ > 0 ? common_grain_ - 1 : 0;
  const auto chosen = chosen_.find(number);
  if (chosen != chosen_.end()) {
    settings.measured = chosen->second.pid;
    settings.priority = chosen->second.thread.priority;
  }
  return settings;
}

CpuWindows* TraceWindows::cpu(int number) {
  if (number < 0 || number >= most_cpus) return nullptr;
  const bool is_wanted =
      is_survey_ || chosen_.contains(number) || (chosen_.empty() && number == busiest_);
  if (!is_wanted) return nullptr;
  auto& found = cpus_[number];
  if (!found) found = std::make_unique<CpuWindows>(settings_of(number));
  return found.get();
}

void TraceWindows::event(const Event& event) {
  ++events_;
  if (is_survey_) {
    if (event.t_ns % 1000 != 0) common_grain_ = 0;
    ++of_cpu_[event.cpu];
  }
  CpuWindows* const on = cpu(event.cpu);
  Seen& seen = this->seen(event.name);
  if (on == nullptr && !seen.is_of_timers) return;
  const Step step = step_of(event, seen);
  if (is_survey_) count_waking(event, step);
  if (!is_survey_ && event.kind == Kind::timerlat) saw_timerlat(event);
  ++seen.n;
  if (on != nullptr) on->feed(step);
}

TraceWindows::Seen& TraceWindows::seen(std::string_view name) {
  const auto known = seen_.find(name);
  if (known != seen_.end()) return known->second;
  if (seen_.size() >= most_names) {
    std::erase_if(seen_, [](const auto& each) { return each.second.what == What::other; });
  }
  const Seen made{what_of(name), name.starts_with("hrtimer_"), tells_of_scheduler(name),
                  names_.number(name), 0};
  return seen_.emplace(name, made).first->second;
}

void TraceWindows::lost(int cpu, std::uint64_t count) {
  lost_events_ += count;
  ++lost_places_;
  for (const auto& [number, each] : cpus_) {
    if (cpu < 0 || cpu == number) each->lost(count);
  }
}

void TraceWindows::finish() {
  for (const auto& [number, each] : cpus_) each->finish();
}

void TraceWindows::write(probe::Json& json) const {
  json.member("events", events_).member("preemptible", preemptible_);
  json.member("lost_events", lost_events_).member("lost_places", lost_places_);
  json.member("has_flags", has_flags_).member("has_names", has_names_);
  json.member("grain_ns", common_grain_);
  json.key("entry_ns");
  edges_.entry < 0 ? json.null() : json.value(edges_.entry);
  json.key("from_sleep_ns");
  edges_.from_sleep < 0 ? json.null() : json.value(edges_.from_sleep);
  json.key("saw").open_object();
  for (const auto& [name, seen] : std::map(seen_.begin(), seen_.end())) {
    if (seen.n > 0) json.member(name, seen.n);
  }
  json.close_object().key("cpus").open_array();
  for (const auto& [number, each] : cpus_) write_cpu(json, number, *each);
  json.close_array();
}

void TraceWindows::write_cpu(probe::Json& json, int number, const CpuWindows& cpu) const {
  json.open_object().member("cpu", number);
  const auto chosen = chosen_.find(number);
  const bool is_chosen = chosen != chosen_.end();
  json.member("thread", is_chosen ? chosen->second.pid : -1);
  json.member("thread_name", is_chosen ? chosen->second.thread.name : std::string());
  json.member("priority", is_chosen ? chosen->second.thread.priority : 0);
  json.member("preempted_in_kernel", cpu.kernel_preemptions());
  json.member("ignored_points", cpu.ignored_points()).member("user_returns", cpu.user_entries());
  json.member("sleeps", cpu.sleeps()).member("idles", cpu.idles());
  json.member("stolen", cpu.stolen()).member("interrupt_entries", cpu.interrupts());
  json.key("timerlat").open_object();
  const auto latencies = timerlat_.find(number);
  if (latencies != timerlat_.end()) {
    for (const auto& [context, seen] : latencies->second) {
      json.key(context).open_object().member("n", seen.n);
      json.member("longest_ns", seen.longest_ns).close_object();
    }
  }
  json.close_object();
  cpu.account().write(json, names_);
  json.close_object();
}

}  // namespace latenz::trace
