// SPDX-License-Identifier: Apache-2.0
#include "latenz/icc/wire_type.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace latenz::icc {
namespace {

struct Pose {
  float x, y, angle;
};

struct Joint {
  double angle;
  float limits[2];
};

enum class Mode : std::uint8_t { idle, moving };

struct Robot {
  std::uint32_t cycle;
  Pose position;
  Mode mode;
  char tag[8];
  Joint joints[6];
  double inertia[3][3];
  std::array<Pose, 4> path;
};

std::string name_of(const Field& field) { return field.name; }

TEST(WireType, FieldsAreWhereTheCompilerHasThem) {
  constexpr auto table = fields<Robot>();
  const std::vector<std::string> expected = {
      "cycle",  "position.x",   "position.y",      "position.angle",  "mode",
      "tag",    "joints.angle", "joints.limits[0", "joints.limits[1", "inertia",
      "path.x", "path.y",       "path.angle"};
  ASSERT_EQ(table.size(), expected.size());
  for (std::size_t i = 0; i < table.size(); ++i) EXPECT_EQ(name_of(table[i]), expected[i]);
  EXPECT_EQ(table[2].offset, offsetof(Robot, position) + offsetof(Pose, y));
  EXPECT_EQ(table[6].offset, offsetof(Robot, joints));
  EXPECT_EQ(table[6].count, 6U);
  EXPECT_EQ(table[6].stride, sizeof(Joint));
}

}  // namespace
}  // namespace latenz::icc
