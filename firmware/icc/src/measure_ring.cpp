// SPDX-License-Identifier: Apache-2.0
#include "belled_measurement.hpp"

namespace latenz::pair {

void measure_ring(const Task& wanted) { measure_either<RingLink>(wanted); }

}  // namespace latenz::pair
