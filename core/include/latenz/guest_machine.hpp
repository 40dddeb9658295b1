// SPDX-License-Identifier: Apache-2.0
// What a guest finds: the same machine on every board, laid out like QEMU's `virt`, so that what
// runs there runs here unchanged. docs/guests.md is the guide to it. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latenz::hypervisor {

/// Guest physical addresses.
struct GuestMachine {
  static constexpr std::uint64_t distributor = 0x0800'0000;  ///< GIC, emulated, one CPU
  static constexpr std::uint64_t cpu_interface =
      0x0801'0000;  ///< GICv2: the virtual one, two pages
  static constexpr std::uint64_t redistributor = 0x080A'0000;  ///< GICv3: emulated, two frames
  static constexpr std::uint64_t console = 0x0900'0000;        ///< PL011, emulated
  static constexpr std::uint64_t information = 0x0B00'0000;    ///< InformationPage, read only
  static constexpr std::uint64_t report = 0x0B00'1000;         ///< ReportPage, read and write
  static constexpr std::uint64_t loader = 0x0B00'2000;         ///< starts the guest, see loader.S
  static constexpr std::uint64_t memory = 0x4000'0000;         ///< where RAM usually begins
  static constexpr std::uint64_t store = 0x8'0000'0000;  ///< pristine images at store + physical

  static constexpr std::uint32_t virtual_timer_interrupt = 27;
};

/// What the hypervisor tells a guest.
struct InformationPage {
  static constexpr std::uint32_t expected_magic = 0x4950'5A4C;  ///< "LZPI"
  static constexpr std::size_t most_sources = 32;
  static constexpr std::size_t most_copies = 4;
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::size_t most_slots = 64;
  static constexpr std::size_t most_channels = 16;

  /// A source of interrupts whose bottom handler runs in this partition.
  struct Source {
    std::uint32_t interrupt;  ///< its ID at the guest's GIC
    std::uint32_t reserved;
    std::uint64_t bottom_ns;  ///< execution time that its bottom handler may take
  };

  /// Bytes that the loader copies before the guest starts; all in guest physical addresses.
  struct Copy {
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t size;  ///< a multiple of 64
  };

  /// A slot of the TDMA cycle.
  struct Slot {
    std::uint64_t offset_ns;  ///< from the start of the cycle
    std::uint64_t length_ns;
    std::uint32_t partition;  ///< its owner
    std::uint32_t reserved;
  };

  /// A channel that this partition is an end of.
  struct Channel {
    std::array<char, 32> name;  ///< zero terminated if it is shorter
    std::uint32_t number;       ///< for Hypercall::notify
    std::uint32_t sends;        ///< 1: this partition rings; 0: it is interrupted
    std::uint32_t interrupt;    ///< the doorbell's ID at the receiver's GIC
    std::uint32_t reserved;
    std::uint64_t address;  ///< of the memory, where both ends see it
    std::uint64_t size;
  };

  std::uint32_t magic;
  std::uint32_t version;  ///< 2
  std::uint32_t partition;
  std::uint32_t sources;
  std::uint64_t counter_hz;
  std::uint64_t memory_begin;
  std::uint64_t memory_size;
  std::uint64_t entry;     ///< where the guest starts
  std::uint64_t argument;  ///< in its x0
  std::uint64_t copies;
  Copy copy[most_copies];
  Source source[most_sources];
  std::uint64_t first_slot;  ///< tick of the counter; changes once, when the run begins
  std::uint64_t cycle_ns;    ///< 0: this CPU has no slots
  std::uint32_t slots;
  std::uint32_t channels;
  Slot slot[most_slots];
  Channel channel[most_channels];
};
static_assert(sizeof(InformationPage) <= 4096, "it is one page");
static_assert(offsetof(InformationPage, memory_begin) == 24, "loader.S reads it");
static_assert(offsetof(InformationPage, copy) == 64, "loader.S reads it");
static_assert(offsetof(InformationPage, first_slot) == 672);
static_assert(offsetof(InformationPage, slot) == 696);
static_assert(offsetof(InformationPage, channel) == 2232);

/// What a guest tells, if it likes.
struct ReportPage {
  std::uint64_t progress;  ///< read at the end of each of its slots
};

/// Calls by HVC #0 as of the SMC calling convention: function in w0, arguments from x1, result x0.
/// Besides them PSCI: VERSION, FEATURES, SYSTEM_OFF (ends this partition), SYSTEM_RESET (restarts
/// it), CPU_OFF.
struct Hypercall {
  static constexpr std::uint32_t version = 0xC600'0000;     ///< 0x1'0000: 1.0
  static constexpr std::uint32_t ready = 0xC600'0001;       ///< its interrupts may begin
  static constexpr std::uint32_t statistics = 0xC600'0002;  ///< x1: which; of this partition
  static constexpr std::uint32_t notify =
      0xC600'0003;                           ///< x1: number of a channel that it sends to
  static constexpr std::int64_t rung = 0;    ///< the receiver will be interrupted
  static constexpr std::int64_t merged = 1;  ///< and is about to be for an earlier call: too many
  static constexpr std::int64_t not_yet =
      -3;  ///< the run has not begun, or is ending: nobody is told
  static constexpr std::int64_t not_supported = -1;
  static constexpr std::int64_t invalid_parameters = -2;
};

/// What Hypercall::statistics tells.
enum class Statistic : std::uint64_t {
  raised = 0,      ///< interrupts of its sources
  completed = 1,   ///< bottom handlers that ended
  interposed = 2,  ///< granted by a monitor in a foreign slot
  denied = 3,      ///< by a monitor
  overruns = 4,    ///< interposed jobs that used up their budget
  pending = 5,     ///< in its queue now
  restarts = 6,
};

}  // namespace latenz::hypervisor
