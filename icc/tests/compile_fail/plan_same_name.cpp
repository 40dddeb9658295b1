// SPDX-License-Identifier: Apache-2.0
// Two channels, one symbol.
// refused: channel_names_must_differ
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("speed", "a53", "r5"),
                place<Ring<float, 4>>("speeds", "a53"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("speed", "a53", "r5"),
                place<Ring<float, 4>>("speed", "a53"));
#endif

int main() { return static_cast<int>(plan.bytes); }
