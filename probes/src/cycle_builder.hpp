// SPDX-License-Identifier: Apache-2.0
// Builds the cycles of periodic threads out of what the kernel tells of them.
//
// A cycle begins when it is due and ends when the thread falls asleep for the last time before the
// next one's wake-up. All of its time has a name: response = timer_late + ready + run + blocked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attach_event.hpp"
#include "cycle_learner.hpp"

namespace latenz::attach {

/// Bits of `CycleRecord::flags`.
constexpr std::uint8_t partial_cycle = 1;  ///< events are missing: only `due_ns` means something
constexpr std::uint8_t due_inferred = 2;   ///< from when the timer was looked at
constexpr std::uint8_t without_sleep = 4;  ///< was due before the thread slept: the last one ran on

/// One cycle as it is recorded, 64 bytes.
struct CycleRecord {
  std::int64_t due_ns = 0;
  std::int64_t latency_ns = 0;     ///< due until it runs
  std::int64_t response_ns = 0;    ///< due until done
  std::int64_t run_ns = 0;         ///< on a CPU, interrupts included
  std::int64_t blocked_ns = 0;     ///< asleep within the cycle
  std::int64_t timer_late_ns = 0;  ///< due until woken
  std::int64_t stolen_ns = 0;      ///< by interrupts and softirqs, part of `run_ns`
  std::uint16_t preemptions = 0;
  std::uint16_t blocks = 0;
  std::uint16_t faults = 0;
  std::uint8_t migrations = 0;
  std::uint8_t flags = 0;
};
static_assert(sizeof(CycleRecord) == 64);

/// A stretch of a cycle's time.
struct Segment {
  enum class What : std::uint8_t { late, ready, run, blocked };
  What what = What::run;
  std::int64_t t_ns = 0;
  std::int64_t length_ns = 0;
  int cpu = -1;
  /// `ready`: who had the CPU; `blocked`: who woke it (the interrupted one if `flags` say so).
  std::int32_t tid = 0;
  std::string comm;
  int priority = -2;            ///< of who had the CPU, in the kernel's numbers; -2: not known
  std::uint8_t flags = 0;       ///< of the waking
  std::int64_t source = 0;      ///< interrupt, softirq or timer function that woke it
  std::int64_t call = no_call;  ///< system call that it is blocked in
  std::int64_t argument_0 = 0;
  std::int64_t argument_1 = 0;
  std::int64_t stolen_ns = 0;
};

/// A cycle with all that happened in it.
struct Story {
  std::uint64_t number = 0;  ///< of the cycle in its recording, from 0
  CycleRecord record;
  int own_priority = -2;
  std::vector<Segment> segments;
  std::vector<std::int64_t> fault_addresses;  ///< the first ones
  std::int64_t reclaim_ns = 0;
  std::uint32_t forks = 0;   ///< by any thread that is watched
  std::uint32_t copies = 0;  ///< faults that copied a page which others have, too
  std::int32_t forker = 0;   ///< who made a process last; 0: nobody since the start
  std::string forker_name;
  std::int64_t clock_step_ns = 0;  ///< how far its timer's clock was set before it; 0: it was not
  std::uint32_t lowest_khz = 0;    ///< of the CPUs that it ran on; 0: not known
  std::uint32_t highest_khz = 0;   ///< that these CPUs were seen at
  bool is_cut = false;             ///< there was more than is kept
};

/// How far other clocks are ahead of CLOCK_MONOTONIC; timers count by any of them.
struct ClockBases {
  std::int64_t real_ns = 0;
  std::int64_t boot_ns = 0;
  std::int64_t tai_ns = 0;
};
enum class ClockBase : std::uint8_t { monotonic, realtime, boottime, tai };

/// Counts values in cells of 1/16 of their power of two: medians in bounded memory.
class RoughMedian {
 public:
  void add(std::int64_t value);
  [[nodiscard]] std::int64_t value() const;

 private:
  std::vector<std::uint32_t> cells_;
  std::uint64_t n_ = 0;
};

/// The cycles of one thread.
class ThreadCycles {
 public:
  using Sink = std::function<void(const CycleRecord&)>;

  ThreadCycles(std::int32_t tid, bool is_deadline, std::size_t worst)
      : tid_(tid), is_deadline_(is_deadline), worst_(worst) {}

  void event(const Event& event, const ClockBases& bases);

  /// Threads change on a CPU: until now `tid` ran there.
  void switched(const Event& event, std::int32_t tid, std::string_view comm, int priority);

  /// A thread that is watched has made a process or thread.
  void forked(std::int32_t by, const std::string& name);
  /// Its CPU goes at this frequency, and was seen at another one.
  void goes_at(std::uint32_t khz, std::uint32_t highest_khz);
  [[nodiscard]] bool is_running_on(int cpu) const {
    return state_ == State::running && cpu_ == cpu;
  }

  /// Events are missing from here on.
  void lost();

  /// Ends the cycle that is going on if the thread sleeps; what is not over is left out.
  void close();

  /// What was learned before, of the same thread; its cycles count from `first_ns` on.
  void set_grid(Grid grid, std::int64_t first_ns);

  /// Takes a period that is known better; nothing if it is not the one that was learned.
  void refine_period(std::int64_t period_ns);

  /// Hands on the cycles from now on, and counts them anew.
  void record_into(Sink sink);

  [[nodiscard]] std::int32_t tid() const { return tid_; }
  [[nodiscard]] bool is_ready_on(int cpu) const {
    return state_ == State::ready && ready_cpu_ == cpu;
  }
  /// In the kernel's numbers; -2: not known.
  [[nodiscard]] int own_priority() const { return own_priority_; }
  [[nodiscard]] bool is_gone() const { return gone_; }
  /// Null: nothing regular was learned (yet).
  [[nodiscard]] const Grid* grid() const { return grid_.get(); }
  [[nodiscard]] ClockBase clock() const { return clock_; }
  [[nodiscard]] std::size_t wakes() const { return learner_.wakes(); }
  [[nodiscard]] std::int32_t waker() const { return waker_; }
  [[nodiscard]] const std::string& waker_name() const { return waker_name_; }

  struct Totals {
    std::uint64_t n = 0;  ///< whole cycles
    std::uint64_t partial = 0;
    std::uint64_t missed = 0;   ///< due times without a run
    std::uint64_t unended = 0;  ///< of the partial ones, those without the mark of their end
    std::uint64_t inferred = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t blocks = 0;
    std::uint64_t faults = 0;
    std::uint64_t migrations = 0;
    std::int64_t largest_ns = -1;
    std::int64_t largest_response_ns = -1;
    std::int64_t recent_ns = -1;  ///< largest latency since `forget_recent`
    std::int64_t first_due_ns = 0;
    std::int64_t last_due_ns = 0;
  };
  [[nodiscard]] const Totals& totals() const { return totals_; }
  void forget_recent() { totals_.recent_ns = -1; }
  [[nodiscard]] std::int64_t usual_run_ns() const { return usual_run_.value(); }
  [[nodiscard]] std::int64_t usual_response_ns() const { return usual_response_.value(); }
  /// The worst cycles by latency and by response, no order.
  [[nodiscard]] std::vector<const Story*> worst() const;
  /// Samples by CPU that the thread was first seen running on.
  [[nodiscard]] const std::map<int, std::uint64_t>& ran_on() const { return ran_on_; }
  /// How often it slept in each system call, with the first two arguments of the last time.
  struct Sleeps {
    std::uint64_t n = 0;
    std::uint64_t within_cycles = 0;
    std::int64_t argument_0 = 0;
    std::int64_t argument_1 = 0;
  };
  [[nodiscard]] const std::map<std::int64_t, Sleeps>& sleeps() const { return sleeps_; }

 private:
  enum class State : std::uint8_t { unknown, running, ready, asleep };
  struct Cycle {
    CycleRecord record;
    std::int64_t running_ns = 0;  ///< 0: it has not run yet
    std::int64_t ready_ns = 0;
    bool is_begun = false;   ///< where marks begin cycles: it has been marked
    bool has_ended = false;  ///< where marks end cycles: it has been marked
    bool is_due = false;     ///< where marks begin cycles: what woke it is what they are due with
    Story story;
  };
  struct Pending {  ///< a waking before the thread was seen to fall asleep
    Event event;
    std::unique_ptr<Cycle> before;
  };
  struct Wake {
    std::int64_t t_ns;
    std::int64_t due_ns;
    WakeKind kind;
  };

  void out(const Event& event);
  void in(const Event& event);
  void waking(const Event& event);
  void replenished(const Event& event);
  void wake(const Event& event, std::int64_t t_ns);
  void settle_pending();
  [[nodiscard]] std::unique_ptr<Cycle> next_after(const Pending& pending, const Wake& wake);
  void block(const Event& event, std::int64_t t_ns);
  [[nodiscard]] Segment blocked_segment(const Event& event, std::int64_t t_ns) const;
  [[nodiscard]] bool goes_by_marks() const { return grid_ && grid_->kind.by == WakeKind::By::mark; }
  void run_until(std::int64_t t_ns, std::int64_t stolen_ns, int on_cpu);
  void marked(const Event& event);
  /// Of a cycle that a mark begins.
  struct DueWithMark {
    std::optional<Wake> wake;
    std::unique_ptr<Pending> pending;
  };
  DueWithMark due_with_mark();
  void end_at_next_mark(const Event& event, const DueWithMark& due);
  void begin_by_mark(const Event& event, std::int64_t ran_since_ns);
  void end_by_mark(const Event& event);
  void wake_between_marks(const Wake& wake, const Event& event);
  [[nodiscard]] bool is_due(const Wake& wake) const;
  void join_to_earlier();
  void finish_earlier();
  [[nodiscard]] Wake wake_of(const Event& event, std::int64_t t_ns);
  [[nodiscard]] std::int64_t on_monotonic(std::int64_t due_ns, std::int64_t t_ns);
  [[nodiscard]] std::int64_t due_of_timer(const Event& event, std::int64_t t_ns);
  void begin_cycle(const Wake& wake, const Event& event);
  void finish_cycle(std::int64_t done_ns);
  void note_missing();
  void note_unseen_waking(std::int64_t t_ns);
  void tell_unseen_cycles();
  void add_segment(Segment segment);
  void keep_if_worst();
  void learn(const Wake& wake);
  [[nodiscard]] std::int64_t last_due_ns() const;

  std::int32_t tid_;
  bool is_deadline_;
  std::size_t worst_;
  Sink sink_;
  CycleLearner learner_;
  std::unique_ptr<Grid> grid_;
  ClockBases bases_;
  ClockBase clock_ = ClockBase::monotonic;
  State state_ = State::unknown;
  bool gone_ = false;
  bool yielded_ = false;
  std::int64_t since_ns_ = 0;  ///< of the state
  std::int64_t mark_ns_ = 0;   ///< until when it is known who had the CPU instead
  std::int64_t stolen_in_ = 0;
  int cpu_ = -1;
  int ready_cpu_ = -1;
  std::optional<std::int64_t> mark_stolen_;     ///< of the CPU that it is ready on, at `mark_ns_`
  std::optional<std::int64_t> clock_ahead_ns_;  ///< of its timers' clock, if that is not ours
  std::int64_t clock_step_ns_ = 0;              ///< since the wake-up before
  std::int32_t forker_ = 0;
  std::string forker_name_;
  std::uint8_t calls_ = 0;  ///< the lowest byte of their number when it left its CPU
  std::int64_t call_ = unknown_call;
  std::int64_t argument_0_ = 0;
  std::int64_t argument_1_ = 0;
  std::int64_t reclaim_began_ns_ = 0;
  std::int32_t waker_ = 0;
  std::string waker_name_;
  int own_priority_ = -2;
  std::unique_ptr<Cycle> cycle_;  ///< null: none is going on
  std::unique_ptr<Pending> pending_;
  bool ends_by_mark_ = false;
  std::optional<Wake> before_mark_;  ///< what the next mark begins a cycle for
  /// Where nothing marks the end: the cycle before, which is over if the next wake-up's is marked.
  std::unique_ptr<Cycle> earlier_;
  std::int64_t earlier_done_ns_ = 0;
  Segment after_earlier_;
  std::uint64_t strays_ = 0;  ///< wake-ups in a row that begin no cycle
  Totals totals_;
  RoughMedian usual_run_;
  RoughMedian usual_response_;
  std::vector<Story> latest_;   ///< worst by latency
  std::vector<Story> longest_;  ///< worst by response
  std::map<int, std::uint64_t> ran_on_;
  std::map<std::int64_t, Sleeps> sleeps_;
};

/// The cycles of all watched threads.
class CycleBuilder {
 public:
  /// `worst`: how many cycles of each thread are kept with all that happened in them.
  explicit CycleBuilder(std::size_t worst) : worst_(worst) {}

  ThreadCycles& watch(std::int32_t tid, bool is_deadline);
  /// What a thread is called, as far as no event has told it.
  void set_name(std::int32_t tid, const std::string& name);
  void event(const Event& event);
  void forget(std::int32_t tid) { threads_.erase(tid); }
  void lost();
  void set_bases(const ClockBases& bases) { bases_ = bases; }
  [[nodiscard]] const std::map<std::int32_t, std::unique_ptr<ThreadCycles>>& threads() const {
    return threads_;
  }

 private:
  /// `own`: of the thread that the event is about, if it is watched.
  void switched(const Event& event, const ThreadCycles* own);
  void clocked(const Event& event);

  std::size_t worst_;
  ClockBases bases_;
  std::map<std::int32_t, std::unique_ptr<ThreadCycles>> threads_;
  std::map<std::int32_t, std::string> names_;
  struct Frequency {
    std::uint32_t khz = 0;
    std::uint32_t highest_khz = 0;
  };
  std::map<int, Frequency> frequencies_;
};

}  // namespace latenz::attach
