// SPDX-License-Identifier: Apache-2.0
#include "measurement.hpp"

namespace latenz::pair {

void measure_raw(const Task& wanted) { Measurement<WordLink, Message<1>>::take(wanted); }

}  // namespace latenz::pair
