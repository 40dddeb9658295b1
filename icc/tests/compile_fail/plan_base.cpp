// SPDX-License-Identifier: Apache-2.0
// Channels begin at lines.
// refused: the_base_must_be_a_multiple_of_the_line
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0040, 4096}, place<Mailbox<float>>("speed", "a53", "r5"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0020, 4096}, place<Mailbox<float>>("speed", "a53", "r5"));
#endif

int main() { return static_cast<int>(plan.bytes); }
