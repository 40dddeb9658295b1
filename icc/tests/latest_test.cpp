// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/latest.hpp"

#include <gtest/gtest.h>

namespace {

using namespace latenz::icc;

struct State {
  std::uint32_t number;
  float value[7];
};

State state(std::uint32_t number) {
  State made{.number = number, .value = {}};
  for (float& value : made.value) {
    value = static_cast<float>(number);
  }
  return made;
}

bool is(const State& got, std::uint32_t number) {
  for (const float value : got.value) {
    if (value != static_cast<float>(number)) {
      return false;
    }
  }
  return got.number == number;
}

class LatestTest : public testing::Test {
 protected:
  using Channel = Latest<State, 2>;

  Channel::Writer open_writer() { return *Channel::Writer::create(memory, sizeof memory, "state"); }
  Channel::Reader open_reader(std::uint32_t index) {
    return *Channel::Reader::attach(memory, sizeof memory, index);
  }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  Channel::Writer writer = open_writer();
  Channel::Reader first = open_reader(0);
  Channel::Reader second = open_reader(1);
  State got{};
};

TEST_F(LatestTest, NothingIsThereBeforeTheFirstUpdate) {
  EXPECT_EQ(first.poll(got), Freshness::empty);
  EXPECT_FALSE(first.read_latest(got));
  EXPECT_EQ(first.view(), nullptr);
}

TEST_F(LatestTest, AValueIsNewOnceForEachReader) {
  writer.update(state(1));
  for (auto* reader : {&first, &second}) {
    EXPECT_EQ(reader->poll(got), Freshness::updated);
    EXPECT_TRUE(is(got, 1));
    got = {};
    EXPECT_EQ(reader->poll(got), Freshness::unchanged);
    EXPECT_EQ(got.number, 0U);
    EXPECT_TRUE(reader->read_latest(got));
    EXPECT_TRUE(is(got, 1));
  }
}

TEST_F(LatestTest, MissedValuesAreCounted) {
  writer.update(state(1));
  EXPECT_EQ(first.poll(got), Freshness::updated);
  for (std::uint32_t number = 2; number <= 10; ++number) {
    writer.update(state(number));
  }
  EXPECT_EQ(first.poll(got), Freshness::updated);
  EXPECT_TRUE(is(got, 10));
  EXPECT_EQ(first.missed(), 8U);
  EXPECT_EQ(first.number(), 10U);
}

TEST_F(LatestTest, AViewStaysAsItIsWhateverTheWriterDoes) {
  writer.update(state(1));
  const State* seen = first.view();
  for (std::uint32_t number = 2; number < 1000; ++number) {
    writer.update(state(number));
    EXPECT_EQ(second.poll(got), Freshness::updated);
    ASSERT_TRUE(is(got, number));
    ASSERT_TRUE(is(*seen, 1));
  }
  EXPECT_TRUE(is(*first.view(), 999));
}

TEST_F(LatestTest, AValueMadeInPlaceIsSeenWhenPublished) {
  writer.update(state(1));
  State& draft = writer.begin_update();
  draft = state(2);
  EXPECT_TRUE(first.read_latest(got));
  EXPECT_TRUE(is(got, 1));
  writer.publish();
  EXPECT_EQ(first.poll(got), Freshness::updated);
  EXPECT_TRUE(is(got, 2));
  writer.publish();  // nothing was begun
  EXPECT_EQ(first.poll(got), Freshness::unchanged);
}

TEST_F(LatestTest, TheLastValueOutlivesItsWriter) {
  writer.update(state(5));
  EXPECT_EQ(first.check_writer(), Result::ok);
  writer.close();
  EXPECT_EQ(first.check_writer(), Result::peer_gone);
  EXPECT_EQ(first.poll(got), Freshness::updated);
  EXPECT_TRUE(is(got, 5));
  auto next = open_writer();
  EXPECT_EQ(first.check_writer(), Result::peer_restarted);
  EXPECT_EQ(first.check_writer(), Result::ok);
  EXPECT_EQ(first.poll(got), Freshness::unchanged);
  next.update(state(6));
  EXPECT_EQ(first.poll(got), Freshness::updated);
  EXPECT_TRUE(is(got, 6));
  EXPECT_EQ(next.number(), 2U);
}

TEST_F(LatestTest, DeadReadersBlockNobody) {
  writer.update(state(1));
  (void)first.view();
  (void)second.view();  // both die here, with an announcement each
  for (std::uint32_t number = 2; number < 100; ++number) {
    writer.update(state(number));
  }
  auto third = open_reader(0);
  EXPECT_EQ(third.poll(got), Freshness::updated);
  EXPECT_TRUE(is(got, 99));
}

TEST_F(LatestTest, NumbersWrap) {
  writer.update(state(1));
  EXPECT_EQ(first.poll(got), Freshness::updated);
  // As if 2^32 - 2 updates had been made: the word `updates` is the first of the control line.
  auto* updates =
      reinterpret_cast<std::uint32_t*>(memory + sizeof memory - 6 * line_bytes - 3 * line_bytes);
  ASSERT_EQ(*updates, 1U);
  *updates = 0xFFFF'FFFD;
  auto wrapping = open_writer();
  for (std::uint32_t number = 0; number < 6; ++number) {
    wrapping.update(state(number));
    ASSERT_EQ(first.poll(got), Freshness::updated);
    ASSERT_TRUE(is(got, number));
    ASSERT_EQ(first.poll(got), Freshness::unchanged);
  }
}

}  // namespace
