// SPDX-License-Identifier: Apache-2.0
// What channels between the two processors run on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc/platform.hpp"

namespace latenz::pair {

/// Memory that neither side caches, copied by the widest general register.
struct Uncached : icc::NonCacheable {
  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    copy(static_cast<std::byte*>(shared), static_cast<const std::byte*>(own), bytes);
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    copy(static_cast<std::byte*>(own), static_cast<const std::byte*>(shared), bytes);
  }

 private:
  using Unit = std::uintptr_t;

  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::size_t done = 0;
    for (; done + sizeof(Unit) <= bytes; done += sizeof(Unit)) {
      __builtin_memcpy(to + done, from + done, sizeof(Unit));
    }
    for (; done < bytes; ++done) to[done] = from[done];
  }
};

/// Under QEMU all cores run in turn: one that waits ends its turn by `yield`, since the word that
/// it waits for does not change before. The cores themselves take that for `nop`.
using Waiting = icc::Pause;

using Between = icc::Platform<Uncached, icc::ArmSystemOrder, Waiting>;

}  // namespace latenz::pair
