// SPDX-License-Identifier: Apache-2.0
// Measures a link whose waiting side polls, or waits for the other processor's doorbell.
#pragma once

#include "doorbell_wait.hpp"
#include "measurement.hpp"

namespace latenz::pair {

/// As the task wants it; `Polled`: the sizes that are measured polling.
template <template <class, class> class Link, class Polled = AllSizes>
void measure_either(const Task& wanted) {
  if (wanted.wait == Wait::poll) return measure_link<Link, Between>(wanted, Polled{});
  const bool answers = Side::first != (wanted.direction == Direction::there);
  if (answers && !Here::can_hear())
    firmware::fail("task direction: who is called gets no interrupts here");
  if (Here::can_hear()) Doorbell::open();
  measure_link<Link, Belled>(wanted, Sizes<3, 6, 8>{});
}

}  // namespace latenz::pair
