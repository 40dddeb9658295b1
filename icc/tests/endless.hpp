// SPDX-License-Identifier: Apache-2.0
// Sleepers that nobody but their peer wakes: one wake-up that is lost, and they stand still.
#pragma once

#include <cstdint>

#include "latenz/icc/linux_eventfd.hpp"
#include "latenz/icc/linux_wait.hpp"

namespace latenz::icc::tests {

/// `Futex`, but who may sleep for a whole second sleeps until it is woken, however long that is.
struct Endless {
  static constexpr std::int64_t second_ns = 1'000'000'000;
  static inline std::uint64_t rings = 0;

  static void wait(std::uint32_t& word, std::uint32_t value, std::int64_t longest_ns) noexcept {
    Futex::wait(word, value, longest_ns == second_ns ? second_ns * 600 : longest_ns);
  }
  static void wake(std::uint32_t& word) noexcept {
    ++rings;
    Futex::wake(word);
  }
};

using SleepEndless = Sleep<Endless, Endless::second_ns>;

/// The same by eventfds.
class EndlessEventFd {
 public:
  EndlessEventFd() = default;
  template <class Channel>
  EndlessEventFd(const EventFds<Channel>& all, std::uint32_t own) noexcept : bell_{all, own} {}

  void silence() const noexcept { bell_.silence(); }
  void ring(std::uint32_t side) const noexcept {
    ++Endless::rings;
    bell_.ring(side);
  }
  void wait(const std::uint32_t& word, std::uint32_t value,
            std::int64_t longest_ns) const noexcept {
    const bool all = longest_ns == Endless::second_ns;
    bell_.wait(word, value, all ? Endless::second_ns * 600 : longest_ns);
  }

 private:
  EventFd bell_;
};

using SleepEndlessByEventFd = Sleep<EndlessEventFd, Endless::second_ns>;

}  // namespace latenz::icc::tests
