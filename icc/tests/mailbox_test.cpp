// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "latenz/icc.hpp"
#include "patient.hpp"

namespace {

using namespace latenz::icc;
using latenz::icc::tests::Patient;

template <std::size_t size>
struct Numbers {
  std::uint32_t word[size];
};

template <std::size_t size>
Numbers<size> message(std::uint32_t number) {
  Numbers<size> all{};
  for (std::size_t i = 0; i < size; ++i) {
    all.word[i] = number * 2654435761U + static_cast<std::uint32_t>(i);
  }
  return all;
}

template <std::size_t size>
bool is(const Numbers<size>& got, std::uint32_t number) {
  const auto wanted = message<size>(number);
  return std::equal(std::begin(got.word), std::end(got.word), std::begin(wanted.word));
}

template <class Memory>
using Through = Platform<Memory, StandardOrder, Patient>;

/// Clean and invalidate count themselves.
struct CountedHooks {
  static inline std::size_t cleaned = 0;
  static inline std::size_t invalidated = 0;
  static void clean(const void* /*address*/, std::size_t bytes) { cleaned += bytes; }
  static void invalidate(const void* /*address*/, std::size_t bytes) { invalidated += bytes; }
};

template <class P>
class MailboxTest : public testing::Test {
 protected:
  using Channel = Mailbox<Numbers<5>, P>;

  void SetUp() override {
    writer = open_writer();
    reader = *Channel::Reader::attach(memory, sizeof memory);
  }
  typename Channel::Writer open_writer() {
    return *Channel::Writer::create(memory, sizeof memory, "numbers");
  }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  typename Channel::Writer writer;
  typename Channel::Reader reader;
  Numbers<5> got{};
};

using Platforms =
    testing::Types<Through<Coherent>, Through<NonCacheable>, Through<DeviceWord>,
                   Through<Cached<CountedHooks>>, Platform<Coherent, SanitizerOrder, Patient>>;
TYPED_TEST_SUITE(MailboxTest, Platforms);

TYPED_TEST(MailboxTest, EachMessageIsReadOnceBeforeTheNextIsWritten) {
  EXPECT_EQ(this->reader.try_read(this->got), Result::empty);
  for (std::uint32_t number = 0; number < 1000; ++number) {
    ASSERT_EQ(this->writer.try_write(message<5>(number)), Result::ok);
    ASSERT_EQ(this->writer.try_write(message<5>(0)), Result::full);
    ASSERT_EQ(this->reader.try_read(this->got), Result::ok);
    ASSERT_TRUE(is(this->got, number));
    ASSERT_EQ(this->reader.try_read(this->got), Result::empty);
  }
}

TYPED_TEST(MailboxTest, ADeadlineEndsWaiting) {
  EXPECT_EQ(this->reader.read_until(this->got, Checks{5}), Result::timeout);
  ASSERT_EQ(this->writer.write(message<5>(1)), Result::ok);
  EXPECT_EQ(this->writer.write_until(message<5>(2), Checks{5}), Result::timeout);
  ASSERT_EQ(this->reader.read(this->got), Result::ok);
  EXPECT_TRUE(is(this->got, 1));
}

TYPED_TEST(MailboxTest, ARestartedWriterIsToldOnceAndItsOldMessageDropped) {
  ASSERT_EQ(this->writer.write(message<5>(1)), Result::ok);
  auto second = this->open_writer();
  EXPECT_EQ(this->reader.read_until(this->got, Checks{5}), Result::peer_restarted);
  EXPECT_EQ(this->reader.dropped(), 1U);
  EXPECT_EQ(this->reader.try_read(this->got), Result::empty);
  ASSERT_EQ(second.write(message<5>(2)), Result::ok);
  EXPECT_EQ(this->reader.read(this->got), Result::ok);
  EXPECT_TRUE(is(this->got, 2));
}

TYPED_TEST(MailboxTest, ARestartedReaderDropsWhatWaitedAndTheWriterIsTold) {
  ASSERT_EQ(this->writer.write(message<5>(1)), Result::ok);
  auto second = *TestFixture::Channel::Reader::attach(this->memory, sizeof this->memory);
  EXPECT_EQ(second.dropped(), 1U);
  EXPECT_EQ(second.try_read(this->got), Result::empty);
  EXPECT_EQ(this->writer.try_write(message<5>(2)), Result::peer_restarted);
  EXPECT_EQ(this->writer.try_write(message<5>(3)), Result::ok);
  EXPECT_EQ(second.try_read(this->got), Result::ok);
  EXPECT_TRUE(is(this->got, 3));
}

TYPED_TEST(MailboxTest, AMessageWrittenBeforeTheFirstReaderCameIsRead) {
  alignas(line_bytes) std::byte other[TestFixture::Channel::bytes]{};
  auto early = *TestFixture::Channel::Writer::create(other, sizeof other, "early");
  ASSERT_EQ(early.write(message<5>(1)), Result::ok);
  auto late = *TestFixture::Channel::Reader::attach(other, sizeof other);
  ASSERT_EQ(late.read(this->got), Result::ok);
  EXPECT_TRUE(is(this->got, 1));
  EXPECT_EQ(early.write(message<5>(2)), Result::ok);
}

TYPED_TEST(MailboxTest, WhoHasLeftIsNotWaitedFor) {
  this->writer.close();
  EXPECT_EQ(this->reader.read(this->got), Result::peer_gone);
  auto second = this->open_writer();
  EXPECT_EQ(this->reader.read(this->got), Result::peer_restarted);
  ASSERT_EQ(second.write(message<5>(1)), Result::ok);
  EXPECT_EQ(this->reader.read(this->got), Result::ok);
}

TYPED_TEST(MailboxTest, CountsWrap) {
  // As if 2^24 - 3 messages had been exchanged: both counts, and the writer's epoch.
  auto* words = reinterpret_cast<std::uint32_t*>(this->memory + sizeof this->memory) - 2;
  words[0] = 0x00FF'FFFD;
  words[1] = 0x01FF'FFFD;
  auto next = this->open_writer();
  auto second = *TestFixture::Channel::Reader::attach(this->memory, sizeof this->memory);
  for (std::uint32_t number = 0; number < 10; ++number) {
    ASSERT_EQ(next.try_write(message<5>(number)),
              number == 0 ? Result::peer_restarted : Result::ok);
    if (number != 0) {
      ASSERT_EQ(second.try_read(this->got), Result::ok);
      ASSERT_TRUE(is(this->got, number));
    }
  }
}

TEST(MailboxInCachedMemory, CleansWhatItWritesAndInvalidatesWhatItReads) {
  using Channel = Mailbox<Numbers<5>, Through<Cached<CountedHooks>>>;
  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  auto writer = *Channel::Writer::create(memory, sizeof memory, "cached");
  auto reader = *Channel::Reader::attach(memory, sizeof memory);
  CountedHooks::cleaned = 0;
  CountedHooks::invalidated = 0;
  ASSERT_EQ(writer.try_write(message<5>(1)), Result::ok);
  EXPECT_EQ(CountedHooks::cleaned, sizeof(Numbers<5>) + sizeof(std::uint32_t));
  CountedHooks::invalidated = 0;
  Numbers<5> got{};
  ASSERT_EQ(reader.try_read(got), Result::ok);
  EXPECT_GE(CountedHooks::invalidated, sizeof(Numbers<5>) + sizeof(std::uint32_t));
}

struct Impatient : Spin {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t silent_beats = 100;
};

TEST(MailboxOfSilentPeer, IsLeftAfterAsManyChecks) {
  using Channel = Mailbox<Numbers<1>, Platform<Coherent, StandardOrder, Impatient>>;
  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  auto writer = *Channel::Writer::create(memory, sizeof memory, "x");
  auto reader = *Channel::Reader::attach(memory, sizeof memory);
  Numbers<1> got{};
  EXPECT_EQ(reader.read(got), Result::peer_gone);
  ASSERT_EQ(writer.write(message<1>(1)), Result::ok);
  EXPECT_EQ(writer.write(message<1>(2)), Result::peer_gone);
  EXPECT_EQ(reader.read(got), Result::ok);
}

template <std::size_t size>
void stream_through_threads() {
  using Channel = Mailbox<Numbers<size>, Through<Coherent>>;
  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  constexpr std::uint32_t messages = 5'000;
  auto writer = *Channel::Writer::create(memory, sizeof memory, "stream");
  std::thread other{[&] {
    for (std::uint32_t number = 0; number < messages; ++number) {
      while (writer.write(message<size>(number)) != Result::ok) {
      }
    }
  }};
  auto reader = *Channel::Reader::attach(memory, sizeof memory);
  std::uint32_t wrong = 0;
  for (std::uint32_t number = 0; number < messages; ++number) {
    Numbers<size> got{};
    wrong += reader.read(got) == Result::ok && is(got, number) ? 0U : 1U;
  }
  other.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(MailboxBetweenThreads, DeliversAllInOrder) {
  stream_through_threads<1>();
  stream_through_threads<14>();
  stream_through_threads<15>();
  stream_through_threads<256>();
}

}  // namespace
