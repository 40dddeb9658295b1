// SPDX-License-Identifier: Apache-2.0
// How the drivers reach registers: a policy with `read` and `write` of 32-bit words at a byte
// offset. Here the one for memory-mapped registers; tests bring others.
//
// Registers that are absent answer with a bus error: an abort of the core that asks, and for a
// write one that it cannot attribute (an SError on Cortex-A53, which ends Linux). So the drivers
// touch no register that the configuration of the IP does not have.
#pragma once

#include <concepts>
#include <cstdint>

namespace latenz::ip {

/// Reads 32-bit words. Each call is one bus access, in program order.
template <typename Access>
concept RegisterReads = requires(Access& access, std::uint32_t offset) {
  { access.read(offset) } -> std::same_as<std::uint32_t>;
};

/// Reads and writes 32-bit words.
template <typename Access>
concept RegisterAccess =
    RegisterReads<Access> && requires(Access& access, std::uint32_t offset, std::uint32_t value) {
      { access.write(offset, value) } -> std::same_as<void>;
    };

/// Registers in the address space of the core, mapped as device memory.
class MemoryMapped {
 public:
  /// @param base address of the first register, a multiple of 4
  explicit constexpr MemoryMapped(std::uintptr_t base) : base_(base) {}

  /// Inlined at -O0 too: in an interrupt handler the access is part of what is measured.
  [[gnu::always_inline]] [[nodiscard]] std::uint32_t read(std::uint32_t offset) const {
    return *__builtin_bit_cast(const volatile std::uint32_t*, base_ + offset);
  }

  [[gnu::always_inline]] void write(std::uint32_t offset, std::uint32_t value) const {
    *__builtin_bit_cast(volatile std::uint32_t*, base_ + offset) = value;
  }

 private:
  std::uintptr_t base_;
};

static_assert(RegisterAccess<MemoryMapped>);

}  // namespace latenz::ip
