// SPDX-License-Identifier: Apache-2.0
// A guest that does what it likes gets its interrupts as from an interrupt controller without list
// registers, which knows all that pends: none is lost, none comes twice, the most urgent is first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "basic_virtual_gic_members.hpp"
#include "fake_board.hpp"

namespace latenz::hypervisor {
namespace {

using Entry = Gicv2ListEntry;

/// What is known of an interrupt where nothing is scarce.
struct Known {
  bool pending = false;
  bool active = false;
  bool enabled = false;
  std::uint32_t priority = 0;
};

/// A guest beside its model. Its interrupts are of three banks.
class Guest {
 public:
  Guest() {
    board_.set_list(0, 0);
    gic_.reset();
    for (std::uint32_t id = 0; id < 16; ++id) known_[id].enabled = true;
    for (const std::uint32_t id : {32U, 40U, 63U, 64U, 75U, 1019U}) {
      gic_.watch(id);
      known_[id] = {};
    }
    gic_.load();
    gic_.write(Gicd::control, 4, 1);
  }

  void step(std::mt19937& dice) {
    const std::uint32_t id =
        std::next(known_.begin(), static_cast<std::ptrdiff_t>(dice() % known_.size()))->first;
    switch (dice() % 9) {
      case 0:
      case 1:
      case 2:
        gic_.signal(id);
        crowded_ = false;
        known_[id].pending = true;
        break;
      case 3:
        take();
        break;
      case 4:
        end(id);
        break;
      case 5:
        prefer(id, dice() & 0xFFU);
        break;
      case 6:
        enable(id, (dice() & 1U) != 0);
        break;
      case 7:
        forward((dice() % 4) != 0);
        break;
      default:
        gic_.save();
        EXPECT_EQ(board_.empty(), Gich::all) << "another guest finds nothing";
        gic_.load();
        crowded_ = false;
    }
    serve_maintenance();
    compare();
  }

  /// Takes and ends whatever there is.
  void drain() {
    forward(true);
    for (auto& [id, known] : known_) {
      end(id);
      enable(id, true);
    }
    serve_maintenance();
    for (unsigned i = 0; i < known_.size(); ++i) {
      const std::optional<std::uint32_t> taken = take();
      if (!taken) break;
      end(*taken);
      serve_maintenance();
    }
    for (const auto& [id, known] : known_) EXPECT_FALSE(known.pending) << id;
    EXPECT_EQ(board_.empty(), Gich::all);
  }

 private:
  /// The place in the list of what the CPU interface would signal: what pends and is most urgent.
  [[nodiscard]] std::optional<unsigned> best_listed() const {
    std::optional<unsigned> best;
    const auto urgency = [&](unsigned i) {
      return (board_.list[i] >> Entry::priority_shift) & 31U;
    };
    for (unsigned i = 0; i < board_.list.size(); ++i) {
      if (Entry::only_pends(board_.list[i]) && (!best || urgency(i) < urgency(*best))) best = i;
    }
    return best;
  }

  [[nodiscard]] std::optional<std::uint32_t> best_known() const {
    std::optional<std::uint32_t> best;
    if (!forwarding_) return best;
    for (const auto& [id, known] : known_) {
      const bool can_be = known.pending && known.enabled && !known.active;
      if (can_be && (!best || known.priority / 8 < known_.at(*best).priority / 8)) best = id;
    }
    return best;
  }

  std::optional<std::uint32_t> take() {
    const std::optional<unsigned> at = best_listed();
    if (!at) return {};
    const std::uint32_t entry = board_.list[*at];
    board_.set_list(*at, (entry & ~Entry::pending) | Entry::active);
    Known& known = known_.at(Entry::id(entry));
    EXPECT_TRUE(known.pending && known.enabled && !known.active) << Entry::id(entry);
    known.pending = false;
    known.active = true;
    return Entry::id(entry);
  }

  void end(std::uint32_t id) {
    if (!known_[id].active) return;
    known_[id].active = false;
    for (unsigned i = 0; i < board_.list.size(); ++i) {
      const std::uint32_t entry = board_.list[i];
      if (Entry::id(entry) == id && (entry & Entry::active) != 0) {
        board_.set_list(i, entry & ~Entry::active);
      }
    }
  }

  /// What has been listed keeps the priority that it had: the architecture leaves that open.
  void prefer(std::uint32_t id, std::uint32_t priority) {
    if (known_[id].pending || known_[id].active) return;
    gic_.write(Gicd::priorities + id, 1, priority);
    EXPECT_EQ(gic_.read(Gicd::priorities + id, 1), priority);
    known_[id].priority = priority;
  }

  void enable(std::uint32_t id, bool on) {
    const std::uint32_t registers = on ? Gicd::set_enable : Gicd::clear_enable;
    gic_.write(registers + (id / 32 * 4), 4, 1U << (id % 32));
    known_[id].enabled = on || id < 16;
  }

  void forward(bool on) {
    gic_.write(Gicd::control, 4, on ? 1 : 0);
    forwarding_ = on;
  }

  void serve_maintenance() {
    constexpr int enough = 3;
    for (int i = 0; board_.next_signal() <= board_.now; ++i) {
      ASSERT_LT(i, enough) << "it would interrupt for ever";
      gic_.each_ended([](std::uint32_t id) { EXPECT_GE(id, 16U); });
      gic_.flush();
      crowded_ = false;
    }
  }

  /// One that is active and pends again: until it has ended, the hardware does not tell that of the
  /// others none pends.
  [[nodiscard]] bool any_pends_again() const {
    constexpr std::uint32_t both = Entry::pending | Entry::active;
    return std::ranges::any_of(board_.list,
                               [](std::uint32_t entry) { return (entry & both) == both; });
  }

  /// Where all list registers are in use, or nobody tells that more are wanted, what waits does so
  /// until the hypervisor is entered.
  void compare() {
    const std::optional<unsigned> listed = best_listed();
    const std::optional<std::uint32_t> best = best_known();
    if (listed) {
      ASSERT_TRUE(best) << "nothing is to come";
    }
    crowded_ |= board_.empty() == 0 || any_pends_again();
    if (crowded_ || !best) return;
    ASSERT_TRUE(listed) << *best;
    EXPECT_EQ(known_.at(Entry::id(board_.list[*listed])).priority / 8,
              known_.at(*best).priority / 8);
  }

  fake::Board board_{0};
  BasicVirtualGic<fake::Gic> gic_{fake::Gic{&board_}};
  std::map<std::uint32_t, Known> known_;
  bool forwarding_ = true;
  bool crowded_ = false;
};

TEST(VirtualGic, IsAsOneWithoutListRegisters) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 dice(seed);
    Guest guest;
    for (int i = 0; i < 500; ++i) {
      guest.step(dice);
      if (::testing::Test::HasFailure()) {
        FAIL() << "seed " << seed << ", step " << i;
      }
    }
    guest.drain();
  }
}

TEST(VirtualGic, DevicesThatAreNoSourceInterruptOnlyWhileTheirGuestRuns) {
  constexpr std::uint32_t devices[2][3] = {{33, 70, 101}, {34, 71, 1019}};
  fake::Board board{0};
  using Gic = BasicVirtualGic<fake::Gic>;
  Gic gic[2] = {Gic(fake::Gic{&board}), Gic(fake::Gic{&board})};
  bool wanted[2][3] = {};
  for (unsigned i = 0; i < 2; ++i) {
    for (const std::uint32_t id : devices[i]) gic[i].own(id, true);
    gic[i].reset();
  }
  std::mt19937 dice(1);
  unsigned runs = 0;
  gic[runs].load();
  for (int i = 0; i < 20'000; ++i) {
    const auto device = static_cast<unsigned>(dice() % 3);
    const std::uint32_t id = devices[runs][device];
    const std::uint32_t word = id / 32 * 4;
    if (dice() % 4 == 0) {
      gic[runs].save();
      runs = 1 - runs;
      gic[runs].load();
    } else if (dice() % 16 == 0) {
      const auto anew =
          static_cast<unsigned>(dice() % 2);  // restarted, perhaps while the other one runs
      gic[anew].reset();
      std::ranges::fill(wanted[anew], false);
    } else {
      const bool on = (dice() & 1U) != 0;
      gic[runs].write((on ? Gicd::set_enable : Gicd::clear_enable) + word, 4, 1U << (id % 32));
      wanted[runs][device] = on;
    }
    for (unsigned guest = 0; guest < 2; ++guest) {
      for (unsigned each = 0; each < 3; ++each) {
        ASSERT_EQ(board.is_enabled(devices[guest][each]), guest == runs && wanted[guest][each])
            << "step " << i << ", interrupt " << devices[guest][each];
      }
    }
  }
}

/// IHI 0048B, 4.3.13: who asks for edges reads back that it did not get them.
TEST(VirtualGic, InterruptsOfDevicesComeAsTheConfigurationSaysWhateverIsWritten) {
  fake::Board board{0};
  BasicVirtualGic<fake::Gic> gic{fake::Gic{&board}};
  gic.own(70, true);
  gic.own(71, true);
  gic.comes_by_edge(71);
  gic.watch(95);
  gic.comes_by_edge(95);
  gic.reset();
  gic.load();
  for (std::uint32_t id = 16; id < InterruptId::end; id += 16) {
    const std::uint32_t offset = Gicd::configuration + (id / 4);
    gic.write(offset, 4, ~0U);
    std::uint32_t edges = 0;
    if (id == 64) edges = 2U << 14U;
    if (id == 80) edges = 2U << 30U;
    EXPECT_EQ(gic.read(offset, 4), edges) << id;
  }
}

/// A level is there again when the interrupt is enabled again, an edge would be lost.
TEST(VirtualGic, AnEdgeThatWaitsIsKeptWhileItsInterruptIsDisabled) {
  constexpr std::uint32_t level = 70;
  constexpr std::uint32_t edge = 71;
  constexpr std::uint32_t both = 3U << (level % 32);
  fake::Board board{0};
  BasicVirtualGic<fake::Gic> gic{fake::Gic{&board}};
  gic.own(level, true);
  gic.own(edge, true);
  gic.comes_by_edge(edge);
  gic.reset();
  gic.load();
  gic.write(Gicd::control, 4, 1);
  gic.write(Gicd::set_enable + 8, 4, both);
  for (const std::uint32_t id : {level, edge}) {
    board.set_active(id, true);  // as it is acknowledged
    gic.signal_new(id);
  }
  gic.write(Gicd::clear_enable + 8, 4, both);
  EXPECT_EQ(gic.read(Gicd::set_pending + 8, 4), 1U << (edge % 32));
  EXPECT_FALSE(board.is_active(level)) << "comes again";
  EXPECT_TRUE(board.is_active(edge)) << "until the guest has ended it";
  gic.write(Gicd::set_enable + 8, 4, both);
  EXPECT_EQ(latenz::hypervisor::Gicv2ListEntry::id(board.list[0]), edge);
  EXPECT_EQ(board.list[1], 0U);
}

}  // namespace
}  // namespace latenz::hypervisor
