// SPDX-License-Identifier: Apache-2.0
#include "translation.hpp"

#include <array>

#include "access.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint64_t valid_block = 1;
constexpr std::uint64_t accessed = 1U << 10U;
constexpr std::uint64_t gibibyte = 1U << 30U;
constexpr std::uint64_t upper_half = 0xFFFF'FF80'0000'0000;  // what 39 bits leave

constexpr std::uint64_t attributes = 0xFF;          // the first kind: normal memory, write-back
constexpr std::uint64_t control = 25U               // lower half: 39 bits
                                  | (1U << 23U)     // upper half: none
                                  | (25U << 16U)    // with 39 bits
                                  | (2U << 30U)     // and 4 KiB pages
                                  | (2ULL << 32U);  // physical addresses of 40 bits
constexpr std::uint64_t no_upper_half = 1U << 23U;

alignas(4096) std::array<std::uint64_t, 512> level_1;

void fill() {
  for (std::uint64_t i = 0; i < level_1.size(); ++i) {
    level_1[i] = (i * gibibyte) | accessed | valid_block;
  }
}

void switch_to(std::uint64_t wanted) {
  std::uint64_t system_control = 0;
  asm volatile("mrs %0, sctlr_el1" : "=r"(system_control));
  system_control = (system_control & ~std::uint64_t{1}) | wanted;
  asm volatile("msr sctlr_el1, %0\n isb" ::"r"(system_control) : "memory");
}

void switch_on(std::uint64_t lower, std::uint64_t upper, std::uint64_t translation) {
  asm volatile(
      "msr mair_el1, %0\n msr ttbr0_el1, %1\n msr ttbr1_el1, %2\n msr tcr_el1, %3\n isb\n"
      "tlbi vmalle1\n dsb sy\n isb" ::"r"(attributes),
      "r"(lower), "r"(upper), "r"(translation)
      : "memory");
  switch_to(1);
}

}  // namespace

void Translation::enable() {
  if (level_1[0] == 0) fill();
  switch_on(reinterpret_cast<std::uintptr_t>(level_1.data()), 0, control);
}

void Translation::disable() { switch_to(0); }

void Translation::walk(std::uint64_t tables) {
  if (level_1[0] == 0) fill();
  const auto own = reinterpret_cast<std::uintptr_t>(level_1.data());
  switch_on(own, tables, control & ~no_upper_half);
  read64(upper_half);
  write64(upper_half + gibibyte);
  asm volatile("at s1e1r, %0" ::"r"(upper_half));
  disable();
}

void Translation::move_to(std::uint64_t tables) {
  switch_on(tables, 0, control);
  disable();
}

}  // namespace latenz::guests
