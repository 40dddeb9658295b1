// SPDX-License-Identifier: Apache-2.0
// QEMU's ZCU102 has no tightly coupled memory, no way for the Cortex-R5 through the cache-coherent
// interconnect, and no interrupts for it. Of the inter-processor interrupts it has one channel's
// registers, from which nothing goes out: the Cortex-A53's interrupt is set pending where it would
// arrive, at its interrupt controller.
#include "here.hpp"

#include "board.hpp"
#include "register.hpp"
#include "side.hpp"

namespace latenz::pair {
namespace {

constexpr std::uint32_t interrupt_of_a53 = 67;
using SetPending = firmware::RegisterArray<0xF901'0200>;

}  // namespace

void Here::prepare() { firmware::Board::prepare(false); }
bool Here::has(Memory memory) { return memory == Memory::ocm || memory == Memory::ddr; }
bool Here::can_ring() { return !Side::first; }
bool Here::can_hear() { return Side::first; }
void Here::ring() { SetPending::write(interrupt_of_a53 / 32, 1U << (interrupt_of_a53 % 32)); }
void Here::hear_ringing() {}
void Here::end_ringing() {}

}  // namespace latenz::pair
