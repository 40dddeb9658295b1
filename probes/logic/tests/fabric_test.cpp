// SPDX-License-Identifier: Apache-2.0
// A design in step, against the same design that is stepped through every single clock edge.
#include "fabric.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>

namespace latenz::logic {
namespace {

/// A small design: some edges after a request it raises its interrupt; a read of any slave tells
/// how many edges it has counted since, after some edges of waiting, and ends both. A write sets
/// how many edges it takes. At rest nothing in it changes.
class Echo final : public Logic {
 public:
  [[nodiscard]] Pins pins() override {
    Pins found{&clock_, &reset_, &request_, &raised_, {}};
    found.buses.fill(Bus{pin_.data(), &pin_[1], &pin_[2], &pin_[3], &pin_[4], &pin_[5], &pin_[6],
                         &pin_[7], &pin_[8], &pin_[9], &pin_[10], &pin_[11], &pin_[12], &pin_[13],
                         &pin_[14], &pin_[15], &pin_[16]});
    return found;
  }

  bool settle() override {
    const bool rises = clock_ != 0 && was_ == 0;
    was_ = clock_;
    awready() = awvalid() != 0 && wvalid() != 0 && bvalid() == 0 ? 1 : 0;
    arready() = rvalid() == 0 && waiting_ == 0 ? 1 : 0;
    return rises && edge();
  }

  void copy_from(Logic& other) override { state() = dynamic_cast<Echo&>(other).state(); }

 private:
  struct State {
    std::uint32_t clock, reset, request, raised, was, seen, waiting, left, counted, delay;
    std::array<std::uint32_t, 17> pin;
  };
  std::uint32_t &clock_ = all_.clock, &reset_ = all_.reset, &request_ = all_.request,
                &raised_ = all_.raised, &was_ = all_.was, &seen_ = all_.seen,
                &waiting_ = all_.waiting, &left_ = all_.left, &counted_ = all_.counted,
                &delay_ = all_.delay;
  std::array<std::uint32_t, 17>& pin_ = all_.pin;
  State& state() { return all_; }
  std::uint32_t& awvalid() { return pin_[1]; }
  std::uint32_t& awready() { return pin_[2]; }
  std::uint32_t& wdata() { return pin_[3]; }
  std::uint32_t& wvalid() { return pin_[5]; }
  std::uint32_t& bvalid() { return pin_[8]; }
  std::uint32_t& bready() { return pin_[9]; }
  std::uint32_t& arvalid() { return pin_[11]; }
  std::uint32_t& arready() { return pin_[12]; }
  std::uint32_t& rdata() { return pin_[13]; }
  std::uint32_t& rvalid() { return pin_[15]; }
  std::uint32_t& rready() { return pin_[16]; }

  bool edge() {
    const State before = all_;
    if (reset_ == 0) {
      delay_ = 3;
      return true;
    }
    if (bvalid() != 0 && bready() != 0) bvalid() = 0;
    if (awready() != 0) delay_ = wdata(), bvalid() = 1;
    if (rvalid() != 0 && rready() != 0) rvalid() = raised_ = counted_ = 0;
    if (waiting_ == 1) rdata() = counted_, rvalid() = 1;
    if (waiting_ > 0) --waiting_;
    if (arvalid() != 0 && arready() != 0) waiting_ = 2;
    if (raised_ != 0) ++counted_;
    if (left_ == 1) raised_ = 1;
    if (left_ > 0) --left_;
    if (request_ != 0 && seen_ == 0 && raised_ == 0) left_ = delay_;
    seen_ = request_;
    return before.left != left_ || before.raised != raised_ || before.counted != counted_ ||
           before.seen != seen_ || before.waiting != waiting_ || before.pin != pin_;
  }

  State all_{};
};

Fabric fabric(std::int64_t period_ns = 1) {
  return {std::make_unique<Echo>(), std::make_unique<Echo>(), period_ns};
}

TEST(Fabric, NothingChangesAtRest) {
  Fabric here = fabric();
  here.advance(100);
  EXPECT_FALSE(here.next_change_ns());
  here.advance(4'000'000'000'000'000);  // would take years, edge by edge
  EXPECT_EQ(here.edges(), 4'000'000'000'000'000);
}

TEST(Fabric, TellsWhenTheInterruptComes) {
  Fabric here = fabric();
  here.request(1000, true);
  EXPECT_EQ(here.next_change_ns(), 1004);  // sampled by the edge behind it, and three more
  here.advance(1003);
  EXPECT_FALSE(here.interrupt());
  here.advance(1004);
  EXPECT_TRUE(here.interrupt());
}

TEST(Fabric, EdgesLieAtMultiplesOfThePeriod) {
  Fabric here = fabric(10);
  here.request(1005, true);
  EXPECT_EQ(here.next_change_ns(), 1040);
}

TEST(Fabric, TheProcessorWaitsForTheBus) {
  Fabric here = fabric();
  static_cast<void>(here.write(10, 0, 0, 7));  // two edges
  EXPECT_EQ(here.edges(), 12);
  here.request(20, true);  // the design's time is two edges ahead
  EXPECT_EQ(here.next_change_ns(), 28);
  here.advance(28);
  ASSERT_TRUE(here.interrupt());
  EXPECT_EQ(here.edges(), 30);
  EXPECT_EQ(here.read(38, 4, 0).data, 12U);  // ten instructions, and two edges of the bus
  EXPECT_FALSE(here.interrupt());
}

TEST(Fabric, RefusesAClockThatStands) { EXPECT_THROW(fabric(0), Mistake); }

/// What is looked ahead is what then happens, whatever is done before.
TEST(Fabric, LooksAheadExactly) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp)
  for (std::int64_t period_ns : {1, 3, 10}) {
    Fabric far = fabric(period_ns);
    Fabric near = fabric(period_ns);  // brought on by one nanosecond at a time
    std::int64_t now = 0;
    bool level = false;
    for (int step = 0; step < 400; ++step) {
      const std::optional<std::int64_t> change = far.next_change_ns();
      const std::int64_t next = now + 1 + static_cast<std::int64_t>(random() % 60);
      for (std::int64_t at = now; at <= next; ++at) {
        near.advance(at);
        // behind the change nobody has said anything
        const bool turned = near.interrupt() != far.interrupt();
        ASSERT_TRUE((change && at > *change) || turned == (change && at == *change)) << at;
      }
      now = next;
      far.advance(now);
      ASSERT_EQ(near.interrupt(), far.interrupt());
      ASSERT_EQ(near.edges(), far.edges());
      const auto what = random() % 4;
      if (what == 0) level = !level, far.request(now, level), near.request(now, level);
      if (what == 1) {
        ASSERT_EQ(far.read(now, 1, 0).data, near.read(now, 1, 0).data);
      }
      if (what == 2) {
        const auto delay = static_cast<std::uint32_t>(1 + random() % 40);
        ASSERT_EQ(far.write(now, 1, 0, delay).response, near.write(now, 1, 0, delay).response);
      }
    }
  }
}

}  // namespace
}  // namespace latenz::logic
