// SPDX-License-Identifier: Apache-2.0
// Who is at the other side?
// refused: a channel has a processor for each side
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Latest<float, 2>>("speed", "a53", "r5", "logger"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Latest<float, 2>>("speed", "a53", "r5"));
#endif

int main() { return static_cast<int>(plan.bytes); }
