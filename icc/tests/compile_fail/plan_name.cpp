// SPDX-License-Identifier: Apache-2.0
// A name becomes a symbol.
// refused: a_channel_name_must_be_a_c_identifier
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("speed_limit", "a53", "r5"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0000, 4096}, place<Mailbox<float>>("speed-limit", "a53", "r5"));
#endif

int main() { return static_cast<int>(plan.bytes); }
