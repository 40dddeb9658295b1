// SPDX-License-Identifier: Apache-2.0
#include "belled_measurement.hpp"

namespace latenz::pair {

void measure_exchange(const Task& wanted) { measure_either<ExchangeLink>(wanted); }

}  // namespace latenz::pair
