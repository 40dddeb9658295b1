// SPDX-License-Identifier: Apache-2.0
#include "latenz/crc32.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace latenz {
namespace {

std::uint32_t of(std::string_view text) { return crc32(std::as_bytes(std::span(text))); }

// Check values of the CRC catalogue (CRC-32/ISO-HDLC).
TEST(Crc32, GivesThePublishedCheckValues) {
  EXPECT_EQ(of(""), 0U);
  EXPECT_EQ(of("123456789"), 0xCBF43926U);
  EXPECT_EQ(of("The quick brown fox jumps over the lazy dog"), 0x414FA339U);
}

}  // namespace
}  // namespace latenz
