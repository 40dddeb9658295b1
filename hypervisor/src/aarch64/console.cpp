// SPDX-License-Identifier: Apache-2.0
#include "aarch64/console.hpp"

#include <array>
#include <atomic>

#include "aarch64/mmio.hpp"
#include "boards/board.hpp"
#include "configuration.hpp"
#include "line_rings.hpp"

namespace latenz::hypervisor {
namespace {

using Rings = LineRings<Configuration::most_partitions, 4096>;
Rings rings;
std::array<std::string_view, Configuration::most_partitions> names;
std::atomic<bool> sending;  // some CPU is

/// False if the UART's queue is full.
bool put(char character) {
  const std::uint64_t uart = board().uart;
  const bool pl011 = board().uart_kind == UartKind::pl011;
  const std::uint32_t full =
      pl011 ? Mmio::read32(uart + 0x18) & (1U << 5U) : Mmio::read32(uart + 0x2C) & (1U << 4U);
  if (full != 0) return false;
  Mmio::write32(uart + (pl011 ? 0x00 : 0x30), static_cast<std::uint8_t>(character));
  return true;
}

bool word_fault(std::size_t partition, const Rings::Note& note, unsigned piece,
                Rings::Worded& text) {
  const auto [what, program_counter, address] = note;
  if (piece == 0) text.add("hypervisor: ");
  if (piece == 1) text.add(names[partition]);
  if (piece == 2) text.add(": ").add(reinterpret_cast<const char*>(what));
  if (piece == 3) text.add(" at ").add_hex(program_counter);
  if (piece == 4) text.add(", address ").add_hex(address);
  return piece <= 4;
}

void put_surely(char character) {
  while (!put(character)) {
  }
}

}  // namespace

void Console::start() {
  const std::uint64_t uart = board().uart;
  if (board().uart_kind == UartKind::pl011) {
    if (const std::uint32_t divisor = board().uart_divisor; divisor != 0) {
      Mmio::write32(uart + 0x30, 0);  // off: nothing of it may change otherwise
      Mmio::write32(uart + 0x24, divisor / 64);
      Mmio::write32(uart + 0x28, divisor % 64);
      Mmio::write32(uart + 0x2C, 0x70);  // 8 bits, no parity, a queue
    }
    Mmio::write32(uart + 0x30, Mmio::read32(uart + 0x30) | 0x101U);
  } else {
    Mmio::write32(uart, 0x14);  // reset state drops everything
  }
}

bool Console::has_room(std::size_t partition) { return rings.has_room(partition); }

void Console::name(std::size_t partition, std::string_view name) { names[partition] = name; }

bool Console::begin_line(std::size_t partition) {
  if (!rings.begin(partition)) return false;
  rings.write(partition, names[partition]);
  rings.write(partition, "| ");
  return true;
}

void Console::add(std::size_t partition, char character) {
  rings.write(partition, {&character, 1});
}

void Console::end_line(std::size_t partition) { rings.end(partition); }

void Console::lose_line(std::size_t partition) { rings.lose(partition); }

void Console::tell_fault(std::size_t partition, const char* what, std::uint64_t program_counter,
                         std::uint64_t address) {
  rings.note(partition, {reinterpret_cast<std::uint64_t>(what), program_counter, address});
}

std::uint32_t Console::lost(std::size_t partition) { return rings.lost(partition); }

bool Console::pump(unsigned most) {
  if (sending.exchange(true, std::memory_order_acquire)) return true;
  const bool left = rings.send(most, put, word_fault);
  sending.store(false, std::memory_order_release);
  return left;
}

/// Another CPU is at it for a few characters only, unless it has died there, or it is this one.
void Console::take() {
  constexpr unsigned most_tries = 1'000'000;
  for (unsigned i = 0; i < most_tries && sending.exchange(true, std::memory_order_acquire); ++i) {
    asm volatile("yield");
  }
}

void Console::drain() {
  while (rings.send(1, put, word_fault)) {
  }
}

void Console::print(std::string_view line) {
  for (const char character : line) put_surely(character);
  put_surely('\n');
}

}  // namespace latenz::hypervisor
