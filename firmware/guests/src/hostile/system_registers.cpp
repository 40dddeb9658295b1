// SPDX-License-Identifier: Apache-2.0
// All system registers that an instruction can name, read and written.
#include <array>
#include <cstdint>

#include "attack.hpp"
#include "generated.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint32_t msr_x0 = 0xD510'0000;
constexpr std::uint32_t mrs_x0 = 0xD530'0000;

/// A name: op0 (2 or 3), op1, CRn, CRm and op2.
struct Name {
  std::uint32_t op0;
  std::uint32_t op1;
  std::uint32_t crn;
  std::uint32_t crm;
  std::uint32_t op2;

  [[nodiscard]] constexpr std::uint32_t code() const {
    return ((op0 & 1U) << 19U) | (op1 << 16U) | (crn << 12U) | (crm << 8U) | (op2 << 5U);
  }
};

void read(Name name) { run_instruction(mrs_x0 | name.code()); }

void write(Name name, std::uint64_t value) {
  Registers values = {value};
  run_instruction(msr_x0 | name.code(), values);
}

/// Reads, writes that back, and puts in ones where that does not end the attacker itself.
void write_back(Name name) {
  Registers values{};
  run_instruction(mrs_x0 | name.code(), values);
  run_instruction(msr_x0 | name.code(), values);
  if (name.op1 == 0 && name.op0 == 3) return;
  write(name, ~std::uint64_t{0});
}

/// All of some op1: CRn, CRm and op2 from the step.
constexpr std::uint32_t of_one_op1 = 16 * 16 * 8;

constexpr Name name_at(std::uint32_t op0, std::uint32_t op1, std::uint32_t step) {
  return {.op0 = op0,
          .op1 = op1,
          .crn = (step >> 7U) & 15U,
          .crm = (step >> 3U) & 15U,
          .op2 = step & 7U};
}

template <std::uint32_t op1>
void read_and_write(std::uint32_t step) {
  const Name name = name_at(3, op1, step);
  read(name);
  write(name, 0);
  write(name, ~std::uint64_t{0});
}

constexpr std::array<std::uint32_t, 4> levels = {0, 3, 4, 6};  // op1 of EL1, EL0, EL2, EL3

/// CRn is 0, 1 or 7 for those that exist.
constexpr std::uint32_t debug_registers = levels.size() * 3 * 128;

void debug(std::uint32_t step) {
  constexpr std::array<std::uint32_t, 3> groups = {0, 1, 7};
  Name name = name_at(2, levels[step / 128 % levels.size()], step);
  name.crn = groups[step / 128 / levels.size()];
  write_back(name);
}

void performance(std::uint32_t step) {
  for (const std::uint32_t crn : {9U, 14U}) {
    write_back({.op0 = 3, .op1 = 3, .crn = crn, .crm = 8 + ((step >> 3U) & 7U), .op2 = step & 7U});
  }
}

void implementation_defined(std::uint32_t step) {
  write_back({.op0 = 3,
              .op1 = (step >> 8U) & 7U,
              .crn = (step & 1U) != 0 ? 15U : 11U,
              .crm = (step >> 4U) & 15U,
              .op2 = (step >> 1U) & 7U});
}

void gic_v3(std::uint32_t step) {
  const std::uint32_t op2 = step & 7U;
  const std::uint32_t op1 = (step >> 3U) & 7U;
  for (std::uint32_t crm = 8; crm < 16; ++crm) {
    const Name name = {.op0 = 3, .op1 = op1, .crn = 12, .crm = crm, .op2 = op2};
    read(name);
    write(name, ~std::uint64_t{0});
  }
}

/// Of EL1, the guest's own: identification registers cannot be written, the others stay the same.
void own(std::uint32_t step) { write_back(name_at(3, 0, step)); }

void user(std::uint32_t step) {
  const Name name = name_at(3, 3, step);
  if (name.crn == 14 && name.crm == 3) return;  // virtual timer: attacks of its own
  read(name);
  write(name, 0);
}

/// Caches, translation, TLB, of each level.
void system_instructions(std::uint32_t step) {
  constexpr std::uint32_t sys_x0 = 0xD508'0000;
  const Name name = name_at(0, levels[step / of_one_op1], step);
  run_instruction(sys_x0 | name.code());
}

constexpr std::uint32_t el2 = 4;
constexpr std::uint32_t el2_of_a_host = 5;
constexpr std::uint32_t el3 = 6;
constexpr std::uint32_t secure = 7;

constexpr auto attacks = std::to_array<Attack>({
    {"registers-el1", of_one_op1, own},
    {"registers-el0", of_one_op1, user},
    {"registers-el2", of_one_op1, read_and_write<el2>},
    {"registers-el2-host", of_one_op1, read_and_write<el2_of_a_host>},
    {"registers-el3", of_one_op1, read_and_write<el3>},
    {"registers-secure", of_one_op1, read_and_write<secure>},
    {"registers-caches", of_one_op1, read_and_write<1>},
    {"registers-cache-sizes", of_one_op1, read_and_write<2>},
    {"registers-debug", debug_registers, debug},
    {"registers-performance", 64, performance},
    {"registers-implementation", 0x800, implementation_defined},
    {"registers-gic-v3", 64, gic_v3},
    {"registers-instructions", levels.size() * of_one_op1, system_instructions},
});

}  // namespace

std::span<const Attack> system_register_attacks() { return attacks; }

}  // namespace latenz::guests
