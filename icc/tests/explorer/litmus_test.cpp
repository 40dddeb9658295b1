// The memory machines themselves, on programs whose allowed outcomes are known.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "straight_programs.hpp"

namespace latenz::explorer {
namespace {

constexpr std::uint32_t x = 0, y = 1;
constexpr Instruction rlx_load(std::uint32_t from) { return {Do::relaxed_load, from}; }
constexpr Instruction acq_load(std::uint32_t from) { return {Do::acquire_load, from}; }
constexpr Instruction rlx_store(std::uint32_t to, std::uint32_t value = 1) {
  return {Do::relaxed_store, to, value};
}
constexpr Instruction rel_store(std::uint32_t to, std::uint32_t value = 1) {
  return {Do::release_store, to, value};
}
constexpr Instruction fence{Do::full_fence};
constexpr Instruction acq_fence{Do::acquire_fence};
constexpr Instruction rel_fence{Do::release_fence};

TEST(Litmus, StoreBuffering) {
  const Outcomes all{"0 0", "0 1", "1 0", "1 1"};
  const Outcomes ordered{"0 1", "1 0", "1 1"};
  const Program release_acquire{{rel_store(x), acq_load(y)}, {rel_store(y), acq_load(x)}};
  EXPECT_EQ(outcomes(Model::weak, release_acquire), all);
  EXPECT_EQ(outcomes(Model::interleaving, release_acquire), ordered);
  const Program fenced{{rlx_store(x), fence, rlx_load(y)}, {rlx_store(y), fence, rlx_load(x)}};
  EXPECT_EQ(outcomes(Model::weak, fenced), ordered);
  const Program half{{rlx_store(x), fence, rlx_load(y)}, {rlx_store(y), rlx_load(x)}};
  EXPECT_EQ(outcomes(Model::weak, half), all);
}

TEST(Litmus, MessagePassing) {
  const Outcomes all{"00", "01", "10", "11"};
  const Outcomes ordered{"00", "01", "11"};
  const auto message_passing = [](std::vector<Instruction> writer,
                                  std::vector<Instruction> reader) {
    auto const seen = outcomes(Model::weak, {std::move(writer), std::move(reader)});
    Outcomes trimmed;
    for (const std::string& each : seen) trimmed.insert(each.substr(each.find_last_of(' ') + 1));
    return trimmed;
  };
  EXPECT_EQ(message_passing({rlx_store(x), rel_store(y)}, {acq_load(y), rlx_load(x)}), ordered);
  EXPECT_EQ(message_passing({rlx_store(x), rlx_store(y)}, {acq_load(y), rlx_load(x)}), all);
  EXPECT_EQ(message_passing({rlx_store(x), rel_store(y)}, {rlx_load(y), rlx_load(x)}), all);
  EXPECT_EQ(message_passing({rlx_store(x), rel_fence, rlx_store(y)},
                            {rlx_load(y), acq_fence, rlx_load(x)}),
            ordered);
  EXPECT_EQ(message_passing({rlx_store(x), rel_fence, rlx_store(y)}, {rlx_load(y), rlx_load(x)}),
            all);
}

TEST(Litmus, LoadBufferingIsNotInTheModel) {
  EXPECT_EQ(outcomes(Model::weak, {{rlx_load(x), rlx_store(y)}, {rlx_load(y), rlx_store(x)}}),
            (Outcomes{"0 0", "0 1", "1 0"}));
}

TEST(Litmus, IndependentReadsOfIndependentWrites) {
  const auto readers_disagree = [](const Instruction& between) {
    const Outcomes seen = outcomes(Model::weak, {{rel_store(x)},
                                                 {rel_store(y)},
                                                 {acq_load(x), between, acq_load(y)},
                                                 {acq_load(y), between, acq_load(x)}});
    return seen.contains("  10 10");
  };
  EXPECT_TRUE(readers_disagree(acq_fence));
  EXPECT_FALSE(readers_disagree(fence));
}

TEST(Litmus, OneWordIsCoherent) {
  const Outcomes seen =
      outcomes(Model::weak, {{rlx_store(x, 1), rlx_store(x, 2)}, {rlx_load(x), rlx_load(x)}});
  EXPECT_EQ(seen, (Outcomes{" 00", " 01", " 02", " 11", " 12", " 22"}));
}

TEST(Litmus, WritersOfOneWordAgreeOnAnOrder) {
  const Outcomes seen = outcomes(Model::weak, {{rlx_store(x, 1)},
                                               {rlx_store(x, 2)},
                                               {rlx_load(x), rlx_load(x)},
                                               {rlx_load(x), rlx_load(x)}});
  EXPECT_TRUE(seen.contains("  12 12"));
  EXPECT_FALSE(seen.contains("  12 21"));
}

TEST(Litmus, StoresOfTwoWordsMayBeOrderedAgainstEachOther) {
  // 2+2W: each word's first store in program order may be its last in modification order
  const Program program{{rlx_store(x, 1), rlx_store(y, 2)},
                        {rlx_store(y, 1), rlx_store(x, 2)},
                        {rlx_load(x), rlx_load(x)},
                        {rlx_load(y), rlx_load(y)}};
  EXPECT_TRUE(outcomes(Model::weak, program).contains("  21 21"));
}

TEST(Litmus, ReleaseTravelsThroughAThirdThread) {
  const Program relaxed{{rlx_store(x)}, {rlx_load(x), rel_store(y)}, {acq_load(y), rlx_load(x)}};
  EXPECT_TRUE(outcomes(Model::weak, relaxed).contains(" 1 11"));
  EXPECT_FALSE(outcomes(Model::weak, relaxed).contains(" 1 10"));  // coherence: it read x = 1
}

TEST(Litmus, NumbersOfInterleavedStatesAreThoseOfTheFormula) {
  for (std::size_t n = 1; n <= 5; ++n) {
    Report report;
    outcomes(Model::interleaving,
             {std::vector<Instruction>(n, rlx_store(x)), std::vector<Instruction>(1, rlx_load(x))},
             &report);
    // n stores and one load: the load has not happened, or gave 0 (before any store) or 1
    EXPECT_EQ(report.states, (n + 1) + (n + 1) + n);
  }
}

}  // namespace
}  // namespace latenz::explorer
