// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/wire_type.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// What the compiler refuses is in compile_fail/, what several compilers say in packaging/.

namespace machine {

struct Pose {
  float x, y, angle;
};

struct Joint {
  double angle;
  float limits[2];
};

enum class Mode : std::uint8_t { idle, moving };
enum Gear : std::int16_t { reverse = -1, neutral, first };

struct Robot {
  std::uint32_t cycle;
  Pose position;
  Mode mode;
  char tag[8];
  Joint joints[6];
  double inertia[3][3];
  std::array<Pose, 4> path;
  Gear gear;
};

/// No aggregate.
class Checked {
 public:
  Checked() = default;
  constexpr explicit Checked(float value) : x(value), y(value), angle(value) {}
  float x;
  float y;
  float angle;
};
LATENZ_DESCRIBE(Checked, x, y, angle);

/// More members than an aggregate may have, and written as people do.
struct Many {
  std::uint16_t a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
      a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37,
      a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56,
      a57, a58, a59, a60, a61, a62, a63, a64;
};
LATENZ_DESCRIBE(Many, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,
                a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34,
                a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51,
                a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64);

struct Thirty {
  std::uint8_t b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19,
      b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32;
};

struct Stamp {
  std::uint64_t at_ns;
};
struct Stamped : Stamp {};
LATENZ_DESCRIBE(Stamped, at_ns);

struct DescribedInside {
  std::uint32_t number;
  Checked pose;
};

/// No default constructor.
struct Unset {
  constexpr explicit Unset(float value) : only(value) {}
  float only;
};
LATENZ_DESCRIBE(Unset, only);
struct UnsetInside {
  std::uint32_t number;
  Unset rest;
};

}  // namespace machine

namespace latenz::icc {
namespace {

template <class T>
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Field& field : fields<T>()) all.emplace_back(field.name);
  return all;
}

TEST(WireType, HasTheFieldsOfItsLeavesInOrder) {
  using machine::Robot;
  const std::vector<std::string> expected = {"cycle",
                                             "position.x",
                                             "position.y",
                                             "position.angle",
                                             "mode",
                                             "tag",
                                             "joints.angle",
                                             "joints.limits[0",
                                             "joints.limits[1",
                                             "inertia",
                                             "path.x",
                                             "path.y",
                                             "path.angle",
                                             "gear"};
  EXPECT_EQ(names<Robot>(), expected);
  constexpr auto table = fields<Robot>();
  EXPECT_EQ(table[2].offset, offsetof(Robot, position) + offsetof(machine::Pose, y));
  EXPECT_EQ(table[4].kind, FieldKind::unsigned_integer);
  EXPECT_EQ(table[5].kind, FieldKind::bytes);
  EXPECT_EQ(table[5].count, 8U);
  EXPECT_EQ(table[8].offset,
            offsetof(Robot, joints) + offsetof(machine::Joint, limits) + sizeof(float));
  EXPECT_EQ(table[8].count, 6U);
  EXPECT_EQ(table[8].stride, sizeof(machine::Joint));
  EXPECT_EQ(table[9].count, 9U);
  EXPECT_EQ(table[9].stride, sizeof(double));
  EXPECT_EQ(table[12].offset, offsetof(Robot, path) + offsetof(machine::Pose, angle));
  EXPECT_EQ(table[13].kind, FieldKind::signed_integer);
  EXPECT_EQ(table[13].offset, offsetof(Robot, gear));
}

TEST(WireType, ThatIsNoStructHasOneField) {
  EXPECT_EQ(names<std::uint64_t>(), std::vector<std::string>{"value"});
  constexpr auto vector = fields<std::array<float, 6>>();
  EXPECT_EQ(vector.size(), 1U);
  EXPECT_EQ(vector[0].count, 6U);
  EXPECT_EQ(vector[0].stride, 4U);
  EXPECT_EQ((names<std::array<machine::Pose, 2>>()),
            (std::vector<std::string>{"value.x", "value.y", "value.angle"}));
}

TEST(WireType, MayHave32MembersAndMoreIfTheyAreNamed) {
  EXPECT_EQ(field_count<machine::Thirty>(), 32U);
  EXPECT_EQ(names<machine::Thirty>().back(), "b32");
  EXPECT_EQ(field_count<machine::Many>(), 64U);
  constexpr auto table = fields<machine::Many>();
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(std::string(table.at(i).name), "a" + std::to_string(i + 1));
    EXPECT_EQ(table.at(i).offset, 2 * i);
  }
}

TEST(WireType, IsTheSameDescribedOrNot) {
  EXPECT_EQ(fields<machine::Checked>(), fields<machine::Pose>());
  EXPECT_EQ(fingerprint<machine::Checked>(), fingerprint<machine::Pose>());
  EXPECT_EQ(fingerprint<machine::Stamped>(), fingerprint<machine::Stamp>());
  EXPECT_EQ(names<machine::DescribedInside>(),
            (std::vector<std::string>{"number", "pose.x", "pose.y", "pose.angle"}));
}

/// Variations of one struct, each different in one respect.
struct Original {
  std::uint32_t first, second;
  float third;
};
struct Swapped {
  std::uint32_t second, first;
  float third;
};
struct Signed {
  std::int32_t first;
  std::uint32_t second;
  float third;
};
struct Integer {
  std::uint32_t first, second, third;
};
struct Array {
  std::uint32_t first[2];
  float third;
};
struct Wider {
  std::uint32_t first;
  std::uint64_t second;
  float third;
};
struct Longer {
  std::uint32_t first, second;
  float third, fourth;
};
struct LongNameOne {
  std::uint32_t temperature_of_motor_1;
};
struct LongNameTwo {
  std::uint32_t temperature_of_motor_2;
};
struct Inner {
  std::uint32_t value;
  std::uint8_t flag;
};
struct PaddedInside {
  Inner pair;
  std::uint8_t last;
};
struct NotPadded {
  struct {
    std::uint32_t value;
    std::uint8_t flag;
  } pair;
  std::uint8_t last;
};

TEST(Fingerprint, DiffersWhenAnythingDoes) {
  const std::set<std::uint64_t> different = {
      fingerprint<Original>(),    fingerprint<Swapped>(),     fingerprint<Signed>(),
      fingerprint<Integer>(),     fingerprint<Array>(),       fingerprint<Wider>(),
      fingerprint<Longer>(),      fingerprint<LongNameOne>(), fingerprint<LongNameTwo>(),
      fingerprint<PaddedInside>()};
  EXPECT_EQ(different.size(), 10U);
  EXPECT_EQ(fields<LongNameOne>(), fields<LongNameTwo>()) << "the table has 15 letters";
}

TEST(Fingerprint, DoesNotKnowTheNamesOfTypes) {
  EXPECT_EQ(fingerprint<NotPadded>(), fingerprint<PaddedInside>());
}

TEST(WireType, CanBeAskedForWithoutAnError) {
  static_assert(WireType<machine::Robot>);
  static_assert(!WireType<bool> && !WireType<void*> && !WireType<long double>);
  static_assert(!WireType<std::string> && !WireType<std::string_view>);
  static_assert(WireType<machine::Unset>);
  static_assert(wire_rule_of<machine::UnsetInside> == WireRule::visible_members);
  static_assert(wire_rule_of<int*> == WireRule::no_pointer);
  static_assert(wire_rule_of<std::uint8_t[65537]> == WireRule::at_most_64_kib);
  static_assert(wire_rule_of<std::array<std::uint32_t, 0>> == WireRule::visible_members);
}

}  // namespace
}  // namespace latenz::icc
