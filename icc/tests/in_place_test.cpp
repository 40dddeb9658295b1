// SPDX-License-Identifier: Apache-2.0
// Mailbox and Exchange without copies: what is lent, published, taken and given back, and by whom.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "latenz/icc.hpp"

namespace latenz::icc {
namespace {

struct Sample {
  std::uint32_t number;
  std::uint32_t again;
};
using Box = Mailbox<Sample>;
using Servo = Exchange<Sample, Sample>;

template <class Channel>
struct Memory {
  alignas(2 * line_bytes) std::byte all[Channel::bytes]{};
};

struct InMailbox : testing::Test {
  Box::Writer open_writer() { return *Box::Writer::create(memory.all, Box::bytes, "box"); }
  Box::Reader open_reader() { return *Box::Reader::attach(memory.all, Box::bytes); }

  Memory<Box> memory;
  Box::Writer writer = open_writer();
  Box::Reader reader = open_reader();
  Sample* place = nullptr;
  const Sample* there = nullptr;
};

TEST_F(InMailbox, WhatIsNotPublishedIsSeenByNobody) {
  ASSERT_EQ(writer.try_loan(place), Result::ok);
  *place = {1, 1};
  EXPECT_EQ(reader.try_take(there), Result::empty);
  Sample* again = nullptr;
  EXPECT_EQ(writer.loan_until(again, Checks{0}), Result::ok);  // the next one's
  EXPECT_EQ(again, place);
  *place = {2, 2};
  writer.publish();
  writer.publish();  // once for each loan
  ASSERT_EQ(reader.take_until(there, Checks{0}), Result::ok);
  EXPECT_EQ(static_cast<const void*>(there), place);
  EXPECT_EQ(there->number, 2U);
  EXPECT_EQ(writer.try_loan(place), Result::full);
  EXPECT_EQ(writer.loan_until(place, Checks{1}), Result::timeout);
  EXPECT_EQ(reader.release(), Result::ok);
  EXPECT_EQ(reader.release(), Result::empty);
  EXPECT_EQ(reader.try_take(there), Result::empty);
}

TEST_F(InMailbox, CopiedMessageTakesTheLoansPlace) {
  ASSERT_EQ(writer.try_loan(place), Result::ok);
  EXPECT_EQ(writer.try_write({3, 3}), Result::ok);
  writer.publish();  // nothing is lent any more
  Sample sample{};
  ASSERT_EQ(reader.try_read(sample), Result::ok);
  EXPECT_EQ(sample.number, 3U);
  EXPECT_EQ(reader.try_read(sample), Result::empty);
  EXPECT_EQ(reader.release(), Result::empty);
}

TEST_F(InMailbox, DeathBetweenLoanAndPublishLeavesTheSlotFree) {
  ASSERT_EQ(writer.try_loan(place), Result::ok);
  *place = {4, 4};
  writer = open_writer();  // as after a death
  writer.publish();
  EXPECT_EQ(reader.try_take(there), Result::peer_restarted);
  EXPECT_EQ(reader.try_take(there), Result::empty);
  EXPECT_EQ(writer.try_loan(place), Result::ok);
  *place = {5, 5};
  writer.publish();
  ASSERT_EQ(reader.try_take(there), Result::ok);
  EXPECT_EQ(there->number, 5U);
  EXPECT_EQ(reader.dropped(), 0U);
}

TEST_F(InMailbox, DeathBetweenTakingAndGivingBackIsCounted) {
  EXPECT_EQ(writer.try_write({6, 6}), Result::ok);
  ASSERT_EQ(reader.try_take(there), Result::ok);
  reader = open_reader();
  EXPECT_EQ(reader.dropped(), 1U);
  EXPECT_EQ(writer.try_loan(place), Result::peer_restarted);
  EXPECT_EQ(writer.try_loan(place), Result::ok);
}

// Memory that is not coherent: invalidating a line throws away what was stored there and not
// cleaned.
struct Discarding {
  static inline const std::byte* begin = nullptr;
  static inline std::size_t bytes = 0;
  static inline bool discards = false;

  static void clean(const void* /*address*/, std::size_t /*bytes*/) {}
  static void invalidate(const void* address, std::size_t /*bytes*/) {
    const auto line = reinterpret_cast<std::uintptr_t>(address) / line_bytes;
    const auto ours = reinterpret_cast<std::uintptr_t>(begin) / line_bytes;
    discards = discards || (bytes != 0 && line == ours);
  }
};

TEST(InPlace, WhatIsBeingMadeIsNotDiscardedWhereMemoryIsNotCoherent) {
  using P = Platform<Cached<Discarding>, StandardOrder>;
  const auto make = [](auto& lender, auto*& place) {
    ASSERT_EQ(lender.try_loan(place), Result::ok);
    Discarding::begin = reinterpret_cast<const std::byte*>(place);
    Discarding::bytes = sizeof *place;
  };
  const auto made = [] {
    Discarding::bytes = 0;
    return !Discarding::discards;
  };
  Sample* place = nullptr;
  Memory<Mailbox<Sample, P>> box;
  auto writer = *Mailbox<Sample, P>::Writer::create(box.all, sizeof box.all, "box");
  make(writer, place);
  EXPECT_TRUE(writer.free());
  EXPECT_EQ(writer.try_loan(place), Result::ok);
  EXPECT_EQ(writer.loan_until(place, Checks{0}), Result::ok);
  EXPECT_TRUE(made());
  Memory<Exchange<Sample, Sample, P>> servo;
  auto client = *Exchange<Sample, Sample, P>::Client::create(servo.all, sizeof servo.all, "servo");
  make(client, place);
  EXPECT_EQ(client.try_loan(place), Result::ok);
  EXPECT_EQ(client.loan_until(place, Checks{0}), Result::ok);
  Sample reply{};
  EXPECT_EQ(client.try_collect(reply), Result::empty);
  EXPECT_TRUE(made());
}

struct InExchange : testing::Test {
  Servo::Client open_client() { return *Servo::Client::create(memory.all, Servo::bytes, "servo"); }
  Servo::Server open_server() { return *Servo::Server::attach(memory.all, Servo::bytes); }
  void ask(std::uint32_t number) {
    ASSERT_EQ(client.try_loan(request), Result::ok);
    *request = {number, number};
    client.publish();
  }

  Memory<Servo> memory;
  Servo::Client client = open_client();
  Servo::Server server = open_server();
  Sample* request = nullptr;
  Sample* reply = nullptr;
  const Sample* asked = nullptr;
  const Sample* answered = nullptr;
};

TEST_F(InExchange, CallWithoutCopies) {
  for (std::uint32_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(client.take_until(answered, Checks{0}), Result::empty);  // nothing was asked
    EXPECT_EQ(server.try_loan(reply), Result::empty);
    ask(number);
    EXPECT_EQ(client.try_loan(request), Result::full);
    EXPECT_EQ(client.try_take(answered), Result::empty);
    ASSERT_EQ(server.take_until(asked, Checks{0}), Result::ok);
    EXPECT_EQ(asked->number, number);
    EXPECT_EQ(server.try_take(asked), Result::busy);
    ASSERT_EQ(server.try_loan(reply), Result::ok);
    *reply = {number, number + 1};
    EXPECT_EQ(client.try_take(answered), Result::empty);  // before it is published
    server.publish();
    server.publish();
    ASSERT_EQ(client.take_until(answered, Checks{0}), Result::ok);
    EXPECT_EQ(answered->again, number + 1);
    EXPECT_EQ(client.release(), Result::ok);
    EXPECT_EQ(client.release(), Result::empty);
  }
}

TEST_F(InExchange, NextLoanEndsAReplyThatIsThere) {
  ask(1);
  ASSERT_EQ(server.try_take(asked), Result::ok);
  EXPECT_EQ(server.answer({1, 2}), Result::ok);
  ASSERT_EQ(client.try_loan(request), Result::ok);  // in its place
  *request = {9, 9};
  EXPECT_EQ(client.try_take(answered), Result::empty);
}

TEST_F(InExchange, DeathsBetweenLoanAndPublish) {
  ASSERT_EQ(client.try_loan(request), Result::ok);
  *request = {1, 1};
  client = open_client();
  EXPECT_EQ(server.try_take(asked), Result::peer_restarted);
  EXPECT_EQ(server.try_take(asked), Result::empty);
  ask(2);
  ASSERT_EQ(server.try_take(asked), Result::ok);
  ASSERT_EQ(server.try_loan(reply), Result::ok);
  *reply = {2, 3};
  server = open_server();  // hands it back
  EXPECT_EQ(server.dropped(), 1U);
  EXPECT_EQ(client.try_take(answered), Result::peer_restarted);
  ask(4);
  ASSERT_EQ(server.try_take(asked), Result::ok);
  EXPECT_EQ(asked->number, 4U);
}

}  // namespace
}  // namespace latenz::icc
