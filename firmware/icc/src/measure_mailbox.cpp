// SPDX-License-Identifier: Apache-2.0
#include "belled_measurement.hpp"

namespace latenz::pair {

void measure_mailbox(const Task& wanted) { measure_either<MailboxLink>(wanted); }

}  // namespace latenz::pair
