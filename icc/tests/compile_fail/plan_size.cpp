// SPDX-License-Identifier: Apache-2.0
// The second channel ends behind the region.
// refused: the_channels_do_not_fit_into_the_region
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0000, 2048}, place<Mailbox<float>>("speed", "a53", "r5"),
                place<Mailbox<float>>("torque", "a53", "r5"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0000, 960}, place<Mailbox<float>>("speed", "a53", "r5"),
                place<Mailbox<float>>("torque", "a53", "r5"));
#endif

int main() { return static_cast<int>(plan.bytes); }
