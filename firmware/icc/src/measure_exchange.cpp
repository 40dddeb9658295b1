// SPDX-License-Identifier: Apache-2.0
#include "measurement.hpp"

namespace latenz::pair {

void measure_exchange(const Task& wanted) { measure_link<ExchangeLink>(wanted); }

}  // namespace latenz::pair
