// SPDX-License-Identifier: Apache-2.0
#include "aarch64/own_translation.hpp"

#include "aarch64/processor.hpp"
#include "aarch64/system_registers.hpp"
#include "aarch64/translation_table.hpp"
#include "boards/board.hpp"
#include "hypervisor.hpp"

extern "C" {
extern const std::uint8_t image_begin[];  // image.ld
extern const std::uint8_t constants_begin[];
extern const std::uint8_t data_begin[];
extern const std::uint8_t stacks[];
}

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t page = TranslationTable::page;

TranslationTable table;

std::uint64_t at(const std::uint8_t* symbol) { return reinterpret_cast<std::uint64_t>(symbol); }

bool map(std::uint64_t begin, std::uint64_t end, std::uint64_t attributes) {
  return table.map(begin, begin, end - begin, attributes);
}

/// Whole pages around something.
bool map_around(std::uint64_t begin, std::uint64_t size, std::uint64_t attributes) {
  const std::uint64_t first = begin / page * page;
  return map(first, (begin + size + page - 1) / page * page, attributes);
}

bool map_registers(std::uint64_t begin, std::uint64_t size) {
  return map_around(begin, size, Stage1::registers);
}

/// All but the lowest page of each.
bool map_stacks() {
  bool mapped = true;
  for (std::uint64_t cpu = 0; cpu < Processor::most; ++cpu) {
    const std::uint64_t begin = at(stacks) + (cpu * stack_distance);
    mapped = mapped && map(begin + page, begin + stack_distance, Stage1::data);
  }
  return mapped;
}

}  // namespace

void OwnTranslation::build() {
  const bool built = map(at(image_begin), at(constants_begin), Stage1::code) &&
                     map(at(constants_begin), at(data_begin), Stage1::constants) &&
                     map(at(data_begin), at(stacks), Stage1::data) && map_stacks() &&
                     map_around(Configuration::address, sizeof(Configuration), Stage1::constants) &&
                     board().gic.each_own(board().cpus, map_registers) &&
                     map_registers(board().uart, page);
  if (!built) fail("its own memory cannot be mapped");
}

void OwnTranslation::add(const Configuration& configuration) {
  const bool built = map_around(configuration.arrivals,
                                configuration.arrival_count * sizeof(ArrivalEntry), Stage1::data) &&
                     map_around(configuration.trace,
                                configuration.trace_records() * sizeof(TraceRecord), Stage1::data);
  if (!built) fail("configuration: arrivals or trace overlap something");
  data_barrier();
  instruction_barrier();
}

void OwnTranslation::switch_on() {
  constexpr std::uint64_t control = 28ULL |                         // T0SZ: 36 bits
                                    (1ULL << 8U) |                  // walks are cached: inner
                                    (1ULL << 10U) |                 // outer
                                    (3ULL << 12U) |                 // inner shareable
                                    (2ULL << 16U) |                 // 40 bit physical addresses
                                    (1ULL << 23U) | (1ULL << 31U);  // RES1
  constexpr std::uint64_t on = (1ULL << 0U) |                       // translation
                               (1ULL << 2U) |                       // data cached
                               (1ULL << 12U) |                      // instructions cached
                               (1ULL << 19U) |  // what can be written is never executed
                               0x30C5'0830ULL;  // RES1
  MairEl2::write(Stage1::attributes);
  TcrEl2::write(control);
  Ttbr0El2::write(table.address());
  data_barrier();
  instruction_barrier();
  asm volatile("tlbi alle2\n dsb sy\n isb" ::: "memory");
  SctlrEl2::write(on);
  instruction_barrier();
}

}  // namespace latenz::hypervisor
