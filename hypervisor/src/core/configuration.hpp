// SPDX-License-Identifier: Apache-2.0
// The static configuration: what `latenz hypervisor build` makes of a system file and puts behind
// the hypervisor in the image. Little endian, 8 byte aligned; docs/hypervisor.md has the byte
// table. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latenz::hypervisor {

/// What an image is built for: the hypervisor probes nothing, and memory of zeros names none.
enum class BoardNumber : std::uint32_t {
  none = 0,
  virt = 1,
  zcu102 = 2,
  virt_gicv3 = 3,
  raspi4b = 4
};

enum class Mode : std::uint32_t { plain, paper, carry };

/// Zero terminated if it is shorter.
using Name = std::array<char, 32>;

constexpr std::string_view text_of(const Name& name) {
  std::size_t length = 0;
  while (length < name.size() && name[length] != '\0') ++length;
  return {name.data(), length};
}

/// A file that is copied into a partition before it starts.
struct ImageEntry {
  std::uint64_t stored;  ///< physical address, a multiple of 2 MiB
  std::uint64_t target;  ///< guest physical address
  std::uint64_t size;    ///< a multiple of 64; 0: none
};

/// What becomes of a guest's fault.
enum class Reaction : std::uint8_t {
  stop,
  restart,  ///< unless it was restarted too often: then stop
  report,   ///< it is told and counted; an access fails in the guest, as on a bus
};

struct PartitionEntry {
  static constexpr std::uint32_t says_ready = 1U << 1U;  ///< interrupts begin once it has said so
  static constexpr std::uint32_t has_console = 1U << 2U;
  static constexpr std::uint32_t most_timed_restarts = 16;  ///< `restarts` with a window

  Name name;
  std::uint32_t cpu;
  std::uint32_t flags;
  std::uint64_t memory;        ///< physical address, a multiple of 2 MiB
  std::uint64_t memory_guest;  ///< guest physical address, a multiple of 2 MiB
  std::uint64_t memory_size;   ///< a multiple of 2 MiB
  std::uint64_t entry;         ///< guest physical address
  std::uint64_t argument;      ///< in x0
  std::array<ImageEntry, 4> images;
  std::uint32_t restarts;  ///< after so many by faults it is stopped all the same
  Reaction on_fault;
  Reaction on_watchdog;
  std::uint16_t reserved;
  std::uint64_t restart_window_ns;  ///< `restarts` are those of any such time; 0: of all
  std::uint64_t watchdog_ns;        ///< its progress must not stay the same for so long; 0: it may
};

/// A slot of the TDMA cycle of its partition's CPU: those of a CPU are its cycle, in this order. A
/// CPU without any has one partition at most.
struct SlotEntry {
  std::uint32_t partition;
  std::uint32_t reserved;
  std::uint64_t length_ns;
};

struct SourceEntry {
  static constexpr std::uint32_t monitored = 1U << 0U;
  /// `interrupt` is a passed-through device's own, which raises it; no InterruptEntry has it.
  static constexpr std::uint32_t is_device = 1U << 1U;
  static constexpr std::uint32_t by_edge = 1U << 2U;  ///< its device tells of each once

  Name name;
  std::uint32_t partition;
  std::uint32_t flags;
  std::uint32_t interrupt;  ///< ID at the guest's GIC
  std::uint32_t distances;  ///< delta-minus(2), (3), ... of the monitor, closed
  std::uint32_t first_distance;
  std::uint32_t learned;          ///< length of the vector to be learned; 0: nothing is learned
  std::uint64_t learn_events;     ///< the monitor is switched on after so many, `distances` allowed
  std::uint64_t bottom_ns;        ///< C_BH, also the budget of an interposed job
  std::uint32_t limit_distances;  ///< delta-minus(2), (3), ... of the source's limit (R7), closed
  std::uint32_t first_limit_distance;
  std::uint64_t limit_period_ns;  ///< 0: its distances alone limit it, if it has any
  std::uint64_t limit_jitter_ns;
};

/// Memory or a device's registers that a partition may access.
struct MappingEntry {
  static constexpr std::uint32_t writable = 1U << 0U;
  static constexpr std::uint32_t device = 1U << 1U;

  std::uint32_t partition;
  std::uint32_t flags;
  std::uint64_t guest;  ///< multiples of 4 KiB
  std::uint64_t physical;
  std::uint64_t size;
};

/// A shared peripheral interrupt of the board that belongs to a partition and is no source.
struct InterruptEntry {
  static constexpr std::uint16_t by_edge = 1U << 0U;  ///< else by a level

  std::uint32_t partition;
  std::uint16_t interrupt;
  std::uint16_t flags;
};

/// An interrupt that the hypervisor raises for a source, by a timer of its own.
struct ArrivalEntry {
  std::uint64_t time_ns;  ///< from the start of the first TDMA cycle; of a source never decreasing
  std::uint32_t source;   ///< never decreasing
  std::uint32_t reserved;
};

/// From one partition to another of the same CPU: memory, of which each has a mapping, and a
/// doorbell.
struct ChannelEntry {
  Name name;
  std::uint32_t sender;  ///< the partition whose calls raise the source
  std::uint32_t source;  ///< of the receiver, and of no device
  std::uint64_t guest;   ///< where both see the memory
  std::uint64_t size;
};

/// A CPU that is shared by slots.
struct CpuEntry {
  std::uint64_t trace_records;  ///< the last so many are kept
  std::uint64_t least_cycles;   ///< TDMA cycles before its end, even if all is done
};

struct Configuration {
  static constexpr std::uint64_t expected_magic = 0x5648'5A4E'4554'414C;  ///< "LATENZHV"
  static constexpr std::uint32_t current_version = 8;
  static constexpr std::uint64_t address = 0x4040'0000;  ///< on every board
  static constexpr std::size_t most_partitions = 8;
  static constexpr std::size_t most_slots = 64;
  static constexpr std::size_t most_sources = 32;
  static constexpr std::size_t most_mappings = 32;
  static constexpr std::size_t most_interrupts = 32;
  static constexpr std::size_t most_distances = 1024;
  static constexpr std::size_t most_channels = 16;
  static constexpr std::size_t most_cpus = 8;
  static constexpr std::uint32_t trace_on = 1U << 0U;

  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;  ///< bytes of this struct
  std::uint32_t crc;   ///< CRC-32 of all behind it
  Mode mode;
  std::uint32_t flags;
  std::uint32_t partitions;
  std::uint32_t slots;
  std::uint32_t sources;
  std::uint32_t mappings;
  std::uint32_t interrupts;
  std::uint64_t memory_end;  ///< of the board, first address behind; it begins at 0x4000'0000
  std::uint64_t arrivals;    ///< physical address of ArrivalEntry[]
  std::uint64_t arrival_count;
  std::uint64_t trace;  ///< physical address of TraceRecord[]: those of the CPUs, in their order
  BoardNumber board;
  std::uint32_t channels;
  std::array<PartitionEntry, most_partitions> partition;
  std::array<SlotEntry, most_slots> slot;
  std::array<SourceEntry, most_sources> source;
  std::array<MappingEntry, most_mappings> mapping;
  std::array<InterruptEntry, most_interrupts> interrupt;
  std::array<std::int64_t, most_distances> distance_ns;
  std::array<ChannelEntry, most_channels> channel;
  std::array<CpuEntry, most_cpus> cpu;

  [[nodiscard]] std::uint32_t cpu_of(std::uint32_t index) const { return partition[index].cpu; }

  [[nodiscard]] bool has_slots(std::uint32_t which) const {
    for (std::uint32_t i = 0; i < slots; ++i) {
      if (cpu_of(slot[i].partition) == which) return true;
    }
    return false;
  }

  /// Records of the trace of all CPUs before one.
  [[nodiscard]] std::uint64_t trace_records_before(std::size_t which) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < which; ++i) sum += cpu[i].trace_records;
    return sum;
  }
  [[nodiscard]] std::uint64_t trace_records() const { return trace_records_before(most_cpus); }
};

static_assert(sizeof(PartitionEntry) == 200 && sizeof(SlotEntry) == 16);
static_assert(sizeof(SourceEntry) == 96 && sizeof(MappingEntry) == 32);
static_assert(offsetof(Configuration, crc) == 16 && offsetof(Configuration, partition) == 88);
static_assert(offsetof(Configuration, board) == 80, "start.S reads it");
static_assert(sizeof(Configuration) == 88 + (8 * 200) + (64 * 16) + (32 * 96) + (32 * 32) +
                                           (32 * 8) + (1024 * 8) + (16 * 56) + (8 * 16));

}  // namespace latenz::hypervisor
