// SPDX-License-Identifier: Apache-2.0
// The publication's double buffer (coppik2025, section 4.2 and Figure 7b), for tests alone: it
// shows what `Latest` is for. Two buffers, and a word that tells which one readers use.
//
// It tears when two updates begin within one read. The publication's remedy is a writer whose
// period is longer than any reader's. That does not bound how long a read takes: a reader that is
// stopped inside one, or a writer that catches up after it was stopped, still tears.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc/platform.hpp"

namespace latenz::icc::testing {

template <class T, class P = Platform<>>
class DoubleBuffer {
  using A = detail::Access<P>;
  static constexpr std::size_t line = 64;
  static constexpr std::size_t buffer_bytes = (sizeof(T) + line - 1) / line * line;

 public:
  static constexpr std::size_t bytes = line + (2 * buffer_bytes);

  explicit DoubleBuffer(void* memory) : memory_{static_cast<std::byte*>(memory)} {}

  // Sequentially consistent, as the publication has it.
  void update(const T& value) {
    const std::uint32_t free = 1 - (A::load_acquire(active()) & 1U);
    A::write(buffer(free), &value, sizeof value);
    A::store_release(active(), free);
    P::Order::full_fence();
  }

  void read_latest(T& value) {
    A::read(&value, buffer(A::load_acquire(active()) & 1U), sizeof value);
  }

 private:
  [[nodiscard]] std::uint32_t& active() const { return *reinterpret_cast<std::uint32_t*>(memory_); }
  [[nodiscard]] std::byte* buffer(std::uint32_t which) const {
    return memory_ + line + (which * buffer_bytes);
  }

  std::byte* memory_;
};

}  // namespace latenz::icc::testing
