// SPDX-License-Identifier: Apache-2.0
#include "kernel_windows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

#include "json.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t most_recent = 1U << 16U;  // executions kept until a wake-up
constexpr std::size_t most_found = 1U << 18U;   // windows kept until a wake-up
constexpr std::size_t sites_told = 50;          // of each kind
constexpr std::size_t latest_told = 10;
constexpr std::size_t most_rivals = 64;

std::size_t bucket(std::uint64_t value) { return static_cast<std::size_t>(std::bit_width(value)); }

void write_place(Json& json, const char* name, const Place& place) {
  json.key(name).open_array().value(place.address).value(place.caller).close_array();
}

void write_steps(Json& json, const std::vector<CurveStep>& steps) {
  json.open_array();
  for (const CurveStep& step : steps) {
    json.open_array().value(step.span).value(step.sum).close_array();
  }
  json.close_array();
}

void write_histogram(Json& json, const std::array<std::uint64_t, 65>& counts) {
  json.open_array();
  const auto empty =
      std::ranges::find_if(counts | std::views::reverse, [](auto n) { return n != 0; }) -
      counts.rbegin();
  for (const std::uint64_t count :
       std::span(counts).first(counts.size() - static_cast<std::size_t>(empty))) {
    json.value(count);
  }
  json.close_array();
}

}  // namespace

void Segment::take(const Segment& later) {
  wake_ups += later.wake_ups;
  longest_latency = std::max(longest_latency, later.longest_latency);
  for (std::size_t i = 0; i < terms; ++i) {
    longest.at(i) = std::max(longest.at(i), later.longest.at(i));
  }
  interference.add(later.interference);
}

// Interrupts and other exceptions

void KernelWindows::push(std::uint64_t now, bool is_interrupt) {
  if (frames_.empty()) {
    outer_begin_ = now;
  } else if (is_interrupt) {  // what is interrupted does not run meanwhile
    Frame& outer = frames_.back();
    outer.own += now - outer.resumed;
  }
  frames_.push_back({.is_interrupt = is_interrupt, .begin = now, .resumed = now});
}

void KernelWindows::pop(std::uint64_t now) {
  Frame done = frames_.back();
  frames_.pop_back();
  done.own += now - done.resumed;
  if (frames_.empty()) {
    interrupt_time_ += now - outer_begin_;
  } else if (done.is_interrupt) {
    frames_.back().resumed = now;
  }
  if (done.is_interrupt) {
    finish_execution(done);
  }
}

void KernelWindows::finish_execution(const Frame& frame) {
  if (!observing()) {
    return;
  }
  recent_.push_back({time_ns(frame.begin) - untimed_, frame.own, frame.source});
  if (recent_.size() > most_recent) {
    commit();
  }
}

void KernelWindows::interrupt_entered(std::uint64_t now) { push(now, true); }

void KernelWindows::interrupt_named(std::uint64_t hwirq) {
  for (std::size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].is_interrupt) {
      if (frames_[i].source == no_source) {
        frames_[i].source = hwirq;
      }
      return;
    }
  }
}

void KernelWindows::exception_entered(std::uint64_t now, bool from_user, Place place) {
  if (!frames_.empty()) {
    frames_.push_back({.is_interrupt = false, .begin = now, .resumed = now});
    return;
  }
  if (from_user) {
    in_user_ = false;
  }
  interrupts_on_ = false;
  update(now, place);
}

void KernelWindows::returned(std::uint64_t now, bool to_user, bool interrupts_on, Place place) {
  if (!frames_.empty() && !frames_.back().is_interrupt) {
    frames_.pop_back();  // its time is that of the interrupt which it came in
    return;
  }
  const bool ended_interrupt = !frames_.empty();
  if (ended_interrupt) {
    pop(now);
    if (!frames_.empty()) {
      return;
    }
  }
  interrupts_on_ = interrupts_on;
  in_user_ = to_user;
  // the return of an interrupt looks whether the scheduler is needed
  if (to_user || (ended_interrupt && can_be_preempted())) {
    close(now, place);
  }
  update(now, place);
}

void KernelWindows::leave_interrupts(std::uint64_t now) {
  while (!frames_.empty()) {
    pop(now);
  }
  interrupts_on_ = false;
  in_user_ = false;
}

void KernelWindows::preempts_kernel(std::uint64_t now, Place place) {
  ++preempted_in_kernel_;
  if (in_thread()) {
    lost("an interrupt preempted the kernel whose begin was not seen");
  }
  leave_interrupts(now);
  point(now, true, place);
  update(now, place);
}

void KernelWindows::works_before_user(std::uint64_t now, bool needed, Place place) {
  if (!frames_.empty()) {
    leave_interrupts(now);
  }
  if (needed) {
    point(now, true, place);
  }
  update(now, place);
}

// Masking, preemption count, points

void KernelWindows::masked(std::uint64_t now, bool interrupts_on, Place place) {
  if (!in_thread()) {
    return;
  }
  interrupts_on_ = interrupts_on;
  if (in_schedule_ && !masked_in_schedule_ && !interrupts_on) {
    masked_in_schedule_ = true;
    waits_at_choice_ = pending_.has_value();
    masked_since_ = thread_time(now);
    masked_place_ = place;
    if (!is_idle()) {
      window_ = Window{masked_since_, place, Term::switching, false};
    }
  }
  update(now, place);
}

void KernelWindows::counted(std::uint64_t now, std::uint32_t count, Place place) {
  current_.preempt_count = count;
  if (!in_thread()) {
    return;
  }
  if (std::exchange(enabling_needed_, false) && count == 0 && interrupts_on_ && !is_idle()) {
    point(now, true, place);
  }
  update(now, place);
}

void KernelWindows::tested(std::uint64_t now, std::uint32_t count, bool needed, Place place) {
  if (!in_thread() || !interrupts_on_ || is_idle()) {
    return;
  }
  if (count == 0) {
    point(now, needed, place);
    update(now, place);
  }
  enabling_needed_ = count == 1 && needed;
}

void KernelWindows::loop_tested(std::uint64_t now, bool needed, Place place) {
  if (!in_thread() || is_idle() || in_schedule_) {
    return;
  }
  if (settings_.preemptible && current_.preempt_count != 0) {
    return;
  }
  if (needed || interrupts_on_) {
    point(now, needed, place);
  } else if (window_) {
    window_->owed = false;  // whoever came before is served; who comes now, at the unmasking
  }
  update(now, place);
}

void KernelWindows::point(std::uint64_t now, bool needed, Place place) {
  close(now, place);
  if (needed && !needed_since_) {
    needed_since_ = thread_time(now);
    needed_place_ = place;
  }
}

void KernelWindows::close(std::uint64_t now, Place place) {
  if (window_) {
    record(window_->term, thread_time(now) - window_->begin, {window_->place, place});
    window_.reset();
  }
}

/// Opens or closes the window of an arrival that would be held up, after something has changed.
void KernelWindows::update(std::uint64_t now, Place place) {
  if (!in_thread()) {
    return;
  }
  const bool free = can_be_preempted();
  if (free && scheduling_since_) {
    scheduler_done(now, place);
  }
  if (free && pending_ && pending_->task.address == current_.address &&
      (settings_.preemptible || in_user_)) {
    woken_runs(now);
  }
  if (is_idle() || (in_schedule_ && !masked_in_schedule_)) {
    return;  // windows of their own
  }
  if (!free) {
    if (!window_) {
      window_ = Window{thread_time(now), place, Term::blocking, false};
    }
    // An interrupt that is taken now is not followed by the scheduler at once.
    window_->owed = window_->owed || interrupts_on_;
  } else if (window_ && !window_->owed) {
    close(now, place);  // an interrupt that is pending is taken here, and its return is a point
  }
}

// The scheduler and idle

void KernelWindows::schedule_called(std::uint64_t now, std::optional<std::uint32_t> in_memory,
                                    Place place) {
  ++schedules_;
  if (in_memory && *in_memory != current_.preempt_count) {
    ++wrong_counts_;
    current_.preempt_count = *in_memory;
  }
  if (!in_thread()) {
    lost("the scheduler was called in an interrupt");
    return;
  }
  if (is_idle()) {
    window_.reset();
    const std::uint64_t here = thread_time(now);
    if (slept_in_idle_) {
      record(Term::idle_out, here - sleep_began_, {sleep_place_, place});
    } else {
      record(Term::idle_direct, here - idle_since_, {idle_place_, place});
    }
    slept_in_idle_ = false;
  } else {
    close(now, place);
  }
  running_since_.reset();
  in_schedule_ = true;
  masked_in_schedule_ = false;
  scheduling_since_ = needed_since_ ? *needed_since_ : thread_time(now);
  scheduling_place_ = needed_since_ ? needed_place_ : place;
  needed_since_.reset();
  if (!interrupts_on_) {
    masked(now, false, place);
  }
}

void KernelWindows::switched(const Task& task) {
  if (task.address == current_.address) {
    return;
  }
  const bool known = current_.address != 0;
  waits_at_choice_ = false;
  current_ = task;
  if (!known) {
    return;
  }
  if (pending_ && task.address != pending_->task.address &&
      task.priority > pending_->task.priority) {
    ++passed_over_found_;
  }
  if (measured_ && task.pid != *measured_ && task.pid != 0 && task.priority <= settings_.priority &&
      rivals_found_.size() < most_rivals) {
    rivals_found_.push_back(task);
  }
  if (is_idle()) {
    window_.reset();
    scheduling_since_.reset();
    idle_since_ = masked_since_;
    idle_place_ = masked_place_;
    slept_in_idle_ = false;
  } else if (!window_ && masked_in_schedule_) {  // idle was before: the window was not open
    window_ = Window{masked_since_, masked_place_, Term::switching, interrupts_on_};
  }
}

void KernelWindows::schedule_returned(std::uint64_t now, Place place) {
  if (!in_thread()) {
    return;
  }
  // Who ran goes on, though another one of higher priority waits: it is throttled.
  if (std::exchange(waits_at_choice_, false) && pending_ &&
      current_.priority > pending_->task.priority) {
    ++passed_over_found_;
  }
  in_schedule_ = false;
  if (is_idle()) {
    scheduling_since_.reset();
    idle_since_ = masked_since_;
    idle_place_ = masked_place_;
    slept_in_idle_ = false;
    return;
  }
  if (!settings_.preemptible) {
    scheduler_done(now, place);
    if (pending_ && pending_->task.address == current_.address) {
      woken_runs(now);
    }
  }
  update(now, place);
}

void KernelWindows::scheduler_done(std::uint64_t now, Place place) {
  if (!scheduling_since_) {
    return;
  }
  record(Term::scheduler, thread_time(now) - *scheduling_since_, {scheduling_place_, place});
  scheduling_since_.reset();
  in_schedule_ = false;  // a new thread does not return from the scheduler
}

void KernelWindows::waits(std::uint64_t now, Place place) {
  if (waits_++ == 0) {
    recent_before_wait_ = recent_.size();
  }
  if (!in_thread() || !is_idle()) {
    return;
  }
  const std::uint64_t here = thread_time(now);
  if (slept_in_idle_) {
    record(Term::idle_in, here - sleep_began_, {sleep_place_, place});
  } else {
    record(Term::idle_in, here - idle_since_, {idle_place_, place});
  }
  slept_in_idle_ = true;
  sleep_began_ = here;
  sleep_place_ = place;
}

void KernelWindows::counter_read(std::uint64_t now, std::uint64_t counter_ns) {
  // An instruction that a page fault or a device makes QEMU begin again was counted twice.
  constexpr std::uint64_t between_repeated = 64;  // such instructions are not more frequent
  const auto ahead = static_cast<std::int64_t>(counter_ns - time_ns(now));
  const std::uint64_t since = now - std::exchange(counter_read_, now);
  const std::uint64_t waits = std::exchange(waits_, 0);
  offset_ += static_cast<std::uint64_t>(ahead);
  if (!std::exchange(clock_known_, true) || ahead == 0) {
    return;
  }
  if (ahead < 0) {
    const auto behind = static_cast<std::uint64_t>(-ahead);
    repeated_ += behind;
    if (behind > 1 + since / between_repeated) {
      lost("the counter is behind the instructions");
    }
    return;
  }
  const auto asleep = static_cast<std::uint64_t>(ahead);
  if (waits == 0) {
    lost("the counter is ahead of the instructions");
  } else if (waits > 1) {
    untimed_ += asleep;  // of several sleeps nobody knows which was how long: let them be none
  } else {
    slept_ += asleep;
    for (std::size_t i = recent_before_wait_; i < recent_.size(); ++i) {
      recent_[i].begin_ns += asleep;
    }
  }
}

// The measured thread

void KernelWindows::wake_up(const Task& task, std::uint64_t due_ns) {
  if (task.priority != settings_.priority) {
    other_priority_found_ += measured_ && task.pid == *measured_ ? 1U : 0U;
    return;
  }
  if (!measured_) {
    measured_ = task.pid;
  }
  if (task.pid != *measured_) {
    return;  // when it runs it is a rival
  }
  if (pending_) {
    ++missed_;
  }
  pending_ = Pending{task, due_ns};
}

void KernelWindows::woken_runs(std::uint64_t now) {
  if (!pending_) {
    return;
  }
  const std::uint64_t here_ns = time_ns(now);
  const WakeUp done{pending_->due_ns, here_ns > pending_->due_ns ? here_ns - pending_->due_ns : 0};
  pending_.reset();
  running_since_ = thread_time(now);
  if (!observing()) {  // everything before the first one does not count
    began_observing_ = here_ns;
    rivals_found_.clear();
    passed_over_found_ = 0;
    ++wake_ups_;
    return;
  }
  ++wake_ups_;
  ended_observing_ = here_ns;
  commit();
  ++open_.wake_ups;
  open_.longest_latency = std::max(open_.longest_latency, done.latency_ns);
  ++latency_histogram_.at(bucket(done.latency_ns));
  if (latest_.size() < latest_told || latest_.back().latency_ns < done.latency_ns) {
    const auto place = std::ranges::find_if(
        latest_, [&](const WakeUp& each) { return each.latency_ns < done.latency_ns; });
    latest_.insert(place, done);
    latest_.resize(std::min(latest_.size(), latest_told));
  }
  if (open_.wake_ups >= segment_length_) {
    segments_.push_back(std::exchange(open_, Segment{}));
    if (segments_.size() == most_segments) {
      for (std::size_t i = 0; i < most_segments / 2; ++i) {
        Segment both = std::move(segments_[2 * i]);
        both.take(segments_[2 * i + 1]);
        segments_[i] = std::move(both);
      }
      segments_.resize(most_segments / 2);
      segment_length_ *= 2;
    }
  }
}

void KernelWindows::user_read_counter(std::uint64_t now, Place place) {
  if (running_since_ && in_thread() && measured_ && current_.pid == *measured_) {
    record(Term::to_user, thread_time(now) - *running_since_, {place, place});
    running_since_.reset();
  }
}

// What is kept

void KernelWindows::record(Term term, std::uint64_t ns, Site site) {
  if (observing() && found_.size() < most_found) {
    found_.push_back({term, ns, site});
  }
  if (found_.size() == most_found) {
    commit();
  }
}

void KernelWindows::commit() {
  for (const Found& each : found_) {
    const auto number = static_cast<std::size_t>(each.term);
    Longest& longest = longest_.at(number);
    ++longest.n;
    if (longest.n == 1 || each.ns > longest.ns) {
      longest.ns = each.ns;
      longest.site = each.site;
    }
    open_.longest.at(number) = std::max(open_.longest.at(number), each.ns);
    ++histogram_.at(number).at(bucket(each.ns));
    auto& sites = sites_.at(number);
    const auto known = sites.find(each.site);
    if (known != sites.end()) {
      ++known->second.n;
      known->second.longest = std::max(known->second.longest, each.ns);
    } else if (sites.size() < settings_.most_sites) {
      sites.emplace(each.site, Count{1, each.ns, wake_ups_});
    } else {
      lost("more sites than are kept");
    }
  }
  found_.clear();
  Staircase steps(most_recent * ExecutionWindow::depth);  // so many that none is rounded
  for (const Execution& each : recent_) {
    executions_.add(each.begin_ns, each.own, steps);
    longest_execution_ = std::max(longest_execution_, each.own);
    InterruptSource& source = sources_[each.source];
    source.window.add(each.begin_ns, each.own, source.interference);
    source.longest = std::max(source.longest, each.own);
  }
  open_.interference.add(steps);
  interference_.add(steps);
  recent_.clear();
  recent_before_wait_ = 0;
  for (const Task& task : rivals_found_) {
    const auto known = rivals_.find(task.pid);
    if (known != rivals_.end()) {
      ++known->second.times;
    } else if (rivals_.size() < most_rivals) {
      rivals_.emplace(task.pid, Rival{task.name, task.priority, 1});
    }
  }
  rivals_found_.clear();
  passed_over_ += std::exchange(passed_over_found_, 0);
  if (const std::uint64_t times = std::exchange(other_priority_found_, 0); times > 0) {
    lost_["the measured thread was woken at another priority"] += times;
  }
}

std::string KernelWindows::report(std::uint64_t now) const {
  Json json;
  json.open_object();
  json.member("format", 1).member("preemptible", settings_.preemptible);
  json.member("priority", settings_.priority).member("wake_ups", wake_ups_);
  json.member("missed", missed_);
  json.member("observed_ns", ended_observing_ - began_observing_);
  json.key("instructions").open_object();
  json.member("all", now).member("thread", thread_time(now));
  json.member("interrupt", interrupt_time(now)).member("repeated", repeated_).close_object();
  json.member("asleep_ns", slept_ + untimed_);
  json.key("checks").open_object();
  json.member("schedules", schedules_).member("wrong_counts", wrong_counts_);
  json.member("preempted_in_kernel", preempted_in_kernel_).member("passed_over", passed_over_);
  json.key("lost").open_object();
  for (const auto& [what, times] : lost_) {
    if (times > 0) {
      json.member(what, times);
    }
  }
  json.close_object().key("rivals").open_array();
  for (const auto& [pid, rival] : rivals_) {
    json.open_object().member("pid", pid).member("name", rival.name);
    json.member("priority", rival.priority).member("times", rival.times).close_object();
  }
  json.close_array().close_object();
  json.key("terms").open_object();
  for (std::size_t i = 0; i < terms; ++i) {
    const Longest& longest = longest_.at(i);
    const auto& sites = sites_.at(i);
    json.key(term_names.at(i)).open_object();
    json.member("n", longest.n).member("longest_ns", longest.ns);
    json.key("histogram");
    write_histogram(json, histogram_.at(i));
    json.member("sites", sites.size());
    json.member("seen_once",
                std::ranges::count_if(sites, [](const auto& each) { return each.second.n == 1; }));
    std::vector<std::pair<Site, Count>> told(sites.begin(), sites.end());
    const auto longer = [](const auto& a, const auto& b) {
      return std::tie(a.second.longest, a.first.begin.address, a.first.end.address,
                      a.first.begin.caller, a.first.end.caller) >
             std::tie(b.second.longest, b.first.begin.address, b.first.end.address,
                      b.first.begin.caller, b.first.end.caller);
    };
    std::ranges::sort(told, longer);
    told.resize(std::min(told.size(), sites_told));
    json.key("longest_sites").open_array();
    for (const auto& [site, count] : told) {
      json.open_object().member("n", count.n).member("longest_ns", count.longest);
      json.member("first_wake_up", count.first_wake_up);
      write_place(json, "begin", site.begin);
      write_place(json, "end", site.end);
      json.close_object();
    }
    json.close_array().close_object();
  }
  json.close_object();
  json.key("interrupts").open_object();
  json.member("n", executions_.count()).member("longest_ns", longest_execution_);
  json.key("horizon_ns");
  if (executions_.horizon() == std::numeric_limits<std::uint64_t>::max()) {
    json.null();
  } else {
    json.value(executions_.horizon());
  }
  json.key("steps");
  write_steps(json, interference_.steps());
  json.key("sources").open_array();
  for (const auto& [name, source] : sources_) {
    json.open_object();
    json.key("hwirq");
    if (name == no_source) {
      json.null();
    } else {
      json.value(name);
    }
    json.member("n", source.window.count()).member("longest_ns", source.longest);
    json.key("horizon_ns");
    if (source.window.horizon() == std::numeric_limits<std::uint64_t>::max()) {
      json.null();
    } else {
      json.value(source.window.horizon());
    }
    json.key("distances_ns").open_array();
    for (std::size_t q = 1; q < source.window.known(); ++q) {
      json.value(source.window.shortest(q));
    }
    json.close_array().key("sums_ns").open_array();
    for (std::size_t q = 0; q < source.window.known(); ++q) {
      json.value(source.window.largest(q));
    }
    json.close_array().key("steps");
    write_steps(json, source.interference.steps());
    json.close_object();
  }
  json.close_array().close_object();
  json.key("latency").open_object();
  json.key("histogram");
  write_histogram(json, latency_histogram_);
  json.key("longest").open_array();
  for (const WakeUp& each : latest_) {
    json.open_object().member("due_ns", each.due_ns);
    json.member("latency_ns", each.latency_ns).close_object();
  }
  json.close_array().close_object();
  json.key("segments").open_array();
  const auto write_segment = [&](const Segment& segment) {
    if (segment.wake_ups == 0) {
      return;
    }
    json.open_object().member("wake_ups", segment.wake_ups);
    json.member("longest_latency_ns", segment.longest_latency);
    json.key("longest_ns").open_array();
    for (const std::uint64_t longest : segment.longest) {
      json.value(longest);
    }
    json.close_array().key("steps");
    Staircase told = segment.interference;
    told.reduce(Segment::steps);
    write_steps(json, told.steps());
    json.close_object();
  };
  std::ranges::for_each(segments_, write_segment);
  write_segment(open_);
  json.close_array().close_object();
  return json.text();
}

}  // namespace latenz::probe
