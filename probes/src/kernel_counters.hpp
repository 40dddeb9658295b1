// SPDX-License-Identifier: Apache-2.0
// What the kernel does on each CPU, counted by small BPF programs into memory that a measuring
// thread reads without a system call. They cost some tens of nanoseconds for each interrupt and
// context switch of the machine, and vanish with the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "file.hpp"

namespace latenz::probe {

/// Counts since the programs were attached, in the order of `counter_names`.
inline constexpr std::size_t counter_kinds = 7;
using Counts = std::array<std::uint64_t, counter_kinds>;

/// Keys of the counts in the context of a worst sample. `interrupts` are those of devices;
/// timer and inter-processor interrupts are told apart where the kernel has such events (x86).
inline constexpr std::array<std::string_view, counter_kinds> counter_names{
    "interrupts", "timer_interrupts", "inter_processor_interrupts", "softirqs", "context_switches",
    "nmis",       "page_faults"};

/// The memory of one CPU: written on that CPU only, so never shared between caches.
struct alignas(128) CpuCounters {
  Counts counts;
  std::uint64_t last_interrupt;       ///< number of the device interrupt handled last
  std::uint64_t last_task;            ///< process (upper half) and thread that ran before this one
  std::array<char, 16> last_command;  ///< its name
};
static_assert(sizeof(CpuCounters) == 128, "the BPF programs compute with this layout");

class KernelCounters {
 public:
  /// Counts nothing.
  KernelCounters() = default;
  KernelCounters(const KernelCounters&) = delete;
  KernelCounters& operator=(const KernelCounters&) = delete;
  ~KernelCounters();

  /// Starts counting; false if the kernel does not permit or know it (then nothing is left behind).
  [[nodiscard]] bool attach();

  [[nodiscard]] bool attached() const { return cpus_ != nullptr; }

  /// Whether this kernel has the events behind a kind.
  [[nodiscard]] bool counts(std::size_t kind) const { return counted_[kind]; }

  /// Reads the counts of a CPU below 1024; zeros if not attached. Wait-free, one cache line.
  [[nodiscard]] Counts read(unsigned cpu) const {
    Counts counts{};
    for (std::size_t kind = 0; attached() && kind < counter_kinds; ++kind) {
      counts[kind] = std::atomic_ref(cpus_[cpu].counts[kind]).load(std::memory_order_relaxed);
    }
    return counts;
  }

  /// What a CPU did last; only if attached, and only for a thread on that CPU, under which the
  /// memory does not change but by interrupts.
  [[nodiscard]] const CpuCounters& last(unsigned cpu) const { return cpus_[cpu]; }

 private:
  bool map_memory();
  bool attach_program(std::size_t kind, std::string_view event);

  CpuCounters* cpus_ = nullptr;
  std::array<bool, counter_kinds> counted_{};
  File map_;
  std::vector<File> links_;
};

}  // namespace latenz::probe
