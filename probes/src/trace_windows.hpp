// SPDX-License-Identifier: Apache-2.0
// The windows of kernel_windows.hpp, as far as the tracepoints of a kernel show them.
//
// A tracepoint lies inside of its section: behind the masking, before the unmasking. So a section
// is taken from the event before its first one to the event after its last one, on its CPU. Where
// the CPU slept or was in user mode between two events, that would be too much; there the way in
// from hardware counts, as long as it was seen to be: from when a timer was due, with interrupts
// on, to the first event of its interrupt (`Edges`). So does the way out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace_event.hpp"
#include "window_account.hpp"

namespace latenz::trace {

/// What an event tells of a CPU.
enum class What : std::uint8_t {
  other,
  irqs_off,
  irqs_on,
  preempt_off,
  preempt_on,
  interrupt_begin,
  interrupt_end,
  softirq_begin,
  softirq_end,
  switched,
  waking,
  idle,
  timer_start,
  timer_cancel,
  timer_expires,
  timer_done,
  nmi,
  noise,
  stolen,
  scheduler_called,
  scheduler_idle,  ///< it returned without a switch
};

struct Step {
  std::int64_t t_ns = 0;
  What what = What::other;
  char context = 0;       ///< as ftrace's flags have it; 0: not told
  bool irqs_off = false;  ///< by the flags
  bool needed = false;    ///< the scheduler, by the flags
  bool counted = false;   ///< preemption is off, by the flags
  bool kernel_preempted = false;
  bool prev_runs_on = false;  ///< the thread that gives way can run
  std::int32_t pid = 0;       ///< who is next, or woken
  std::int32_t priority = 0;
  std::int32_t prev_pid = 0;
  std::array<char, 16> name{};
  Place place;
  std::int64_t timer = 0;
  std::int64_t value = 0;    ///< expiry, `now` of the timer's clock, idle state, or duration
  std::int64_t due_ns = -1;  ///< of a timer that expires, by the trace's clock; -1: not known
  std::uint64_t source = 0;
  bool to_user = false;        ///< the function leaves the kernel, if nothing comes between
  bool may_leave = false;      ///< the function does that among other things
  bool from_hardware = false;  ///< the function is one by which the kernel is entered
  bool schedules = false;      ///< the function is one of the scheduler's
  bool chooses = false;        ///< the function is the one that chooses the next thread
  bool tests = true;           ///< the function looks whether the scheduler is needed
};

/// How long it was seen to take from hardware to the first event.
struct Edges {
  std::int64_t entry = -1;       ///< -1: never seen
  std::int64_t from_sleep = -1;  ///< -1: never seen
};

struct CpuSettings {
  bool is_survey = false;  ///< what interrupts took is not asked for
  bool preemptible = false;
  std::int32_t measured = -1;  ///< thread; -1: none
  std::int32_t priority = 0;   ///< of it, as the kernel has it
  Edges edges;
  std::int64_t grain = 0;  ///< stamps are rounded down to multiples of one more
};

/// What one CPU does.
class CpuWindows {
 public:
  explicit CpuWindows(const CpuSettings& settings)
      : settings_(settings), account_(settings.measured < 0 && !settings.is_survey) {}

  void feed(const Step& step);
  void lost(std::uint64_t count);
  void finish();
  /// The running thread shall give way, as tracepoints of the scheduler tell: whoever sets it, on
  /// whatever CPU. Counts while the measured thread waits; others may be lazy.
  void needed(std::int64_t t_ns);

  [[nodiscard]] std::int32_t running() const { return is_known_ ? running_ : -1; }
  [[nodiscard]] const WindowAccount& account() const { return account_; }
  [[nodiscard]] const Edges& edges() const { return seen_edges_; }
  [[nodiscard]] std::uint64_t kernel_preemptions() const { return kernel_preemptions_; }
  [[nodiscard]] std::uint64_t ignored_points() const { return ignored_points_; }
  [[nodiscard]] std::uint64_t user_entries() const { return user_entries_; }
  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_; }
  [[nodiscard]] std::uint64_t idles() const { return idles_; }
  [[nodiscard]] std::uint64_t stolen() const { return stolen_; }
  [[nodiscard]] std::uint64_t interrupts() const { return interrupts_; }

 private:
  struct Mark {  ///< an instant of T-time: by brackets and by the event
    std::int64_t outer = 0;
    std::int64_t t_ns = 0;
    std::int64_t taken = 0;  ///< by interrupts, until then
    Place place;
  };
  struct Window {
    Mark begin;
    Term term;
    bool owed;          ///< an interrupt may have been taken that nobody has looked at since
    bool is_tentative;  ///< it may be the begin of an interrupt
  };
  struct Entry {  ///< of an interrupt, perhaps
    std::int64_t outer = 0;
    std::int64_t t_ns = 0;
    std::int64_t before = 0;  ///< the event before
    bool was_free = false;
    bool from_sleep = false;  ///< the CPU slept until just before
    bool is_direct = false;   ///< until it
    char context = 0;
  };
  struct Frame {
    Entry entry;
    std::int64_t last_ns;  ///< the last event in the interrupt
    std::uint64_t source = 0;
    bool is_sampled = false;
    bool is_masked = false;  ///< its masking was told
    int interrupts = 0;
    int softirqs = 0;
  };
  struct Pending {
    std::int64_t due_ns;
  };

  struct Gaps {  ///< around an event, without user mode and sleep
    std::int64_t before;
    std::int64_t begin;
    std::int64_t end;
    std::int64_t exit;  ///< where an interrupt's return ends
    bool leaves;        ///< to user mode
    bool was_user;
    bool was_asleep;
  };

  void forget(const char* why, std::uint64_t count);
  void run(const Step& told, std::int64_t after, const Step* next);
  [[nodiscard]] bool is_interrupt(const Step& step) const;
  [[nodiscard]] Entry entry_at(const Step& step, const Gaps& gaps) const;
  void begin_frame(const Step& step, const Gaps& gaps);
  void end_frame(std::int64_t t_ns, std::int64_t end);
  void in_interrupt(const Step& step, const Gaps& gaps);
  void interrupt_returned(const Step& step, const Gaps& gaps);
  void in_thread(const Step& step, const Gaps& gaps);
  void watch_needed(const Step& step);
  void switched(const Step& step, const Gaps& gaps);
  void became_known(const Step& step, const Mark& masked);
  void timed(const Step& step);
  void sleeps(const Step& step);
  void update(const Mark& begin, std::int64_t t_ns, std::int64_t end, Place place, bool is_point);
  void close(std::int64_t t_ns, std::int64_t end, Place place);
  void record(Term term, const Mark& begin, std::int64_t t_ns, std::int64_t end, Place place,
              std::int64_t more = 0);
  void scheduler_done(std::int64_t t_ns, std::int64_t end, Place place);
  void runs(std::int64_t t_ns);
  void wake(const Step& step);
  void sample(const Step& step);
  [[nodiscard]] bool is_free() const {
    return settings_.preemptible ? !irqs_off_ && !count_off_ : in_user_;
  }
  [[nodiscard]] Mark mark(std::int64_t outer, std::int64_t t_ns, Place place) const {
    return {outer, t_ns, taken_, place};
  }
  [[nodiscard]] std::int64_t edge() const {
    return std::max<std::int64_t>(settings_.edges.entry, 0);
  }

  CpuSettings settings_;
  WindowAccount account_;
  std::optional<Step> held_;
  std::int64_t before_ = -1;
  bool is_known_ = false;  ///< who runs; not before the first switch, nor after a loss
  bool irqs_off_ = false;
  bool count_off_ = false;
  bool in_user_ = false;
  bool was_free_ = false;
  std::int64_t taken_ = 0;
  std::optional<Entry> entry_;
  std::optional<Frame> frame_;
  std::optional<Window> window_;
  Mark stretch_;                ///< since when it has not been free
  Mark masked_;                 ///< since when interrupts have been off
  std::optional<Mark> called_;  ///< since when the scheduler is called, if its events tell
  std::optional<Mark> scheduling_;
  // Idle
  bool is_idle_ = false;
  bool is_asleep_ = false;
  bool has_slept_ = false;
  bool is_first_after_sleep_ = false;
  std::int64_t slept_at_ = 0;
  Mark idle_since_;
  Mark woke_;
  // The measured thread
  std::int32_t running_ = -1;
  std::int32_t running_priority_ = 0;
  std::optional<Pending> pending_;
  std::int64_t timer_due_ = -1;
  bool in_timer_ = false;
  bool waits_at_choice_ = false;  ///< it may be chosen, and nobody has been

  bool has_masking_ = false;     ///< preemptirq events tell of it
  bool point_needed_ = false;    ///< the last point found the scheduler needed
  std::int64_t needed_at_ = -1;  ///< by an event of the scheduler's; -1: it is not
  Edges seen_edges_;
  std::uint64_t kernel_preemptions_ = 0;
  std::uint64_t ignored_points_ = 0;
  std::uint64_t user_entries_ = 0;
  std::uint64_t sleeps_ = 0;
  std::uint64_t idles_ = 0;
  std::uint64_t stolen_ = 0;
  std::uint64_t interrupts_ = 0;
};

/// Reads a trace into the windows of each CPU on which the measured thread is woken.
class TraceWindows final : public Consumer {
 public:
  /// Who is woken how often by timers on a CPU.
  struct Woken {
    std::int32_t priority = 0;
    std::uint64_t times = 0;
    std::string name;
  };
  using Threads = std::map<std::int32_t, Woken>;

  /// The first time round: who is woken, how long ways in take.
  TraceWindows() = default;
  /// The second time: the windows, of a kernel that preempts so, or as it was seen to (nothing).
  TraceWindows(const TraceWindows& survey, std::optional<bool> preemptible);

  void event(const Event& event) override;
  void lost(int cpu, std::uint64_t count) override;
  void finish();
  void write(probe::Json& json) const;

 private:
  struct Function {
    std::uint64_t name = 0;
    bool to_user = false;
    bool may_leave = false;
    bool from_hardware = false;
    bool schedules = false;
    bool chooses = false;
    bool tests = true;
  };
  struct Timer {
    std::int64_t expires;
    std::int64_t started;
  };
  struct Latencies {  ///< that the tracer timerlat measured itself
    std::uint64_t n = 0;
    std::int64_t longest_ns = 0;
  };
  struct Seen {  ///< of events of one name
    What what = What::other;
    bool is_of_timers = false;
    bool tells_of_scheduler = false;
    std::uint64_t name = 0;
    std::uint64_t n = 0;  ///< the second time round
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  struct Measured {
    std::int32_t pid;
    Woken thread;
  };

  [[nodiscard]] Step step_of(const Event& event, const Seen& seen);
  void scheduler_told(const Event& event, Step& step);
  [[nodiscard]] Seen& seen(std::string_view name);
  void saw_timerlat(const Event& event);
  void told_switch(const Event& event, Step& step) const;
  void told_timer(const Event& event, Step& step);
  [[nodiscard]] const Function& function(const Event& event, const char* field, const char* offset);
  void count_waking(const Event& event, const Step& step);
  [[nodiscard]] CpuWindows* cpu(int number);
  [[nodiscard]] CpuSettings settings_of(int number) const;
  [[nodiscard]] std::map<int, Measured> measured() const;
  void write_cpu(probe::Json& json, int number, const CpuWindows& cpu) const;

  bool is_survey_ = true;
  bool preemptible_ = false;
  Names names_;
  std::unordered_map<std::int64_t, Function> by_offset_;
  std::unordered_map<std::string, Function> by_name_;
  std::unordered_map<std::int64_t, Timer> timers_;
  std::map<int, std::unique_ptr<CpuWindows>> cpus_;
  std::map<int, Threads> woken_;
  std::map<int, bool> in_timer_;
  std::map<int, std::uint64_t> of_cpu_;
  std::map<int, Measured> chosen_;
  int busiest_ = -1;
  Edges edges_;
  std::unordered_map<std::string, Seen, Hash, std::equal_to<>> seen_;
  std::map<int, std::map<std::string, Latencies>> timerlat_;  ///< by context
  std::uint64_t events_ = 0;
  std::uint64_t lost_events_ = 0;
  std::uint64_t lost_places_ = 0;
  std::int64_t common_grain_ = 1000;
  bool has_flags_ = false;
  bool has_names_ = false;
};

}  // namespace latenz::trace
