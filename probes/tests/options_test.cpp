// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <gtest/gtest.h>

#include "failure.hpp"

namespace latenz::probe {
namespace {

cpu_set_t cpus(std::initializer_list<unsigned> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned number : numbers) {
    CPU_SET(number, &set);
  }
  return set;
}

template <typename Call>
std::string failure_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(ParseCpus, KeepsOrderAndRepetition) {
  const cpu_set_t allowed = cpus({0, 1, 2, 3, 8});
  EXPECT_EQ(parse_cpus("--cpus", "0", allowed), (std::vector<unsigned>{0}));
  EXPECT_EQ(parse_cpus("--cpus", "8,0-2,0", allowed), (std::vector<unsigned>{8, 0, 1, 2, 0}));
  EXPECT_EQ(parse_cpus("--cpus", "3-3", allowed), (std::vector<unsigned>{3}));
}

TEST(ParseCpus, NamesTheCpusThatArePossible) {
  const auto call = [] { static_cast<void>(parse_cpus("--cpus", "1,4", cpus({0, 1, 2, 3, 8}))); };
  EXPECT_EQ(failure_of(call),
            "--cpus: CPU 4 cannot be entered (absent, offline or outside of the cpuset); choose of "
            "0-3,8");
}

TEST(ParseCpus, RefusesEverythingElse) {
  for (const char* text : {"", ",", "0,", "-1", "1-0", "0-", "a", "0 ", " 0", "0x1", "1024",
                           "99999999999999999999", "0-1-2", "0;1", "+1"}) {
    EXPECT_THROW(static_cast<void>(parse_cpus("--cpus", text, cpus({0, 1, 2}))), Failure) << text;
  }
}

TEST(ParseCpus, BoundsTheNumberOfThreads) {
  std::string many = "0";
  for (int i = 0; i < 1024; ++i) {
    many += ",0";
  }
  EXPECT_THROW(static_cast<void>(parse_cpus("--cpus", many, cpus({0}))), Failure);
}

TEST(ParseInteger, TakesWholeNumbersWithinBoundsOnly) {
  EXPECT_EQ(parse_integer("--n", "-5", -5, 5), -5);
  EXPECT_EQ(parse_integer("--n", "9223372036854775807", 0, INT64_MAX), INT64_MAX);
  for (const char* text : {"", "6", "-6", "1.0", "1e3", "0x1", " 1", "1 ", "1us", "+1",
                           "9223372036854775808", "--1"}) {
    EXPECT_THROW(static_cast<void>(parse_integer("--n", text, -5, 5)), Failure) << text;
  }
}

TEST(ParseOptions, EveryMistakeNamesTheOption) {
  int value = 0;
  bool flagged = false;
  const std::vector<Option> options{
      {"--value", "N", "a value",
       [&](std::string_view text) { value = static_cast<int>(text.size()); }},
      {"--flag", "", "a flag", [&](std::string_view /*none*/) { flagged = true; }}};
  const auto parse = [&](std::vector<const char*> arguments) {
    return failure_of([&] { parse_options(options, arguments); });
  };
  EXPECT_EQ(parse({"--value", "abc", "--flag"}), "");
  EXPECT_EQ(value, 3);
  EXPECT_TRUE(flagged);
  EXPECT_EQ(parse({"--value=ab=d"}), "");
  EXPECT_EQ(value, 4);
  EXPECT_EQ(parse({"--value"}), "--value: its value is missing; write --value N");
  EXPECT_EQ(parse({"--other"}), "--other: no such option; --help lists them all");
  EXPECT_EQ(parse({"word"}), "word: no such option; --help lists them all");
  EXPECT_EQ(parse({"--flag=1"}), "--flag: takes no value");
  EXPECT_EQ(parse({"--flag", "--flag"}), "--flag: is given twice; give it once");
}

}  // namespace
}  // namespace latenz::probe
