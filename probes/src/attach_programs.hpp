// SPDX-License-Identifier: Apache-2.0
// BPF programs that tell what becomes of some threads, event by event, into a ring of 64-byte
// records. They sit on tracepoints and read the fields of their records at the places that tracefs
// tells: that needs no BTF, no compiler, and a kernel from 5.10. They vanish with the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attach_event.hpp"
#include "attach_place.hpp"
#include "bpf_program.hpp"
#include "file.hpp"

namespace latenz::attach {

/// Run time of one program, by the kernel's own account (BPF_ENABLE_STATS).
struct ProgramCost {
  std::string tracepoint;
  std::uint64_t runs = 0;
  std::uint64_t total_ns = 0;
};

class Programs {
 public:
  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  ~Programs();

  /// Loads and attaches everything. Throws `probe::Failure` that tells the missing right and its
  /// remedy. `count_cost`: let the kernel account for the programs, which itself costs time.
  void attach(const std::filesystem::path& tracefs, bool count_cost);

  /// Tells when a process comes to a place: `value` is that of `EventKind::mark`. After `attach`.
  /// Throws `probe::Failure`.
  void mark(const Place& place, std::int32_t pid, std::uint32_t value);

  /// Watches a thread from now on; false if there are too many.
  [[nodiscard]] bool watch(std::int32_t tid, bool is_deadline);
  void forget(std::int32_t tid);
  /// Learns anew whose timers are which, after a thread has become one of SCHED_DEADLINE.
  void forget_timers();

  /// Hands on, in order, what had come in when it was called the last time.
  void drain(const std::function<void(const Event&)>& take);

  /// How often a thread has made each system call since it is watched.
  static constexpr std::size_t most_calls = 512;
  using Calls = std::array<std::uint64_t, most_calls>;
  [[nodiscard]] Calls calls(std::int32_t tid);

  /// Records that found no room, since the start.
  [[nodiscard]] std::uint64_t lost() const;

  [[nodiscard]] std::vector<ProgramCost> costs() const;

  /// Tracepoints of which this kernel has none, or which it refused; what they tell stays unknown.
  [[nodiscard]] const std::vector<std::string>& absent() const { return absent_; }

  // What the programs keep: for each CPU, for threads, and of timers.
  struct Cpu;
  struct Thread;
  struct Threads;
  struct Timers;
  using CallCounts = std::array<std::uint32_t, most_calls>;

 private:
  struct Attached {
    std::string tracepoint;
    probe::File program;
    probe::File event;
  };
  using Offsets = std::map<std::string, int, std::less<>>;

  void make_maps();
  template <typename Each>
  static std::span<Each> shared_array(probe::File& map, std::size_t count);
  struct Seat {
    std::uint32_t* tid = nullptr;
    Thread* thread = nullptr;
  };
  /// Where a thread is kept, or may be; nulls: others have all of its places.
  [[nodiscard]] Seat seat_of(std::uint32_t tid);
  void watch_deadlines();
  void attach_to_call_exit();
  void attach_to(std::string_view tracepoint, bool is_needed,
                 void (Programs::*write)(probe::BpfAssembler&, const Offsets&));
  [[nodiscard]] Offsets offsets_of(std::string_view tracepoint) const;

  void write_timer_start(probe::BpfAssembler& code, const Offsets& at);
  void write_timer_first_start(probe::BpfAssembler& code, const Offsets& at,
                               probe::BpfAssembler::Label end) const;
  void write_timer_entry(probe::BpfAssembler& code, const Offsets& at);
  void write_timer_exit(probe::BpfAssembler& code, const Offsets& at);
  void write_waking(probe::BpfAssembler& code, const Offsets& at);
  void write_switch(probe::BpfAssembler& code, const Offsets& at);
  void write_interrupt_entry(probe::BpfAssembler& code, const Offsets& at);
  void write_interrupt_exit(probe::BpfAssembler& code, const Offsets& at);
  void write_softirq_entry(probe::BpfAssembler& code, const Offsets& at);
  void write_softirq_exit(probe::BpfAssembler& code, const Offsets& at);
  void write_call_entry(probe::BpfAssembler& code, const Offsets& at);
  void write_mark_of_call(probe::BpfAssembler& code, const Offsets& at,
                          probe::BpfAssembler::Label otherwise) const;
  void write_mark(probe::BpfAssembler& code, std::uint32_t value) const;
  void write_call_exit(probe::BpfAssembler& code, const Offsets& at);
  void write_fault(probe::BpfAssembler& code, const Offsets& at);
  void write_fork(probe::BpfAssembler& code, const Offsets& at);
  void write_reclaim_begin(probe::BpfAssembler& code, const Offsets& at);
  void write_reclaim_end(probe::BpfAssembler& code, const Offsets& at);
  void write_reclaim(probe::BpfAssembler& code, int begins);
  void write_frequency(probe::BpfAssembler& code, const Offsets& at);
  void write_gone(probe::BpfAssembler& code, const Offsets& at);

  void load_cpu(probe::BpfAssembler& code, probe::BpfAssembler::Label beyond) const;
  void find_thread(probe::BpfAssembler& code, unsigned tid,
                   probe::BpfAssembler::Label unwatched) const;
  void find_current(probe::BpfAssembler& code, probe::BpfAssembler::Label unwatched) const;
  void find_timers(probe::BpfAssembler& code) const;
  void drain_lane(std::size_t cpu);
  void drain_ring();
  void emit_in_lane(probe::BpfAssembler& code, EventKind kind) const;
  void emit(probe::BpfAssembler& code, EventKind kind) const;

  std::filesystem::path tracefs_;
  probe::File cpus_;
  probe::File threads_;
  probe::File timers_;
  probe::File counts_;
  probe::File lanes_;
  probe::File ring_;
  probe::File statistics_;
  std::span<Cpu> cpu_memory_;
  std::span<Threads> threads_memory_;
  std::span<Timers> timers_memory_;
  std::span<CallCounts> counts_memory_;
  std::span<Event> lanes_memory_;            ///< of all CPUs, one after the other
  std::uint32_t lane_records_ = 0;           ///< in each; a power of two
  std::vector<std::uint64_t> seen_written_;  ///< by each CPU, the last time
  std::int64_t until_ns_ = 0;                ///< when that was looked at
  std::vector<Event> batch_;
  std::vector<std::uint32_t> free_slots_;
  bool has_deadlines_ = false;
  std::byte* consumer_ = nullptr;
  const std::byte* producer_ = nullptr;
  std::vector<Attached> attached_;
  std::vector<std::string> absent_;
};

}  // namespace latenz::attach
