// SPDX-License-Identifier: Apache-2.0
// Accesses that may fail: one instruction each, which vectors.S steps over if it does.
#pragma once

#include <cstdint>

namespace latenz::guests {

using Access = void (*)(std::uint64_t address);

/// Address of a word in a table.
constexpr std::uint64_t word(std::uint64_t table, std::uint64_t index) {
  return table + (4 * index);
}

inline void read8(std::uint64_t address) {
  asm volatile("ldrb w9, [%0]" ::"r"(address) : "x9", "memory");
}

inline void read16(std::uint64_t address) {
  asm volatile("ldrh w9, [%0]" ::"r"(address) : "x9", "memory");
}

inline void read32(std::uint64_t address) {
  asm volatile("ldr w9, [%0]" ::"r"(address) : "x9", "memory");
}

inline void read64(std::uint64_t address) {
  asm volatile("ldr x9, [%0]" ::"r"(address) : "x9", "memory");
}

inline void write8(std::uint64_t address, std::uint32_t value = ~0U) {
  asm volatile("strb %w1, [%0]" ::"r"(address), "r"(value) : "memory");
}

inline void write16(std::uint64_t address, std::uint32_t value = ~0U) {
  asm volatile("strh %w1, [%0]" ::"r"(address), "r"(value) : "memory");
}

inline void write32(std::uint64_t address, std::uint32_t value = ~0U) {
  asm volatile("str %w1, [%0]" ::"r"(address), "r"(value) : "memory");
}

inline void write64(std::uint64_t address, std::uint64_t value = ~std::uint64_t{0}) {
  asm volatile("str %1, [%0]" ::"r"(address), "r"(value) : "memory");
}

inline void read_pair(std::uint64_t address) {
  asm volatile("ldp x9, x10, [%0]" ::"r"(address) : "x9", "x10", "memory");
}

inline void write_pair(std::uint64_t address) {
  asm volatile("stp xzr, xzr, [%0]" ::"r"(address) : "memory");
}

/// The syndrome does not say which register: nobody can emulate it by that alone.
inline void read_and_step(std::uint64_t address) {
  asm volatile("ldr w9, [%0], #4" : "+r"(address)::"x9", "memory");
}

inline void write_and_step(std::uint64_t address) {
  asm volatile("str wzr, [%0], #4" : "+r"(address)::"memory");
}

inline void exchange(std::uint64_t address) {
  asm volatile("ldxr x9, [%0]\n stxr w10, x9, [%0]" ::"r"(address) : "x9", "x10", "memory");
}

inline void read_as_user(std::uint64_t address) {
  asm volatile("ldtr x9, [%0]" ::"r"(address) : "x9", "memory");
}

inline void write_as_user(std::uint64_t address) {
  asm volatile("sttr xzr, [%0]" ::"r"(address) : "memory");
}

inline void prefetch(std::uint64_t address) {
  asm volatile("prfm pldl1keep, [%0]" ::"r"(address) : "memory");
}

/// A block of zeros, without reading what was there.
inline void zero(std::uint64_t address) { asm volatile("dc zva, %0" ::"r"(address) : "memory"); }

inline void clean_and_invalidate(std::uint64_t address) {
  asm volatile("dc civac, %0\n dc ivac, %0\n dc cvau, %0\n ic ivau, %0\n dsb sy" ::"r"(address)
               : "memory");
}

/// An abort of its first instruction comes back as if it had returned.
inline void execute(std::uint64_t address) {
  asm volatile("blr %0" ::"r"(address)
               : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                 "x13", "x14", "x15", "x16", "x17", "x18", "x30", "cc", "memory");
}

}  // namespace latenz::guests
