// SPDX-License-Identifier: Apache-2.0
// How an interrupt is handled under TDMA. Freestanding.
#pragma once

#include <cstdint>

namespace latenz {

/// How an IRQ was handled, decided when it arrived.
enum class Handling : std::uint8_t {
  direct,      ///< it arrived in its own partition's slot
  interposed,  ///< in a foreign slot, and the monitor granted it
  delayed,     ///< in a foreign slot, and it has to wait for its own
};

}  // namespace latenz
