// The publication's double buffer under the explorer: it tears, and only two updates in one read
// are needed.
#include "../double_buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "latest_scenario.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using Buffer = icc::testing::DoubleBuffer<Pair, icc::Platform<PlainPayload, ExploredOrder>>;

struct Writer final : Thread {
  explicit Writer(std::uint32_t wanted) : updates(wanted) {}
  void operation() override {
    ++value;
    Buffer(Arena::memory()).update({value, value});
  }
  [[nodiscard]] bool ended() const override { return value == updates; }

  std::uint32_t updates;
  std::uint32_t value = 0;
};

struct Reader final : Thread {
  void operation() override {
    Pair value{};
    Buffer(Arena::memory()).read_latest(value);
    if (value.a != value.b) fail("torn");
    done = true;
  }
  [[nodiscard]] bool ended() const override { return done; }

  bool done = false;
};

Report one_read_during(std::uint32_t updates) {
  std::memset(Arena::memory(), 0, Arena::bytes);
  Explorer explorer(Model::interleaving);
  explorer.add<Writer>("writer", updates);
  explorer.add<Reader>("reader");
  return explorer.run();
}

TEST(ExploredDoubleBuffer, OneUpdateDuringAReadIsHarmless) {
  prove("double buffer, 1 update, 1 read", Model::interleaving, [] { return one_read_during(1); });
}

// Nothing but a reader that is stopped inside its read is needed: however rarely updates come, two
// of them may fall into it.
TEST(ExploredDoubleBuffer, TwoUpdatesDuringAReadTearIt) {
  const Report report = one_read_during(2);
  expect_caught("double buffer of the publication, 2 updates", report);
  EXPECT_EQ(report.failure, "torn");
}

}  // namespace
}  // namespace latenz::explorer
