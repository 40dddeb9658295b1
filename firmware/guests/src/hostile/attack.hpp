// SPDX-License-Identifier: Apache-2.0
// What a hostile guest tries. Each attack is a number of steps; a step that ends the partition is
// followed by the next one if the hypervisor restarts the partition.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace latenz::guests {

struct Attack {
  static constexpr std::uint32_t as_many_as_wanted = 0;  ///< HostileParameters::count

  std::string_view name;
  std::uint32_t steps;
  void (*run)(std::uint32_t step);
};

std::span<const Attack> memory_attacks();
std::span<const Attack> gic_attacks();
std::span<const Attack> call_attacks();
std::span<const Attack> timer_attacks();
std::span<const Attack> system_register_attacks();
std::span<const Attack> processor_attacks();
std::span<const Attack> random_attacks();
std::span<const Attack> job_attacks();

}  // namespace latenz::guests
