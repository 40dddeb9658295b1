// SPDX-License-Identifier: Apache-2.0
#include "measurement.hpp"

namespace latenz::pair {

void measure_latest(const Task& wanted) { measure_link<LatestLink>(wanted, AllSizes{}); }

}  // namespace latenz::pair
