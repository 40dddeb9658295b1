// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <thread>

#include "patient.hpp"

namespace {

using namespace latenz::icc;
using latenz::icc::tests::Patient;

struct Sample {
  std::uint32_t number;
  std::uint8_t rest[9];
};

Sample sample(std::uint32_t number) {
  Sample made{.number = number, .rest = {}};
  for (std::uint8_t& byte : made.rest) {
    byte = static_cast<std::uint8_t>(number * 7);
  }
  return made;
}

bool is_whole(const Sample& got) {
  const auto wanted = static_cast<std::uint8_t>(got.number * 7);
  return std::ranges::all_of(got.rest, [&](std::uint8_t byte) { return byte == wanted; });
}

/// The ring's counts, as docs/icc-abi.md has them.
struct Memory {
  std::byte* bytes;

  void set(std::uint32_t number) const {
    using Layout = Ring<Sample, 8, 2, Platform<Coherent, StandardOrder, Patient>>;
    for (const LineRun& run : Layout::lines()) {
      const std::string_view part = run.part;
      if (part == "head" || part == "begun" || part == "taken") {
        *reinterpret_cast<std::uint32_t*>(bytes + run.offset) = number;
      }
    }
  }
};

using Yielding = Platform<Coherent, StandardOrder, Patient>;
using Channel = Ring<Sample, 8, 2, Yielding>;

class RingTest : public testing::Test {
 protected:
  Channel::Reader open_reader(std::uint32_t index) {
    return *Channel::Reader::attach(memory, sizeof memory, index);
  }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  Channel::Writer writer = *Channel::Writer::create(memory, sizeof memory, "samples");
  Channel::Observer observer = *Channel::Observer::attach(memory, sizeof memory);
  Sample got{};
};

TEST_F(RingTest, LosslessReadersGetAllInOrderAndHoldTheWriter) {
  auto first = open_reader(0);
  auto second = open_reader(1);
  std::uint32_t next = 0;
  for (std::uint32_t number = 0; number < 8; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
  ASSERT_EQ(writer.try_write(sample(8)), Result::full);
  while (first.try_read(got) == Result::ok) {
    ASSERT_EQ(got.number, next++);
    ASSERT_TRUE(is_whole(got));
  }
  EXPECT_EQ(next, 8U);
  EXPECT_EQ(writer.late_reader(), 1U);
  EXPECT_EQ(writer.write_until(sample(8), Checks{3}), Result::timeout);
  ASSERT_EQ(second.try_read(got), Result::ok);
  EXPECT_EQ(got.number, 0U);
  EXPECT_EQ(writer.write(sample(8)), Result::ok);
}

TEST_F(RingTest, AReaderLeftBehindIsToldAndMayComeBack) {
  auto first = open_reader(0);
  for (std::uint32_t number = 0; number < 8; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
  ASSERT_EQ(writer.try_write(sample(8)), Result::full);
  writer.leave_behind(0);
  for (std::uint32_t number = 8; number < 30; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
  EXPECT_EQ(first.try_read(got), Result::busy);
  auto again = open_reader(0);
  EXPECT_EQ(again.try_read(got), Result::empty);
  EXPECT_EQ(again.dropped(), 30U);
  ASSERT_EQ(writer.try_write(sample(30)), Result::ok);
  EXPECT_EQ(again.try_read(got), Result::ok);
  EXPECT_EQ(got.number, 30U);
}

TEST_F(RingTest, AReaderThatClosesHoldsNobody) {
  auto first = open_reader(0);
  first.close();
  for (std::uint32_t number = 0; number < 100; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
}

TEST_F(RingTest, ObserversSeeTheNewestAndCountWhatTheyLost) {
  EXPECT_EQ(observer.read_latest(got), Result::empty);
  EXPECT_EQ(observer.try_read(got), Result::empty);
  for (std::uint32_t number = 0; number < 100; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
  std::uint32_t read = 0;
  while (observer.try_read(got) == Result::ok) {
    EXPECT_TRUE(is_whole(got));
    ++read;
  }
  EXPECT_EQ(got.number, 99U);
  EXPECT_EQ(read + observer.lost(), 100U);
  EXPECT_EQ(observer.read_latest(got), Result::ok);
  EXPECT_EQ(got.number, 99U);
}

TEST_F(RingTest, SeveralGoInAndOutAtOnceAcrossTheEnd) {
  auto first = open_reader(0);
  std::array<Sample, 12> many{};
  std::array<Sample, 12> out{};
  std::size_t count = 1;
  ASSERT_EQ(writer.try_write_some({}, count), Result::ok);
  ASSERT_EQ(count, 0U);
  ASSERT_EQ(first.try_read_some(out, count), Result::empty);
  std::uint32_t next = 0;
  std::uint32_t expected = 0;
  for (int round = 0; round < 50; ++round) {
    const std::size_t wanted = 1 + static_cast<std::size_t>(round) % many.size();
    for (std::size_t i = 0; i < wanted; ++i)
      many.at(i) = sample(next + static_cast<std::uint32_t>(i));
    ASSERT_EQ(writer.try_write_some(std::span(many).first(wanted), count), Result::ok);
    ASSERT_TRUE(count >= 1 && count <= wanted);
    next += static_cast<std::uint32_t>(count);
    while (first.try_read_some(std::span(out).first(5), count) == Result::ok) {
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out.at(i).number, expected++);
        ASSERT_TRUE(is_whole(out.at(i)));
      }
    }
    ASSERT_EQ(expected, next);
  }
  std::ranges::fill(many, sample(1));
  std::size_t all = 0;
  while (writer.try_write_some(many, count) == Result::ok) all += count;
  EXPECT_EQ(all, 8U);
  EXPECT_EQ(count, 0U);
}

TEST_F(RingTest, MessagesAreMadeAndReadWhereTheyAre) {
  auto first = open_reader(0);
  const Sample* seen = nullptr;
  EXPECT_EQ(first.release(), Result::empty);
  EXPECT_EQ(first.try_take(seen), Result::empty);
  for (std::uint32_t number = 0; number < 30; ++number) {
    Sample* place = nullptr;
    ASSERT_EQ(writer.try_loan(place), Result::ok);
    *place = sample(number + 1000);  // a loan that is not published is the next one's
    ASSERT_EQ(writer.try_loan(place), Result::ok);
    *place = sample(number);
    ASSERT_EQ(first.try_take(seen), Result::empty);
    writer.publish();
    writer.publish();  // once for each
    ASSERT_EQ(first.try_take(seen), Result::ok);
    ASSERT_EQ(seen->number, number);
    ASSERT_TRUE(is_whole(*seen));
    ASSERT_GE(reinterpret_cast<std::byte*>(const_cast<Sample*>(seen)), memory);
    ASSERT_EQ(first.release(), Result::ok);
  }
  EXPECT_EQ(writer.number(), 30U);
}

TEST_F(RingTest, AWriterThatDiesWithALoanLosesAndLeaksNothing) {
  auto first = open_reader(0);
  for (std::uint32_t number = 0; number < 8; ++number) {
    ASSERT_EQ(writer.try_write(sample(number)), Result::ok);
  }
  for (std::uint32_t number = 0; number < 3; ++number) {
    ASSERT_EQ(first.try_read(got), Result::ok);
  }
  Sample* place = nullptr;
  ASSERT_EQ(writer.try_loan(place), Result::ok);
  *place = sample(777);
  auto second = *Channel::Writer::create(memory, sizeof memory, "samples");
  EXPECT_EQ(first.try_read(got), Result::peer_restarted);
  std::size_t count = 0;
  std::array<Sample, 8> more{};
  std::ranges::fill(more, sample(8));
  ASSERT_EQ(second.try_write_some(more, count), Result::ok);
  EXPECT_EQ(count, 3U) << "the slots that the reader has left, and no less";
  for (std::uint32_t number = 3; number < 8; ++number) {
    ASSERT_EQ(first.try_read(got), Result::ok);
    EXPECT_EQ(got.number, number);
  }
}

TEST_F(RingTest, AReaderLeftBehindWithAMessageInHandIsTold) {
  auto first = open_reader(0);
  ASSERT_EQ(writer.try_write(sample(0)), Result::ok);
  const Sample* seen = nullptr;
  ASSERT_EQ(first.try_take(seen), Result::ok);
  writer.leave_behind(0);
  EXPECT_EQ(first.release(), Result::busy);
}

TEST_F(RingTest, NumbersWrap) {
  const std::uint32_t close_to_the_end = 0xFFFF'FFF8;
  const Memory at_the_end{memory};
  at_the_end.set(close_to_the_end);
  auto second = *Channel::Writer::create(memory, sizeof memory, "samples");
  auto first = open_reader(0);
  auto onlooker = *Channel::Observer::attach(memory, sizeof memory);
  for (std::uint32_t number = 0; number < 40; ++number) {
    ASSERT_EQ(second.try_write(sample(number)), Result::ok);
    ASSERT_EQ(first.try_read(got), Result::ok);
    ASSERT_EQ(got.number, number);
    ASSERT_EQ(onlooker.try_read(got), Result::ok) << number;
    ASSERT_EQ(got.number, number);
  }
}

TEST_F(RingTest, ARestartedWriterGoesOnAndIsTold) {
  auto first = open_reader(0);
  ASSERT_EQ(writer.try_write(sample(0)), Result::ok);
  auto second = *Channel::Writer::create(memory, sizeof memory, "samples");
  ASSERT_EQ(second.try_write(sample(1)), Result::ok);
  EXPECT_EQ(first.try_read(got), Result::peer_restarted);
  for (const std::uint32_t number : {0U, 1U}) {
    ASSERT_EQ(first.try_read(got), Result::ok);
    EXPECT_EQ(got.number, number);
  }
}

TEST_F(RingTest, StreamsBetweenThreads) {
  constexpr std::uint32_t messages = 10'000;
  auto first = open_reader(0);
  std::array<std::uint32_t, 3> wrong{};
  std::thread lossless{[&] {
    Sample taken{};
    for (std::uint32_t number = 0; number < messages; ++number) {
      const bool right =
          first.read(taken) == Result::ok && taken.number == number && is_whole(taken);
      wrong[0] += right ? 0U : 1U;
    }
  }};
  std::thread onlooker{[&] {
    Sample seen{};
    std::uint32_t before = 0;
    while (before + 1 < messages) {
      if (observer.try_read(seen) == Result::ok) {
        wrong[1] += is_whole(seen) && seen.number >= before ? 0U : 1U;
        before = seen.number;
      } else {
        std::this_thread::yield();
      }
    }
  }};
  for (std::uint32_t number = 0; number < messages; ++number) {
    wrong[2] += writer.write(sample(number)) == Result::ok ? 0U : 1U;
  }
  lossless.join();
  onlooker.join();
  EXPECT_EQ(wrong, (std::array<std::uint32_t, 3>{}));
}

}  // namespace
