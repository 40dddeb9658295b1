// SPDX-License-Identifier: Apache-2.0
// Inter-processor interrupts: UG1085, chapter "Interrupts", and UG1087, module IPI.
#include "here.hpp"

#include "board.hpp"
#include "register.hpp"
#include "side.hpp"

namespace latenz::pair {
namespace {

constexpr std::uint32_t a53_bit = 1U << 0U;
constexpr std::uint32_t r5_bit = 1U << 8U;
constexpr std::uint32_t other_bit = Side::first ? r5_bit : a53_bit;
constexpr std::uintptr_t own_channel = Side::first ? 0xFF30'0000 : 0xFF31'0000;

using Trigger = firmware::Register<own_channel + 0x00>;
using Status = firmware::Register<own_channel + 0x10>;
using Enable = firmware::Register<own_channel + 0x18>;

}  // namespace

/// In the Cortex-R5's own memory: the end of on-chip memory is the boot loader's.
void Here::prepare() { firmware::Board::prepare(true); }
bool Here::has(Memory /*memory*/) { return true; }
bool Here::can_ring() { return true; }
bool Here::can_hear() { return true; }
void Here::ring() { Trigger::write(other_bit); }

void Here::hear_ringing() {
  end_ringing();  // what was called before
  Enable::write(other_bit);
}

void Here::end_ringing() { Status::write(other_bit); }

}  // namespace latenz::pair
