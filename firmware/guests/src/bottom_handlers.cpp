// SPDX-License-Identifier: Apache-2.0
// Bottom handlers that execute as long as the system file says.
#include "bottom_handlers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "burn.hpp"
#include "guest.hpp"

namespace latenz::guests {
namespace {

/// Of a bottom handler's time: for saving registers, for the GIC, and for the hypervisor to see
/// that it has ended. Never more than half.
constexpr std::uint64_t margin_ns = 1000;

constexpr std::size_t most_interrupts = 1024;
std::array<std::uint32_t, most_interrupts> turns_of_interrupt;

void handle_interrupt() {
  const auto acknowledged = Interrupts::acknowledge();
  if (Interrupts::spurious(acknowledged)) return;
  Burn::spend(turns_of_interrupt[Interrupts::number(acknowledged)]);
  Interrupts::end(acknowledged);
}

}  // namespace

extern "C" {
void (*interrupt_handler)() = handle_interrupt;  // for vectors.S
}

void start_bottom_handlers(std::uint32_t share) {
  const InformationPage& known = information();
  Burn::calibrate();
  const std::uint32_t sources =
      std::min<std::uint32_t>(known.sources, InformationPage::most_sources);
  for (std::uint32_t i = 0; i < sources; ++i) {
    const auto& source = known.source[i];
    const std::uint64_t own_ns = source.bottom_ns / share;
    const std::uint64_t spent_ns = own_ns - std::min(margin_ns, own_ns / 2);
    turns_of_interrupt[source.interrupt % most_interrupts] =
        Burn::turns(spent_ns, known.counter_hz);
    Interrupts::start(source.interrupt);
  }
  firmware::Cpu::enable_interrupts();
  begin();
}

}  // namespace latenz::guests
