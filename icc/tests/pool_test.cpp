// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/region_plan.hpp"
#include "patient.hpp"

namespace {

using namespace latenz::icc;
using latenz::icc::tests::Patient;

struct Point {
  float x, y, z;
  std::uint32_t number;
};

using Patiently = Platform<Coherent, StandardOrder, Patient>;
using Channel = Pool<100, 16, Point, Patiently>;

/// The first lines of this name.
LineRun run_of(std::string_view part) {
  const auto lines = Channel::lines();
  return *std::ranges::find_if(lines, [part](const LineRun& run) { return run.part == part; });
}

class PoolTest : public testing::Test {
 protected:
  /// A word of the channel, by the name of its lines.
  std::uint32_t& word(std::string_view part, std::size_t index) {
    return reinterpret_cast<std::uint32_t*>(memory + run_of(part).offset)[index];
  }
  Result send(std::size_t items, std::uint32_t number) {
    const std::vector<Point> points(items, Point{.x = 1, .y = 2, .z = 3, .number = number});
    return writer.try_write(points);
  }
  std::uint32_t receive() {
    std::size_t count = 0;
    const Result result = reader.try_read(got, count);
    if (result != Result::ok) return 0;
    EXPECT_TRUE(std::all_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(count),
                            [this](const Point& each) { return each.number == got[0].number; }));
    return got[0].number;
  }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  std::array<Point, 100> got{};
  Channel::Writer writer = *Channel::Writer::create(memory, sizeof memory, "points");
  Channel::Reader reader = *Channel::Reader::attach(memory, sizeof memory);
};

TEST_F(PoolTest, PlansAClassForEachFourfoldSize) {
  // 1600 bytes and their quarters, in lines; 16 blocks of a line and their quarters, at least two
  EXPECT_EQ(Channel::blocks_for(0), 16U);
  EXPECT_EQ(Channel::blocks_for(4), 16U);   // 64 bytes
  EXPECT_EQ(Channel::blocks_for(5), 4U);    // up to 128
  EXPECT_EQ(Channel::blocks_for(9), 2U);    // up to 448
  EXPECT_EQ(Channel::blocks_for(100), 2U);  // up to 1600
  EXPECT_EQ(Channel::blocks_for(101), 0U);
}

TEST_F(PoolTest, CarriesMessagesOfAnyLengthInOrder) {
  std::uint32_t number = 0;
  for (std::size_t items = 1; items <= 100; ++items) {
    ASSERT_EQ(send(items, ++number), Result::ok);
    ASSERT_EQ(receive(), number);
  }
  EXPECT_EQ(send(101, 1), Result::full);
  EXPECT_EQ(writer.write_until(std::vector<Point>(101), Checks{3}), Result::full);
  std::size_t count = 7;
  EXPECT_EQ(writer.try_write({}), Result::ok);
  EXPECT_EQ(reader.try_read(got, count), Result::ok);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(reader.try_read(got, count), Result::empty);
}

TEST_F(PoolTest, AFloodOfShortMessagesTakesNothingFromLongOnes) {
  for (std::uint32_t number = 1; number <= 16; ++number) ASSERT_EQ(send(1, number), Result::ok);
  EXPECT_EQ(send(1, 17), Result::full);
  EXPECT_EQ(writer.write_until(std::vector<Point>(1), Checks{3}), Result::timeout);
  EXPECT_EQ(send(100, 17), Result::ok);
  EXPECT_EQ(send(100, 18), Result::ok);
  EXPECT_EQ(send(100, 19), Result::full);
  for (std::uint32_t number = 1; number <= 18; ++number) ASSERT_EQ(receive(), number);
}

TEST_F(PoolTest, MessagesAreHeldAndGivenBackInAnyOrder) {
  std::mt19937 random{1};
  std::vector<std::span<const Point>> held;
  std::uint32_t sent = 0;
  std::uint32_t taken = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0) {
      std::span<Point> place;
      const std::size_t items = 1 + random() % 100;
      if (writer.try_loan(items, place) == Result::ok) {
        ASSERT_EQ(place.size(), items);
        std::ranges::fill(place, Point{.x = 0, .y = 0, .z = 0, .number = ++sent});
        writer.publish();
      }
    } else if (std::span<const Point> message; reader.try_take(message) == Result::ok) {
      ASSERT_EQ(message.front().number, ++taken);
      held.push_back(message);
    }
    if (!held.empty() && random() % 3 == 0) {
      std::swap(held[random() % held.size()], held.back());
      const std::uint32_t number = held.back().front().number;
      for (const Point& point : held.back()) ASSERT_EQ(point.number, number);
      ASSERT_EQ(reader.release(held.back()), Result::ok);
      held.pop_back();
    }
  }
  EXPECT_GT(taken, 1000U);
}

TEST_F(PoolTest, ALoanIsSeenByNobodyAndTheNextOnesIfItIsNotPublished) {
  std::span<Point> place;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(writer.try_loan(100, place), Result::ok);
  EXPECT_EQ(receive(), 0U);
  place[0].number = 5;
  place[1].number = 5;
  writer.publish(2);
  writer.publish();  // nothing is lent any more
  std::size_t count = 0;
  ASSERT_EQ(reader.try_read(got, count), Result::ok);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(got[1].number, 5U);
  EXPECT_EQ(reader.try_read(got, count), Result::empty);
  // no more than was lent
  ASSERT_EQ(writer.try_loan(3, place), Result::ok);
  writer.publish(100);
  ASSERT_EQ(reader.try_read(got, count), Result::ok);
  EXPECT_EQ(count, 3U);
}

TEST_F(PoolTest, GivesBackOnlyWhatIsHeld) {
  ASSERT_EQ(send(3, 1), Result::ok);
  std::span<const Point> message;
  EXPECT_EQ(reader.release(message), Result::empty);
  ASSERT_EQ(reader.try_take(message), Result::ok);
  EXPECT_EQ(reader.release(message.subspan(1)), Result::empty);
  EXPECT_EQ(reader.release(std::span<const Point>(got).first(3)), Result::empty);
  EXPECT_EQ(reader.release(message), Result::ok);
  EXPECT_EQ(reader.release(message), Result::empty);
}

TEST_F(PoolTest, RestartedSidesGoOnAndNothingLeaks) {
  for (const std::size_t items : {1U, 20U, 25U, 90U}) ASSERT_EQ(send(items, 1), Result::ok);
  std::span<const Point> message;
  ASSERT_EQ(reader.try_take(message), Result::ok);  // dies with it
  std::span<Point> place;
  ASSERT_EQ(writer.try_loan(1, place), Result::ok);  // dies with that
  auto second_writer = *Channel::Writer::create(memory, sizeof memory, "points");
  auto second_reader = *Channel::Reader::attach(memory, sizeof memory);
  EXPECT_EQ(second_reader.dropped(), 1U);
  std::size_t count = 0;
  for (const std::size_t items : {20U, 25U, 90U}) {
    ASSERT_EQ(second_reader.try_read(got, count), Result::ok);
    EXPECT_EQ(count, items);
  }
  EXPECT_EQ(second_reader.try_read(got, count), Result::empty);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(second_writer.try_write(std::vector<Point>(100)), Result::ok);
    EXPECT_EQ(second_writer.try_write(std::vector<Point>(20)), Result::ok);
  }
}

TEST_F(PoolTest, NumbersAndTicketsWrap) {
  for (const std::string_view part : {"head", "taken"}) word(part, 0) = 0xFFFF'FFF0;
  for (std::size_t block = 0; block < 24; ++block) {
    word("tickets", block) = word("states", block) = 0xFFFF'FFFC;
  }
  // the newest message is an entry of the table, too, with the ticket of its block
  const std::size_t entry = run_of("messages").offset + (0xFFFF'FFF0 % 32) * 16;
  reinterpret_cast<std::uint32_t*>(memory + entry)[2] = 0xFFFF'FFFC;
  writer = *Channel::Writer::create(memory, sizeof memory, "points");
  reader = *Channel::Reader::attach(memory, sizeof memory);
  EXPECT_EQ(reader.dropped(), 0U);
  for (std::uint32_t number = 1; number <= 100; ++number) {
    ASSERT_EQ(send(number % 5 == 0 ? 100 : 1, number), Result::ok);
    if (number % 2 == 0) {
      std::uint32_t first = 0;
      while (first == 0) first = receive();  // once it tells that the writer has restarted
      ASSERT_EQ(first, number - 1);
      ASSERT_EQ(receive(), number);
    }
  }
  EXPECT_EQ(writer.number(), 84U);
}

// Whatever a broken writer leaves in the memory, no call reads or writes outside of the channel
// (a sanitizer's and a guard's matter), and none ends otherwise than by a result.
TEST_F(PoolTest, HostileContentsLeadNowhere) {
  std::mt19937 twister{7};
  const auto random = [&twister] { return static_cast<std::uint32_t>(twister()); };
  constexpr std::uint32_t odd_values[] = {
      0, 1, 2, 23, 24, 100, 101, 0x7FFF'FFFF, 0x8000'0000, 0xFFFF'FFFE, 0xFFFF'FFFF, 0x1000'0000};
  alignas(line_bytes) std::array<std::byte, Channel::bytes + 2 * line_bytes> guarded{};
  std::byte* const pool = guarded.data() + line_bytes;
  const auto front = std::span(guarded).first(line_bytes);
  const auto behind = std::span(guarded).last(line_bytes);
  const auto untouched = [](std::byte each) { return each == std::byte{0xA5}; };
  int delivered = 0;
  for (int round = 0; round < 3000; ++round) {
    guarded.fill(std::byte{0xA5});
    auto their = *Channel::Writer::create(pool, Channel::bytes, "hostile");
    auto ours = *Channel::Reader::attach(pool, Channel::bytes);
    for (int i = 0; i < 6; ++i) (void)their.try_write(std::vector<Point>(1 + random() % 100));
    const std::size_t first = run_of("head").offset / 4;
    const std::size_t end = run_of("blocks").offset / 4;
    for (int i = 0; i < 8; ++i) {
      reinterpret_cast<std::uint32_t*>(pool)[first + random() % (end - first)] =
          random() % 2 == 0 ? random() : odd_values[random() % std::size(odd_values)];
    }
    if (round % 2 == 0) reinterpret_cast<std::uint32_t*>(pool)[first] = random() % 12;
    if (round % 3 == 0) ours = *Channel::Reader::attach(pool, Channel::bytes);
    if (round % 5 == 0) their = *Channel::Writer::create(pool, Channel::bytes, "hostile");
    for (int call = 0; call < 40; ++call) {
      std::span<const Point> message;
      if (ours.try_take(message) == Result::ok) {
        ++delivered;
        const auto* const begin = reinterpret_cast<const std::byte*>(message.data());
        ASSERT_GE(begin, pool + run_of("blocks").offset);
        ASSERT_LE(begin + message.size_bytes(), pool + Channel::bytes);
        ASSERT_EQ(static_cast<std::size_t>(begin - pool) % line_bytes, 0U);
        if (call % 2 == 0) {
          ASSERT_EQ(ours.release(message), Result::ok);
        }
      }
      std::span<Point> place;
      if (their.try_loan(1 + random() % 100, place) == Result::ok) {
        ASSERT_LE(reinterpret_cast<std::byte*>(place.data() + place.size()), pool + Channel::bytes);
        std::ranges::fill(place, Point{});
        their.publish();
      }
    }
    ASSERT_TRUE(std::ranges::all_of(front, untouched) && std::ranges::all_of(behind, untouched));
  }
  EXPECT_GT(delivered, 1000);
}

TEST_F(PoolTest, UnlikePoolsAreRefused) {
  const auto problem_of = [this]<class Other>(Other /*tag*/) {
    char text[256];
    const Problem problem = Other::Reader::attach(memory, sizeof memory).problem();
    problem.describe(text, sizeof text);
    return std::string(text);
  };
  struct Shifted {
    float x, z, y;
    std::uint32_t number;
  };
  EXPECT_EQ(problem_of(Pool<100, 16, Shifted>{}),
            "payload differs: here float32 'z' at 4, in memory float32 'y' at 4");
  EXPECT_EQ(problem_of(Pool<99, 16, Point>{}),
            "size of the payload differs: here 1584, in memory 1600");
  EXPECT_EQ(problem_of(Pool<100, 8, Point>{}), "number of slots differs: here 8, in memory 16");
  EXPECT_EQ(problem_of(Mailbox<Point>{}), "kind of channel differs: here 1, in memory 5");
}

TEST(PoolPlan, IsPartOfARegion) {
  using Bytes = Pool<4096, 16>;
  static constexpr auto plan =
      plan_region(Region{0xFFFD'0000, 64 * 1024}, place<Bytes>("frames", "a53", "r5"));
  std::string told;
  plan.print_lines([&told](char letter) { told += letter; });
  EXPECT_NE(told.find("1024  a53  frames  blocks"), std::string::npos) << told;
  EXPECT_NE(told.find("8192  a53  frames  blocks"), std::string::npos) << told;
  EXPECT_NE(told.find("r5  frames  states"), std::string::npos) << told;
}

TEST(PoolOfBytes, CarriesThem) {
  using Bytes = Pool<300, 4, std::byte, Patiently>;
  alignas(line_bytes) static std::byte memory[Bytes::bytes];
  auto writer = *Bytes::Writer::create(memory, sizeof memory, "bytes");
  auto reader = *Bytes::Reader::attach(memory, sizeof memory);
  std::thread writing([&writer] {
    for (std::uint32_t n = 0; n < 20'000; ++n) {
      const std::vector<std::byte> message(n % 301, static_cast<std::byte>(n));
      while (writer.write(message) != Result::ok) {
      }
    }
  });
  std::array<std::byte, 300> got{};
  for (std::uint32_t n = 0; n < 20'000; ++n) {
    std::size_t count = 0;
    while (reader.read(got, count) != Result::ok) {
    }
    ASSERT_EQ(count, n % 301);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], static_cast<std::byte>(n));
  }
  writing.join();
}

}  // namespace
