// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "attach_session.hpp"
#include "failure.hpp"

namespace {

using latenz::probe::Failure;

std::string refusal(std::span<const char* const> arguments) {
  try {
    static_cast<void>(latenz::attach::attach(arguments));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

TEST(Attach, TracesAreReadElsewhere) {
  const std::array arguments{"--output=/nowhere", "--trace=trace.dat"};
  EXPECT_EQ(refusal(arguments), "--trace: traces are read where Latenz is installed");
}

TEST(Attach, NeedsAProcess) {
  const std::array arguments{"--output=/nowhere"};
  EXPECT_EQ(refusal(arguments),
            "--processes: is missing; name those whose threads are to be measured");
}

}  // namespace
