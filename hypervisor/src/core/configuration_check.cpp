// SPDX-License-Identifier: Apache-2.0
#include "configuration_check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>

#include "latenz/crc32.hpp"
#include "trace.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t block = 0x20'0000;
constexpr std::uint64_t page = 0x1000;
constexpr std::uint64_t record_size = sizeof(TraceRecord);
constexpr std::uint64_t image_begin = 0x4020'0000;  // image.ld
constexpr std::uint64_t memory_begin = Configuration::address;
constexpr std::uint64_t memory_of_board = 0x4000'0000;
constexpr std::uint64_t guest_end = 1ULL << 35U;
constexpr std::uint32_t first_guest_interrupt = 32;
constexpr std::uint32_t guest_interrupts = 1020;

/// Whether a range lies in the board's memory, behind the hypervisor.
bool in_memory(const Configuration& configuration, std::uint64_t begin, std::uint64_t size) {
  return begin >= memory_begin && begin <= configuration.memory_end &&
         size <= configuration.memory_end - begin;
}

bool in_guest(std::uint64_t begin, std::uint64_t size) {
  return begin < guest_end && size <= guest_end - begin;
}

std::uint32_t expected_crc(const Configuration& configuration) {
  constexpr std::size_t behind = offsetof(Configuration, crc) + sizeof configuration.crc;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&configuration);
  Crc32 sum;
  for (std::size_t i = behind; i < sizeof configuration; ++i) sum.add(bytes[i]);
  return sum.value();
}

bool counts_fit(const Configuration& configuration) {
  return configuration.partitions >= 1 &&
         configuration.partitions <= Configuration::most_partitions &&
         configuration.slots <= Configuration::most_slots &&
         configuration.sources <= Configuration::most_sources &&
         configuration.mappings <= Configuration::most_mappings &&
         configuration.interrupts <= Configuration::most_interrupts &&
         configuration.channels <= Configuration::most_channels;
}

std::string_view problem_of(const Configuration& configuration, const PartitionEntry& partition,
                            std::uint32_t cpus) {
  if (partition.cpu >= cpus) return "partition: no such CPU";
  if (partition.memory_size == 0) return "partition: no memory";
  if ((partition.memory | partition.memory_guest | partition.memory_size) % block != 0) {
    return "partition: memory is no multiple of 2 MiB";
  }
  if (!in_memory(configuration, partition.memory, partition.memory_size)) {
    return "partition: memory is not the board's";
  }
  if (!in_guest(partition.memory_guest, partition.memory_size)) {
    return "partition: guest address too high";
  }
  for (const ImageEntry& image : partition.images) {
    if (image.size == 0) continue;
    if (image.size % 64 != 0 || image.stored % block != 0) return "image: not aligned";
    if (!in_memory(configuration, image.stored, image.size)) return "image: not in memory";
    if (image.target < partition.memory_guest || image.size > partition.memory_size ||
        image.target - partition.memory_guest > partition.memory_size - image.size) {
      return "image: not in the partition's memory";
    }
  }
  return {};
}

std::string_view problem_of_health(const PartitionEntry& partition, bool has_slots) {
  if (partition.on_fault > Reaction::report || partition.on_watchdog > Reaction::report) {
    return "partition: reaction not 0 to 2";
  }
  if (partition.restart_window_ns > INT64_MAX || partition.watchdog_ns > INT64_MAX) {
    return "partition: time too long";
  }
  if (partition.restart_window_ns != 0 &&
      partition.restarts > PartitionEntry::most_timed_restarts) {
    return "partition: more restarts than are timed";
  }
  return partition.watchdog_ns != 0 && !has_slots ? "partition: a watchdog needs slots"
                                                  : std::string_view();
}

/// Only slots let partitions share a CPU.
std::string_view problem_of_cpus(const Configuration& configuration) {
  std::uint32_t taken = 0;
  for (const PartitionEntry& each :
       std::span(configuration.partition).first(configuration.partitions)) {
    const std::uint32_t bit = 1U << each.cpu;
    const bool shared = configuration.has_slots(each.cpu);
    if (!shared && (taken & bit) != 0) return "partition: its CPU is another's";
    taken |= bit;
  }
  return {};
}

std::string_view problem_of_slots(const Configuration& configuration) {
  std::uint64_t cycle_ns = 0;
  for (const SlotEntry& slot : std::span(configuration.slot).first(configuration.slots)) {
    if (slot.partition >= configuration.partitions) return "slot: no such partition";
    if (slot.length_ns == 0 || slot.length_ns > INT64_MAX - cycle_ns) return "slot: length";
    cycle_ns += slot.length_ns;
  }
  return {};
}

/// Whether somebody else would get the interrupt of a source's device.
bool has_other_owner(const Configuration& configuration, const SourceEntry& source) {
  const auto owned = std::span(configuration.interrupt).first(configuration.interrupts);
  const auto sources = std::span(configuration.source).first(configuration.sources);
  const auto owns = [&](const InterruptEntry& each) { return each.interrupt == source.interrupt; };
  const auto raises = [&](const SourceEntry& each) {
    return &each != &source && each.interrupt == source.interrupt &&
           (each.flags & SourceEntry::is_device) != 0;
  };
  return std::ranges::any_of(owned, owns) || std::ranges::any_of(sources, raises);
}

/// Of a vector in the table of distances.
std::string_view problem_of_vector(std::uint32_t first, std::uint32_t length) {
  constexpr std::uint32_t longest = 64;
  if (length > longest) return "source: too many distances";
  const bool there = first <= Configuration::most_distances - length;
  return there ? std::string_view() : "source: distances not there";
}

std::string_view problem_of_limit(const SourceEntry& source) {
  if (source.limit_period_ns > INT64_MAX || source.limit_jitter_ns > INT64_MAX) {
    return "source: limit too long";
  }
  if (source.limit_period_ns == 0 && source.limit_jitter_ns > 0) {
    return "source: limit has jitter, but no period";
  }
  return problem_of_vector(source.first_limit_distance, source.limit_distances);
}

std::string_view problem_of(const Configuration& configuration, const SourceEntry& source) {
  if (source.partition >= configuration.partitions) return "source: no such partition";
  if (!configuration.has_slots(configuration.cpu_of(source.partition))) {
    return "source: its CPU has no slots";
  }
  if (source.interrupt < first_guest_interrupt || source.interrupt >= guest_interrupts) {
    return "source: interrupt not 32 to 1019";
  }
  if ((source.flags & SourceEntry::is_device) != 0 && has_other_owner(configuration, source)) {
    return "source: its device's interrupt has another owner";
  }
  std::string_view problem = problem_of_vector(source.first_distance, source.distances);
  if (problem.empty()) problem = problem_of_vector(0, source.learned);
  if (problem.empty()) problem = problem_of_limit(source);
  if (!problem.empty()) return problem;
  return source.bottom_ns == 0 ? "source: no bottom handler" : std::string_view();
}

std::string_view problem_of(const Configuration& configuration, const MappingEntry& mapping) {
  if (mapping.partition >= configuration.partitions) return "mapping: no such partition";
  if ((mapping.guest | mapping.physical | mapping.size) % page != 0 || mapping.size == 0) {
    return "mapping: not whole pages";
  }
  if (!in_guest(mapping.guest, mapping.size)) return "mapping: guest address too high";
  if ((mapping.flags & MappingEntry::device) != 0) {
    return mapping.physical < configuration.memory_end &&
                   mapping.size > memory_of_board - std::min(mapping.physical, memory_of_board)
               ? "mapping: of a device, but in memory"
               : std::string_view();
  }
  return in_memory(configuration, mapping.physical, mapping.size) ? std::string_view()
                                                                  : "mapping: not in memory";
}

std::string_view problem_of(const Configuration& configuration, const InterruptEntry& each) {
  if (each.partition >= configuration.partitions) return "interrupt: no such partition";
  const bool known = each.interrupt >= first_guest_interrupt && each.interrupt < guest_interrupts;
  return known ? std::string_view() : "interrupt: not 32 to 1019";
}

/// What a piece of the board's addresses is for.
enum class Use : std::uint8_t { board, hypervisor, memory, image, shared, device };

/// A piece that somebody has.
struct Claim {
  std::uint64_t begin;
  std::uint64_t size;
  std::uint32_t owner;
  Use use;
};

/// All claims of a configuration, and what is nobody's.
class Claims {
 public:
  void add(Use use, std::uint32_t owner, std::uint64_t begin, std::uint64_t size) {
    claim_[count_++] = {.begin = begin, .size = size, .owner = owner, .use = use};
  }

  /// The first two that contradict each other.
  [[nodiscard]] std::string_view problem() const {
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!overlap(claim_[i], claim_[j]) || may_overlap(claim_[i], claim_[j])) continue;
        return problem_of_two(claim_[j].use, claim_[i].use);
      }
    }
    return {};
  }

 private:
  static bool overlap(const Claim& a, const Claim& b) {
    return a.size > 0 && b.size > 0 && a.begin < b.begin + b.size && b.begin < a.begin + a.size;
  }

  /// Images are only read; shared memory is meant to be; a device may be mapped twice by its owner.
  static bool may_overlap(const Claim& a, const Claim& b) {
    if (a.use != b.use) return false;
    return a.use == Use::board || a.use == Use::image || a.use == Use::shared ||
           (a.use == Use::device && a.owner == b.owner);
  }

  static std::string_view problem_of_two(Use earlier, Use later) {
    if (later < Use::shared) return "memory of two overlaps";
    return earlier == Use::board ? "mapping: not for guests of this board"
                                 : "mapping: of what is another's";
  }

  static constexpr std::size_t most =
      BoardRules::most + 4 + Configuration::most_mappings +
      (Configuration::most_partitions * (1 + std::tuple_size_v<decltype(PartitionEntry::images)>));
  std::array<Claim, most> claim_;
  std::size_t count_ = 0;
};

constexpr std::uint64_t whole_blocks(std::uint64_t size) {
  return (size + block - 1) / block * block;
}

void claim_for(Claims& claims, const PartitionEntry& partition, std::uint32_t owner) {
  claims.add(Use::memory, owner, partition.memory, partition.memory_size);
  for (const ImageEntry& image : partition.images) {
    claims.add(Use::image, owner, image.stored, whole_blocks(image.size));  // as it is mapped
  }
}

std::string_view problem_of_claims(const Configuration& configuration, const BoardRules& board) {
  constexpr std::uint32_t nobody = UINT32_MAX;
  Claims claims;
  for (const Range& each : board.not_for_guests) {
    claims.add(Use::board, nobody, each.begin, each.size);
  }
  claims.add(Use::hypervisor, nobody, image_begin, Configuration::address - image_begin);
  claims.add(Use::hypervisor, nobody, Configuration::address, sizeof configuration);
  claims.add(Use::hypervisor, nobody, configuration.arrivals,
             configuration.arrival_count * sizeof(ArrivalEntry));
  claims.add(Use::hypervisor, nobody, configuration.trace,
             configuration.trace_records() * record_size);
  for (std::uint32_t i = 0; i < configuration.partitions; ++i) {
    claim_for(claims, configuration.partition[i], i);
  }
  for (const MappingEntry& each : std::span(configuration.mapping).first(configuration.mappings)) {
    const bool device = (each.flags & MappingEntry::device) != 0;
    claims.add(device ? Use::device : Use::shared, each.partition, each.physical, each.size);
  }
  return claims.problem();
}

std::string_view problem_of_places(const Configuration& configuration, const BoardRules& board) {
  constexpr std::uint64_t most = 1ULL << 32U;
  const std::uint64_t arrivals = configuration.arrival_count;
  if (arrivals > most ||
      !in_memory(configuration, configuration.arrivals, arrivals * sizeof(ArrivalEntry))) {
    return "arrivals: not in memory";
  }
  const auto too_many = [](const CpuEntry& each) { return each.trace_records > most; };
  const std::uint64_t records = configuration.trace_records();
  if (std::ranges::any_of(configuration.cpu, too_many) ||
      !in_memory(configuration, configuration.trace, records * record_size)) {
    return "trace: not in memory";
  }
  return problem_of_claims(configuration, board);
}

std::string_view problem_of(const Configuration& configuration, const ChannelEntry& channel) {
  if (channel.sender >= configuration.partitions || channel.source >= configuration.sources) {
    return "channel: no such partition or source";
  }
  const SourceEntry& source = configuration.source[channel.source];
  if (configuration.cpu_of(channel.sender) != configuration.cpu_of(source.partition)) {
    return "channel: from one CPU to another";
  }
  if (source.partition == channel.sender) return "channel: its sender is the receiver";
  if ((source.flags & SourceEntry::is_device) != 0) return "channel: its source is a device's";
  for (const ChannelEntry& each : configuration.channel) {
    if (&each == &channel) break;
    if (each.source == channel.source) return "channel: its source is another's";
  }
  return {};
}

/// The first problem of many; nothing if none has one.
template <typename Entries, typename Check>
std::string_view first_problem(const Entries& entries, std::uint32_t count, Check check) {
  for (const auto& each : std::span(entries).first(count)) {
    if (const std::string_view problem = check(each); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::string_view problem_of(const Configuration& configuration, const BoardRules& board) {
  if (configuration.magic != Configuration::expected_magic) return "block not found";
  if (configuration.version != Configuration::current_version ||
      configuration.size != sizeof configuration) {
    return "block of another version";
  }
  if (configuration.crc != expected_crc(configuration)) return "wrong checksum";
  if (!counts_fit(configuration)) return "counts out of range";
  if (configuration.mode > Mode::carry) return "mode not 0 to 2";
  std::string_view problem =
      first_problem(configuration.partition, configuration.partitions,
                    [&](const auto& each) { return problem_of(configuration, each, board.cpus); });
  // In turn, as each relies on what those before it have checked.
  if (problem.empty()) problem = problem_of_slots(configuration);
  if (problem.empty()) problem = problem_of_cpus(configuration);
  if (problem.empty()) {
    problem =
        first_problem(configuration.partition, configuration.partitions, [&](const auto& each) {
          return problem_of_health(each, configuration.has_slots(each.cpu));
        });
  }
  const auto check = [&](const auto& entries, std::uint32_t count) {
    if (!problem.empty()) return;
    problem = first_problem(entries, count,
                            [&](const auto& each) { return problem_of(configuration, each); });
  };
  check(configuration.source, configuration.sources);
  check(configuration.mapping, configuration.mappings);
  check(configuration.interrupt, configuration.interrupts);
  check(configuration.channel, configuration.channels);
  return problem.empty() ? problem_of_places(configuration, board) : problem;
}

std::string_view problem_of_arrivals(const Configuration& configuration) {
  const auto* entries = reinterpret_cast<const ArrivalEntry*>(configuration.arrivals);
  for (std::uint64_t i = 0; i < configuration.arrival_count; ++i) {
    if (entries[i].source >= configuration.sources) return "arrival: no such source";
    if (entries[i].time_ns > INT64_MAX) return "arrival: too late";
    if (i == 0 || entries[i].source > entries[i - 1].source) continue;
    if (entries[i].source < entries[i - 1].source || entries[i].time_ns < entries[i - 1].time_ns) {
      return "arrivals: not sorted by source and time";
    }
  }
  return {};
}

}  // namespace latenz::hypervisor
