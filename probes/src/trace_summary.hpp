// SPDX-License-Identifier: Apache-2.0
// Where the time of a trace went: exits of virtual CPUs, late wake-ups, late timers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "json.hpp"
#include "trace_event.hpp"

namespace latenz::trace {

/// Exits of one virtual CPU for one reason. The cost of an exit is the time from kvm_exit to the
/// next kvm_entry of the same thread.
struct Exits {
  std::uint64_t count = 0;  ///< all kvm_exit events
  std::uint64_t open = 0;   ///< of these, without their kvm_entry: not in any time below
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t max_at_ns = 0;     ///< when the longest one began
  std::uint64_t userspace = 0;    ///< that went on to the virtual machine monitor (QEMU)
  std::int64_t userspace_ns = 0;  ///< whole cost of those
  std::uint64_t slept = 0;        ///< during which the thread slept
  std::int64_t slept_ns = 0;      ///< of total_ns, from falling asleep to running again
  std::uint64_t preempted = 0;    ///< during which the thread had to make way for another
  std::int64_t preempted_ns = 0;  ///< of total_ns
};

/// Something that took long: [start_ns, end_ns].
struct Candidate {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  int cpu = 0;  ///< where it began if it is an exit, else where it ended
  int pid = 0;
  std::string comm;
  bool is_vcpu = false;  ///< the thread runs a virtual CPU
  std::string what;      ///< reason of an exit, function of a timer, context of a timerlat sample
};

/// Keeps the `most` longest, longest first; of equal ones the first.
class Worst {
 public:
  explicit Worst(std::size_t most) : most_(most) {}
  [[nodiscard]] bool wants(std::int64_t duration_ns) const;
  void add(Candidate candidate);
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  std::size_t most_;
  std::vector<Candidate> candidates_;
};

class Summary final : public Consumer {
 public:
  explicit Summary(std::size_t worst)
      : worst_exits_(worst),
        worst_wakeups_(worst),
        worst_timers_(worst),
        worst_ready_(worst),
        worst_blocked_(worst),
        worst_timerlat_(worst),
        worst_gaps_(worst) {}

  void event(const Event& event) override;
  void lost(int cpu, std::uint64_t count) override;

  /// Call after the last event.
  void write(probe::Json& json) const;

 private:
  struct OpenExit {
    std::int64_t t_ns = 0;
    int cpu = 0;
    std::string reason;
    bool userspace = false;
    std::int64_t away_since_ns = -1;  ///< -1: the thread runs
    bool sleeps = false;
    std::int64_t slept_ns = 0;
    std::int64_t preempted_ns = 0;
  };
  struct Thread {  ///< that runs a virtual CPU
    std::int64_t vcpu = -1;
    int pid = 0;
    std::string comm;
    int cpu = -1;  ///< where it was last seen
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t entries = 0;
    std::optional<OpenExit> open;
    std::map<std::string, Exits, std::less<>> exits;
  };
  struct Loss {  ///< between two events of a CPU
    int cpu = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Cpu {
    std::uint64_t events = 0;
    std::int64_t last_ns = 0;
    bool is_losing = false;                  ///< its next event is the first after a loss
    std::optional<std::int64_t> resumed_ns;  ///< time of the first event after its last loss
  };
  enum class Wait : std::uint8_t { woken, woken_by_timer, ready };
  struct Waiting {  ///< for a CPU
    Wait why = Wait::woken;
    std::int64_t since_ns = 0;
    int cpu = 0;
    std::int64_t blocked_ns = -1;  ///< since when it waited for another thread; -1: it did not
  };
  struct Block {  ///< of a real-time thread that went to sleep
    std::int64_t since_ns = 0;
    bool is_lock = false;  ///< for a lock, or where no signal may wake it
  };
  struct Timer {
    std::int64_t expires_ns = 0;  ///< by the timer's clock
    std::string function;
  };
  struct Expiry {  ///< of the timer whose function runs on a CPU now
    bool active = false;
    std::int64_t due_ns = 0;  ///< by the trace's clock
    std::int64_t now_ns = 0;  ///< what the timer interrupt read, once for all its timers
    std::int64_t read_at_ns = 0;
  };

  void count(const Event& event);
  void timed(const Event& event);
  void resumed(Cpu& cpu, const Event& event);
  Thread& vcpu_thread(const Event& event);
  static void leave_open(Thread& thread);
  [[nodiscard]] bool came_unseen(int before, std::int64_t since_ns, const Event& event) const;
  void exit(const Event& event);
  void entry(const Event& event);
  void went_to_userspace(int pid);
  Worst& worst_of(Wait why);
  void switched(const Event& event);
  void left(const Event& event, int pid);
  void came(const Event& event, int pid);
  void waking(const Event& event, bool is_first);
  void wait(int pid, const Waiting& waiting);
  void contended(const Event& event);
  void blocked(const Event& event, int pid);
  [[nodiscard]] std::int64_t take_block(const Event& event, int woken, bool by_timer);
  void timer_started(const Event& event);
  void timer_expired(const Event& event);
  void timerlat(const Event& event);
  void hwlat(const Event& event);
  [[nodiscard]] std::string vcpu_name(const Thread& thread) const;
  void write_exits_of(probe::Json& json, const Thread& thread) const;
  void write_exits(probe::Json& json) const;
  void write_worst(probe::Json& json, std::string_view kind, const Worst& worst) const;

  std::uint64_t events_ = 0;
  std::uint64_t lost_events_ = 0;
  std::uint64_t lost_places_ = 0;
  std::uint64_t backwards_ = 0;  ///< durations that would be negative
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::map<int, Cpu> cpus_;
  std::vector<Loss> losses_;
  std::unordered_map<std::string, std::uint64_t> names_;
  std::unordered_map<int, Thread> threads_;
  std::size_t exit_rows_ = 0;                 ///< of all threads
  std::unordered_map<int, Waiting> waiting_;  ///< threads whose delay counts
  std::unordered_map<int, Block> blocks_;
  std::unordered_map<int, std::int64_t> contended_ns_;  ///< last time a thread met a held lock
  std::unordered_map<int, std::int64_t> preempted_ns_;  ///< last time a thread had to make way
  std::unordered_map<std::int64_t, Timer> timers_;
  std::unordered_map<int, Expiry> expiries_;
  Worst worst_exits_;
  Worst worst_wakeups_;
  Worst worst_timers_;
  Worst worst_ready_;
  Worst worst_blocked_;
  Worst worst_timerlat_;
  Worst worst_gaps_;
};

}  // namespace latenz::trace
