// SPDX-License-Identifier: Apache-2.0
// What all channels share: two sides find each other, refuse what differs and say what, and survive
// whatever lies in the memory.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "latenz/icc.hpp"

namespace {

using namespace latenz::icc;

struct Torque {
  std::uint32_t cycle;
  float newton_metres[3];
};
struct OtherLength {
  std::uint32_t cycle;
  float newton_metres[2];
};
struct OtherName {
  std::uint32_t cycle;
  float newton_meters[3];
};
struct OtherType {
  std::uint32_t cycle;
  std::uint32_t newton_metres[3];
};
struct OneMore {
  std::uint32_t cycle;
  float newton_metres[3];
  float speed;
};
struct Answer {
  std::uint32_t cycle;
};

class Memory {
 public:
  std::byte* data() { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  alignas(line_bytes) std::array<std::byte, 16384> bytes_{};
};

std::string text_of(const Problem& problem) {
  std::array<char, 200> text{};
  const std::size_t length = problem.describe(text.data(), text.size());
  EXPECT_EQ(length, std::strlen(text.data()));
  return text.data();
}

template <class Channel>
std::string refusal(Memory& memory) {
  const auto opened = Channel::Reader::attach(memory.data(), memory.size());
  EXPECT_FALSE(opened);
  return text_of(opened.problem());
}

class ChannelTest : public testing::Test {
 protected:
  Memory memory;
  Opened<Mailbox<Torque>::Writer> writer =
      Mailbox<Torque>::Writer::create(memory.data(), memory.size(), "torque");
};

TEST_F(ChannelTest, AFieldThatDiffersIsNamed) {
  ASSERT_TRUE(writer);
  EXPECT_EQ(refusal<Mailbox<OtherLength>>(memory),
            "payload differs: here float32[2] every 4 bytes 'newton_metres' at 4, in memory "
            "float32[3] every 4 bytes 'newton_metres' at 4");
  EXPECT_EQ(refusal<Mailbox<OtherType>>(memory),
            "payload differs: here uint32[3] every 4 bytes 'newton_metres' at 4, in memory "
            "float32[3] every 4 bytes 'newton_metres' at 4");
  EXPECT_EQ(refusal<Mailbox<OtherName>>(memory),
            "payload differs: here float32[3] every 4 bytes 'newton_meters' at 4, in memory "
            "float32[3] every 4 bytes 'newton_metres' at 4");
  EXPECT_EQ(refusal<Mailbox<OneMore>>(memory),
            "payload differs: here float32 'speed' at 16, in memory nothing");
}

TEST_F(ChannelTest, ChannelsOfAnotherKindAreRefused) {
  EXPECT_EQ(text_of(Latest<Torque>::Reader::attach(memory.data(), memory.size(), 0).problem()),
            "kind of channel differs: here 3, in memory 1");
}

TEST_F(ChannelTest, TheReplyOfAnExchangeIsComparedToo) {
  Memory other;
  ASSERT_TRUE((Exchange<Torque, Answer>::Client::create(other.data(), other.size(), "call")));
  const auto server = Exchange<Torque, Torque>::Server::attach(other.data(), other.size());
  EXPECT_EQ(text_of(server.problem()),
            "reply differs: here float32[3] every 4 bytes 'newton_metres' at 4, in memory nothing");
}

TEST_F(ChannelTest, ReadersAndSlotsMustBeAsMany) {
  Memory other;
  ASSERT_TRUE((Latest<Torque, 2>::Writer::create(other.data(), other.size(), "x")));
  const auto reader = Latest<Torque, 3>::Reader::attach(other.data(), other.size(), 0);
  EXPECT_EQ(text_of(reader.problem()), "number of readers differs: here 3, in memory 2");
  const auto fourth = Latest<Torque, 2>::Reader::attach(other.data(), other.size(), 2);
  EXPECT_EQ(text_of(fourth.problem()), "the channel has 2 readers, numbered from 0: none is 2");
}

TEST_F(ChannelTest, MemoryMustBeAlignedAndLargeEnough) {
  using Reader = Mailbox<Torque>::Reader;
  const std::size_t needed = Mailbox<Torque>::bytes;
  EXPECT_EQ(Reader::attach(nullptr, needed).problem().flaw, Flaw::no_memory);
  EXPECT_EQ(Reader::attach(memory.data() + 4, needed).problem().flaw, Flaw::no_memory);
  EXPECT_EQ(Reader::attach(memory.data(), needed - 1).problem().flaw, Flaw::no_memory);
  EXPECT_TRUE(Reader::attach(memory.data(), needed));
}

TEST_F(ChannelTest, AttachingWaitsForTheCreatorOrItsDeadline) {
  Memory empty;
  const auto reader = Mailbox<Torque>::Reader::attach_until(empty.data(), empty.size(), Checks{10});
  EXPECT_EQ(reader.problem().flaw, Flaw::not_ready);
}

TEST_F(ChannelTest, CreatingAnewGoesOnWithTheSameChannelAndFormatsAnother) {
  ASSERT_EQ(writer->try_write({.cycle = 7, .newton_metres = {}}), Result::ok);
  auto again = Mailbox<Torque>::Writer::create(memory.data(), memory.size(), "torque");
  EXPECT_EQ(again->epoch(), 2U);
  EXPECT_FALSE(again->free());
  auto other = Mailbox<Answer>::Writer::create(memory.data(), memory.size(), "torque");
  EXPECT_EQ(other->epoch(), 1U);
  EXPECT_TRUE(other->free());
  EXPECT_EQ(writer->try_write({}), Result::layout_changed);  // of the old channel
}

TEST_F(ChannelTest, AProblemFitsIntoAnyPieceOfText) {
  const Problem problem =
      Mailbox<OtherType>::Reader::attach(memory.data(), memory.size()).problem();
  std::array<char, 200> text{};
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    text.fill('#');
    const std::size_t length = problem.describe(text.data(), bytes);
    ASSERT_EQ(text[bytes], '#');
    ASSERT_TRUE(bytes == 0 || text[length] == '\0');
  }
}

// Nothing that lies in the memory makes attaching read outside of it (run with sanitizers) or hang.
TEST_F(ChannelTest, AnythingInTheMemoryIsRefusedOrTheChannel) {
  std::minstd_rand random{1};
  const std::size_t size = Mailbox<Torque>::bytes;
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    alignas(line_bytes) std::array<std::byte, Mailbox<Torque>::bytes> copy;
    std::memcpy(copy.data(), memory.data(), size);
    for (auto changes = 1 + random() % 3; changes != 0; --changes) {
      copy[random() % 192] = static_cast<std::byte>(random());
    }
    const auto reader = Mailbox<Torque>::Reader::attach(copy.data(), size);
    refused += reader ? 0 : 1;
    if (!reader) {
      EXPECT_FALSE(text_of(reader.problem()).empty());
    }
  }
  EXPECT_GT(refused, 5'000);
}

}  // namespace
