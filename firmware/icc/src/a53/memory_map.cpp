// SPDX-License-Identifier: Apache-2.0
// Descriptors: Arm Architecture Reference Manual, D8 (4 KiB granule, 32 bits of addresses).
#include "memory_map.hpp"

#include <cstdint>

#include "places.hpp"

namespace latenz::pair {
namespace {

// places in `attributes`
constexpr std::uint64_t cached = 0;
constexpr std::uint64_t uncached = 1;
constexpr std::uint64_t device = 2;
/// Normal write-back; Normal non-cacheable; Device-nGnRE.
constexpr std::uint64_t attributes = 0x0444FF;
/// T0SZ = 32, tables cached and inner shareable, no TTBR1, 36 bits of physical addresses.
constexpr std::uint64_t control =
    32U | (1U << 8U) | (1U << 10U) | (3U << 12U) | (1U << 23U) | (std::uint64_t{1} << 32U);
// SCTLR_EL1
constexpr std::uint64_t translation = 1U << 0U;
constexpr std::uint64_t alignment_check = 1U << 1U;
constexpr std::uint64_t caches = (1U << 2U) | (1U << 12U);

constexpr std::uint64_t large = std::uint64_t{1} << 30U;
constexpr std::uint64_t small = std::uint64_t{1} << 21U;
constexpr std::uint64_t accessed = 1U << 10U;
constexpr std::uint64_t outer_shareable = 2U << 8U;
constexpr std::uint64_t inner_shareable = 3U << 8U;
constexpr std::uint64_t never_execute = std::uint64_t{1} << 54U;

constexpr std::uint64_t block(std::uint64_t address, std::uint64_t kind) {
  const std::uint64_t share = kind == cached ? inner_shareable : outer_shareable;
  const std::uint64_t execute = kind == cached ? 0 : never_execute;
  return address | 1U | (kind << 2U) | share | accessed | execute;
}

// In use while a restarted program clears its memory.
[[gnu::section(".noinit")]] alignas(4096) std::uint64_t top[512];
[[gnu::section(".noinit")]] alignas(4096) std::uint64_t second[512];
[[gnu::section(".noinit")]] alignas(4096) std::uint64_t fourth[512];

void fill() {
  top[0] = block(0, cached);
  top[1] = reinterpret_cast<std::uint64_t>(second) | 3U;
  top[2] = block(2 * large, device);
  top[3] = reinterpret_cast<std::uint64_t>(fourth) | 3U;
  for (std::uint64_t i = 0; i < 512; ++i) {
    const std::uint64_t address = large + (i * small);
    second[i] = block(address, address == plain_ddr.begin ? uncached : cached);
    // the last one holds on-chip and tightly coupled memory, and nothing else
    fourth[i] = block((3 * large) + (i * small), i == 511 ? uncached : device);
  }
}

/// Tables are there before: the first core's are in use while others switch on.
void switch_on(std::uint64_t now) {
  asm volatile(
      "dsb sy\n"
      "msr mair_el1, %0\n msr tcr_el1, %1\n msr ttbr0_el1, %2\n isb\n"
      "tlbi vmalle1\n ic iallu\n dsb sy\n isb\n"
      "msr sctlr_el1, %3\n isb" ::"r"(attributes),
      "r"(control), "r"(top), "r"((now & ~alignment_check) | translation | caches)
      : "memory");
}

std::uint64_t system_control() {
  std::uint64_t now = 0;
  asm volatile("mrs %0, sctlr_el1" : "=r"(now));
  return now;
}

}  // namespace

void MemoryMap::enable() {
  const std::uint64_t now = system_control();
  if ((now & translation) != 0) return;
  fill();
  switch_on(now);
}

void MemoryMap::share() { switch_on(system_control()); }

}  // namespace latenz::pair
