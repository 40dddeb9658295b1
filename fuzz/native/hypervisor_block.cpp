// SPDX-License-Identifier: Apache-2.0
// The hypervisor's configuration block, and its list of arrivals behind it. What guards the block
// (magic, version, size, checksum) is put right, so that what it says is looked at.
#include <algorithm>
#include <cstring>
#include <span>

#include "configuration.hpp"
#include "configuration_check.hpp"
#include "latenz/crc32.hpp"
#include "target.hpp"

namespace latenz::fuzz {
namespace {

using hypervisor::Configuration;

constexpr hypervisor::Range controller[] = {{.begin = 0x0800'0000, .size = 0x10'0000}};
constexpr hypervisor::BoardRules board = {.cpus = 4, .not_for_guests = controller};
constexpr std::uint64_t arrivals_at = 0x6000'0000;
constexpr std::size_t arrivals_bytes = 65536;

std::span<std::uint8_t> arrivals_memory() {
  static void* const memory =
      mmap(reinterpret_cast<void*>(arrivals_at), arrivals_bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  require(memory == reinterpret_cast<void*>(arrivals_at), "the board's memory can be mapped");
  return {static_cast<std::uint8_t*>(memory), arrivals_bytes};
}

void seal(Configuration& configuration) {
  configuration.magic = Configuration::expected_magic;
  configuration.version = Configuration::current_version;
  configuration.size = sizeof configuration;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&configuration);
  constexpr std::size_t behind = offsetof(Configuration, crc) + sizeof configuration.crc;
  Crc32 sum;
  for (std::size_t i = behind; i < sizeof configuration; ++i) sum.add(bytes[i]);
  configuration.crc = sum.value();
}

/// What the hypervisor relies on once a block is accepted.
void require_bounds(const Configuration& all) {
  for (const auto& each : std::span(all.partition).first(all.partitions)) {
    require(each.cpu < board.cpus, "a partition has a CPU of the board");
  }
  for (const auto& each : std::span(all.slot).first(all.slots)) {
    require(each.partition < all.partitions, "a slot is a partition's");
  }
  for (const auto& each : std::span(all.source).first(all.sources)) {
    require(each.partition < all.partitions, "a source is a partition's");
    require(each.first_distance <= Configuration::most_distances &&
                each.distances <= Configuration::most_distances - each.first_distance,
            "distances lie in their array");
    require(each.limit_distances <= 64 &&
                each.first_limit_distance <= Configuration::most_distances - each.limit_distances,
            "distances of limits lie in their array");
    require(each.limit_period_ns <= INT64_MAX && each.limit_jitter_ns <= INT64_MAX,
            "limits are times");
  }
  for (const auto& each : std::span(all.mapping).first(all.mappings)) {
    require(each.partition < all.partitions, "a mapping is a partition's");
  }
  for (const auto& each : std::span(all.interrupt).first(all.interrupts)) {
    require(each.partition < all.partitions, "an interrupt is a partition's");
  }
}

}  // namespace

void read_input(Input input) {
  Configuration configuration{};
  const std::size_t block = std::min(input.size(), sizeof configuration);
  std::ranges::copy(input.first(block), reinterpret_cast<std::uint8_t*>(&configuration));
  static_cast<void>(problem_of(configuration, board));
  const std::span<std::uint8_t> list = arrivals_memory();
  std::ranges::fill(list, std::uint8_t{0});
  std::ranges::copy(input.subspan(block, std::min(input.size() - block, list.size())),
                    list.begin());
  if (configuration.arrival_count > 0) {
    configuration.arrivals = arrivals_at;
    configuration.arrival_count %= list.size() / sizeof(hypervisor::ArrivalEntry) + 1;
  }
  seal(configuration);
  if (!problem_of(configuration, board).empty()) return;
  require_bounds(configuration);
  if (!problem_of_arrivals(configuration).empty()) return;
  const std::span entries(reinterpret_cast<const hypervisor::ArrivalEntry*>(list.data()),
                          configuration.arrival_count);
  for (const auto& each : entries) {
    require(each.source < configuration.sources, "an arrival is a source's");
  }
}

}  // namespace latenz::fuzz
