// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "latenz/icc.hpp"
#include "patient.hpp"

namespace {

using namespace latenz::icc;
using latenz::icc::tests::Patient;

template <std::size_t size>
struct Question {
  std::uint32_t word[size];
};
struct Sum {
  std::uint32_t first;
  std::uint32_t sum;
};

template <std::size_t size>
Question<size> question(std::uint32_t number) {
  Question<size> all{};
  for (std::size_t i = 0; i < size; ++i) {
    all.word[i] = number + static_cast<std::uint32_t>(i);
  }
  return all;
}

template <std::size_t size>
Sum answer_to(const Question<size>& question) {
  Sum sum{question.word[0], 0};
  for (const std::uint32_t word : question.word) {
    sum.sum = sum.sum * 31 + word;
  }
  return sum;
}

using Yielding = Platform<Coherent, StandardOrder, Patient>;
using ByWords = Platform<DeviceWord, StandardOrder, Patient>;

template <class Size>
class ExchangeTest : public testing::Test {
 protected:
  static constexpr std::size_t words = Size::value;
  using Channel = Exchange<Question<words>, Sum, Yielding>;

  typename Channel::Client open_client() {
    return *Channel::Client::create(memory, sizeof memory, "sum");
  }
  typename Channel::Server open_server() { return *Channel::Server::attach(memory, sizeof memory); }

  alignas(line_bytes) std::byte memory[Channel::bytes]{};
  typename Channel::Client client = open_client();
  typename Channel::Server server = open_server();
  Question<words> asked{};
  Sum reply{};
};

// Words of a request: with the word of the exchange one line, two lines at least and at most, more.
using Sizes =
    testing::Types<std::integral_constant<std::size_t, 1>, std::integral_constant<std::size_t, 15>,
                   std::integral_constant<std::size_t, 16>, std::integral_constant<std::size_t, 31>,
                   std::integral_constant<std::size_t, 32>,
                   std::integral_constant<std::size_t, 256>>;
TYPED_TEST_SUITE(ExchangeTest, Sizes);

TYPED_TEST(ExchangeTest, EachRequestGetsItsReply) {
  constexpr std::size_t size = TestFixture::words;
  EXPECT_EQ(this->server.try_take(this->asked), Result::empty);
  EXPECT_EQ(this->client.try_collect(this->reply), Result::empty);
  EXPECT_EQ(this->server.answer({}), Result::empty);
  for (std::uint32_t number = 0; number < 500; ++number) {
    ASSERT_EQ(this->client.try_post(question<size>(number)), Result::ok);
    ASSERT_EQ(this->client.try_post(question<size>(number)), Result::full);
    ASSERT_EQ(this->client.try_collect(this->reply), Result::empty);
    ASSERT_EQ(this->server.try_take(this->asked), Result::ok);
    ASSERT_EQ(this->server.try_take(this->asked), Result::busy);
    ASSERT_EQ(this->server.answer(answer_to(this->asked)), Result::ok);
    ASSERT_EQ(this->client.try_collect(this->reply), Result::ok);
    ASSERT_EQ(this->reply.first, number);
    ASSERT_EQ(this->reply.sum, answer_to(question<size>(number)).sum);
    ASSERT_EQ(this->client.try_collect(this->reply), Result::empty);
  }
}

TYPED_TEST(ExchangeTest, CallsBetweenThreadsAreAnswered) {
  constexpr std::size_t size = TestFixture::words;
  constexpr std::uint32_t calls = 2'000;
  std::thread other{[this] {
    for (std::uint32_t i = 0; i < calls; ++i) {
      while (this->server.serve(answer_to<size>) != Result::ok) {
      }
    }
  }};
  std::uint32_t wrong = 0;
  for (std::uint32_t number = 0; number < calls; ++number) {
    const auto request = question<size>(number);
    const bool right = this->client.call(request, this->reply) == Result::ok &&
                       this->reply.sum == answer_to(request).sum;
    wrong += right ? 0U : 1U;
  }
  other.join();
  EXPECT_EQ(wrong, 0U);
}

TYPED_TEST(ExchangeTest, ARestartedServerHandsTheRequestBack) {
  constexpr std::size_t size = TestFixture::words;
  ASSERT_EQ(this->client.try_post(question<size>(1)), Result::ok);
  ASSERT_EQ(this->server.try_take(this->asked), Result::ok);
  auto second = this->open_server();
  EXPECT_EQ(second.dropped(), 1U);
  EXPECT_EQ(second.try_take(this->asked), Result::empty);
  EXPECT_EQ(this->client.try_collect(this->reply), Result::peer_restarted);
  ASSERT_EQ(this->client.try_post(question<size>(2)), Result::ok);
  ASSERT_EQ(second.try_take(this->asked), Result::ok);
  EXPECT_EQ(this->asked.word[0], 2U);
  second.answer(answer_to(this->asked));
  EXPECT_EQ(this->client.try_collect(this->reply), Result::ok);
}

TYPED_TEST(ExchangeTest, ARestartedClientsOldRequestIsNotActedUpon) {
  constexpr std::size_t size = TestFixture::words;
  ASSERT_EQ(this->client.try_post(question<size>(1)), Result::ok);
  auto second = this->open_client();
  EXPECT_EQ(second.try_post(question<size>(2)), Result::full);
  EXPECT_EQ(this->server.try_take(this->asked), Result::peer_restarted);
  EXPECT_EQ(this->server.try_take(this->asked), Result::empty);
  ASSERT_EQ(second.try_post(question<size>(3)), Result::ok);
  ASSERT_EQ(this->server.try_take(this->asked), Result::ok);
  EXPECT_EQ(this->asked.word[0], 3U);
}

TYPED_TEST(ExchangeTest, ALateReplyIsNotTakenForTheNext) {
  constexpr std::size_t size = TestFixture::words;
  EXPECT_EQ(this->client.call_until(question<size>(1), this->reply, Checks{3}), Result::timeout);
  EXPECT_EQ(this->client.call_until(question<size>(2), this->reply, Checks{3}), Result::timeout);
  ASSERT_EQ(this->server.try_take(this->asked), Result::ok);
  EXPECT_EQ(this->asked.word[0], 1U);
  this->server.answer(answer_to(this->asked));
  std::thread other{[this] {
    while (this->server.serve(answer_to<size>) != Result::ok) {
    }
  }};
  EXPECT_EQ(this->client.call(question<size>(3), this->reply), Result::ok);
  EXPECT_EQ(this->reply.first, 3U);
  other.join();
}

TEST(ExchangeOfWordsAndBytes, Agree) {  // one side copies word by word, the other as it likes
  using Bytes = Exchange<Question<16>, Sum, Yielding>;
  using Words = Exchange<Question<16>, Sum, ByWords>;
  static_assert(Bytes::bytes == Words::bytes);
  alignas(line_bytes) std::byte memory[Bytes::bytes]{};
  auto client = *Bytes::Client::create(memory, sizeof memory, "mixed");
  auto server = *Words::Server::attach(memory, sizeof memory);
  for (std::uint32_t number = 0; number < 100; ++number) {
    Question<16> asked{};
    Sum reply{};
    ASSERT_EQ(client.try_post(question<16>(number)), Result::ok);
    ASSERT_EQ(server.try_take(asked), Result::ok);
    ASSERT_EQ(server.answer(answer_to(asked)), Result::ok);
    ASSERT_EQ(client.try_collect(reply), Result::ok);
    ASSERT_EQ(reply.sum, answer_to(question<16>(number)).sum);
  }
}

}  // namespace
