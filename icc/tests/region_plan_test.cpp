// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/region_plan.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "latenz/icc.hpp"

namespace latenz::icc {
namespace {

struct Command {
  float target[6];
  std::uint32_t cycle;
};

struct State {
  double angle[40];
  std::uint64_t at_ns;
};

constexpr auto plan = plan_region(
    Region{0xFFFC'0000, 16384}, place<Exchange<Command, State>>("servo", "a53", "r5"),
    place<Latest<State, 2>>("state", "r5", "a53", "logger"),
    place<Mailbox<Command>>("command", "a53", "r5"), place<Ring<Command, 8>>("trace", "r5"));

TEST(RegionPlan, ChannelsFollowEachOtherInPairsOfLines) {
  std::uint32_t end = 0;
  for (const PlannedChannel& channel : plan.channels) {
    EXPECT_EQ(channel.offset % (2 * line_bytes), 0U) << channel.name;
    EXPECT_GE(channel.offset, end) << channel.name;
    EXPECT_LE(channel.offset, end + line_bytes) << channel.name;
    end = channel.offset + channel.bytes;
  }
  EXPECT_EQ(plan.bytes, end);
  EXPECT_EQ(plan.channel("servo").bytes, (Exchange<Command, State>::bytes));
  EXPECT_EQ(plan.channel("trace").bytes, (Ring<Command, 8>::bytes));
}

TEST(RegionPlan, EveryLineOfAChannelHasOneOwner) {
  for (const PlannedChannel& channel : plan.channels) {
    std::uint32_t end = channel.offset;
    for (std::size_t i = 0; i < channel.runs; ++i) {
      const LineRun& run = plan.runs.at(channel.first_run + i);
      EXPECT_EQ(run.offset, end) << channel.name << ": " << run.part;
      end += run.bytes;
    }
    EXPECT_EQ(end, channel.offset + channel.bytes) << channel.name;
  }
}

template <class Print>
std::string printed(Print print) {
  std::string text;
  print([&text](char character) { text += character; });
  return text;
}

TEST(RegionPlan, SymbolsForTheLinkerAreAddressesAndSizes) {
  const std::string text = printed([](auto put) { plan.print_linker_symbols(put); });
  EXPECT_EQ(text.substr(0, 35), "latenz_icc_region = 0xfffc0000;\nlat");
  EXPECT_NE(text.find("latenz_icc_servo = 0xfffc0000;\n"), std::string::npos);
  std::ostringstream symbol;
  symbol << "latenz_icc_trace = 0x" << std::hex << 0xFFFC'0000U + plan.channel("trace").offset;
  EXPECT_NE(text.find(symbol.str() + ";\n"), std::string::npos);
  EXPECT_NE(text.find("latenz_icc_trace_bytes = " + std::to_string(Ring<Command, 8>::bytes)),
            std::string::npos);
}

/// The bytes that an MPU region covers, as the architecture has it (PMSAv7): 2 ^ (size + 1) bytes
/// in eighths, of which DRSR disables some.
std::set<std::uint32_t> lines_covered(const MpuRegion& region) {
  const std::uint64_t size = std::uint64_t{1} << (((region.size_and_enable >> 1U) & 0x1FU) + 1);
  EXPECT_EQ(region.base % size, 0U);
  std::set<std::uint32_t> covered;
  for (std::uint64_t offset = 0; offset < size; offset += line_bytes) {
    const auto eighth = static_cast<unsigned>(offset * 8 / size);
    if ((region.size_and_enable >> (8 + eighth) & 1U) == 0) {
      covered.insert(static_cast<std::uint32_t>(offset));
    }
  }
  return covered;
}

template <std::uint32_t slots>
void expect_mpu_to_cover_what_is_planned() {
  static constexpr auto ring =
      plan_region(Region{0x2000'0000, 1U << 20U}, place<Ring<Command, slots>>("ring", "r5"));
  constexpr MpuRegion region = ring.mpu();
  const std::set<std::uint32_t> covered = lines_covered(region);
  EXPECT_EQ(region.size_and_enable & 1U, 1U);
  EXPECT_EQ(*covered.begin(), 0U);
  EXPECT_EQ(*covered.rbegin() + line_bytes, covered.size() * line_bytes) << "no gap";
  EXPECT_GE(covered.size() * line_bytes, ring.bytes);
  EXPECT_LE(covered.size() * line_bytes, ring.bytes + ring.bytes / 4) << "less than an eighth more";
}

TEST(RegionPlan, MpuCoversThePlanAndLittleMore) {
  expect_mpu_to_cover_what_is_planned<2>();
  expect_mpu_to_cover_what_is_planned<8>();
  expect_mpu_to_cover_what_is_planned<16>();
  expect_mpu_to_cover_what_is_planned<128>();
  expect_mpu_to_cover_what_is_planned<4096>();
}

TEST(RegionPlan, MpuMemoryIsNormalSharedUncachedAndNeverExecuted) {
  constexpr MpuRegion region = plan.mpu();
  EXPECT_EQ(region.access, 0x130CU) << "XN, AP 011, TEX 001, S, not C, not B";
  const std::string text = printed([](auto put) { print_mpu_table(plan.mpu(), put); });
  EXPECT_NE(text.find("\n{0xfffc0000, 0x"), std::string::npos);
  EXPECT_NE(text.find(", 0x0000130c},\n"), std::string::npos);
}

TEST(RegionPlan, LinesAreShownWithTheProcessorsThatWriteThem) {
  const std::string text = printed([](auto put) { plan.print_lines(put); });
  EXPECT_NE(text.find("  a53/r5  servo  slot\n"), std::string::npos);
  EXPECT_NE(text.find("  128  a53,logger  state  announcements\n"), std::string::npos);
  EXPECT_NE(text.find("  r5  trace  slots\n"), std::string::npos);
}

/// Text is made by the compiler if wanted.
consteval bool prints_at_compile_time() {
  std::array<char, 4096> text{};
  std::size_t length = 0;
  plan.print_linker_symbols([&](char character) { text[length++] = character; });
  return length > 100 && text[0] == 'l';
}
static_assert(prints_at_compile_time());

// Do the sides write what `lines` says, and nothing else? The channels run on a platform that
// writes down who stores where.

struct Recorder {
  static inline const std::byte* base = nullptr;
  static inline std::size_t side = 0;
  static inline std::map<std::size_t, std::set<std::size_t>> writers{};  // of each line

  static void note(const void* address, std::size_t bytes) {
    const auto first = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
    for (std::size_t offset = first; offset < first + bytes; ++offset) {
      writers[offset / line_bytes].insert(side);
    }
  }
};

struct RecordedMemory : Coherent {
  static void write(void* shared, const void* own, std::size_t bytes) {
    Recorder::note(shared, bytes);
    Coherent::write(shared, own, bytes);
  }
};

struct RecordedOrder : StandardOrder {
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) {
    Recorder::note(&word, sizeof word);
    StandardOrder::store_relaxed(word, value);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) {
    Recorder::note(&word, sizeof word);
    StandardOrder::store_release(word, value);
  }
};

using Recorded = Platform<RecordedMemory, RecordedOrder>;

void as_side(std::size_t side, const std::function<void()>& act) {
  Recorder::side = side;
  act();
}

template <class Channel>
class Lines : public testing::Test {
 protected:
  Lines() { Recorder::base = memory; }

  /// Every recorded store is by an owner of its line, and each run but the creator's was written.
  static void expect_owners_to_have_written() {
    for (const LineRun& run : Channel::lines()) {
      std::set<std::size_t> seen;
      for (std::uint32_t offset = 0; offset < run.bytes; offset += line_bytes) {
        std::set<std::size_t> allowed = {run.side};
        if (run.owner == LineOwner::creator) allowed = {};
        if (run.owner == LineOwner::in_turn) allowed = {0, 1};
        if (run.owner == LineOwner::each_reader) allowed = {1 + offset / line_bytes};
        for (const std::size_t side : Recorder::writers[(run.offset + offset) / line_bytes]) {
          EXPECT_TRUE(allowed.contains(side)) << run.part << ", side " << side;
          seen.insert(side);
        }
      }
      EXPECT_EQ(seen.empty(), run.owner == LineOwner::creator || run.bytes == 0) << run.part;
    }
  }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
};

using RecordedMailbox = Mailbox<Command, Recorded>;
using MailboxLines = Lines<RecordedMailbox>;
TEST_F(MailboxLines, AreWrittenByTheirOwners) {
  auto writer = *RecordedMailbox::Writer::create(memory, sizeof memory, "command");
  Recorder::writers.clear();
  RecordedMailbox::Reader reader;
  as_side(1, [&] { reader = *RecordedMailbox::Reader::attach(memory, sizeof memory); });
  for (std::uint32_t i = 0; i < 5; ++i) {
    as_side(0, [&] { EXPECT_EQ(writer.try_write({.target = {}, .cycle = i}), Result::ok); });
    as_side(0, [&] { writer.beat(); });
    Command command{};
    as_side(1, [&] { EXPECT_EQ(reader.try_read(command), Result::ok); });
    EXPECT_EQ(command.cycle, i);
  }
  expect_owners_to_have_written();
}

using RecordedExchange = Exchange<Command, State, Recorded>;
using ExchangeLines = Lines<RecordedExchange>;
TEST_F(ExchangeLines, AreWrittenByTheirOwners) {
  auto client = *RecordedExchange::Client::create(memory, sizeof memory, "servo");
  Recorder::writers.clear();
  RecordedExchange::Server server;
  as_side(1, [&] { server = *RecordedExchange::Server::attach(memory, sizeof memory); });
  for (std::uint32_t i = 0; i < 5; ++i) {
    as_side(0, [&] { EXPECT_EQ(client.try_post({.target = {}, .cycle = i}), Result::ok); });
    as_side(0, [&] { client.beat(); });
    as_side(1, [&] {
      Command command{};
      EXPECT_EQ(server.try_take(command), Result::ok);
      EXPECT_EQ(server.answer({.angle = {}, .at_ns = command.cycle}), Result::ok);
    });
    State state{};
    as_side(0, [&] { EXPECT_EQ(client.try_collect(state), Result::ok); });
    EXPECT_EQ(state.at_ns, i);
  }
  expect_owners_to_have_written();
}

using RecordedLatest = Latest<State, 2, Recorded>;
using LatestLines = Lines<RecordedLatest>;
TEST_F(LatestLines, AreWrittenByTheirOwners) {
  auto writer = *RecordedLatest::Writer::create(memory, sizeof memory, "state");
  Recorder::writers.clear();
  std::array<RecordedLatest::Reader, 2> readers;
  for (std::uint32_t i = 0; i < 2; ++i) {
    as_side(1 + i,
            [&] { readers.at(i) = *RecordedLatest::Reader::attach(memory, sizeof memory, i); });
  }
  for (std::uint64_t i = 0; i < 12; ++i) {
    as_side(0, [&] { writer.update({.angle = {}, .at_ns = i}); });
    as_side(0, [&] { writer.beat(); });
    const std::size_t which = i / 3 % 2;
    State state{};
    as_side(1 + which, [&] { EXPECT_EQ(readers.at(which).poll(state), Freshness::updated); });
    EXPECT_EQ(state.at_ns, i);
  }
  expect_owners_to_have_written();
}

using RecordedRing = Ring<Command, 4, 2, Recorded>;
using RingLines = Lines<RecordedRing>;
TEST_F(RingLines, AreWrittenByTheirOwners) {
  auto writer = *RecordedRing::Writer::create(memory, sizeof memory, "trace");
  Recorder::writers.clear();
  std::array<RecordedRing::Reader, 2> readers;
  for (std::uint32_t i = 0; i < 2; ++i) {
    as_side(1 + i,
            [&] { readers.at(i) = *RecordedRing::Reader::attach(memory, sizeof memory, i); });
  }
  for (std::uint32_t i = 0; i < 9; ++i) {
    as_side(0, [&] { EXPECT_EQ(writer.try_write({.target = {}, .cycle = i}), Result::ok); });
    as_side(0, [&] { writer.beat(); });
    for (std::size_t which = 0; which < 2; ++which) {
      Command command{};
      as_side(1 + which, [&] { EXPECT_EQ(readers.at(which).try_read(command), Result::ok); });
      EXPECT_EQ(command.cycle, i);
    }
  }
  as_side(0, [&] { writer.leave_behind(1); });
  expect_owners_to_have_written();
}

}  // namespace
}  // namespace latenz::icc
