// SPDX-License-Identifier: Apache-2.0
#include "aarch64/caches.hpp"

#include "aarch64/system_registers.hpp"
#include "cache_lines.hpp"

extern "C" void clean_memory(std::uint64_t begin, std::uint64_t end);  // start.S

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t line = 64;

CacheLines lines;

}  // namespace

void Caches::find() {
  const std::uint64_t levels = ClidrEl1::read();
  for (unsigned level = 0; level < CacheLines::most_levels; ++level) {
    if (!CacheLines::holds_data(levels, level)) continue;
    CsselrEl1::write(level << 1U);
    instruction_barrier();
    lines.add(level, CcsidrEl1::read());
  }
}

void Caches::clean_to_memory(std::uint64_t begin, std::uint64_t size) {
  if (size > 0) clean_memory(begin / line * line, begin + size);
}

void Caches::clean_line(std::uint64_t operand) {
  if (lines.exists(operand)) asm volatile("dc cisw, %0" ::"r"(operand) : "memory");
}

}  // namespace latenz::hypervisor
