// SPDX-License-Identifier: Apache-2.0
// Cycles whose begin or end the user has named: a mark in the program, a function, a static probe.
#include <memory>
#include <optional>
#include <utility>

#include "cycle_builder.hpp"

namespace latenz::attach {

void ThreadCycles::marked(const Event& event) {
  if (state_ == State::running) {
    run_until(event.t_ns, event.b, event.cpu);
  } else if (state_ == State::unknown) {
    if (cycle_) note_missing();
  } else {
    note_unseen_waking(event.t_ns);
  }
  const std::int64_t ran_since_ns = state_ == State::running ? since_ns_ : event.t_ns;
  state_ = State::running;
  since_ns_ = event.t_ns;
  stolen_in_ = event.b;
  cpu_ = event.cpu;
  if (event.value == begin_mark) begin_by_mark(event, ran_since_ns);
  if (event.value == end_mark) end_by_mark(event);
}

/// The wake-up that the cycle which a mark begins was due with, if there was one.
ThreadCycles::DueWithMark ThreadCycles::due_with_mark() {
  DueWithMark due{.wake = std::exchange(before_mark_, std::nullopt), .pending = nullptr};
  const bool is_awaited = !goes_by_marks() || !cycle_ || cycle_->is_begun;
  if (!is_awaited || !pending_) return due;
  const Wake late = wake_of(pending_->event, pending_->event.t_ns);
  if (due.wake && !is_due(late)) return due;
  due.wake = late;
  if (goes_by_marks()) due.pending = std::move(pending_);
  return due;
}

/// Nothing came since that the next cycle could be due with, or it came while this one ran.
void ThreadCycles::end_at_next_mark(const Event& event, const DueWithMark& due) {
  std::unique_ptr<Cycle> next;
  std::int64_t ended_ns = event.t_ns;
  if (due.wake && due.pending && due.pending->before) {
    next = next_after(*due.pending, *due.wake);
    if (next) {
      next->is_due = is_due(*due.wake);
      cycle_ = std::make_unique<Cycle>(*due.pending->before);
      ended_ns = due.wake->t_ns;
    }
  }
  finish_cycle(ended_ns);
  cycle_ = std::move(next);
}

/// What it begins was due with the wake-up before it; without one when it was marked.
void ThreadCycles::begin_by_mark(const Event& event, std::int64_t ran_since_ns) {
  const DueWithMark due = due_with_mark();
  const Wake marked_now{
      .t_ns = event.t_ns, .due_ns = event.t_ns, .kind = {.by = WakeKind::By::mark}};
  learn(marked_now);
  if (!goes_by_marks()) {
    // Its wake-ups looked regular before the first mark; what is recorded already stays.
    if (!sink_) grid_.reset();
    if (!sink_) cycle_.reset();
    return;
  }
  if (cycle_ && cycle_->is_begun) end_at_next_mark(event, due);
  finish_earlier();
  if (!cycle_) {
    const Wake begun = due.wake.value_or(marked_now);
    begin_cycle(begun, due.pending ? due.pending->event : event);
    cycle_->record.flags |= without_sleep;
    cycle_->record.run_ns = event.t_ns - begun.t_ns;
    cycle_->is_due = due.wake && is_due(*due.wake);
    if (due.wake && due.wake->t_ns < ran_since_ns) note_missing();
  }
  if (grid_ && grid_->due_by && !cycle_->is_due) note_missing();  // the wake-up was not told
  cycle_->is_begun = true;
  cycle_->running_ns = event.t_ns;
}

void ThreadCycles::end_by_mark(const Event& event) {
  ends_by_mark_ = true;
  before_mark_.reset();
  if (!cycle_ || cycle_->running_ns == 0 || (goes_by_marks() && !cycle_->is_begun)) return;
  const std::unique_ptr<Pending> pending = std::move(pending_);
  std::unique_ptr<Cycle> next;
  if (pending) {
    const Wake wake = wake_of(pending->event, pending->event.t_ns);
    const bool is_next = goes_by_marks()
                             ? is_due(wake)
                             : begins_cycle(*grid_, wake.kind, wake.due_ns, last_due_ns());
    learn(wake);
    if (is_next && goes_by_marks()) before_mark_ = wake;
    if (is_next) next = next_after(*pending, wake);
    if (next) next->is_due = true;
  }
  cycle_->has_ended = true;
  finish_cycle(event.t_ns);
  cycle_ = std::move(next);
}

/// Whether cycles that marks begin are due with such a wake-up: if the thread has a regular one,
/// with that; else with the last one of a timer.
bool ThreadCycles::is_due(const Wake& wake) const {
  if (grid_ && grid_->due_by) return wake.kind == *grid_->due_by;
  return wake.kind.by != WakeKind::By::event;
}

/// Until a mark tells, each wake-up may be the one that the next cycle is due with.
void ThreadCycles::wake_between_marks(const Wake& wake, const Event& event) {
  if (cycle_ && cycle_->is_begun && ends_by_mark_) {
    block(event, wake.t_ns);
    return;
  }
  if (cycle_ && cycle_->is_begun) {
    if (state_ == State::unknown) note_missing();
    earlier_ = std::move(cycle_);
    earlier_done_ns_ = since_ns_;
  } else if (cycle_ && cycle_->is_due && !is_due(wake)) {
    block(event, wake.t_ns);
    return;
  } else if (cycle_ && earlier_) {
    join_to_earlier();
  }
  if (earlier_) after_earlier_ = blocked_segment(event, wake.t_ns);
  before_mark_ = wake;
  begin_cycle(wake, event);
  cycle_->is_due = is_due(wake);
}

/// The present wake-up's time belongs to the cycle before: none was marked for it.
void ThreadCycles::join_to_earlier() {
  const std::unique_ptr<Cycle> part = std::move(cycle_);
  const CycleRecord& more = part->record;
  CycleRecord& record = earlier_->record;
  const std::int64_t woke_ns = more.due_ns + more.timer_late_ns;
  record.blocked_ns += woke_ns - earlier_done_ns_ + more.blocked_ns;
  record.run_ns += more.run_ns;
  record.stolen_ns += more.stolen_ns;
  record.flags |= more.flags & partial_cycle;
  record.preemptions = static_cast<std::uint16_t>(record.preemptions + more.preemptions);
  record.blocks = static_cast<std::uint16_t>(record.blocks + more.blocks + 1);
  record.faults = static_cast<std::uint16_t>(record.faults + more.faults);
  record.migrations = static_cast<std::uint8_t>(record.migrations + more.migrations);
  earlier_->ready_ns += part->ready_ns;
  if (state_ == State::unknown) record.flags |= partial_cycle;
  earlier_done_ns_ = since_ns_;
  cycle_ = std::move(earlier_);
  add_segment(std::move(after_earlier_));
  for (Segment& each : part->story.segments) {
    if (each.what != Segment::What::late) add_segment(std::move(each));
  }
  earlier_ = std::move(cycle_);
}

void ThreadCycles::finish_earlier() {
  if (!earlier_) return;
  std::unique_ptr<Cycle> next = std::exchange(cycle_, std::move(earlier_));
  finish_cycle(earlier_done_ns_);
  cycle_ = std::move(next);
}

}  // namespace latenz::attach
