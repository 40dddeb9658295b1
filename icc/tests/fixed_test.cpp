// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/fixed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/wire_type.hpp"

namespace {

using namespace latenz::icc;

struct Joint {
  double angle;
  float torque;
};

struct Plan {
  FixedString<9> name;
  FixedVector<Joint, 3> joints;
  FixedVector<std::uint8_t, 5> flags;
  FixedString<4> tags[2];
};

/// The same as a C programmer writes it.
struct InC {
  struct {
    std::uint32_t count;
    char items[9];
  } name;
  struct {
    std::uint32_t count;
    Joint items[3];
  } joints;
  struct {
    std::uint32_t count;
    std::uint8_t items[5];
  } flags;
  struct {
    std::uint32_t count;
    char items[4];
  } tags[2];
};

static_assert(WireType<Plan>);
static_assert(sizeof(Plan) == sizeof(InC));
static_assert(offsetof(Plan, joints) == offsetof(InC, joints));
static_assert(fingerprint<Plan>() == fingerprint<InC>(), "one layout for both languages");
static_assert(fingerprint<FixedString<9>>() == fingerprint<FixedVector<char, 9>>());
static_assert(fingerprint<FixedString<9>>() != fingerprint<FixedString<10>>());

TEST(Fixed, FieldsAreCountAndItems) {
  constexpr auto table = fields<Plan>();
  std::vector<std::string> names;
  for (const Field& field : table) names.emplace_back(field.name);
  const std::vector<std::string> wanted = {"name.count",      "name.items",      "joints.count",
                                           "joints.items.an", "joints.items.to", "flags.count",
                                           "flags.items",     "tags.count",      "tags.items[0]",
                                           "tags.items[1]",   "tags.items[2]",   "tags.items[3]"};
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(table[3].offset, 24U);  // a double lies at a multiple of 8
  EXPECT_EQ(table[3].count, 3U);
  EXPECT_EQ(table[3].stride, 16U);
}

TEST(Fixed, VectorDoesAsOneOfTheLibraryAndRefusesWhatDoesNotFit) {
  std::mt19937 random(1);
  FixedVector<std::uint16_t, 6> fixed;
  std::vector<std::uint16_t> model;
  for (int step = 0; step < 10'000; ++step) {
    const auto drawn = static_cast<std::uint16_t>(random());
    if (drawn % 8 == 0) {
      fixed.clear();
      model.clear();
    } else if (drawn % 8 == 1) {
      const std::vector<std::uint16_t> some(drawn / 8 % 9, drawn);
      ASSERT_EQ(fixed.assign(some), some.size() <= 6);
      if (some.size() <= 6) model = some;
    } else {
      ASSERT_EQ(fixed.push_back(drawn), model.size() < 6);
      if (model.size() < 6) model.push_back(drawn);
    }
    ASSERT_TRUE(std::ranges::equal(fixed, model));
    ASSERT_EQ(fixed.size(), model.size());
    ASSERT_EQ(fixed.empty(), model.empty());
    ASSERT_FALSE(fixed.is_damaged());
    if (!model.empty()) {
      ASSERT_EQ(fixed[model.size() - 1], model.back());
    }
  }
}

TEST(Fixed, StringHoldsTextUpToItsLastByte) {
  FixedString<4> text;
  EXPECT_TRUE(text.empty());
  EXPECT_TRUE(text.assign("arm"));
  EXPECT_EQ(text.view(), "arm");
  EXPECT_FALSE(text.assign("wrist"));
  EXPECT_EQ(text.view(), "arm");
  EXPECT_TRUE(text.assign("hand"));
  EXPECT_EQ(text.view(), "hand");
  EXPECT_TRUE(text.assign(std::string_view("\0x", 2)));
  EXPECT_EQ(text.view().size(), 2U);
  text.clear();
  EXPECT_EQ(text.view(), "");
}

TEST(Fixed, CanBeMadeByTheCompiler) {
  constexpr auto made = [] {
    FixedVector<int, 3> some;
    return some.push_back(4) && some.push_back(5) ? some : FixedVector<int, 3>{};
  }();
  static_assert(made.size() == 2 && made[1] == 5);
  EXPECT_EQ(made.end() - made.begin(), 2);
}

/// Every count that a foreign or damaged memory may hold: nothing behind N is ever reached.
TEST(Fixed, CountBeyondTheRoomIsNothing) {
  for (const std::uint32_t count :
       {4U, 5U, 0x7FFF'FFFFU, 0x8000'0000U, 0xFFFF'FFFCU, 0xFFFF'FFFFU}) {
    FixedVector<std::uint32_t, 3> vector{.count = count, .items = {1, 2, 3}};
    EXPECT_TRUE(vector.is_damaged());
    EXPECT_EQ(vector.size(), 0U);
    EXPECT_EQ(vector.begin(), vector.end());
    EXPECT_TRUE(vector.push_back(9));  // begins anew
    EXPECT_EQ(vector.size(), 1U);
    EXPECT_FALSE(vector.is_damaged());
    const FixedString<3> text{.count = count, .items = {'a', 'b', 'c'}};
    EXPECT_TRUE(text.is_damaged());
    EXPECT_EQ(text.view(), "");
  }
}

TEST(Fixed, GoesThroughAChannelAndADamagedCountIsTold) {
  using Channel = Mailbox<Plan>;
  alignas(line_bytes) std::array<std::byte, Channel::bytes> memory{};
  auto writer = Channel::Writer::create(memory.data(), memory.size(), "plans");
  auto reader = Channel::Reader::attach(memory.data(), memory.size());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(reader);
  Plan plan{};
  ASSERT_TRUE(plan.name.assign("reach"));
  ASSERT_TRUE(plan.joints.push_back({.angle = 0.5, .torque = 2}));
  ASSERT_EQ(writer->try_write(plan), Result::ok);
  Plan got{};
  ASSERT_EQ(reader->try_read(got), Result::ok);
  EXPECT_EQ(got.name.view(), "reach");
  ASSERT_EQ(got.joints.size(), 1U);
  EXPECT_EQ(got.joints[0].angle, 0.5);

  plan.joints.count = 1'000'000;  // a peer that errs
  ASSERT_EQ(writer->try_write(plan), Result::ok);
  ASSERT_EQ(reader->try_read(got), Result::ok);
  EXPECT_TRUE(got.joints.is_damaged());
  EXPECT_TRUE(got.joints.empty());
  EXPECT_EQ(got.name.view(), "reach");
}

TEST(Fixed, OtherCapacityIsRefusedByItsField) {
  struct Ours {
    FixedVector<float, 6> angles;
  };
  struct Theirs {
    FixedVector<float, 7> angles;
  };
  alignas(line_bytes) std::array<std::byte, 1024> memory{};
  ASSERT_TRUE(Mailbox<Theirs>::Writer::create(memory.data(), memory.size(), "angles"));
  char why[200];
  Mailbox<Ours>::Reader::attach(memory.data(), memory.size()).problem().describe(why, sizeof why);
  EXPECT_STREQ(why,
               "payload differs: here float32[6] every 4 bytes 'angles.items' at 4, in memory "
               "float32[7] every 4 bytes 'angles.items' at 4");
}

}  // namespace
