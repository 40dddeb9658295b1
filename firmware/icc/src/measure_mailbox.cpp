// SPDX-License-Identifier: Apache-2.0
#include "measurement.hpp"

namespace latenz::pair {

void measure_mailbox(const Task& wanted) { measure_link<MailboxLink>(wanted); }

}  // namespace latenz::pair
