// SPDX-License-Identifier: Apache-2.0
// A name that was not placed.
// refused: the_plan_has_no_channel_of_this_name
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("torque", "a53", "r5"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("speed", "a53", "r5"));
#endif
static_assert(plan.channel("torque").offset == 0);

int main() { return static_cast<int>(plan.bytes); }
