// SPDX-License-Identifier: Apache-2.0
// Memory-mapped device registers. Every access goes through here, once and in program order.
#pragma once

#include <cstdint>

namespace latenz::firmware {

/// A register at a fixed address. Inlined at -O0 too: the first access of an interrupt handler is
/// part of what is measured.
template <std::uintptr_t address, typename Word = std::uint32_t>
struct Register {
  [[gnu::always_inline]] static inline Word read() {
    return *reinterpret_cast<const volatile Word*>(address);
  }

  [[gnu::always_inline]] static inline void write(Word value) {
    *reinterpret_cast<volatile Word*>(address) = value;
  }

  static void set(Word bits) { write(read() | bits); }
  static void clear(Word bits) { write(read() & ~bits); }
};

/// The index-th of registers that follow each other.
template <std::uintptr_t address, typename Word = std::uint32_t>
struct RegisterArray {
  static Word read(unsigned index) {
    return *reinterpret_cast<const volatile Word*>(address + (index * sizeof(Word)));
  }

  static void write(unsigned index, Word value) {
    *reinterpret_cast<volatile Word*>(address + (index * sizeof(Word))) = value;
  }
};

}  // namespace latenz::firmware
