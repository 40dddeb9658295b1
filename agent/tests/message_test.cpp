// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <gtest/gtest.h>

#include "failure.hpp"

namespace latenz::agent {
namespace {

using probe::Failure;

std::string request(std::string_view verb, const Fields& fields) {
  // The reply's fields are written as a request's.
  const std::string answered = reply(7, 0, fields);
  const std::size_t line = answered.find('\n');
  const std::size_t length = answered.rfind(' ', line);
  return std::string(verb) + " 7" + answered.substr(length);
}

TEST(Message, AnyBytesFitIntoFields) {
  const Fields fields{"", std::string("a\0b\n9\n", 6), "\xff\xfe", std::string(100'000, 'x')};
  Inbox inbox;
  inbox.add(request("start", fields));
  const auto got = inbox.next();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->verb, "start");
  EXPECT_EQ(got->id, 7U);
  EXPECT_EQ(got->fields, fields);
  EXPECT_FALSE(inbox.next());
}

TEST(Message, RequestsMayArriveByteByByte) {
  Inbox inbox;
  int whole = 0;
  for (const char byte : request("read", {"1", "/proc/stat"}) + request("beat", {})) {
    inbox.add({&byte, 1});
    while (inbox.next()) ++whole;
  }
  EXPECT_EQ(whole, 2);
}

TEST(Message, WhatIsNoRequestIsRefused) {
  for (const std::string bad :
       {"read 1\n", "read one 3\n1\na", "read 1 -3\n", "read 1 99999999999\n", "read 1 3 4\n1\na",
        "read 1 4\n9\na\n", "read 1 3\nx\na", "read 1 1\na"}) {
    Inbox inbox;
    inbox.add(bad);
    EXPECT_THROW(static_cast<void>(inbox.next()), Failure) << bad;
  }
  Inbox endless;
  endless.add(std::string(100, 'x'));
  EXPECT_THROW(static_cast<void>(endless.next()), Failure);
}

TEST(Message, NumbersHaveBounds) {
  EXPECT_EQ(number("offset", "0", 0, 9), 0);
  for (const std::string bad : {"", "-1", "10", " 1", "1 ", "0x1", "1234567890123456789"}) {
    EXPECT_THROW(static_cast<void>(number("offset", bad, 0, 9)), Failure) << bad;
  }
}

}  // namespace
}  // namespace latenz::agent
