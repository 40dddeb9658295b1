// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include <cstddef>
#include <cstdint>

#include "memory_map.hpp"
#include "output.hpp"

extern "C" void second_core();  // second_core.S

namespace latenz::pair {
namespace {

Load chosen = Load::none;

/// Larger than the second-level cache of 1 MiB, as STREAM wants it; outside of any program.
constexpr std::uintptr_t arrays = 0x4000'0000;
constexpr std::size_t elements = std::size_t{4} * 1024 * 1024 / sizeof(std::uint64_t);

/// STREAM's four kernels with integers: programs here use no floating-point registers.
void stream() {
  auto* a = reinterpret_cast<volatile std::uint64_t*>(arrays);
  auto* b = a + elements;
  auto* c = b + elements;
  for (std::size_t i = 0; i < elements; ++i) c[i] = a[i];
  for (std::size_t i = 0; i < elements; ++i) b[i] = 3 * c[i];
  for (std::size_t i = 0; i < elements; ++i) c[i] = a[i] + b[i];
  for (std::size_t i = 0; i < elements; ++i) a[i] = b[i] + (3 * c[i]);
}

std::uint64_t switch_on(std::uint64_t core, std::uint64_t entry) {
  register std::uint64_t function asm("x0") = 0xC400'0003;  // CPU_ON
  register std::uint64_t target asm("x1") = core;
  register std::uint64_t address asm("x2") = entry;
  register std::uint64_t context asm("x3") = 0;
  asm volatile("smc #0"
               : "+r"(function), "+r"(target), "+r"(address), "+r"(context)
               :
               : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                 "x16", "x17", "memory");  // SMCCC 1.0
  return function;
}

}  // namespace

extern "C" [[noreturn]] void second_core_main() {
  MemoryMap::share();
  while (chosen == Load::memory) stream();
  while (true) asm volatile("");
}

void load_another_core(Load load) {
  if (load == Load::none) return;
  chosen = load;
  asm volatile("dsb sy" ::: "memory");
  const auto entry = reinterpret_cast<std::uint64_t>(second_core);
  if (switch_on(1, entry) != 0) firmware::fail("task load: no second core can be had");
}

}  // namespace latenz::pair
