// SPDX-License-Identifier: Apache-2.0
// Sleeping under Linux: the bell of `Sleep<Futex>`.
#pragma once

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "latenz/icc/wait.hpp"

namespace latenz::icc {

/// Sleeping and waking by the kernel (futex(2)), between threads and processes of one Linux that
/// map the same memory. Memory of a device (`LinuxMemory::physical`, `uio`, `reserved`) has no
/// futexes: there `wait` sleeps for the whole time, and `wake` does nothing.
struct Futex {
  /// Sleeps while `word` is `value`, until `wake`, at most so long. Signals do not end it.
  static void wait(std::uint32_t& word, std::uint32_t value, std::int64_t longest_ns) noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t end_ns = now.tv_nsec + longest_ns;
    const Time end{static_cast<long>(now.tv_sec + end_ns / 1'000'000'000),
                   static_cast<long>(end_ns % 1'000'000'000)};
    while (syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, &end, nullptr,
                   FUTEX_BITSET_MATCH_ANY) != 0) {
      if (errno == EFAULT) {
        const timespec until{end.s, end.ns};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
        }
        return;
      }
      if (errno != EINTR) {  // EAGAIN: another value; ETIMEDOUT
        return;
      }
    }
  }

  /// Wakes all who sleep on `word`.
  static void wake(std::uint32_t& word) noexcept {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

 private:
  /// As this system call takes it, which on 32-bit processors is older than `timespec`.
  struct Time {
    long s;
    long ns;
  };
};

}  // namespace latenz::icc
