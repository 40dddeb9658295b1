// SPDX-License-Identifier: Apache-2.0
// The processor's caches of data. Guests begin with theirs off: what they are to read must lie in
// memory.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

class Caches {
 public:
  /// Looks what there is; once, before a guest runs.
  static void find();

  /// Writes what is cached of a range back to memory, and forgets it. Any physical address: for as
  /// long as it takes, translation of this CPU is off.
  static void clean_to_memory(std::uint64_t begin, std::uint64_t size);

  /// Lets the next read of what is there come from memory. Nothing of it may have been written.
  static void forget_line(const void* what) {
    asm volatile("dc civac, %0\n dsb ish" ::"r"(what) : "memory");
  }

  /// Writes what is cached of a line back to memory.
  static void write_back_line(const void* what) {
    asm volatile("dc cvac, %0\n dsb ish" ::"r"(what) : "memory");
  }

  /// Cleans and invalidates one line by level, set and way; nothing if there is no such line.
  static void clean_line(std::uint64_t operand);
};

}  // namespace latenz::hypervisor
