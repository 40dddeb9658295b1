// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "failure.hpp"
#include "intercore_case.hpp"
#include "intercore_plan.hpp"
#include "intercore_stamps.hpp"

namespace latenz::probe {
namespace {

std::string refusal_of(std::vector<const char*> arguments) {
  arguments.push_back("--output=somewhere");
  try {
    static_cast<void>(parse_intercore_plan(arguments));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(IntercorePlan, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal_of({"--bytes=24"}),
            "--bytes: 24 is not a power of two; write 1, 2, 4 ... 4096");
  EXPECT_EQ(refusal_of({"--through=raw", "--bytes=8"}),
            "--bytes: raw carries no message; leave the option out");
  EXPECT_EQ(refusal_of({"--cpus=0"}),
            "--cpus: '0' is not two different CPUs; write for example "
            "0,1");
  EXPECT_EQ(refusal_of({"--cpus=0,0"}),
            "--cpus: '0,0' is not two different CPUs; write for example 0,1");
  for (const char* wrong : {"--bytes=0", "--bytes=8192", "--samples=0", "--samples=1000001",
                            "--block=2001", "--through=mail", "--wait=sleep", "--cpus=0,9999"}) {
    EXPECT_NE(refusal_of({wrong}), "") << wrong;
  }
  EXPECT_THROW(static_cast<void>(parse_intercore_plan({})), Failure);  // no --output
}

TEST(IntercorePlan, TakesTurnsAtLeastFortyTimes) {
  for (const auto& [samples, block] :
       {std::pair{"--samples=10000", 250UL}, std::pair{"--samples=1000000", 2000UL},
        std::pair{"--samples=7", 1UL}}) {
    const std::array arguments{"--output=somewhere", samples};
    EXPECT_EQ(parse_intercore_plan(arguments).block, block);
  }
}

TEST(Stamps, AgreeWithTheClock) {
  const std::int64_t first_ns = read_clock_ns(CLOCK_MONOTONIC);
  const Stamps stamps = Stamps::calibrated();
  const std::int64_t before_ns = read_clock_ns(CLOCK_MONOTONIC);
  const std::int64_t stamp = stamps.begin();
  const std::int64_t after_ns = read_clock_ns(CLOCK_MONOTONIC);
  // The calibrated rate is inexact: the longer this process was held up, the more it matters.
  const std::int64_t inexact_ns = 1'000 + (after_ns - first_ns) / 20'000;
  EXPECT_GE(stamps.time_ns(stamp), before_ns - inexact_ns);
  EXPECT_LE(stamps.time_ns(stamp), after_ns + inexact_ns);
  EXPECT_GT(stamps.pair_ticks(), 0);
}

TEST(Stamps, TurnsAnyNumberOfTicksIntoTime) {
  const Stamps stamps = Stamps::calibrated();
  const std::int64_t second_ns = stamps.duration_ns(stamps.ticks_a_second());
  EXPECT_NEAR(static_cast<double>(second_ns), 1e9, 2'000);
  const std::int64_t day_ns = stamps.duration_ns(86'400 * stamps.ticks_a_second());
  EXPECT_NEAR(static_cast<double>(day_ns), 86'400e9, 86'400 * 2'000.0);
  EXPECT_EQ(stamps.duration_ns(0), 0);
}

template <std::size_t size>
void expect_each_message_to_differ() {
  Message<size> one{};
  Message<size> next{};
  for (const std::uint32_t number : {0U, 1U, 255U, 65'535U, 0xFFFF'FFFFU}) {
    fill(one, number);
    fill(next, number + 1);
    EXPECT_FALSE(same(one, next)) << size << " bytes, number " << number;
    next = one;
    EXPECT_TRUE(same(one, next));
  }
}

TEST(Message, DiffersFromTheOneBefore) {
  expect_each_message_to_differ<1>();
  expect_each_message_to_differ<2>();
  expect_each_message_to_differ<4>();
  expect_each_message_to_differ<64>();
  expect_each_message_to_differ<4096>();
}

TEST(Message, EveryBitThatChangesIsFound) {
  Message<64> sent{};
  fill(sent, 5);
  for (std::size_t bit = 0; bit < sizeof sent * 8; ++bit) {
    Message<64> received = sent;
    auto* const bytes = reinterpret_cast<unsigned char*>(&received);
    bytes[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    EXPECT_FALSE(same(sent, received)) << bit;
  }
}

/// Hands a message back in the same process, with a bit changed in every third.
class FaultyLink {
 public:
  using Message = probe::Message<16>;
  using Resources = NoResources;

  FaultyLink(std::span<std::byte> /*memory*/, LinkSide /*side*/, const Resources& /*none*/) {}

  void call(const Message& message, Message& reply) {
    reply = message;
    if (++calls_ % 3 == 0) {
      reply.elements[2] ^= 0x10U;
    }
  }

  template <class Received>
  void serve(Received /*received*/) {}

 private:
  int calls_ = 0;
};

TEST(Case, CountsDamagedMessages) {
  CaseOf<FaultyLink> faulty;
  faulty.open({}, LinkSide::asking);
  std::vector<Trip> trips(300);
  Asking asking{.stamps = Stamps::calibrated()};
  const std::atomic<std::uint32_t> stop{0};
  EXPECT_EQ(faulty.ask(trips, asking, stop), 300U);
  EXPECT_EQ(asking.damaged, 100U);
}

TEST(Case, StopsWhenAskedTo) {
  CaseOf<FaultyLink> faulty;
  faulty.open({}, LinkSide::asking);
  std::vector<Trip> trips(300);
  Asking asking{.stamps = Stamps::calibrated()};
  const std::atomic<std::uint32_t> stop{1};
  EXPECT_EQ(faulty.ask(trips, asking, stop), 0U);
}

struct Way {
  Through through;
  std::size_t bytes;
};

std::string name_of(const testing::TestParamInfo<Way>& info) {
  std::string name(through_names[static_cast<std::size_t>(info.param.through)]);
  std::ranges::replace(name, '-', '_');
  return name + "_" + std::to_string(info.param.bytes);
}

class EveryWay : public testing::TestWithParam<Way> {};

/// Two threads instead of two processes; what they share is the same.
TEST_P(EveryWay, BringsEveryMessageBack) {
  const auto [through, bytes] = GetParam();
  const auto asker = channel_case(through, bytes);
  const auto answerer = channel_case(through, bytes);
  alignas(64) static std::array<std::byte, link_bytes> memory;
  memory = {};
  asker->open(memory, LinkSide::asking);
  answerer->open(memory, LinkSide::answering);
  constexpr std::size_t count = 50;
  std::vector<Trip> trips(count);
  std::vector<std::int64_t> arrivals(count);
  Asking asking{.stamps = Stamps::calibrated()};
  const std::atomic<std::uint32_t> stop{0};
  {
    const std::jthread other([&] { answerer->answer(arrivals, asking.stamps); });
    EXPECT_EQ(asker->ask(trips, asking, stop), count);
  }
  EXPECT_EQ(asking.damaged, 0U);
  EXPECT_TRUE(std::ranges::all_of(trips, [](const Trip& trip) { return trip.begin < trip.end; }));
  EXPECT_TRUE(std::ranges::is_sorted(arrivals));
  EXPECT_GT(arrivals.front(), 0);
}

std::vector<Way> every_way() {
  std::vector<Way> ways{{Through::raw, 0}};
  for (const Through through :
       {Through::mailbox, Through::exchange, Through::latest, Through::ring}) {
    for (const std::size_t bytes : {1UL, 8UL, 64UL, 4096UL}) {
      ways.push_back({through, bytes});
    }
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Channels, EveryWay, testing::ValuesIn(every_way()), name_of);

}  // namespace
}  // namespace latenz::probe
