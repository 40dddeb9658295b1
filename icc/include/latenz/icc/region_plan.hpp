// SPDX-License-Identifier: Apache-2.0
// Lays out channels in a region of shared memory when the program is compiled:
//
//   constexpr auto plan = plan_region(Region{0xFFFD'0000, 4096},
//                                     place<Mailbox<Command>>("command", "a53", "r5"),
//                                     place<Latest<State, 2>>("state", "r5", "a53", "logger"));
//
// gives each channel its offset and each line its writer, and prints what linker script and MPU
// need to know. What does not fit is an error of the compiler, named by the function that it says
// is not constexpr.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/channel.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

/// Memory that the sides share, at an address that is the same for all of them.
struct Region {
  std::uint32_t base = 0;
  std::uint32_t bytes = 0;
};

/// A channel of a plan, its name, and the processors at its sides: the writing side or client
/// first.
template <class Channel, std::size_t sides>
struct Placement {
  const char* name = "";
  std::array<const char*, sides> processors{};
};

template <class Channel, class... Processor>
consteval auto place(const char* name, Processor... processors) {
  constexpr std::size_t sides = 1 + Channel::shape.readers;
  static_assert(sizeof...(Processor) == sides,
                "latenz::icc: a channel has a processor for each side: the writing one, and one "
                "for each reader");
  return Placement<Channel, sides>{name, {processors...}};
}

/// A channel in its place.
struct PlannedChannel {
  const char* name = "";
  std::uint32_t offset = 0;  ///< from the start of the region
  std::uint32_t bytes = 0;
  std::size_t first_run = 0;
  std::size_t runs = 0;
  std::size_t first_processor = 0;
  std::size_t sides = 0;
};

/// What the ARMv7-R MPU (PMSAv7; Cortex-R5 and R7) is told: normal memory, shareable and not
/// cached, for reading and writing but not for execution.
struct MpuRegion {
  std::uint32_t base = 0;             ///< DRBAR: a multiple of the size
  std::uint32_t size_and_enable = 0;  ///< DRSR: eighths that are not used are disabled
  std::uint32_t access = 0;           ///< DRACR
};

namespace detail {

// Never defined: the compiler names them when a plan is wrong.
void a_channel_name_must_be_a_c_identifier();
void channel_names_must_differ();
void the_base_must_be_a_multiple_of_the_line();
void the_channels_do_not_fit_into_the_region();
void each_line_must_have_exactly_one_owner();
void the_base_must_be_a_multiple_of_the_mpu_size();
void the_plan_has_no_channel_of_this_name();

constexpr bool is_c_identifier(const char* name) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (!is_letter(*name)) return false;
  while (is_letter(*name) || (*name >= '0' && *name <= '9')) ++name;
  return *name == '\0';
}

constexpr bool are_equal(const char* a, const char* b) {
  for (; *a == *b; ++a, ++b) {
    if (*a == '\0') return true;
  }
  return false;
}

/// Do these runs cover the channel, line by line, without gap or overlap?
template <class Channel>
consteval bool owns_each_line_once() {
  std::size_t end = 0;
  for (const LineRun& run : Channel::lines()) {
    const bool one_each =
        run.owner != LineOwner::each_reader || run.bytes == Channel::shape.readers * line_bytes;
    const bool known = run.side <= Channel::shape.readers;
    if (run.offset != end || run.bytes % line_bytes != 0 || !one_each || !known) return false;
    end += run.bytes;
  }
  return end == Channel::bytes;
}

/// Prints text, and numbers, to whatever takes a character.
template <class Put>
class Printer {
 public:
  constexpr explicit Printer(Put& put) : put_(put) {}

  constexpr Printer& operator<<(const char* text) {
    for (; *text != '\0'; ++text) put_(*text);
    return *this;
  }
  constexpr Printer& operator<<(std::uint32_t number) {
    if (number >= 10) *this << number / 10;
    put_(static_cast<char>('0' + (number % 10)));
    return *this;
  }
  constexpr Printer& hexadecimal(std::uint32_t number) {
    *this << "0x";
    for (unsigned shift = 32; shift > 0; shift -= 4) {
      put_("0123456789abcdef"[(number >> (shift - 4)) & 0xFU]);
    }
    return *this;
  }

 private:
  Put& put_;
};

}  // namespace detail

/// An MPU region as an initialiser in C: base address, size and enable, access control.
template <class Put>
constexpr void print_mpu_table(const MpuRegion& entry, Put&& put) {
  detail::Printer to(put);
  to << "/* ARMv7-R MPU (PMSAv7): DRBAR, DRSR, DRACR */\n{";
  to.hexadecimal(entry.base) << ", ";
  to.hexadecimal(entry.size_and_enable) << ", ";
  to.hexadecimal(entry.access) << "},\n";
}

/// Channels in a region; `plan_region` makes it.
template <std::size_t channel_count, std::size_t run_count, std::size_t processor_count>
struct RegionPlan {
  Region region;
  std::uint32_t bytes = 0;  ///< of all channels together
  std::array<PlannedChannel, channel_count> channels{};
  std::array<LineRun, run_count> runs{};                  ///< offsets from the start of the region
  std::array<const char*, processor_count> processors{};  ///< of each side of each channel

  /// The channel of this name.
  [[nodiscard]] consteval const PlannedChannel& channel(const char* name) const {
    const PlannedChannel* found = find(name);
    if (found == nullptr) detail::the_plan_has_no_channel_of_this_name();
    return *found;
  }

  /// One MPU region around all channels: the smallest power of two of at least 256 bytes, since
  /// eighths of smaller ones cannot be disabled.
  [[nodiscard]] consteval MpuRegion mpu() const {
    std::uint32_t size_field = 7;  // 2 ^ (size_field + 1) bytes
    while ((std::uint64_t{2} << size_field) < bytes) ++size_field;
    const std::uint64_t size = std::uint64_t{2} << size_field;
    if (region.base % size != 0) detail::the_base_must_be_a_multiple_of_the_mpu_size();
    const auto used_eighths = static_cast<std::uint32_t>((bytes + size / 8 - 1) / (size / 8));
    const std::uint32_t disabled_eighths = (0xFFU << used_eighths) & 0xFFU;
    constexpr std::uint32_t never_execute = 1U << 12U;
    constexpr std::uint32_t all_access = 3U << 8U;
    constexpr std::uint32_t normal_uncached = 1U << 3U;  // TEX 001, C 0, B 0
    constexpr std::uint32_t shareable = 1U << 2U;
    return {.base = region.base,
            .size_and_enable = (disabled_eighths << 8U) | (size_field << 1U) | 1U,
            .access = never_execute | all_access | normal_uncached | shareable};
  }

  /// Symbols for a linker script: `name = address;` and `name_bytes = n;` of each channel.
  template <class Put>
  constexpr void print_linker_symbols(Put&& put) const {
    detail::Printer to(put);
    (to << "latenz_icc_region = ").hexadecimal(region.base) << ";\n";
    to << "latenz_icc_region_bytes = " << bytes << ";\n";
    for (const PlannedChannel& channel : channels) {
      to << "latenz_icc_" << channel.name << " = ";
      to.hexadecimal(region.base + channel.offset) << ";\n";
      to << "latenz_icc_" << channel.name << "_bytes = " << channel.bytes << ";\n";
    }
  }

  /// Who writes which lines, for people.
  template <class Put>
  constexpr void print_lines(Put&& put) const {
    detail::Printer to(put);
    to << "offset  bytes  writer  channel  lines\n";
    for (const PlannedChannel& channel : channels) {
      for (std::size_t i = 0; i < channel.runs; ++i) {
        const LineRun& run = runs[channel.first_run + i];
        to.hexadecimal(run.offset) << "  " << run.bytes << "  ";
        print_writer(channel, run, to);
        to << "  " << channel.name << "  " << run.part << "\n";
      }
    }
  }

  /// Null if the plan has none of this name.
  [[nodiscard]] constexpr const PlannedChannel* find(const char* name) const {
    for (const PlannedChannel& channel : channels) {
      if (detail::are_equal(channel.name, name)) return &channel;
    }
    return nullptr;
  }

 private:
  template <class Put>
  constexpr void print_writer(const PlannedChannel& channel, const LineRun& run,
                              detail::Printer<Put>& to) const {
    const char* const* side = &processors[channel.first_processor];
    switch (run.owner) {
      case LineOwner::creator:
        to << "creator";
        break;
      case LineOwner::side:
        to << side[run.side];
        break;
      case LineOwner::in_turn:
        to << side[0] << "/" << side[1];
        break;
      case LineOwner::each_reader:
        for (std::size_t reader = 1; reader < channel.sides; ++reader) {
          to << (reader == 1 ? "" : ",") << side[reader];
        }
    }
  }
};

namespace detail {

template <class Plan, class Channel, std::size_t sides>
constexpr void add(Plan& plan, PlannedChannel& next, std::size_t& index,
                   const Placement<Channel, sides>& placement) {
  if (!is_c_identifier(placement.name)) a_channel_name_must_be_a_c_identifier();
  if (plan.find(placement.name) != nullptr) channel_names_must_differ();
  if (!owns_each_line_once<Channel>()) each_line_must_have_exactly_one_owner();
  next.name = placement.name;
  next.offset = static_cast<std::uint32_t>(whole_pairs(plan.bytes));
  next.bytes = Channel::bytes;
  next.runs = Channel::lines().size();
  next.sides = sides;
  for (std::size_t i = 0; i < next.runs; ++i) {
    LineRun& run = plan.runs[next.first_run + i];
    run = Channel::lines()[i];
    run.offset += next.offset;
  }
  for (std::size_t i = 0; i < sides; ++i) {
    plan.processors[next.first_processor + i] = placement.processors[i];
  }
  plan.channels[index++] = next;
  plan.bytes = next.offset + next.bytes;
  next.first_run += next.runs;
  next.first_processor += sides;
}

}  // namespace detail

/// Places the channels one behind the other, each at the start of a pair of lines.
template <class... Channel, std::size_t... sides>
consteval auto plan_region(Region region, const Placement<Channel, sides>&... placements) {
  RegionPlan<sizeof...(Channel), (Channel::lines().size() + ...), (sides + ...)> plan{};
  plan.region = region;
  if (region.base % line_bytes != 0) detail::the_base_must_be_a_multiple_of_the_line();
  PlannedChannel next{};
  std::size_t index = 0;
  (detail::add(plan, next, index, placements), ...);
  if (plan.bytes > region.bytes) detail::the_channels_do_not_fit_into_the_region();
  return plan;
}

}  // namespace latenz::icc
