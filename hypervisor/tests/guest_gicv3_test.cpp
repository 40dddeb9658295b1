// SPDX-License-Identifier: Apache-2.0
// A guest's GICv3 shows the same distributor as a GICv2's, where Arm IHI 0069H has its registers.
#include "guest_gicv3.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "basic_virtual_gic_members.hpp"
#include "fake_board.hpp"

namespace latenz::hypervisor {
namespace {

using VirtualGic = BasicVirtualGic<fake::Gic>;
using GuestGicv3 = BasicGuestGicv3<VirtualGic>;

constexpr std::uint32_t private_frame = GuestGicv3::redistributor + Gicr::private_frame;
constexpr std::uint32_t source = 40;
constexpr std::uint32_t device = 77;

/// A guest that runs, alone on its board.
struct Guest {
  Guest() {
    gic.own(InterruptId::virtual_timer, false);
    gic.own(device, true);
    gic.watch(source);
    gic.reset();
    gic.load();
  }

  fake::Board board{0};
  VirtualGic gic{fake::Gic(&board)};
  GuestGicv3 v3{gic};
};

/// Where a GICv3 has what a GICv2 has at an offset of registers with a bit or a byte each.
std::uint32_t place_of(std::uint32_t offset) {
  const bool bytes = offset >= Gicd::priorities;
  const bool of_private = bytes ? offset - Gicd::priorities < 32 : offset % 0x80 < 4;
  return of_private ? private_frame + offset : offset;
}

std::uint32_t pending(const Guest& guest, std::uint32_t id) {
  std::uint32_t found = 0;
  for (const std::uint32_t entry : guest.board.list) {
    found += Gicv2ListEntry::only_pends(entry) && Gicv2ListEntry::id(entry) == id ? 1 : 0;
  }
  return found;
}

TEST(GuestGicv3, ShowsTheSameAsAGicv2AfterTheSameWrites) {
  Guest one;
  const Guest other;
  std::mt19937 random(1);
  const auto pick = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  one.gic.write(Gicd::control, 4, 1);
  other.v3.write(Gicd::control, 4, Gicv3Gicd::enable_group1);
  for (int i = 0; i < 100'000; ++i) {
    const unsigned bytes = 1U << pick(3);
    const std::uint32_t begin = Gicd::set_enable;
    const std::uint32_t offset = begin + (pick(Gicd::targets - begin) & ~(bytes - 1));
    const auto value = static_cast<std::uint32_t>(random());
    one.gic.write(offset, bytes, value);
    other.v3.write(place_of(offset), bytes, value);
    const std::uint32_t seen = begin + (pick(Gicd::targets - begin) & ~3U);
    ASSERT_EQ(one.gic.read(seen, 4), other.v3.read(place_of(seen), 4)) << std::hex << seen;
    ASSERT_EQ(one.board.list, other.board.list);
  }
}

TEST(GuestGicv3, HasEachInterruptInOneFrameOnly) {
  const Guest guest;
  guest.v3.write(Gicd::set_enable, 4, ~0U);  // private ones
  EXPECT_EQ(guest.v3.read(Gicd::set_enable, 4), 0U);
  EXPECT_EQ(guest.v3.read(private_frame + Gicd::set_enable, 4), 0xFFFFU);
  guest.v3.write(private_frame + Gicd::set_enable + 4, 4, ~0U);  // shared ones
  EXPECT_EQ(guest.v3.read(Gicd::set_enable + 4, 4), 0U);
  guest.v3.write(Gicd::set_enable + 4, 4, ~0U);
  EXPECT_EQ(guest.v3.read(Gicd::set_enable + 4, 4), 1U << (source - 32));
}

TEST(GuestGicv3, SaysWhatItIs) {
  const Guest guest;
  const std::uint32_t always = Gicv3Gicd::affinity_routing | Gicv3Gicd::one_security_state;
  EXPECT_EQ(guest.v3.read(Gicd::control, 4), always);
  guest.v3.write(Gicd::control, 4, ~0U);
  EXPECT_EQ(guest.v3.read(Gicd::control, 4), always | Gicv3Gicd::enable_group1);
  EXPECT_EQ(guest.v3.read(0xFFE8, 4) >> 4U, 3U) << "GICD_PIDR2.ArchRev";
  EXPECT_EQ(guest.v3.read(GuestGicv3::redistributor + 0xFFE8, 4) >> 4U, 3U);
  EXPECT_EQ(guest.v3.read(GuestGicv3::redistributor + Gicr::type, 8), Gicr::last);
  EXPECT_EQ(guest.v3.read(Gicd::type, 4) & 0x1FU, 31U);
  EXPECT_EQ(guest.v3.read(Gicv3Gicd::routes + (8 * device), 8), 0U) << "to its only CPU";
  EXPECT_EQ(guest.v3.read(Gicd::targets + device, 1), 0U) << "with affinity routing";
}

TEST(GuestGicv3, AnswersNoAddressBesideItsFrames) {
  EXPECT_TRUE(GuestGicv3::has(0));
  EXPECT_TRUE(GuestGicv3::has(0xFFFF));
  EXPECT_FALSE(GuestGicv3::has(0x1'0000)) << "where a GICv2 has its CPU interface";
  EXPECT_FALSE(GuestGicv3::has(0x9'FFFF));
  EXPECT_TRUE(GuestGicv3::has(0xA'0000));
  EXPECT_TRUE(GuestGicv3::has(0xB'FFFF));
  EXPECT_FALSE(GuestGicv3::has(0xC'0000));
  EXPECT_FALSE(GuestGicv3::has(~0ULL));
}

TEST(GuestGicv3, TakesWhateverIsReadAndWritten) {
  const Guest guest;
  std::mt19937_64 random(2);
  for (int i = 0; i < 200'000; ++i) {
    const unsigned bytes = 1U << (random() % 4);
    const std::uint32_t offset = static_cast<std::uint32_t>(random() % 0xC'0000) & ~(bytes - 1);
    if (!GuestGicv3::has(offset)) continue;
    guest.v3.write(offset, bytes, static_cast<std::uint32_t>(random()));
    const std::uint32_t seen = guest.v3.read(offset, bytes);
    if (bytes < 4) {
      ASSERT_EQ(seen >> (8 * bytes), 0U) << std::hex << offset;
    }
  }
}

TEST(GuestGicv3, SignalsOnlyToItself) {
  Guest guest;
  guest.v3.write(Gicd::control, 4, Gicv3Gicd::enable_group1);
  const std::uint64_t number = 5ULL << 24U;
  for (const std::uint64_t to : {
           0ULL,                  // nobody
           2ULL,                  // CPU 1
           (1ULL << 40U) | 1ULL,  // all others
           (1ULL << 16U) | 1ULL,  // another Aff1
           (1ULL << 32U) | 1ULL,  // Aff2
           (1ULL << 48U) | 1ULL,  // Aff3
           (1ULL << 44U) | 1ULL,  // CPU 16
       }) {
    GuestGicv3::write_register(guest.gic, Gicv3Trapped::icc_sgi1r, number | to);
    ASSERT_EQ(pending(guest, 5), 0U) << std::hex << to;
  }
  GuestGicv3::write_register(guest.gic, Gicv3Trapped::icc_sgi0r, number | 1U);
  GuestGicv3::write_register(guest.gic, Gicv3Trapped::icc_asgi1r, number | 1U);
  EXPECT_EQ(pending(guest, 5), 0U) << "of another group";
  GuestGicv3::write_register(guest.gic, Gicv3Trapped::icc_sgi1r, number | 0xFFFFU);
  EXPECT_EQ(pending(guest, 5), 1U);
}

TEST(GuestGicv3, KnowsItsRegistersByTheirNamesInTheSyndrome) {
  // ESR_EL2 of `msr icc_sgi1r_el1, x3` and of `mrs x3, icc_sre_el1`: ISS of Arm ARM, D17.2.37.
  constexpr std::uint32_t rt_and_direction = 0x3E1;
  EXPECT_EQ(0x003A'3076U & ~rt_and_direction, Gicv3Trapped::icc_sgi1r);
  EXPECT_EQ(0x003A'3079U & ~rt_and_direction, Gicv3Trapped::icc_sre);
  EXPECT_TRUE(GuestGicv3::has_register(Gicv3Trapped::icc_sre));
  EXPECT_EQ(GuestGicv3::read_register(Gicv3Trapped::icc_sre) & 1U, 1U);
  EXPECT_FALSE(GuestGicv3::has_register(0x003A'1078U)) << "another one";
}

/// Both encodings say the same of an entry.
template <typename Entry>
class ListEntries : public testing::Test {};
using Encodings = testing::Types<Gicv2ListEntry, Gicv3ListEntry>;
TYPED_TEST_SUITE(ListEntries, Encodings);

TYPED_TEST(ListEntries, PendAreActiveAreNeither) {
  using Entry = TypeParam;
  const typename Entry::Value entry = Entry::group | Entry::hardware | 1019U |
                                      (typename Entry::Value{1019} << Entry::physical_shift) |
                                      (typename Entry::Value{31} << Entry::priority_shift);
  EXPECT_EQ(Entry::id(entry), 1019U);
  EXPECT_FALSE(Entry::valid(entry));
  EXPECT_TRUE(Entry::only_pends(entry | Entry::pending));
  EXPECT_FALSE(Entry::only_pends(entry | Entry::pending | Entry::active));
  EXPECT_TRUE(Entry::valid(entry | Entry::active));
}

}  // namespace
}  // namespace latenz::hypervisor
