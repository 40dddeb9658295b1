// SPDX-License-Identifier: Apache-2.0
// What both processors include: your own types, and the channel between them.
#pragma once

#include "latenz/board.hpp"
#include "latenz/icc.hpp"

struct Target {
  float angle;
  std::uint32_t cycle;
};
struct Reached {
  float angle;
  std::uint32_t cycle;
};
using Servo = latenz::icc::Exchange<Target, Reached, latenz::board::Platform>;

static_assert(Servo::bytes <= latenz::board::shared_bytes);
