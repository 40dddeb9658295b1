// SPDX-License-Identifier: Apache-2.0
#include "measurement.hpp"

namespace latenz::pair {

void measure_ring(const Task& wanted) { measure_link<RingLink>(wanted); }

}  // namespace latenz::pair
