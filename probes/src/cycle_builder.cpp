// SPDX-License-Identifier: Apache-2.0
#include "cycle_builder.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <utility>

namespace latenz::attach {
namespace {

// 32-bit kernels have two of it: for times of 32 and of 64 bits.
#ifdef SYS_clock_nanosleep
constexpr std::int64_t clock_nanosleep_call = SYS_clock_nanosleep;
#else
constexpr std::int64_t clock_nanosleep_call = SYS_clock_nanosleep_time32;
#endif
#ifdef SYS_clock_nanosleep_time64
constexpr std::int64_t long_clock_nanosleep_call = SYS_clock_nanosleep_time64;
#else
constexpr std::int64_t long_clock_nanosleep_call = clock_nanosleep_call;
#endif
constexpr std::size_t most_segments = 96;
constexpr std::size_t most_addresses = 8;
constexpr std::size_t most_calls = 64;
constexpr std::size_t most_names = 4096;
constexpr std::uint64_t strays_to_doubt = 200;
constexpr std::uint32_t state_bits = 0xFF;
constexpr std::uint32_t stopped_bits =
    4 | 8;  ///< by a signal or a debugger, on the way out of a call
constexpr std::int64_t elsewhere_ns = 3'600'000'000'000;  ///< no timer is that late

template <typename Number>
void count(Number& counter) {
  if (counter < std::numeric_limits<Number>::max()) ++counter;
}

}  // namespace

void RoughMedian::add(std::int64_t value) {
  if (cells_.empty()) cells_.resize(64UL * 16);
  const auto bits = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  const auto width = static_cast<std::size_t>(std::bit_width(bits));
  const std::size_t cell = width <= 4 ? bits : (width - 4) * 16 + ((bits >> (width - 5)) & 15U);
  count(cells_[std::min(cell, cells_.size() - 1)]);
  ++n_;
}

std::int64_t RoughMedian::value() const {
  std::uint64_t seen = 0;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    seen += cells_[cell];
    if (seen * 2 >= n_ && n_ > 0) {
      if (cell < 16) return static_cast<std::int64_t>(cell);
      const std::size_t width = cell / 16 + 4;
      return static_cast<std::int64_t>((16UL + cell % 16) << (width - 5));
    }
  }
  return 0;
}

void ThreadCycles::event(const Event& event, const ClockBases& bases) {
  bases_ = bases;
  switch (event.kind) {
    case EventKind::out:
      out(event);
      break;
    case EventKind::in:
      in(event);
      break;
    case EventKind::waking:
      waking(event);
      break;
    case EventKind::replenish:
      replenished(event);
      break;
    case EventKind::fault:
      if (cycle_) {
        count(cycle_->record.faults);
        auto& addresses = cycle_->story.fault_addresses;
        if (addresses.size() < most_addresses) addresses.push_back(event.a);
        if ((event.value & writes_to_present) == writes_to_present) ++cycle_->story.copies;
        cycle_->story.forker = forker_;
        cycle_->story.forker_name = forker_name_;
      }
      break;
    case EventKind::reclaim:
      if (event.value != 0) {
        reclaim_began_ns_ = event.t_ns;
      } else if (cycle_ && reclaim_began_ns_ != 0) {
        cycle_->story.reclaim_ns += event.t_ns - reclaim_began_ns_;
      }
      break;
    case EventKind::gone:
      gone_ = true;
      break;
    case EventKind::mark:
      marked(event);
      break;
    case EventKind::fork:  // all threads are told, by `forked`
    case EventKind::frequency:
    case EventKind::foreign:
      break;
  }
}

void ThreadCycles::forked(std::int32_t by, const std::string& name) {
  forker_ = by;
  forker_name_ = name;
  if (!cycle_) return;
  ++cycle_->story.forks;
  cycle_->story.forker = by;
  cycle_->story.forker_name = name;
}

void ThreadCycles::goes_at(std::uint32_t khz, std::uint32_t highest_khz) {
  if (!cycle_ || khz == 0) return;
  Story& story = cycle_->story;
  story.lowest_khz = story.lowest_khz == 0 ? khz : std::min(story.lowest_khz, khz);
  story.highest_khz = std::max(story.highest_khz, highest_khz);
}

void ThreadCycles::out(const Event& event) {
  if (state_ == State::running) {
    run_until(event.t_ns, event.a, event.cpu);
  } else if (state_ != State::unknown) {
    note_unseen_waking(event.t_ns);
  }
  calls_ = event.flags;
  call_ = (event.value & stopped_bits) != 0 ? no_call : event.b;
  argument_0_ = event.c;
  argument_1_ = event.value >> 16U;
  since_ns_ = event.t_ns;
  mark_ns_ = event.t_ns;
  mark_stolen_ = event.a;
  cpu_ = event.cpu;
  const bool sleeps = (event.value & state_bits) != 0;
  yielded_ = !sleeps && is_deadline_ && (call_ == SYS_sched_yield || call_ == unknown_call);
  if (sleeps || yielded_) {
    state_ = State::asleep;
    if (sleeps_.size() < most_calls || sleeps_.contains(call_)) {
      Sleeps& told = sleeps_[call_];
      ++told.n;
      told.argument_0 = argument_0_;
      told.argument_1 = argument_1_;
    }
    return;
  }
  state_ = State::ready;
  ready_cpu_ = event.cpu;
  if (cycle_) count(cycle_->record.preemptions);
}

/// It has run since the state's begin; `stolen_ns` as its CPU counts.
void ThreadCycles::run_until(std::int64_t t_ns, std::int64_t stolen_ns, int on_cpu) {
  if (!cycle_) return;
  const std::int64_t stolen = on_cpu == cpu_ ? stolen_ns - stolen_in_ : 0;
  cycle_->record.run_ns += t_ns - since_ns_;
  cycle_->record.stolen_ns += stolen;
  add_segment({.what = Segment::What::run,
               .t_ns = since_ns_,
               .length_ns = t_ns - since_ns_,
               .cpu = cpu_,
               .tid = tid_,
               .comm = {},
               .stolen_ns = stolen});
}

void ThreadCycles::in(const Event& event) {
  if (state_ == State::asleep && pending_) {
    // The waker was faster than the thread's way out.
    const std::unique_ptr<Pending> pending = std::move(pending_);
    wake(pending->event, std::max(pending->event.t_ns, since_ns_));
  }
  if (state_ == State::ready) {
    if (cycle_) {
      switched(event, event.other, event.name(), static_cast<std::int32_t>(event.value));
      cycle_->ready_ns += event.t_ns - since_ns_;
      const bool ran_unseen = static_cast<std::uint8_t>(event.b) != calls_;
      if (ran_unseen && cycle_->running_ns == 0) tell_unseen_cycles();
      if (ran_unseen && cycle_->running_ns != 0) note_missing();
      if (cycle_->running_ns == 0) cycle_->running_ns = event.t_ns;
      if (cpu_ >= 0 && cpu_ != int{event.cpu}) count(cycle_->record.migrations);
    }
  } else if (state_ != State::unknown) {
    note_unseen_waking(event.t_ns);
  }
  own_priority_ = static_cast<std::int32_t>(event.c);
  is_deadline_ = own_priority_ < 0;
  if (cycle_) cycle_->story.own_priority = own_priority_;
  state_ = State::running;
  since_ns_ = event.t_ns;
  stolen_in_ = event.a;
  cpu_ = event.cpu;
}

void ThreadCycles::switched(const Event& event, std::int32_t tid, std::string_view comm,
                            int priority) {
  const std::int64_t stolen = event.kind == EventKind::foreign ? event.b : event.a;
  if (cycle_ && event.t_ns > mark_ns_) {
    const std::int64_t length_ns = event.t_ns - mark_ns_;
    add_segment({.what = Segment::What::ready,
                 .t_ns = mark_ns_,
                 .length_ns = length_ns,
                 .cpu = event.cpu,
                 .tid = tid,
                 .comm = std::string(comm),
                 .priority = priority,
                 .stolen_ns = std::clamp<std::int64_t>(stolen - mark_stolen_.value_or(stolen), 0,
                                                       length_ns)});
  }
  mark_ns_ = std::max(mark_ns_, event.t_ns);
  mark_stolen_ = stolen;
}

void ThreadCycles::waking(const Event& event) {
  if (state_ == State::running) {
    settle_pending();
    pending_ = std::make_unique<Pending>();
    pending_->event = event;
    if (cycle_) {
      pending_->before = std::make_unique<Cycle>(*cycle_);
      pending_->before->record.run_ns += event.t_ns - since_ns_;
    }
    return;
  }
  if (state_ == State::ready) {
    // It is awake already; if it is due once more, it has run and slept unseen in between.
    const Wake again = wake_of(event, event.t_ns);
    if (grid_ && cycle_ && again.kind.by == WakeKind::By::timer &&
        begins_cycle(*grid_, again.kind, again.due_ns, last_due_ns())) {
      note_missing();
      wake(event, event.t_ns);
    }
    return;
  }
  settle_pending();
  wake(event, event.t_ns);
}

void ThreadCycles::replenished(const Event& event) {
  if (state_ == State::asleep && yielded_) {
    wake(event, event.t_ns);
  } else if (state_ == State::ready && yielded_ && cycle_ && cycle_->running_ns == 0) {
    // Another timer of the scheduler came first: the cycle is this one's.
    const Wake later = wake_of(event, event.t_ns);
    cycle_->record.due_ns = later.due_ns;
    cycle_->record.timer_late_ns = event.t_ns - later.due_ns;
    since_ns_ = mark_ns_ = event.t_ns;
    cycle_->story.segments.clear();
  }
}

/// A waking that came while the thread still ran has not put it to sleep: what it was due for ran
/// on at once.
void ThreadCycles::settle_pending() {
  if (!pending_) return;
  const std::unique_ptr<Pending> pending = std::move(pending_);
  const Wake wake = wake_of(pending->event, pending->event.t_ns);
  learn(wake);
  if (goes_by_marks()) {
    if (!before_mark_ || is_due(wake)) before_mark_ = wake;
    return;
  }
  if (!grid_ || !begins_cycle(*grid_, wake.kind, wake.due_ns, last_due_ns())) return;
  std::unique_ptr<Cycle> next = next_after(*pending, wake);
  if (pending->before) {
    cycle_ = std::make_unique<Cycle>(*pending->before);
    finish_cycle(wake.t_ns);
  }
  cycle_ = std::move(next);
}

/// The cycle of a waking that came while the thread ran, with what has become of it since.
std::unique_ptr<ThreadCycles::Cycle> ThreadCycles::next_after(const Pending& pending,
                                                              const Wake& wake) {
  std::unique_ptr<Cycle> whole = std::move(cycle_);
  const std::unique_ptr<Cycle>& before = pending.before;
  begin_cycle(wake, pending.event);
  cycle_->record.flags |= without_sleep;
  cycle_->running_ns = wake.t_ns;
  if (whole && before) {
    cycle_->record.run_ns = whole->record.run_ns - before->record.run_ns;
    cycle_->record.stolen_ns = whole->record.stolen_ns - before->record.stolen_ns;
    cycle_->ready_ns = whole->ready_ns - before->ready_ns;
    cycle_->record.blocked_ns = whole->record.blocked_ns - before->record.blocked_ns;
    if ((whole->record.flags & partial_cycle) != 0) note_missing();
  } else {
    cycle_->record.flags |= partial_cycle;
  }
  std::unique_ptr<Cycle> next = std::move(cycle_);
  cycle_ = std::move(whole);
  return next;
}

std::int64_t ThreadCycles::on_monotonic(std::int64_t due_ns, std::int64_t t_ns) {
  clock_ = ClockBase::monotonic;
  std::int64_t best = due_ns;
  const std::pair<ClockBase, std::int64_t> others[] = {{ClockBase::realtime, bases_.real_ns},
                                                       {ClockBase::boottime, bases_.boot_ns},
                                                       {ClockBase::tai, bases_.tai_ns}};
  for (const auto& [base, ahead_ns] : others) {
    // Clocks that go together (no suspend, no leap seconds) cannot be told apart, and need not be.
    constexpr std::int64_t apart_ns = 1'000'000;
    if (std::abs(due_ns - ahead_ns - t_ns) + apart_ns < std::abs(best - t_ns)) {
      best = due_ns - ahead_ns;
      clock_ = base;
    }
  }
  return best;
}

/// How late it was by its own clock tells what that clock was at the event. Of a clock that was set
/// back, the timer was due when it would have expired; of one set forward, when it should have.
std::int64_t ThreadCycles::due_of_timer(const Event& event, std::int64_t t_ns) {
  constexpr std::int64_t same_ns = 1'000'000;
  constexpr std::int64_t apart_ns = 500'000;  // farther than from the timer's clock to the waking
  const std::int64_t due_ns = on_monotonic(event.a, t_ns);
  clock_step_ns_ = 0;
  const std::uint32_t late = event.value >> target_bits;
  if ((event.flags & due_known) == 0 || late == late_unknown || event.kind != EventKind::waking) {
    return due_ns;
  }
  const std::int64_t own_late_ns = std::int64_t{late} << late_unit_bits;
  const std::int64_t ahead_ns = event.a + own_late_ns - event.t_ns;
  if (std::abs(ahead_ns) < same_ns) return due_ns;
  const std::int64_t before_ns = clock_ahead_ns_.value_or(ahead_ns);
  clock_ahead_ns_ = ahead_ns;
  const bool is_set = std::abs(ahead_ns - before_ns) > apart_ns;
  if (is_set) clock_step_ns_ = ahead_ns - before_ns;
  if (clock_step_ns_ < 0) return event.a - before_ns;
  // Our own readings of the clock are closer, but may be from before it was set. Set forward, it
  // makes timers due in the past: a cycle is at most as late as the one before has begun.
  const std::int64_t by_event_ns = event.a - ahead_ns;
  const std::int64_t own_ns = std::abs(by_event_ns - due_ns) > apart_ns ? by_event_ns : due_ns;
  return is_set && grid_ ? std::max(own_ns, last_due_ns() + 1) : own_ns;
}

ThreadCycles::Wake ThreadCycles::wake_of(const Event& event, std::int64_t t_ns) {
  if (event.kind == EventKind::replenish) {
    const WakeKind kind{.by = WakeKind::By::deadline};
    return {.t_ns = t_ns, .due_ns = on_monotonic(event.a, t_ns), .kind = kind};
  }
  if ((event.flags & by_timer) != 0) {
    // Until a time and for a while are not the same: the one is the grid, the other a pause in it.
    constexpr std::int64_t flag_bits = 16;
    const bool is_pause = call_ == clock_nanosleep_call || call_ == long_clock_nanosleep_call;
    const WakeKind kind{.by = WakeKind::By::timer,
                        .call = call_,
                        .function = event.c,
                        .manner = is_pause ? (argument_0_ << flag_bits) | argument_1_ : 0};
    const std::int64_t due_ns = due_of_timer(event, t_ns);
    if (std::abs(due_ns - t_ns) < elsewhere_ns) {
      return {.t_ns = t_ns, .due_ns = std::min(due_ns, t_ns), .kind = kind};
    }
  }
  const WakeKind kind{.by = WakeKind::By::event, .call = call_};
  return {.t_ns = t_ns, .due_ns = t_ns, .kind = kind};
}

void ThreadCycles::wake(const Event& event, std::int64_t t_ns) {
  const Wake wake = wake_of(event, t_ns);
  learn(wake);
  const bool is_reset = grid_ && clock_step_ns_ != 0 && wake.kind == grid_->kind;
  if (goes_by_marks()) {
    wake_between_marks(wake, event);
  } else {
    before_mark_ = wake;
    if (is_reset || (grid_ && begins_cycle(*grid_, wake.kind, wake.due_ns, last_due_ns()))) {
      if (state_ == State::unknown && cycle_) cycle_->record.flags |= partial_cycle;
      finish_cycle(since_ns_);
      begin_cycle(wake, event);
    } else if (cycle_) {
      block(event, t_ns);
    }
  }
  state_ = State::ready;
  since_ns_ = t_ns;
  mark_ns_ = t_ns;
  const bool is_waking = event.kind == EventKind::waking;
  ready_cpu_ = is_waking ? static_cast<int>(event.value & ((1U << target_bits) - 1)) : event.cpu;
  mark_stolen_.reset();
  if (ready_cpu_ == int{event.cpu}) mark_stolen_ = event.b;
}

/// It has slept since the state's begin, within its cycle.
void ThreadCycles::block(const Event& event, std::int64_t t_ns) {
  if (state_ == State::unknown) {
    cycle_->record.flags |= partial_cycle;
    return;
  }
  cycle_->record.blocked_ns += t_ns - since_ns_;
  if (!yielded_) count(cycle_->record.blocks);
  if (const auto told = sleeps_.find(call_); told != sleeps_.end()) ++told->second.within_cycles;
  add_segment(blocked_segment(event, t_ns));
}

Segment ThreadCycles::blocked_segment(const Event& event, std::int64_t t_ns) const {
  return {.what = Segment::What::blocked,
          .t_ns = since_ns_,
          .length_ns = t_ns - since_ns_,
          .cpu = cpu_,
          .tid = event.other,
          .comm = std::string(event.name()),
          .flags = event.flags,
          .source = event.c,
          .call = call_,
          .argument_0 = argument_0_,
          .argument_1 = argument_1_};
}

std::int64_t ThreadCycles::last_due_ns() const {
  return cycle_ ? cycle_->record.due_ns : grid_->anchor_ns;
}

void ThreadCycles::begin_cycle(const Wake& wake, const Event& event) {
  Cycle cycle;
  cycle.record.due_ns = wake.due_ns;
  cycle.record.timer_late_ns = wake.t_ns - wake.due_ns;
  if ((event.flags & by_timer) != 0 && (event.flags & due_known) == 0 &&
      event.kind == EventKind::waking) {
    cycle.record.flags |= due_inferred;
  }
  cycle.story.own_priority = own_priority_;
  cycle.story.clock_step_ns = std::exchange(clock_step_ns_, 0);
  cycle_ = std::make_unique<Cycle>(std::move(cycle));
  if (event.kind == EventKind::waking && wake.kind.by == WakeKind::By::event) {
    waker_ = event.other;
    waker_name_ = event.name();
  }
  if (cycle_->record.timer_late_ns > 0) {
    add_segment({.what = Segment::What::late,
                 .t_ns = wake.due_ns,
                 .length_ns = cycle_->record.timer_late_ns,
                 .cpu = event.cpu,
                 .tid = event.other,
                 .comm = std::string(event.name()),
                 .flags = event.flags,
                 .source = event.c});
  }
}

/// Between the last cycle and this one the thread has run, and nothing of it was reported: what was
/// due there is partial, not missed.
void ThreadCycles::tell_unseen_cycles() {
  if (!grid_->is_exact || totals_.last_due_ns == 0) return;
  const std::int64_t now_due_ns = cycle_->record.due_ns;
  for (std::int64_t due_ns = totals_.last_due_ns + grid_->period_ns;
       due_ns + grid_->period_ns / 2 < now_due_ns; due_ns += grid_->period_ns) {
    ++totals_.partial;
    totals_.last_due_ns = due_ns;
    if (sink_) sink_({.due_ns = due_ns, .flags = partial_cycle});
  }
}

void ThreadCycles::finish_cycle(std::int64_t done_ns) {
  if (!cycle_) return;
  CycleRecord& record = cycle_->record;
  if (cycle_->running_ns == 0) record.flags |= partial_cycle;
  if (ends_by_mark_ && !cycle_->has_ended) {
    record.flags |= partial_cycle;
    ++totals_.unended;
  }
  if (totals_.last_due_ns != 0 && grid_->is_exact) {
    const std::int64_t periods =
        (record.due_ns - totals_.last_due_ns + grid_->period_ns / 2) / grid_->period_ns;
    totals_.missed += static_cast<std::uint64_t>(std::max<std::int64_t>(periods - 1, 0));
  }
  totals_.last_due_ns = record.due_ns;
  grid_->anchor_ns = record.due_ns;
  if (totals_.first_due_ns == 0) totals_.first_due_ns = record.due_ns;
  if ((record.flags & partial_cycle) != 0) {
    ++totals_.partial;
    record = {.due_ns = record.due_ns, .flags = record.flags};
  } else {
    record.latency_ns = cycle_->running_ns - record.due_ns;
    record.response_ns = done_ns - record.due_ns;
    totals_.inferred += (record.flags & due_inferred) != 0 ? 1 : 0;
    totals_.preemptions += record.preemptions;
    totals_.blocks += record.blocks;
    totals_.faults += record.faults;
    totals_.migrations += record.migrations;
    totals_.largest_ns = std::max(totals_.largest_ns, record.latency_ns);
    totals_.largest_response_ns = std::max(totals_.largest_response_ns, record.response_ns);
    totals_.recent_ns = std::max(totals_.recent_ns, record.latency_ns);
    usual_run_.add(record.run_ns);
    usual_response_.add(record.response_ns);
    ++ran_on_[cpu_];
    keep_if_worst();
    ++totals_.n;
  }
  if (sink_) sink_(record);
  cycle_.reset();
}

void ThreadCycles::keep_if_worst() {
  if (worst_ == 0) return;
  const auto keep = [this](std::vector<Story>& kept, auto value_of) {
    const auto is_less = [&](const Story& one, const Story& other) {
      return value_of(one.record) < value_of(other.record);
    };
    if (kept.size() == worst_) {
      const auto least = std::ranges::min_element(kept, is_less);
      if (value_of(cycle_->record) <= value_of(least->record)) return;
      kept.erase(least);
    }
    Story story = cycle_->story;
    story.record = cycle_->record;
    story.number = totals_.n;
    kept.push_back(std::move(story));
  };
  keep(latest_, [](const CycleRecord& record) { return record.latency_ns; });
  keep(longest_, [](const CycleRecord& record) { return record.response_ns; });
}

std::vector<const Story*> ThreadCycles::worst() const {
  std::vector<const Story*> found;
  found.reserve(latest_.size() + longest_.size());
  for (const Story& story : latest_) found.push_back(&story);
  for (const Story& story : longest_) {
    const auto is_same = [&](const Story* other) { return other->number == story.number; };
    if (std::ranges::none_of(found, is_same)) found.push_back(&story);
  }
  return found;
}

void ThreadCycles::add_segment(Segment segment) {
  Story& story = cycle_->story;
  if (segment.length_ns <= 0) return;
  if (story.segments.size() == most_segments) {
    story.is_cut = true;
    if (story.segments.back().what == segment.what) {
      story.segments.back().length_ns += segment.length_ns;
    }
    return;
  }
  story.segments.push_back(std::move(segment));
}

void ThreadCycles::note_missing() {
  if (cycle_) cycle_->record.flags |= partial_cycle;
}

/// The thread must have been woken before `t_ns`, which nobody told: if its next cycle was due,
/// that one is partial, and the one before is as it is; else the present one is.
void ThreadCycles::note_unseen_waking(std::int64_t t_ns) {
  const bool is_next = (cycle_ || ends_by_mark_) && grid_ && grid_->is_exact && !goes_by_marks() &&
                       state_ == State::asleep && t_ns - last_due_ns() >= grid_->period_ns;
  if (!is_next) {
    note_missing();
    return;
  }
  const std::int64_t periods = (t_ns - last_due_ns()) / grid_->period_ns;
  const std::int64_t due_ns = last_due_ns() + periods * grid_->period_ns;
  finish_cycle(since_ns_);
  cycle_ = std::make_unique<Cycle>();
  cycle_->record.due_ns = due_ns;
  cycle_->record.flags = partial_cycle;
}

void ThreadCycles::record_into(Sink sink) {
  sink_ = std::move(sink);
  totals_ = {};
  ran_on_.clear();
  latest_.clear();
  longest_.clear();
}

void ThreadCycles::set_grid(Grid grid, std::int64_t first_ns) {
  const std::int64_t ahead_ns = std::max<std::int64_t>(grid.anchor_ns - first_ns, 0);
  grid.anchor_ns -= (ahead_ns / grid.period_ns + 2) * grid.period_ns;
  grid_ = std::make_unique<Grid>(grid);
}

void ThreadCycles::refine_period(std::int64_t period_ns) {
  constexpr std::int64_t a_percent = 100;
  if (grid_ && std::abs(grid_->period_ns - period_ns) * a_percent < grid_->period_ns) {
    grid_->period_ns = period_ns;
  }
}

void ThreadCycles::lost() {
  note_missing();
  if (earlier_) earlier_->record.flags |= partial_cycle;
  pending_.reset();
  state_ = State::unknown;
}

void ThreadCycles::close() {
  const bool is_done = state_ == State::asleep && !pending_ && !ends_by_mark_ && !goes_by_marks();
  if (is_done) finish_cycle(since_ns_);
}

void ThreadCycles::learn(const Wake& wake) {
  if (grid_) {
    // A program may change its period; a grid that fits no more is learned anew.
    strays_ = begins_cycle(*grid_, wake.kind, wake.due_ns, last_due_ns()) ? 0 : strays_ + 1;
    if (strays_ < strays_to_doubt || sink_) return;
    grid_.reset();
    cycle_.reset();
    learner_.clear();
    strays_ = 0;
  }
  learner_.add(wake.kind, wake.due_ns, wake.t_ns);
  constexpr std::size_t seldom = 4;
  if (learner_.wakes() % seldom != 0) return;
  if (const auto learned = learner_.learned()) grid_ = std::make_unique<Grid>(*learned);
}

void CycleBuilder::set_name(std::int32_t tid, const std::string& name) { names_[tid] = name; }

ThreadCycles& CycleBuilder::watch(std::int32_t tid, bool is_deadline) {
  auto& thread = threads_[tid];
  if (!thread) thread = std::make_unique<ThreadCycles>(tid, is_deadline, worst_);
  return *thread;
}

void CycleBuilder::event(const Event& event) {
  const auto found = threads_.find(event.tid);
  ThreadCycles* const own = found == threads_.end() ? nullptr : found->second.get();
  if (event.kind == EventKind::in || event.kind == EventKind::out ||
      event.kind == EventKind::foreign) {
    switched(event, own);
  }
  if (event.kind == EventKind::frequency) clocked(event);
  if (event.kind == EventKind::fork) {
    for (const auto& [tid, thread] : threads_) thread->forked(event.tid, names_[event.tid]);
  }
  if (own != nullptr) own->event(event, bases_);
  if (own != nullptr && event.kind == EventKind::in) {
    const auto known = frequencies_.find(event.cpu);
    if (known != frequencies_.end()) own->goes_at(known->second.khz, known->second.highest_khz);
  }
  if (event.kind == EventKind::out) {
    if (names_.size() == most_names) names_.clear();
    names_[event.other] = event.name();
  }
}

/// Tells the threads that are ready on a CPU who runs there now.
void CycleBuilder::switched(const Event& event, const ThreadCycles* own) {
  for (const auto& [tid, thread] : threads_) {
    if (tid == event.tid || !thread->is_ready_on(event.cpu)) continue;
    if (event.kind == EventKind::out) {
      const int priority = own == nullptr ? -2 : own->own_priority();
      thread->switched(event, event.tid, names_[event.tid], priority);
    } else {
      thread->switched(event, event.other, event.name(), static_cast<std::int32_t>(event.value));
    }
  }
}

void CycleBuilder::clocked(const Event& event) {
  Frequency& known = frequencies_[event.cpu];
  known = {.khz = event.value, .highest_khz = std::max(known.highest_khz, event.value)};
  for (const auto& [tid, thread] : threads_) {
    if (thread->is_running_on(event.cpu)) thread->goes_at(known.khz, known.highest_khz);
  }
}

void CycleBuilder::lost() {
  for (const auto& [tid, thread] : threads_) thread->lost();
}

}  // namespace latenz::attach
