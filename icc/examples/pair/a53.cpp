// SPDX-License-Identifier: Apache-2.0
// The planner, on the Cortex-A53: asks a servo to move, a thousand times.
#include "messages.hpp"

using namespace latenz;

int main() {
  auto servo = Servo::Client::create(board::shared_memory, board::shared_bytes, "servo");
  if (!servo) {
    char why[160];
    servo.problem().describe(why, sizeof why);
    board::print(why);
    return 1;
  }
  Reached reached{};
  const std::int64_t begun_ns = board::Clock::now_ns();
  for (std::uint32_t cycle = 1; cycle <= 1000; ++cycle) {
    const auto in_1_s = icc::Until<board::Clock>::after(1'000'000'000);
    const auto result = servo->call_until({.angle = 0.5F, .cycle = cycle}, reached, in_1_s);
    if (result != icc::Result::ok) {
      board::print(board::Line().add("cycle ").add(cycle).add(": ").add(icc::name_of(result)));
      return 1;
    }
  }
  const auto took_ns = static_cast<std::uint64_t>(board::Clock::now_ns() - begun_ns);
  const auto mrad = static_cast<std::uint64_t>(reached.angle * 1000 + 0.5F);
  board::print(board::Line()
                   .add("cycle ")
                   .add(reached.cycle)
                   .add(", angle ")
                   .add(mrad)
                   .add(" mrad, ")
                   .add(took_ns / 1000)
                   .add(" virtual ns a call"));
  servo->close();
  return 0;
}
