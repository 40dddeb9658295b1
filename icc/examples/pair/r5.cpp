// SPDX-License-Identifier: Apache-2.0
// The servo, on the Cortex-R5: answers until the planner leaves.
#include "messages.hpp"

using namespace latenz;

int main() {
  const auto in_1_s = icc::Until<board::Clock>::after(1'000'000'000);
  auto planner = Servo::Server::attach_until(board::shared_memory, board::shared_bytes, in_1_s);
  if (!planner) {
    char why[160];
    planner.problem().describe(why, sizeof why);
    board::print(why);
    return 1;
  }
  float angle = 0;
  std::uint32_t answered = 0;
  const auto move = [&](const Target& target) {
    angle += 0.1F * (target.angle - angle);
    ++answered;
    return Reached{.angle = angle, .cycle = target.cycle};
  };
  while (planner->serve(move) == icc::Result::ok) {
  }
  board::print(board::Line().add("answered ").add(answered));
  return 0;
}
