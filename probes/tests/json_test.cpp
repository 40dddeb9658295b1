// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace latenz::probe {
namespace {

TEST(Json, NestsAndSeparates) {
  Json json;
  json.open_object().member("a", 1).key("b").open_array().value(2).value("x").null();
  json.open_array().close_array().close_array().member("c", true).close_object();
  EXPECT_EQ(json.text(), R"({"a": 1, "b": [2, "x", null, []], "c": true})");
}

TEST(Json, KeepsAllOf64Bits) {
  Json json;
  json.open_array().value(std::numeric_limits<std::int64_t>::min());
  json.value(std::numeric_limits<std::uint64_t>::max()).close_array();
  EXPECT_EQ(json.text(), "[-9223372036854775808, 18446744073709551615]");
}

TEST(Json, ANameOfATaskCannotBreakTheText) {
  Json json;
  json.value("a\"b\\c\nd\xff");
  EXPECT_EQ(json.text(), R"("a\"b\\c?d?")");
}

}  // namespace
}  // namespace latenz::probe
