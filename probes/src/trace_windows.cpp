// SPDX-License-Identifier: Apache-2.0
#include "trace_windows.hpp"

#include <utility>

namespace latenz::trace {
namespace {

constexpr std::int64_t largest_lateness = 10'000'000;  // of a timer, where both clocks are the same

bool is_nmi(char context) { return context == 'z' || context == 'Z'; }
bool is_hard(char context) { return context == 'h' || context == 'H'; }

}  // namespace

void CpuWindows::feed(const Step& step) {
  if (held_ && step.t_ns < held_->t_ns) {
    forget("events with a time before that of the event before them", 1);
  } else if (held_) {
    const Step held = *held_;
    run(held, std::max(step.t_ns, held.t_ns), &step);
  }
  held_ = step;
}

void CpuWindows::finish() {
  const std::int64_t last = held_ ? held_->t_ns : 0;
  if (held_) run(*held_, last, nullptr);
  held_.reset();
  account_.finish(last);
}

void CpuWindows::lost(std::uint64_t count) {
  forget("events that the trace's buffer could not take", count);
}

/// Nothing that was open can be closed by what comes after a gap.
void CpuWindows::forget(const char* why, std::uint64_t count) {
  account_.lost(why, std::max<std::uint64_t>(count, 1));
  held_.reset();
  before_ = -1;
  is_known_ = is_idle_ = is_asleep_ = in_user_ = was_free_ = in_timer_ = false;
  entry_.reset();
  frame_.reset();
  window_.reset();
  scheduling_.reset();
  called_.reset();
  pending_.reset();
  needed_at_ = -1;
  waits_at_choice_ = false;
}

void CpuWindows::needed(std::int64_t t_ns) {
  if (pending_ || (held_ && held_->what == What::waking && held_->pid == settings_.measured)) {
    needed_at_ = t_ns;
  }
}

void CpuWindows::run(const Step& told, std::int64_t after, const Step* next) {
  Step step = told;
  step.needed = step.needed || (needed_at_ >= 0 && needed_at_ <= step.t_ns);
  Gaps gaps{};
  gaps.was_user = std::exchange(in_user_, false);
  gaps.was_asleep = std::exchange(is_asleep_, false);
  gaps.before = before_ < 0 ? step.t_ns : before_;
  before_ = step.t_ns;
  const bool is_cut = gaps.was_user || gaps.was_asleep;
  gaps.begin = is_cut ? std::max(gaps.before, step.t_ns - edge()) : gaps.before;
  gaps.exit = std::min(after, step.t_ns + edge()) + settings_.grain;
  const bool may_leave = step.what == What::irqs_on && next != nullptr &&
                         next->what == What::irqs_off && next->from_hardware;
  gaps.leaves = may_leave && step.to_user;
  const bool ends = gaps.leaves || (may_leave && step.may_leave && settings_.preemptible);
  gaps.end = ends ? gaps.exit : after + settings_.grain;
  if (gaps.was_asleep) {
    woke_ = mark(step.t_ns, step.t_ns, step.place);
    is_first_after_sleep_ = true;
  }
  if (step.what == What::nmi || step.what == What::stolen || is_nmi(step.context)) {
    stolen_ += step.what == What::other ? 0 : 1U;
    in_user_ = gaps.was_user;
    return;
  }
  if (step.what == What::noise) {
    account_.execution(step.t_ns - step.value, step.value, step.source);
    return;
  }
  has_masking_ = has_masking_ || step.what == What::irqs_off || step.what == What::irqs_on;
  if (!frame_ && is_interrupt(step)) begin_frame(step, gaps);
  if (frame_ && step.what == What::switched) {  // it goes on as a thread
    end_frame(frame_->last_ns, step.t_ns + settings_.grain);
  }
  if (frame_) {
    in_interrupt(step, gaps);
  } else {
    in_thread(step, gaps);
  }
  if (ends && !frame_) in_user_ = true;
}

// Interrupts

bool CpuWindows::is_interrupt(const Step& step) const {
  return is_hard(step.context) || step.what == What::interrupt_begin ||
         (step.what == What::softirq_begin && !has_masking_);
}

CpuWindows::Entry CpuWindows::entry_at(const Step& step, const Gaps& gaps) const {
  return {.outer = std::max(gaps.before, step.t_ns - edge()),
          .t_ns = step.t_ns,
          .before = gaps.before,
          .was_free = settings_.preemptible ? !count_off_ : gaps.was_user,
          .from_sleep = is_first_after_sleep_,
          .is_direct = gaps.was_asleep,
          .context = step.context};
}

void CpuWindows::begin_frame(const Step& step, const Gaps& gaps) {
  const bool is_masked = irqs_off_ && entry_;
  frame_ = Frame{.entry = is_masked ? *entry_ : entry_at(step, gaps),
                 .last_ns = step.t_ns,
                 .is_masked = is_masked};
  is_first_after_sleep_ = false;
  ++interrupts_;
  if (!window_) return;
  if (window_->is_tentative) {
    window_.reset();
  } else if (settings_.preemptible && frame_->entry.was_free && !is_idle_) {
    // it came where its return is a point
    close(frame_->entry.t_ns, frame_->entry.t_ns + settings_.grain, step.place);
  }
}

void CpuWindows::end_frame(std::int64_t t_ns, std::int64_t end) {
  if (!frame_) return;
  const Entry& entry = frame_->entry;
  taken_ += std::max<std::int64_t>(t_ns - entry.t_ns - settings_.grain, 0);
  account_.execution(entry.outer, end - entry.outer, frame_->source);
  was_free_ = entry.was_free;
  entry_.reset();
  frame_.reset();
}

void CpuWindows::in_interrupt(const Step& step, const Gaps& gaps) {
  if (!frame_) return;
  Frame& frame = *frame_;
  const bool is_thread_softirq = frame.entry.context == 's';
  const bool is_told = step.context != 0;
  if (step.what == What::interrupt_begin) {
    ++frame.interrupts;
    if (frame.source == 0) frame.source = step.source;
  } else if (step.what == What::interrupt_end) {
    --frame.interrupts;
  } else if (step.what == What::softirq_begin) {
    ++frame.softirqs;
  } else if (step.what == What::softirq_end) {
    --frame.softirqs;
  }
  const bool is_within = is_told
                             ? is_hard(step.context) || (step.context == 's' && !is_thread_softirq)
                             : frame.interrupts > 0 || frame.softirqs > 0;
  if (is_within || !is_told) frame.last_ns = step.t_ns;
  timed(step);
  switch (step.what) {
    case What::irqs_off:
      irqs_off_ = true;
      break;
    case What::irqs_on:
      irqs_off_ = false;
      if (!is_within) interrupt_returned(step, gaps);
      break;
    case What::preempt_off:
      count_off_ = true;
      break;
    case What::preempt_on:
      count_off_ = false;
      break;
    case What::interrupt_end:
    case What::softirq_end:
      if (!frame.is_masked && frame.interrupts <= 0 && frame.softirqs <= 0) {
        end_frame(step.t_ns, step.t_ns + settings_.grain);
      }
      break;
    default:
      break;
  }
}

void CpuWindows::interrupt_returned(const Step& step, const Gaps& gaps) {
  if (!frame_) return;
  const bool was_free = frame_->entry.was_free;
  const bool preempts = settings_.preemptible && count_off_ && was_free;
  const Mark last = mark(frame_->last_ns, frame_->last_ns, step.place);
  const bool is_ignored = was_free && !preempts && step.needed && !step.schedules;
  if (settings_.preemptible && is_ignored && !is_idle_) ++ignored_points_;
  end_frame(step.t_ns, preempts ? step.t_ns + settings_.grain : gaps.exit);
  if (gaps.leaves) {
    ++user_entries_;
    in_user_ = true;
    close(step.t_ns, gaps.exit, step.place);
  }
  update({last.outer, last.t_ns, taken_, last.place}, step.t_ns, gaps.end, step.place, false);
}

/// Timers and wake-ups, whoever's work it is.
void CpuWindows::timed(const Step& step) {
  if (step.what == What::timer_expires) {
    in_timer_ = true;
    timer_due_ = step.due_ns;
    sample(step);
  } else if (step.what == What::timer_done) {
    in_timer_ = false;
  } else if (step.what == What::waking) {
    wake(step);
  }
}

/// The first timer of an interrupt tells how long the way in took.
void CpuWindows::sample(const Step& step) {
  if (!frame_ || std::exchange(frame_->is_sampled, true) || frame_->softirqs > 0 || step.due_ns < 0)
    return;
  const Entry& entry = frame_->entry;
  if (!frame_->is_masked || step.due_ns > entry.t_ns) return;
  if (entry.from_sleep && step.due_ns <= woke_.t_ns) {
    const std::int64_t way = woke_.t_ns - std::max(step.due_ns, slept_at_) + settings_.grain;
    seen_edges_.from_sleep = std::max(seen_edges_.from_sleep, way);
  }
  if (!entry.is_direct) {
    const std::int64_t way = entry.t_ns - std::max(step.due_ns, entry.before) + settings_.grain;
    seen_edges_.entry = std::max(seen_edges_.entry, way);
  }
}

void CpuWindows::wake(const Step& step) {
  if (step.pid != settings_.measured || step.pid < 0 || !is_known_) return;
  if (pending_) {
    account_.missed();
    return;
  }
  const bool is_timer = in_timer_ && timer_due_ >= 0;
  const std::int64_t begin = frame_ ? frame_->entry.outer : step.t_ns;
  pending_ = Pending{is_timer ? timer_due_ : begin};
}

// Threads

void CpuWindows::in_thread(const Step& step, const Gaps& gaps) {
  timed(step);
  const Mark here = mark(gaps.begin, step.t_ns, step.place);
  bool is_point = false;
  switch (step.what) {
    case What::irqs_off:
      watch_needed(step);
      if (irqs_off_ && is_known_) {
        account_.lost("interrupts were masked twice: what unmasked them is missing", 1);
      }
      entry_ = entry_at(step, gaps);
      irqs_off_ = true;
      waits_at_choice_ = step.chooses && pending_;
      masked_ = here;
      break;
    case What::irqs_on:
      irqs_off_ = false;
      entry_.reset();
      // who ran goes on, though the measured thread waits: it is throttled
      if (std::exchange(waits_at_choice_, false) && pending_ &&
          running_priority_ > settings_.priority) {
        account_.passed_over();
      }
      if (!settings_.preemptible) scheduler_done(step.t_ns, gaps.end, step.place);
      if (gaps.leaves) {
        ++user_entries_;
        in_user_ = is_point = true;
      }
      break;
    case What::preempt_off:
      watch_needed(step);
      count_off_ = true;
      if (step.schedules) called_ = here;
      break;
    case What::scheduler_called:
      if (!called_) called_ = here;
      point_needed_ = false;
      return;
    case What::scheduler_idle:
      called_.reset();
      return;
    case What::preempt_on:
      count_off_ = false;
      called_.reset();
      is_point = !irqs_off_ && step.tests;
      if (is_point) point_needed_ = step.needed;
      if (irqs_off_ && step.schedules && window_) {
        window_->owed = false;  // the scheduler's own loop looks
      }
      break;
    case What::switched:
      switched(step, gaps);
      return;
    case What::idle:
      sleeps(step);
      return;
    default:
      return;
  }
  update(here, step.t_ns, gaps.end, step.place, is_point);
}

/// On a kernel that preempts, a point that finds the scheduler needed calls it.
void CpuWindows::watch_needed(const Step& step) {
  if (step.from_hardware) return;  // an interrupt between the event and the look
  const bool is_ignored = point_needed_ && step.needed && !step.schedules;
  point_needed_ = false;
  if (settings_.preemptible && is_ignored && !is_idle_) ++ignored_points_;
}

/// Opens or closes the window of an arrival that would be held up.
void CpuWindows::update(const Mark& begin, std::int64_t t_ns, std::int64_t end, Place place,
                        bool is_point) {
  const bool free = is_free();
  const bool was_free = std::exchange(was_free_, free);
  if (!free && was_free) stretch_ = begin;
  if (is_idle_ || !is_known_) return;
  if (free) scheduler_done(t_ns, end, place);
  if (!free) {
    if (!window_) window_ = Window{begin, Term::blocking, false, was_free && irqs_off_};
    window_->owed = window_->owed || !irqs_off_;
    window_->is_tentative = window_->is_tentative && irqs_off_;
  } else if (window_ && (is_point || !window_->owed)) {
    close(t_ns, end, place);
  }
}

void CpuWindows::close(std::int64_t t_ns, std::int64_t end, Place place) {
  if (!window_) return;
  record(window_->term, window_->begin, t_ns, end, place);
  window_.reset();
}

void CpuWindows::record(Term term, const Mark& begin, std::int64_t t_ns, std::int64_t end,
                        Place place, std::int64_t more) {
  if (!is_known_) return;
  const std::int64_t taken = taken_ - begin.taken;
  account_.window(term, end - begin.outer - taken + more, t_ns - begin.t_ns - taken,
                  {begin.place, place});
}

void CpuWindows::became_known(const Step& step, const Mark& masked) {
  is_known_ = true;
  irqs_off_ = true;
  count_off_ = settings_.preemptible;
  running_ = step.pid;
  running_priority_ = step.priority;
  is_idle_ = step.pid == 0;
  idle_since_ = stretch_ = masked_ = masked;
  has_slept_ = was_free_ = false;
  window_.reset();
  scheduling_.reset();
}

void CpuWindows::switched(const Step& step, const Gaps& gaps) {
  const Mark masked = irqs_off_ ? masked_ : mark(gaps.begin, step.t_ns, step.place);
  point_needed_ = false;
  waits_at_choice_ = false;
  needed_at_ = -1;
  entry_.reset();
  if (!is_known_) {
    became_known(step, masked);
    return;
  }
  account_.schedule();
  kernel_preemptions_ += step.kernel_preempted ? 1U : 0U;
  const bool is_lower = step.pid != settings_.measured && step.priority > settings_.priority;
  const bool waits = pending_ || (step.prev_pid == settings_.measured && step.prev_runs_on);
  if (settings_.measured >= 0 && is_lower && waits) account_.passed_over();
  if (settings_.measured >= 0 && !is_lower && step.pid != settings_.measured && step.pid != 0) {
    account_.rival(step.pid, step.priority, step.name.data());
  }
  if (is_idle_) {
    const Mark& since = has_slept_ ? woke_ : idle_since_;
    record(has_slept_ ? Term::idle_out : Term::idle_direct, since, masked.t_ns,
           masked.t_ns + settings_.grain, masked.place,
           has_slept_ ? std::max<std::int64_t>(settings_.edges.from_sleep, 0) : 0);
  } else {
    close(masked.t_ns, masked.t_ns + settings_.grain, masked.place);
  }
  Mark since = masked;
  if (!is_idle_ && settings_.preemptible && stretch_.outer < since.outer) since = stretch_;
  if (!is_idle_ && called_ && called_->outer < since.outer) since = *called_;
  called_.reset();
  running_ = step.pid;
  running_priority_ = step.priority;
  is_idle_ = step.pid == 0;
  was_free_ = false;
  scheduling_.reset();
  window_.reset();
  if (is_idle_) {
    ++idles_;
    idle_since_ = masked;
    has_slept_ = is_first_after_sleep_ = false;
  } else {
    scheduling_ = since;
    window_ = Window{masked, Term::switching, false, false};
  }
  if (!has_masking_) runs(step.t_ns);  // nothing tells when it can be preempted
}

void CpuWindows::scheduler_done(std::int64_t t_ns, std::int64_t end, Place place) {
  if (!scheduling_) return;
  record(Term::scheduler, *scheduling_, t_ns, end, place);
  scheduling_.reset();
  runs(t_ns);
}

/// The thread that was woken runs.
void CpuWindows::runs(std::int64_t t_ns) {
  if (!pending_ || running_ != settings_.measured) return;
  account_.woken(t_ns, pending_->due_ns, t_ns - pending_->due_ns);
  pending_.reset();
}

void CpuWindows::sleeps(const Step& step) {
  constexpr std::int64_t awake = 0xffffffff;
  if (step.value == awake || step.value < 0 || !is_idle_) return;
  // The way from this event to sleep is not told either: it is taken as long as a way in.
  record(Term::idle_in, has_slept_ ? woke_ : idle_since_, step.t_ns,
         step.t_ns + edge() + settings_.grain, step.place);
  is_asleep_ = has_slept_ = true;
  slept_at_ = step.t_ns;
  ++sleeps_;
}

}  // namespace latenz::trace
