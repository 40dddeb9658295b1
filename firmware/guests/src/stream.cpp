// SPDX-License-Identifier: Apache-2.0
// Both ends of a channel: 10'000 messages go through a ring of icc in its memory, and for each the
// sender rings the doorbell. The receiver takes what is there in the doorbell's bottom handler. A
// message that is torn, lost or comes twice ends the receiver as a fault; the sender ends as one if
// it runs when the slot table of its information page has the receiver's slot. Both switch
// themselves off when all is done.
#include <algorithm>
#include <cstdint>

#include "cpu.hpp"
#include "guest.hpp"
#include "latenz/guest_slots.hpp"
#include "latenz/icc.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint32_t messages = 10'000;
constexpr std::uint64_t distance_ns = 25'000;  ///< from one message to the next
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t power_off = 0x8400'0008;  // PSCI

struct Message {
  std::uint32_t word[16];
};

/// The guest's MMU is off: all memory is Device memory.
using Words = icc::Platform<icc::DeviceWord, icc::StandardOrder, icc::Spin>;
using Stream = icc::Ring<Message, 64, 1, Words>;

Stream::Reader reader;
std::uint32_t received;

/// The only channel of this partition.
const InformationPage::Channel& channel() { return information().channel[0]; }
void* memory() { return reinterpret_cast<void*>(channel().address); }

Message message_of(std::uint32_t number) {
  Message message;
  for (std::uint32_t& word : message.word) word = number;
  return message;
}

bool is_whole(const Message& message, std::uint32_t number) {
  return std::ranges::all_of(message.word, [&](std::uint32_t word) { return word == number; });
}

void wait_until(std::uint64_t tick) {
  while (firmware::VirtualTimer::count() < tick) {
  }
}

/// Whether the slot at a tick is this partition's by the table, in which it has one; up to a tenth
/// of it later, as a timer's signal takes its time.
bool in_own_slot(std::uint64_t tick) {
  const InformationPage& page = information();
  const auto& own =
      *std::ranges::find(page.slot, page.partition, &InformationPage::Slot::partition);
  const std::uint64_t next = hypervisor::next_own_slot(page, tick);
  const std::uint64_t left_ns = hypervisor::scaled(next - tick, page.counter_hz, second_ns);
  return left_ns <= page.cycle_ns && left_ns + own.length_ns + own.length_ns / 10 > page.cycle_ns;
}

/// Progress: messages sent.
void send() {
  auto writer = Stream::Writer::create(memory(), channel().size, "stream");
  if (!writer) __builtin_trap();
  begin();
  while (call(Hypercall::notify, channel().number) == Hypercall::not_yet) {
  }
  const std::uint64_t distance = distance_ns * information().counter_hz / second_ns;
  for (std::uint32_t number = 1; number <= messages; ++number) {
    const std::uint64_t next = firmware::VirtualTimer::count() + distance;
    while (writer->try_write(message_of(number)) != icc::Result::ok) {
    }
    wait_until(next);
    if (!in_own_slot(firmware::VirtualTimer::count())) __builtin_trap();
    if (call(Hypercall::notify, channel().number) < 0) __builtin_trap();
    report().progress = number;
  }
}

/// Progress: messages received.
void take_all() {
  Message message;
  while (reader.try_read(message) == icc::Result::ok) {
    if (!is_whole(message, received + 1)) __builtin_trap();
    report().progress = ++received;
  }
}

void handle_interrupt() {
  const auto acknowledged = Interrupts::acknowledge();
  if (Interrupts::spurious(acknowledged)) return;
  if (Interrupts::number(acknowledged) != channel().interrupt) __builtin_trap();
  take_all();
  Interrupts::end(acknowledged);
}

void receive() {
  auto found = Stream::Reader::attach_until(memory(), channel().size, icc::Never{}, 0U);
  if (!found) __builtin_trap();
  reader = *found;
  Interrupts::start(channel().interrupt);
  firmware::Cpu::enable_interrupts();
  begin();
  while (*const_cast<volatile std::uint32_t*>(&received) < messages) {
    firmware::Cpu::wait_for_interrupt();
  }
}

}  // namespace

extern "C" {
void (*interrupt_handler)() = handle_interrupt;  // for vectors.S
[[noreturn]] void firmware_main() {
  if (information().channels != 1) __builtin_trap();
  channel().sends != 0 ? send() : receive();
  while (true) call(power_off);
}
}

}  // namespace latenz::guests
