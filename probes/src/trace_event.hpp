// SPDX-License-Identifier: Apache-2.0
// One event of a trace, whatever file it comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace latenz::trace {

/// What the analyses look at; all others are only counted.
enum class Kind : std::uint8_t {
  other,
  contention_begin,
  function,
  hrtimer_cancel,
  hrtimer_expire_entry,
  hrtimer_expire_exit,
  hrtimer_start,
  hwlat,
  kvm_entry,
  kvm_exit,
  kvm_userspace_exit,
  noise,
  sched_switch,
  sched_wakeup,
  sched_waking,
  stack,
  timerlat,
};

/// Of an event's name without its system, such as "kvm_exit".
[[nodiscard]] Kind kind_of(std::string_view name);

/// The fields of an event by one set of names, whatever the format:
///   kvm_exit            vcpu, reason (text), rip, info1, info2, intr_info, error_code
///   kvm_entry           vcpu
///   kvm_userspace_exit  reason (text, such as KVM_EXIT_IO)
///   sched_switch        prev_comm, prev_pid, prev_prio, prev_state (text: R, R+, S, D ...),
///                       next_comm, next_pid, next_prio
///   sched_waking, sched_wakeup  comm, pid, prio, target_cpu
///   function            ip, parent_ip (text: names of functions)
///   kernel_stack, user_stack  stack (text: names of functions, the innermost first, with ;)
///   timerlat            seqnum, context (text: irq, thread), timer_latency (ns)
///   irq_noise and the like  desc (text), duration (ns)
///   hwlat               duration, outer_duration (us)
///   preempt_disable and the like  caller, parent (text: names of functions)
/// Others have the kernel's own names.
class Fields {
 public:
  Fields() = default;
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;
  virtual ~Fields() = default;
  /// Nothing if there is no such field, or it is no number.
  [[nodiscard]] virtual std::optional<std::int64_t> number(std::string_view name) const = 0;
  /// Nothing if there is no such field.
  [[nodiscard]] virtual std::optional<std::string> text(std::string_view name) const = 0;
  /// Adds each field to an open JSON object.
  virtual void write(probe::Json& json) const = 0;
};

constexpr int unknown_pid = -1;

/// Valid only during the call that it is passed to.
struct Event {
  std::int64_t t_ns = 0;  ///< of the clock that the trace was recorded with
  int cpu = 0;
  int pid = 0;             ///< of the thread, or unknown_pid
  std::string_view comm;   ///< of the thread; empty: not known
  std::string_view name;   ///< without its system
  std::string_view flags;  ///< as ftrace prints them, such as "dNh2."; empty: not told
  Kind kind = Kind::other;
  const Fields* fields = nullptr;
};

class Consumer {
 public:
  Consumer() = default;
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;
  virtual ~Consumer() = default;
  virtual void event(const Event& event) = 0;
  /// Events of this CPU (-1: unknown) are missing here; 0: their number is not known.
  virtual void lost(int cpu, std::uint64_t count) = 0;
};

/// Recorded together with others by trace-cmd: who the file is, and how its clock goes with theirs.
struct Session {
  struct Vcpu {
    std::uint32_t cpu = 0;  ///< of the guest
    std::uint32_t pid = 0;  ///< of the host's thread that runs it
  };
  struct Guest {  ///< that was recorded with the host that this file is of
    std::string name;
    std::uint64_t id = 0;  ///< of its file
    std::vector<Vcpu> vcpus;
  };
  struct Sample {  ///< host = (stamp * scaling >> fraction) + offset, of one CPU
    std::int64_t time = 0;
    std::int64_t offset = 0;
    std::uint64_t scaling = 1;
    std::uint32_t fraction = 0;
  };
  std::uint64_t id = 0;    ///< of this file; 0: it has none
  std::uint64_t peer = 0;  ///< of the host's file, if this is a guest's
  bool interpolates = false;
  std::vector<std::vector<Sample>> shifts;  ///< by CPU, by time
  std::vector<Guest> guests;
  std::uint32_t tsc_multiplier = 0;  ///< of stamps that are cycles; 0: they are not
  std::uint32_t tsc_shift = 0;

  /// The stamp of the host's clock when a CPU of this guest wrote one, as trace-cmd computes it.
  [[nodiscard]] std::uint64_t on_host(std::uint64_t stamp, int cpu) const;
};

/// What a reader tells of the file as a whole.
struct Description {
  std::string format;  ///< "trace.dat", "perf.data", "ftrace", "trace-cmd report", "perf script"
  std::string version;
  std::string compression;
  std::string clock;  ///< empty: the file does not tell
  std::vector<std::string> buffers;
  std::string truncated_at;  ///< empty: the file was read to its end
  std::uint64_t damages = 0;
  std::vector<std::string> notes;  ///< what a user should know, one sentence each
  Session session;

  /// The first damage is told with its place, all are counted.
  void damaged(const std::string& where) {
    if (damages++ == 0) truncated_at = where;
  }
};

}  // namespace latenz::trace
