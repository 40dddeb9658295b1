// SPDX-License-Identifier: Apache-2.0
// An MPU region begins at a multiple of its size.
// refused: the_base_must_be_a_multiple_of_the_mpu_size
#include "latenz/icc.hpp"
#include "latenz/icc/region_plan.hpp"

using namespace latenz::icc;

#ifdef CORRECTED
constexpr auto plan =
    plan_region(Region{0x2000'0400, 4096}, place<Mailbox<float>>("speed", "a53", "r5"));
#else
constexpr auto plan =
    plan_region(Region{0x2000'0100, 4096}, place<Mailbox<float>>("speed", "a53", "r5"));
#endif
[[maybe_unused]] constexpr auto mpu = plan.mpu();

int main() { return static_cast<int>(plan.bytes); }
