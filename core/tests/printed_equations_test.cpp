// SPDX-License-Identifier: Apache-2.0
#include "latenz/printed_equations.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "counterexamples.hpp"

using latenz::Duration;
using latenz::PrintedEquation;

namespace {

Duration printed(const latenz::System& system, std::size_t source, PrintedEquation::Number number) {
  return PrintedEquation(system, source, number, Duration(1'000'000'000)).latency();
}

}  // namespace

TEST(PrintedEquations, GiveWhatAHandCalculationGives) {
  for (const Counterexample& each : counterexamples::all()) {
    for (std::size_t i = 0; i < each.expected.size(); ++i) {
      const auto& expected = each.expected[i];
      EXPECT_EQ(printed(each.system, i, PrintedEquation::Number::eq11), Duration(expected.eq11))
          << each.name << ", source " << i;
      EXPECT_EQ(printed(each.system, i, PrintedEquation::Number::eq16), Duration(expected.eq16))
          << each.name << ", source " << i;
    }
  }
}

TEST(PrintedEquations, OfAnOverloadAreUnbounded) {
  latenz::Source source = counterexamples::every_10_ms(0, 40'000);
  source.bottom = Duration(6'000'000);  // of 10 ms, and the slot is half of the time
  const auto system = counterexamples::system({1'000'000, 1'000'000}, {}, {source});
  EXPECT_TRUE(printed(system, 0, PrintedEquation::Number::eq11).is_unbounded());
  EXPECT_EQ(printed(system, 0, PrintedEquation::Number::eq16), Duration(6'005'000));
}

TEST(PrintedEquations, LookAtEveryIrqOfABusyWindow) {
  // Eq. (4): three IRQs at once keep W busy until the third, which waits for all: 3 (5 + 40) us.
  latenz::Source source = counterexamples::every_10_ms(0, 40'000);
  source.arrival = latenz::Periodic(Duration(10'000'000), Duration(25'000'000), {});
  const auto system = counterexamples::system({1'000'000}, {}, {source});
  EXPECT_EQ(printed(system, 0, PrintedEquation::Number::eq11), Duration(135'000));
}

TEST(PrintedEquations, OfDenseIrqsAreGivenUpLongBeforeAFarHorizon) {
  latenz::Source source = counterexamples::every_10_ms(0, 4);
  source.top = Duration();
  source.arrival = latenz::Periodic(Duration(3), {}, {});  // every IRQ adds 4 ns to W, for ever
  const auto system = counterexamples::system({10}, {}, {source});
  const auto eq11 = PrintedEquation::Number::eq11;
  const Duration century(std::int64_t{100} * 365 * 86'400 * 1'000'000'000);
  EXPECT_TRUE(PrintedEquation(system, 0, eq11, century).latency().is_unbounded());
}
