// SPDX-License-Identifier: Apache-2.0
#include "aarch64/console.hpp"

#include "aarch64/mmio.hpp"
#include "aarch64/spin_lock.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::size_t capacity = 0x4000;
constexpr unsigned most_at_once = 16;

SpinLock lock;
const Board* on = nullptr;
char ring[capacity];
std::size_t first = 0;
std::size_t waiting = 0;

void push(std::string_view text) {
  for (const char character : text) {
    ring[(first + waiting) % capacity] = character;
    ++waiting;
  }
}

bool room() { return capacity - waiting >= Console::longest_line; }

}  // namespace

void Console::start(const Board& board) {
  on = &board;
  if (board.uart_kind == UartKind::pl011) {
    Mmio::write32(board.uart + 0x30, Mmio::read32(board.uart + 0x30) | 0x101U);
  } else {
    Mmio::write32(board.uart, 0x14);  // reset state drops everything
  }
}

bool Console::put(char character) {
  const bool pl011 = on->uart_kind == UartKind::pl011;
  const std::uint32_t full = pl011 ? Mmio::read32(on->uart + 0x18) & (1U << 5U)
                                   : Mmio::read32(on->uart + 0x2C) & (1U << 4U);
  if (full != 0) return false;
  Mmio::write32(on->uart + (pl011 ? 0x00 : 0x30), static_cast<std::uint8_t>(character));
  return true;
}

bool Console::has_room() {
  const LockGuard guard(lock);
  return room();
}

void Console::add(std::string_view prefix, std::string_view line) {
  const LockGuard guard(lock);
  if (!room()) return;
  push(prefix);
  push(line.substr(0, longest_line - prefix.size() - 1));
  push("\n");
}

void Console::pump() {
  const LockGuard guard(lock);
  for (unsigned i = 0; i < most_at_once && waiting > 0 && put(ring[first]); ++i) {
    first = (first + 1) % capacity;
    --waiting;
  }
}

void Console::drain() {
  const LockGuard guard(lock);
  while (waiting > 0) {
    if (!put(ring[first])) continue;
    first = (first + 1) % capacity;
    --waiting;
  }
}

void Console::print(std::string_view line) {
  drain();
  const LockGuard guard(lock);
  for (const char character : line) {
    while (!put(character)) {
    }
  }
  while (!put('\n')) {
  }
}

}  // namespace latenz::hypervisor
